/*
 * Trace events: states, patterns, lines of the log.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace-helpers.h"
#include "trace/log-sink.h"
#include "trace/trace-tests-unit.h"

/* ---- states and patterns ---- */

static void test_events_are_off_until_enabled(void)
{
    const TraceEvent *ev = trace_event_find("test_int");

    g_assert_nonnull(ev);
    g_assert_false(trace_event_is_enabled(ev));
    g_assert_false(trace_event_on(test_int));
    trace_event_set_enabled(ev, true);
    g_assert_true(trace_event_on(test_int));
    g_assert_false(trace_event_on(test_void));
    trace_event_set_enabled(ev, false);
    g_assert_false(trace_event_on(test_int));
}

static void test_pattern_switches_what_it_matches(void)
{
    static const struct {
        const char *pattern, *names;        /* in the order of declaration */
    } cases[] = {
        { "test_int", "test_int " },
        { "test_*in*", "test_int test_string test_ten_strings " },
        { "-*strings", "test_int test_string " },
        { "?est_v???", "test_void test_int test_string " },
        { "-*i*", "" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) on = g_string_new(NULL);
        TraceEventIter iter;
        const TraceEvent *ev;

        enable(cases[i].pattern);
        trace_event_iter_init(&iter, NULL);
        while ((ev = trace_event_iter_next(&iter)) != NULL) {
            if (trace_event_is_enabled(ev)) {
                g_string_append_printf(on, "%s ", ev->name);
            }
        }
        g_assert_cmpstr(on->str, ==, cases[i].names);
    }
}

