/*
 * The simple backend: its file byte by byte, losses, and what is left when a process ends.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace-helpers.h"
#include "trace-reader.h"
#include "trace/simple.h"
#include "trace/trace-tests-unit.h"

#define BENCH_EVENTS 20000
#define BENCH_ROUNDS 8

/* ---- layout ---- */

static void append_u64(GByteArray *a, uint64_t v)
{
    g_byte_array_append(a, (const uint8_t *)&v, 8);
}

static void append_u32(GByteArray *a, uint32_t v)
{
    g_byte_array_append(a, (const uint8_t *)&v, 4);
}

/* The bytes that the contract asks for; the time stamp is taken from the file. */
static void test_file_matches_the_layout_byte_by_byte(void)
{
    g_autofree char *path = temp_path("bytes");
    g_autofree char *text = NULL;
    g_autoptr(GByteArray) want = g_byte_array_new();
    const TraceEvent *ev;
    TraceEventIter iter;
    uint64_t before, after, ns;
    gsize len;

    enable("test_mixed");
    open_file(path);
    start();
    before = trace_clock_monotonic_ns();
    trace_test_mixed(4000000000u, "abc", 5, NULL);
    after = trace_clock_monotonic_ns();
    everything_off();

    append_u64(want, UINT64_MAX);
    append_u64(want, UINT64_C(0xf2b177cb0aa429b4));
    append_u64(want, 4);
    trace_event_iter_init(&iter, NULL);
    while ((ev = trace_event_iter_next(&iter)) != NULL) {
        append_u64(want, 0);
        append_u64(want, ev->id);
        append_u32(want, (uint32_t)strlen(ev->name));
        g_byte_array_append(want, (const uint8_t *)ev->name, (guint)strlen(ev->name));
    }
    append_u64(want, 1);
    append_u64(want, trace_event_find("test_mixed")->id);
    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    g_assert_cmpuint(len, ==, want->len + 8 + 8 + 8 + 7 + 8 + 4);
    memcpy(&ns, text + want->len, 8);
    /* The clocks are compared within 50 ns; allow for a preemption between two reads. */
    g_assert_cmpuint(ns + 20000, >=, before);
    g_assert_cmpuint(ns, <=, after + 20000);
    append_u64(want, ns);
    append_u32(want, 24 + 8 + 7 + 8 + 4);
    append_u32(want, (uint32_t)getpid());
    append_u64(want, 4000000000u);
    append_u32(want, 3);
    g_byte_array_append(want, (const uint8_t *)"abc", 3);
    append_u64(want, 5);
    append_u32(want, 0);
    g_assert_cmpmem(text, len, want->data, want->len);
}

static void test_integers_are_sign_extended_and_pointers_kept(void)
{
    g_autofree char *path = temp_path("types");
    Reader r;
    Record rec;

    enable("test_*");
    open_file(path);
    start();
    trace_test_void();
    trace_test_types(true, -128, 65535, UINT_MAX, INT64_MIN, &r);
    trace_test_ten(-1, 2, -3, 4, -5, 6, -7, 8, -9, INT_MAX);
    everything_off();

    reader_open(&r, path);
    expect(&r, &rec, "test_void");
    g_assert_true(rec.args == rec.args_end);
    expect(&r, &rec, "test_types");
    g_assert_cmpuint(arg_u64(&rec), ==, 1);
    g_assert_cmphex(arg_u64(&rec), ==, (uint64_t)-128);
    g_assert_cmpuint(arg_u64(&rec), ==, 65535);
    g_assert_cmpuint(arg_u64(&rec), ==, UINT_MAX);
    g_assert_cmphex(arg_u64(&rec), ==, (uint64_t)INT64_MIN);
    g_assert_cmphex(arg_u64(&rec), ==, (uintptr_t)&r);
    g_assert_true(rec.args == rec.args_end);
    expect(&r, &rec, "test_ten");
    for (int i = 1; i < 10; i++) {
        g_assert_cmpint((int64_t)arg_u64(&rec), ==, i % 2 ? -i : i);
    }
    g_assert_cmpuint(arg_u64(&rec), ==, INT_MAX);
    g_assert_true(rec.args == rec.args_end);
    g_assert_false(reader_next(&r, &rec));
    reader_close(&r);
}

