/*
 * Error objects and messages.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/err.h"

#include <errno.h>

static void test_set_fills_message_and_class(void)
{
    g_autoptr(GError) err = NULL;

    err_set(&err, "no '%s' in %d", "x", 3);
    g_assert_error(err, ERR_DOMAIN, ERR_CLASS_GENERIC);
    g_assert_cmpstr(err->message, ==, "no 'x' in 3");
    g_assert_cmpint(err_class(err), ==, ERR_CLASS_GENERIC);

    g_clear_error(&err);
    err_set_class(&err, ERR_CLASS_DEVICE_NOT_FOUND, "Device 'a' not found");
    g_assert_cmpint(err_class(err), ==, ERR_CLASS_DEVICE_NOT_FOUND);

    g_clear_error(&err);
    err = g_error_new(G_FILE_ERROR, G_FILE_ERROR_INVAL, "foreign");
    g_assert_cmpint(err_class(err), ==, ERR_CLASS_GENERIC);
}

static void test_null_errp_is_ignored(void)
{
    err_set(NULL, "x");
    err_set_errno(NULL, ENOENT, "x");
    err_prepend(NULL, "x");
    err_append(NULL, "x");
}

static void test_errno_of_either_sign_is_spelled_out(void)
{
    g_autoptr(GError) a = NULL;
    g_autoptr(GError) b = NULL;

    err_set_errno(&a, ENOENT, "Could not open '%s'", "f");
    err_set_errno(&b, -ENOENT, "Could not open '%s'", "f");
    g_assert_cmpstr(a->message, ==, "Could not open 'f': No such file or directory");
    g_assert_cmpstr(b->message, ==, a->message);
}

static void test_prepend_and_append(void)
{
    g_autoptr(GError) err = NULL;

    err_prepend(&err, "x");
    g_assert_null(err);
    err_set(&err, "b%%");
    err_prepend(&err, "a%d ", 1);
    err_append(&err, " c");
    g_assert_cmpstr(err->message, ==, "a1 b% c");
}

static void test_locations_nest(void)
{
    ErrLocation a, b, c;
    char word0[] = "-device", word1[] = "foo,id=x";
    char *argv[] = { word0, word1, NULL };

    g_assert_null(err_location_text());
    err_location_push(&a, "%s:%d", "guest.cfg", 12);
    g_assert_cmpstr(err_location_text(), ==, "guest.cfg:12");
    err_location_push_args(&b, argv, 2);
    g_assert_cmpstr(err_location_text(), ==, "-device foo,id=x");
    err_location_push_none(&c);
    g_assert_null(err_location_text());
    err_location_pop(&c);
    err_location_pop(&b);
    g_assert_cmpstr(err_location_text(), ==, "guest.cfg:12");
    err_location_pop(&a);
    g_assert_null(err_location_text());
}

static gpointer location_of_thread(gpointer opaque)
{
    return (gpointer)err_location_text();
}

static void test_location_belongs_to_its_thread(void)
{
    ErrLocation a;

    err_location_push(&a, "here");
    g_assert_null(g_thread_join(g_thread_new("other", location_of_thread, NULL)));
    err_location_pop(&a);
}

static void test_messages_carry_program_location_and_kind(void)
{
    if (g_test_subprocess()) {
        g_autoptr(GError) err = NULL;
        ErrLocation loc;

        report_set_progname("/usr/bin/qemu-system-x86_64");
        report_error("plain %d", 1);
        err_location_push(&loc, "-device %s", "foo");
        err_set(&err, "100%%s");
        report_error_gerror(err);
        report_warning("careful");
        err_location_pop(&loc);
        err_location_push_file(&loc, "a/b.cfg", 7);
        report_warning("odd");
        err_location_pop(&loc);
        report_info("told");
        report_warning_gerror(err);
        exit(0);
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("qemu-system-x86_64: plain 1\n"
                              "qemu-system-x86_64: -device foo: 100%s\n"
                              "qemu-system-x86_64: -device foo: warning: careful\n"
                              "qemu-system-x86_64:a/b.cfg:7: warning: odd\n"
                              "qemu-system-x86_64: info: told\n"
                              "qemu-system-x86_64: warning: 100%s\n");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/err/set", test_set_fills_message_and_class);
    g_test_add_func("/err/null-errp", test_null_errp_is_ignored);
    g_test_add_func("/err/errno", test_errno_of_either_sign_is_spelled_out);
    g_test_add_func("/err/prepend-append", test_prepend_and_append);
    g_test_add_func("/err/locations", test_locations_nest);
    g_test_add_func("/err/location-thread", test_location_belongs_to_its_thread);
    g_test_add_func("/err/messages", test_messages_carry_program_location_and_kind);
    return g_test_run();
}