static void test_pattern_without_match_is_refused_with_near_names(void)
{
    static const struct {
        const char *pattern, *message;
    } cases[] = {
        { "test_strin", "trace event 'test_strin' does not exist; did you mean 'test_string', "
          "'test_ten'?" },
        { "tset_void", "trace event 'tset_void' does not exist; did you mean 'test_void'?" },
        { "tost_mix*", "no trace event matches 'tost_mix*'; did you mean 'test_mixed'?" },
        { "zzz*", "no trace event matches 'zzz*'" },
        { "-", "trace event '' does not exist" },
        { "", "trace event '' does not exist" },
        { "test_disabled", "trace event 'test_disabled' is compiled out" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_false(trace_enable_pattern(cases[i].pattern, &err));
        g_assert_cmpstr(err->message, ==, cases[i].message);
    }
    g_assert_false(trace_event_is_available(trace_event_find("test_disabled")));
}

static void keep_warning(const char *path, unsigned line, const char *text, void *opaque)
{
    g_string_append_printf(opaque, "%s:%u: %s\n", strrchr(path, '/') + 1, line, text);
}

static void test_file_of_patterns_warns_and_goes_on(void)
{
    g_autofree char *path = temp_path("events"), *missing = temp_path("missing");
    g_autofree char *dir = g_strdup(temp_dir);
    g_autoptr(GString) warnings = g_string_new(NULL);
    g_autoptr(GError) err = NULL;

    g_assert_true(g_file_set_contents(path, "# comment\n\n  test_t*  \nnosuch\n-test_ten\r\n"
                                      "test_int", -1, NULL));
    g_assert_true(trace_enable_file(path, keep_warning, warnings, &err));
    g_assert_cmpstr(warnings->str, ==, "events:4: trace event 'nosuch' does not exist\n");
    g_assert_true(trace_event_on(test_types));
    g_assert_true(trace_event_on(test_ten_strings));
    g_assert_false(trace_event_on(test_ten));
    g_assert_true(trace_event_on(test_int));
    everything_off();

    g_assert_false(trace_enable_file(missing, keep_warning, NULL, &err));
    g_assert_true(g_str_has_suffix(err->message, "missing': No such file or directory"));
    g_clear_error(&err);
    g_assert_false(trace_enable_file(dir, keep_warning, NULL, &err));
    g_assert_true(g_str_has_suffix(err->message, "': Is a directory"));
    g_clear_error(&err);
    g_assert_false(trace_enable_file("/dev/zero", keep_warning, NULL, &err));
    g_assert_nonnull(strstr(err->message, "/dev/zero:1: the line is longer than"));
}

/* ---- the log ---- */

static void test_log_writes_one_line_an_event(void)
{
    g_autofree char *path = temp_path("log-%d"), *name = NULL, *text = NULL;
    g_autoptr(GError) err = NULL;
    char *long_text = g_strnfill(2 * LOG_SINK_LINE_MAX, 'x');
    gsize len;

    name = g_strdup_printf("%s/log-%d", temp_dir, (int)getpid());
    g_assert_true(log_sink_open(path, &err));
    g_assert_true(log_sink_is_file());
    enable("test_*");
    trace_test_void();
    trace_test_types(true, -1, 65535, 7, -5, NULL);
    trace_test_mixed(1, "x", 255, NULL);
    trace_test_disabled(1);
    everything_off();
    trace_test_void();
    g_assert_true(g_file_get_contents(name, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "test_void nothing to say\n"
                    "test_types flag 1 small -1 half 65535 word 7 big -5 ptr (nil)\n"
                    "test_mixed a 1 text x b 0xff more (null)\n");
    g_clear_pointer(&text, g_free);

    g_assert_true(log_sink_open(path, &err));
    enable("test_string");
    trace_test_string(long_text);
    everything_off();
    g_assert_true(g_file_get_contents(name, &text, &len, NULL));
    g_assert_cmpuint(len, ==, LOG_SINK_LINE_MAX);
    g_assert_true(g_str_has_suffix(text, "xxx...\n"));
    g_free(long_text);
    g_assert_true(log_sink_open(NULL, &err));
}

static void test_log_line_can_begin_with_thread_and_time(void)
{
    g_autofree char *path = temp_path("log"), *text = NULL, *want = NULL;
    int64_t now_us = g_get_real_time(), us;
    char *end;

    g_assert_true(log_sink_open(path, NULL));
    log_sink_set_timestamps(true);
    enable("test_int");
    trace_test_int(3);
    everything_off();
    log_sink_set_timestamps(false);
    g_assert_true(log_sink_open(NULL, NULL));
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    want = g_strdup_printf("%d@", (int)gettid());
    g_assert_true(g_str_has_prefix(text, want));
    us = g_ascii_strtoll(text + strlen(want), &end, 10) * 1000000;
    g_assert_cmpint(*end, ==, '.');
    g_assert_cmpstr(end + 7, ==, ":test_int value 3\n");
    us += g_ascii_strtoll(end + 1, NULL, 10);
    g_assert_cmpint(ABS(us - now_us), <, 10 * 1000000);
}

static void test_log_file_that_cannot_be_is_refused(void)
{
    g_autofree char *path = g_build_filename(temp_dir, "no", "such", NULL);
    g_autoptr(GError) err = NULL;

    g_assert_false(log_sink_open("x%sy", &err));
    g_assert_nonnull(strstr(err->message, "'x%sy'"));
    g_clear_error(&err);
    g_assert_false(log_sink_open("%d%d", &err));
    g_clear_error(&err);
    g_assert_false(log_sink_open(path, &err));
    g_assert_nonnull(strstr(err->message, "No such file or directory"));
    g_assert_false(log_sink_is_file());
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    temp_dir_make();
    g_test_add_func("/trace/states", test_events_are_off_until_enabled);
    g_test_add_func("/trace/pattern", test_pattern_switches_what_it_matches);
    g_test_add_func("/trace/near-names", test_pattern_without_match_is_refused_with_near_names);
    g_test_add_func("/trace/pattern-file", test_file_of_patterns_warns_and_goes_on);
    g_test_add_func("/trace/log/line", test_log_writes_one_line_an_event);
    g_test_add_func("/trace/log/timestamp", test_log_line_can_begin_with_thread_and_time);
    g_test_add_func("/trace/log/bad-file", test_log_file_that_cannot_be_is_refused);
    ret = g_test_run();
    temp_dir_remove();
    return ret;
}