static void test_strings_are_cut_at_512_bytes(void)
{
    g_autofree char *path = temp_path("strings");
    g_autofree char *s513 = g_strnfill(513, 'a'), *s512 = g_strnfill(512, 'a');
    Reader r;
    Record rec;

    enable("test_*");
    open_file(path);
    start();
    trace_test_string(s513);
    trace_test_ten_strings("", "b", NULL, s512, "e\xff", "f", "g", "h", "i", s513);
    everything_off();

    reader_open(&r, path);
    expect(&r, &rec, "test_string");
    expect_string(&rec, s512);
    g_assert_true(rec.args == rec.args_end);
    expect(&r, &rec, "test_ten_strings");
    expect_string(&rec, "");
    expect_string(&rec, "b");
    expect_string(&rec, "");
    expect_string(&rec, s512);
    expect_string(&rec, "e\xff");
    for (const char *s = "fghi"; *s; s++) {
        expect_string(&rec, (char[]) { *s, '\0' });
    }
    expect_string(&rec, s512);
    g_assert_true(rec.args == rec.args_end);
    reader_close(&r);
}

static void test_events_before_start_are_kept_and_old_content_is_not(void)
{
    g_autofree char *path = temp_path("early"), *unused = temp_path("unused");
    g_autofree char *text = NULL;
    Reader r;
    Record rec;
    gsize len;

    g_assert_true(g_file_set_contents(path, "previous run", -1, NULL));
    enable("test_int");
    open_file(unused);
    open_file(path);
    trace_test_int(1);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "previous run");
    start();
    trace_test_int(2);
    everything_off();
    reader_open(&r, path);
    expect(&r, &rec, "test_int");
    g_assert_cmpuint(arg_u64(&rec), ==, 1);
    expect(&r, &rec, "test_int");
    g_assert_cmpuint(arg_u64(&rec), ==, 2);
    g_assert_false(reader_next(&r, &rec));
    reader_close(&r);
    g_free(g_steal_pointer(&text));
    g_assert_true(g_file_get_contents(unused, &text, &len, NULL));
    g_assert_cmpuint(len, ==, 0);
}

static void test_flush_brings_events_to_the_file(void)
{
    g_autofree char *path = temp_path("flush");
    TraceSimpleStats stats;

    enable("test_count");
    open_file(path);
    start();
    for (unsigned i = 0; i < 50; i++) {
        Reader r;
        Record rec;
        unsigned seen = 0;

        trace_test_count(0, i);
        trace_simple_flush();
        reader_open(&r, path);
        while (reader_next(&r, &rec)) {
            seen++;
        }
        g_assert_cmpuint(seen, ==, i + 1);
        reader_close(&r);
    }
    trace_simple_get_stats(&stats);
    g_assert_cmpuint(stats.written, ==, 50);
    g_assert_cmpuint(stats.lost, ==, 0);
    everything_off();
}

/* ---- losses ---- */

typedef struct Tally {
    uint64_t seen, dropped;
    uint64_t next[64];              /* by thread of test_count: numbers only grow */
    uint64_t last_ns;
    unsigned out_of_order;
} Tally;

static void tally(Reader *r, Tally *t)
{
    Record rec;

    while (reader_next(r, &rec)) {
        if (*rec.name == '\0') {
            t->dropped += arg_u64(&rec);
        } else {
            uint64_t thread = arg_u64(&rec), number = arg_u64(&rec);

            g_assert_cmpuint(thread, <, G_N_ELEMENTS(t->next));
            g_assert_cmpuint(number, >=, t->next[thread]);
            t->next[thread] = number + 1;
            t->seen++;
            t->out_of_order += rec.ns < t->last_ns;
            t->last_ns = rec.ns;
        }
        g_assert_true(rec.args == rec.args_end);
    }
}

