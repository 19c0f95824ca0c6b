/*
 * Splitting a command line.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/cmdline.h"

enum { OPT_DEVICE, OPT_OBJECT, OPT_NOGRAPHIC, OPT_M };

static const CmdlineOption table[] = {
    { "device", OPT_DEVICE, "DRIVER[,PROP=VALUE]...", "add a device\n-device help lists them" },
    { "object", OPT_OBJECT, "TYPE", NULL },
    { "nographic", OPT_NOGRAPHIC, NULL, "serial port on the terminal" },
    { "m", OPT_M, "SIZE", "guest memory" },
    { NULL }
};

#define ARGV(...) { (char *)"prog", __VA_ARGS__, NULL }
#define W(word_) (char *)(word_)

static void test_options_and_words(void)
{
    char *argv[] = ARGV(W("-device"), W("a"), W("--device"), W("-b"), W("disk.img"),
                        W("-nographic"), W("-m"), W("1G"), W("-m"), W(""), W("-"));
    g_autoptr(GError) err = NULL;
    g_autoptr(Cmdline) cl = cmdline_parse(table, G_N_ELEMENTS(argv) - 1, argv, &err);
    const CmdlineItem *item;
    size_t at = 0;

    g_assert_no_error(err);
    g_assert_cmpuint(cl->count, ==, 7);
    item = cmdline_find(cl, OPT_DEVICE, &at);
    g_assert_cmpstr(item->arg, ==, "a");
    g_assert_cmpint(item->word_count, ==, 2);
    g_assert_cmpstr(item->words[0], ==, "-device");
    item = cmdline_find(cl, OPT_DEVICE, &at);
    g_assert_cmpstr(item->arg, ==, "-b");
    g_assert_null(cmdline_find(cl, OPT_DEVICE, &at));
    g_assert_null(cl->items[2].option);
    g_assert_cmpstr(cl->items[2].arg, ==, "disk.img");
    g_assert_null(cmdline_last(cl, OPT_NOGRAPHIC)->arg);
    g_assert_cmpstr(cmdline_last(cl, OPT_M)->arg, ==, "");
    g_assert_null(cmdline_last(cl, OPT_OBJECT));
    g_assert_cmpstr(cl->items[6].arg, ==, "-");
}

static void assert_refused(char *first, char *second, const char *message)
{
    char *argv[] = { W("prog"), first, second, NULL };
    g_autoptr(GError) err = NULL;

    g_assert_null(cmdline_parse(table, second ? 3 : 2, argv, &err));
    g_assert_cmpstr(err->message, ==, message);
}

static void test_bad_options_are_named(void)
{
    assert_refused(W("-devcie"), W("x"), "-devcie: invalid option; did you mean '-device'?");
    assert_refused(W("-xyzzy"), NULL, "-xyzzy: invalid option");
    assert_refused(W("--"), NULL, "--: invalid option");
    assert_refused(W("-device"), NULL, "-device: requires an argument");
    assert_refused(W("-nographic"), W("-mm"), "-mm: invalid option");
}

static void test_nothing_at_all(void)
{
    char *argv[] = { W("prog"), NULL };
    g_autoptr(Cmdline) cl = cmdline_parse(table, 1, argv, NULL);
    g_autoptr(Cmdline) none = cmdline_parse(table, 0, argv + 1, NULL);

    g_assert_cmpuint(cl->count, ==, 0);
    g_assert_cmpuint(none->count, ==, 0);
}

static void test_help_lists_the_table(void)
{
    g_autoptr(GString) out = g_string_new(NULL);

    cmdline_help(table, out);
    g_assert_cmpstr(out->str, ==,
                    "-device DRIVER[,PROP=VALUE]...\n"
                    "                add a device\n"
                    "                -device help lists them\n"
                    "-object TYPE\n"
                    "-nographic      serial port on the terminal\n"
                    "-m SIZE         guest memory\n");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cmdline/options", test_options_and_words);
    g_test_add_func("/cmdline/bad-options", test_bad_options_are_named);
    g_test_add_func("/cmdline/empty", test_nothing_at_all);
    g_test_add_func("/cmdline/help", test_help_lists_the_table);
    return g_test_run();
}
