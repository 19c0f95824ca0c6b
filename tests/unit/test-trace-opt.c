/*
 * -trace, -d and -D as the user types them.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/control.h"
#include "trace/simple.h"
#include "trace/trace-tests-unit.h"
#include "util/err.h"
#include "util/log.h"
#include "util/trace-opt.h"

static char *temp_dir;

static void reset(void)
{
    trace_stop();
    g_assert_true(trace_enable_pattern("-*", NULL));
    log_items_on = 0;
}

static void parse(const char *text)
{
    g_autoptr(GError) err = NULL;

    trace_opt_parse(text, &err);
    g_assert_no_error(err);
}

static void test_pattern_may_stand_alone_or_behind_enable(void)
{
    parse("test_int");
    g_assert_true(trace_event_on(test_int));
    parse("enable=test_vo*");
    g_assert_true(trace_event_on(test_void));
    g_assert_true(trace_event_on(test_int));
    parse("-test_int");
    g_assert_false(trace_event_on(test_int));
    reset();
    g_assert_true(trace_opt_is_help("help"));
    g_assert_true(trace_opt_is_help("?"));
    g_assert_false(trace_opt_is_help("helper"));
}

static void test_file_name_may_hold_commas(void)
{
    g_autofree char *path = g_strdup_printf("%s/a,b", temp_dir);
    g_autofree char *text = g_strdup_printf("enable=test_int,file=%s/a,,b", temp_dir);

    parse(text);
    g_assert_true(trace_event_on(test_int));
    g_assert_true(trace_simple_is_open());
    reset();
    g_assert_true(g_file_test(path, G_FILE_TEST_IS_REGULAR));
    g_unlink(path);
}

static void test_bad_options_are_refused_by_name(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "tost_int", "trace event 'tost_int' does not exist; did you mean 'test_int'?" },
        { "enable=test_int,fiel=x", "Invalid parameter 'fiel'; did you mean 'file'?" },
        { "test_int,test_void", "Expected '=' after parameter 'test_void'" },
        { "test_int,help", "'help' of -trace stands alone" },
        { "enable=", "'enable=' of -trace wants a value" },
        { "test_int,events=", "'events=' of -trace wants a value" },
        { "test_int,file=", "'file=' of -trace wants a value" },
        { "events=/nonexistent/e", "Could not read '/nonexistent/e': No such file or directory" },
        { "file=/nonexistent/f",
          "Could not open trace file '/nonexistent/f': No such file or directory" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_false(trace_opt_parse(cases[i].text, &err));
        g_assert_cmpstr(err->message, ==, cases[i].message);
        g_assert_false(trace_event_on(test_int));
        g_assert_false(trace_event_on(test_void));
    }
}

static void test_unknown_line_of_events_file_is_a_warning_with_place(void)
{
    g_autofree char *path = g_strdup_printf("%s/events", temp_dir);

    if (g_test_subprocess()) {
        g_autofree char *text = g_strdup_printf("events=%s", path);

        report_set_progname("qemu-img");
        g_assert_true(g_file_set_contents(path, "test_int\nnosuch\n", -1, NULL));
        parse(text);
        g_assert_true(trace_event_on(test_int));
        g_unlink(path);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("qemu-img:*/events:2: warning: "
                              "trace event 'nosuch' does not exist\n");
}

/* -trace PATTERN,file=F with both backends: the log stays quiet unless it was asked for. */
static void test_file_takes_events_from_the_log(void)
{
    g_autofree char *path = g_strdup_printf("%s/f", temp_dir);

    if (g_test_subprocess()) {
        g_autofree char *text = g_strdup_printf("test_int,file=%s", path);

        parse("test_int");
        trace_test_int(1);
        parse(text);
        trace_test_int(2);
        g_assert_true(trace_start(NULL));
        trace_test_int(3);
        g_assert_true(log_parse_items("trace:test_int", NULL));
        trace_test_int(4);
        trace_stop();
        g_unlink(path);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("test_int value 1\ntest_int value 4\n");
}

static void test_log_items_are_written_only_when_asked_for(void)
{
    if (g_test_subprocess()) {
        g_autoptr(GError) err = NULL;

        log_mask(LOG_GUEST_ERROR, "not yet\n");
        g_assert_false(log_parse_items("iothread-stats,guest_error", &err));
        g_assert_cmpstr(err->message, ==,
                        "log item 'guest_error' does not exist; did you mean 'guest_errors'?");
        log_mask(LOG_IOTHREAD_STATS, "nothing was changed\n");
        g_assert_true(log_parse_items("guest_errors,trace:test_void", NULL));
        log_mask(LOG_GUEST_ERROR, "bad %d\n", 1);
        log_mask(LOG_IOTHREAD_STATS, "still not\n");
        trace_test_void();
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("bad 1\ntest_void nothing to say\n");
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    temp_dir = g_dir_make_tmp("test-trace-opt-XXXXXX", NULL);
    g_assert_nonnull(temp_dir);
    g_test_add_func("/trace-opt/pattern", test_pattern_may_stand_alone_or_behind_enable);
    g_test_add_func("/trace-opt/commas", test_file_name_may_hold_commas);
    g_test_add_func("/trace-opt/refused", test_bad_options_are_refused_by_name);
    g_test_add_func("/trace-opt/events-file",
                    test_unknown_line_of_events_file_is_a_warning_with_place);
    g_test_add_func("/trace-opt/file", test_file_takes_events_from_the_log);
    g_test_add_func("/log/items", test_log_items_are_written_only_when_asked_for);
    ret = g_test_run();
    g_rmdir(temp_dir);
    g_free(temp_dir);
    return ret;
}