static void test_full_ring_counts_what_it_loses(void)
{
    const uint64_t words = 4, total = TRACE_SIMPLE_RING_WORDS;
    g_autofree char *path = temp_path("full-ring");
    TraceSimpleStats stats;
    Tally t = { 0 };
    Reader r;

    if (g_test_subprocess()) {
        enable("test_count");
        open_file(path);
        for (uint64_t i = 0; i < total; i++) {
            trace_test_count(0, i);
        }
        everything_off();
        trace_simple_get_stats(&stats);
        g_assert_cmpuint(stats.written, ==, TRACE_SIMPLE_RING_WORDS / words);
        g_assert_cmpuint(stats.lost, ==, total - TRACE_SIMPLE_RING_WORDS / words);
        reader_open(&r, path);
        tally(&r, &t);
        g_assert_cmpuint(t.seen, ==, stats.written);
        g_assert_cmpuint(t.dropped, ==, stats.lost);
        reader_close(&r);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*full-ring': 196608 of 262144 events (75.00 %) are lost\n");
}

typedef struct Producer {
    unsigned thread;
    uint64_t count;
} Producer;

static gpointer produce(gpointer opaque)
{
    Producer *p = opaque;

    for (uint64_t i = 0; i < p->count; i++) {
        trace_test_count(p->thread, i);
    }
    return NULL;
}

/* Read a pipe to its end, slowly. */
static gpointer slurp_slowly(gpointer opaque)
{
    GByteArray *all = g_byte_array_new();
    uint8_t chunk[65536];
    ssize_t n;

    while ((n = read(GPOINTER_TO_INT(opaque), chunk, sizeof(chunk))) > 0) {
        g_byte_array_append(all, chunk, (guint)n);
        g_usleep(300);
    }
    return all;
}

static void test_overload_is_counted_exactly(void)
{
    Producer producers[3] = { { 0, 400000 }, { 1, 300000 }, { 2, 200000 } };
    GThread *threads[3], *reader;
    TraceSimpleStats stats;
    Tally t = { 0 };
    Reader r;

    if (g_test_subprocess()) {
        int fds[2];
        char path[32];

        g_assert_cmpint(pipe(fds), ==, 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
        enable("test_count");
        open_file(path);
        close(fds[1]);
        reader = g_thread_new("reader", slurp_slowly, GINT_TO_POINTER(fds[0]));
        start();
        for (unsigned i = 0; i < 3; i++) {
            threads[i] = g_thread_new("producer", produce, &producers[i]);
        }
        for (unsigned i = 0; i < 3; i++) {
            g_thread_join(threads[i]);
        }
        everything_off();
        reader_on(&r, g_byte_array_free_to_bytes(g_thread_join(reader)));
        tally(&r, &t);
        reader_close(&r);
        trace_simple_get_stats(&stats);
        g_assert_cmpuint(t.seen, ==, stats.written);
        g_assert_cmpuint(t.dropped, ==, stats.lost);
        g_assert_cmpuint(t.seen + t.dropped, ==, 900000);
        g_assert_cmpuint(t.dropped, >, 0);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*events (* %) are lost\n");
}

static void test_threads_come_and_go(void)
{
    enum { ROUNDS = 40, AT_ONCE = 8, EVENTS = 50 };
    g_autofree char *path = temp_path("threads");
    Tally t = { 0 };
    Reader r;

    enable("test_count");
    open_file(path);
    start();
    for (unsigned round = 0; round < ROUNDS; round++) {
        Producer producers[AT_ONCE];
        GThread *threads[AT_ONCE];

        for (unsigned i = 0; i < AT_ONCE; i++) {
            producers[i] = (Producer) { i, EVENTS };
            threads[i] = g_thread_new("producer", produce, &producers[i]);
        }
        for (unsigned i = 0; i < AT_ONCE; i++) {
            g_thread_join(threads[i]);
        }
        trace_simple_flush();
        /* The next round's numbers begin at 0 again. */
        trace_test_count(63, round);
    }
    everything_off();
    reader_open(&r, path);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned seen = 0;
        Record rec;

        while (reader_next(&r, &rec) && arg_u64(&rec) != 63) {
            seen++;
        }
        g_assert_cmpuint(seen, ==, AT_ONCE * EVENTS);
    }
    tally(&r, &t);
    g_assert_cmpuint(t.seen + t.dropped, ==, 0);
    reader_close(&r);
}

static void test_file_is_in_order_of_time(void)
{
    enum { THREADS = 4, EVENTS = 3000 };
    g_autofree char *path = temp_path("order");
    Producer producers[THREADS];
    GThread *threads[THREADS];
    Tally t = { 0 };
    Reader r;

    enable("test_count");
    open_file(path);
    for (unsigned i = 0; i < THREADS; i++) {
        producers[i] = (Producer) { i, EVENTS };
        threads[i] = g_thread_new("producer", produce, &producers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        g_thread_join(threads[i]);
    }
    /* One pass, begun after the last event: nothing may be out of order. */
    everything_off();
    reader_open(&r, path);
    tally(&r, &t);
    g_assert_cmpuint(t.seen, ==, THREADS * EVENTS);
    g_assert_cmpuint(t.out_of_order, ==, 0);
    reader_close(&r);
}

/* ---- trouble with the file ---- */

static void test_file_that_cannot_be_is_refused(void)
{
    g_autofree char *path = g_build_filename(temp_dir, "no", "such", NULL);
    g_autoptr(GError) err = NULL;

    g_assert_false(trace_set_file(path, &err));
    g_assert_nonnull(strstr(err->message, "No such file or directory"));
    g_assert_false(trace_simple_is_open());
    g_clear_error(&err);
    g_assert_false(trace_set_file(temp_dir, &err));
    g_assert_nonnull(strstr(err->message, "Is a directory"));
}

/* As a full disk does: some of a write fits, the rest doesn't, later there is room again. */
static void test_full_disk_leaves_whole_records_and_a_count(void)
{
    const uint64_t total = 20000;
    g_autofree char *path = temp_path("full-disk");
    struct rlimit limit, small = { 100001, RLIM_INFINITY };
    TraceSimpleStats stats;
    Tally t = { 0 };
    Reader r;

    if (g_test_subprocess()) {
        signal(SIGXFSZ, SIG_IGN);
        g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        small.rlim_max = limit.rlim_max;
        enable("test_count");
        open_file(path);
        start();
        trace_test_count(0, 0);
        trace_simple_flush();
        g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &small), ==, 0);
        for (uint64_t i = 1; i < total - 1; i++) {
            trace_test_count(0, i);
        }
        trace_simple_flush();
        trace_simple_flush();
        g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        trace_test_count(0, total - 1);
        everything_off();
        trace_simple_get_stats(&stats);
        reader_open(&r, path);
        tally(&r, &t);
        reader_close(&r);
        g_assert_cmpuint(t.next[0], ==, total);
        g_assert_cmpuint(t.dropped, >, 0);
        g_assert_cmpuint(t.seen + t.dropped, ==, total);
        g_assert_cmpuint(t.seen, ==, stats.written);
        g_assert_cmpuint(t.dropped, ==, stats.lost);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("trace: could not write '*full-disk': File too large; "
                              "events are lost\n"
                              "trace: '*full-disk': * are lost\n");
}

static void test_device_without_room_is_said_once(void)
{
    if (g_test_subprocess()) {
        enable("test_count");
        open_file("/dev/full");
        start();
        for (unsigned i = 0; i < 100; i++) {
            trace_test_count(0, i);
            trace_simple_flush();
        }
        everything_off();
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("trace: could not write '/dev/full': No space left on device; "
                              "events are lost\n"
                              "trace: '/dev/full': 100 of 100 events (100.00 %) are lost\n");
}

/* ---- ends of a process ---- */

typedef void Ending(void);

static void end_exit(void) { exit(0); }
static void end_abort(void) { abort(); }
static void end_term(void) { kill(getpid(), SIGTERM); }
static void end_segv_sent(void) { raise(SIGSEGV); }

static void end_fault(void)
{
    *(volatile char *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
}

static void check_ending(const char *name, Ending *ending, int want_status)
{
    g_autofree char *path = temp_path(name);
    Reader r;
    Record rec;
    int status;
    pid_t pid = fork();

    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        struct rlimit none = { 0, 0 };

        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        enable("test_int");
        open_file(path);
        start();
        trace_test_int(42);
        ending();
        pause();
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, want_status);
    reader_open(&r, path);
    expect(&r, &rec, "test_int");
    g_assert_cmpuint(arg_u64(&rec), ==, 42);
    g_assert_cmpuint(rec.pid, ==, pid);
    g_assert_false(reader_next(&r, &rec));
    reader_close(&r);
}

static void test_last_events_survive_exit_and_fatal_signals(void)
{
    check_ending("exit", end_exit, 0);
    check_ending("abort", end_abort, SIGABRT);
    check_ending("term", end_term, SIGTERM);
    check_ending("segv", end_segv_sent, SIGSEGV);
    check_ending("fault", end_fault, SIGSEGV);
}

static void test_fork_before_start_traces_the_child(void)
{
    g_autofree char *path = temp_path("daemon");
    Reader r;
    Record rec;
    int status;
    pid_t pid;

    enable("test_int");
    open_file(path);
    trace_test_int(1);
    pid = fork();
    if (pid == 0) {
        trace_test_int(2);
        start();
        exit(0);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
    reader_open(&r, path);
    expect(&r, &rec, "test_int");
    expect(&r, &rec, "test_int");
    g_assert_cmpuint(arg_u64(&rec), ==, 2);
    g_assert_cmpuint(rec.pid, ==, pid);
    g_assert_false(reader_next(&r, &rec));
    reader_close(&r);
    everything_off();
}

/* ---- the price, printed only ---- */

static void test_price_of_an_event(void)
{
    g_autofree char *path = temp_path("price");
    double best_on = 1e9, best_off = 1e9;

    for (int on = 0; on < 2; on++) {
        if (on) {
            enable("test_types");
            open_file(path);
            start();
        }
        for (int round = 0; round < BENCH_ROUNDS; round++) {
            uint64_t begin = trace_clock_monotonic_ns();
            double ns;

            for (int i = 0; i < BENCH_EVENTS; i++) {
                trace_test_types(true, 1, 2, (unsigned)i, i, &ns);
            }
            ns = (double)(trace_clock_monotonic_ns() - begin) / BENCH_EVENTS;
            if (on) {
                trace_simple_flush();
                best_on = MIN(best_on, ns);
            } else {
                best_off = MIN(best_off, ns);
            }
        }
    }
    everything_off();
    g_test_message("an event with six arguments: %.2f ns off, %.1f ns to the simple backend, "
                   "clock %s", best_off, best_on, trace_clock_is_tsc ? "TSC" : "system call");
}

/* For test-simpletrace.py. */
static int write_sample(const char *path)
{
    enable("test_*");
    open_file(path);
    start();
    trace_test_void();
    trace_test_types(true, -1, 65535, 7, -5, NULL);
    trace_test_mixed(1, "two words", 3, NULL);
    trace_test_ten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    return 0;
}

int main(int argc, char **argv)
{
    int ret;

    if (argc == 3 && strcmp(argv[1], "--write-sample") == 0) {
        return write_sample(argv[2]);
    }
    g_test_init(&argc, &argv, NULL);
    temp_dir_make();
    g_test_add_func("/trace/simple/layout", test_file_matches_the_layout_byte_by_byte);
    g_test_add_func("/trace/simple/types", test_integers_are_sign_extended_and_pointers_kept);
    g_test_add_func("/trace/simple/strings", test_strings_are_cut_at_512_bytes);
    g_test_add_func("/trace/simple/early",
                    test_events_before_start_are_kept_and_old_content_is_not);
    g_test_add_func("/trace/simple/flush", test_flush_brings_events_to_the_file);
    g_test_add_func("/trace/simple/full-ring", test_full_ring_counts_what_it_loses);
    g_test_add_func("/trace/simple/overload", test_overload_is_counted_exactly);
    g_test_add_func("/trace/simple/threads", test_threads_come_and_go);
    g_test_add_func("/trace/simple/order", test_file_is_in_order_of_time);
    g_test_add_func("/trace/simple/bad-file", test_file_that_cannot_be_is_refused);
    g_test_add_func("/trace/simple/full-disk", test_full_disk_leaves_whole_records_and_a_count);
    g_test_add_func("/trace/simple/full-device", test_device_without_room_is_said_once);
    g_test_add_func("/trace/simple/endings", test_last_events_survive_exit_and_fatal_signals);
    g_test_add_func("/trace/simple/fork", test_fork_before_start_traces_the_child);
    g_test_add_func("/trace/simple/price", test_price_of_an_event);
    ret = g_test_run();
    temp_dir_remove();
    return ret;
}
