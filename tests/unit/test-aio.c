/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop of one thread, by every fd monitor.
 */
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "aio-cases.h"

static GString *trail;

/* ---- handlers ----------------------------------------------------------- */

static void test_handler_is_level_triggered(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Fd fd;

    fd_init(&fd, ctx);
    g_assert_false(aio_poll(ctx, false));
    fd.leave_full = true;
    event_notifier_set(&fd.n);
    for (unsigned i = 1; i <= 5; i++) {
        g_assert_true(aio_poll(ctx, true));
        g_assert_cmpuint(fd.calls, ==, i);
    }
    fd.leave_full = false;
    g_assert_true(aio_poll(ctx, true));
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpuint(fd.calls, ==, 6);
    fd_cleanup(&fd);
}

static void remove_self(Fd *fd)
{
    fd_drop(fd);
}

static void remove_other(Fd *fd)
{
    fd_drop(fd->other);
}

static void test_handler_removed_inside_callbacks(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Fd a, b;

    fd_init(&a, ctx);
    a.leave_full = true;
    a.then = remove_self;
    event_notifier_set(&a.n);
    g_assert_true(aio_poll(ctx, true));
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpuint(a.calls, ==, 1);
    fd_cleanup(&a);

    /* Both are ready; whoever comes first removes the other. */
    fd_init(&a, ctx);
    fd_init(&b, ctx);
    a.then = b.then = remove_other;
    a.other = &b;
    b.other = &a;
    event_notifier_set(&a.n);
    event_notifier_set(&b.n);
    settle(ctx);
    g_assert_cmpuint(a.calls + b.calls, ==, 1);
    fd_cleanup(&a);
    fd_cleanup(&b);
}

static void add_other(Fd *fd)
{
    fd_init(fd->other, fd->ctx);
    event_notifier_set(&fd->other->n);
}

static void test_handler_added_inside_callback(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Fd a, b = { 0 };

    fd_init(&a, ctx);
    a.then = add_other;
    a.other = &b;
    event_notifier_set(&a.n);
    settle(ctx);
    g_assert_cmpuint(b.calls, ==, 1);
    fd_cleanup(&a);
    fd_cleanup(&b);
}

static void replace_self(Fd *fd)
{
    fd_drop(fd);
    fd->h = aio_handler_add(fd->ctx, fd->n.fd, &fd_ops, fd);
}

static void test_handler_replaced_inside_callback(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Fd a;

    fd_init(&a, ctx);
    a.then = replace_self;
    a.leave_full = true;
    event_notifier_set(&a.n);
    for (unsigned i = 1; i <= 100; i++) {
        g_assert_true(aio_poll(ctx, true));
        g_assert_cmpuint(a.calls, ==, i);
    }
    fd_cleanup(&a);
}

static void poll_inside(Fd *fd)
{
    fd->then = NULL;
    while (fd->other->calls == 0) {
        aio_poll(fd->ctx, true);
    }
}

static void test_nested_poll_serves_other_handlers(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Fd a, b;

    fd_init(&a, ctx);
    fd_init(&b, ctx);
    a.then = b.then = poll_inside;      /* the second to run must not wait */
    a.other = &b;
    b.other = &a;
    event_notifier_set(&a.n);
    event_notifier_set(&b.n);
    settle(ctx);
    g_assert_cmpuint(a.calls, ==, 1);
    g_assert_cmpuint(b.calls, ==, 1);
    fd_cleanup(&a);
    fd_cleanup(&b);
}

static void remove_both_then_poll(Fd *fd)
{
    fd_drop(fd->other);
    fd_drop(fd);
    settle(fd->ctx);
}

static void test_handlers_removed_before_nested_poll(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Fd a, b;

    fd_init(&a, ctx);
    fd_init(&b, ctx);
    a.then = b.then = remove_both_then_poll;
    a.leave_full = b.leave_full = true;
    a.other = &b;
    b.other = &a;
    event_notifier_set(&a.n);
    event_notifier_set(&b.n);
    settle(ctx);
    g_assert_cmpuint(a.calls + b.calls, ==, 1);
    fd_cleanup(&a);
    fd_cleanup(&b);
}

typedef struct Pipe {
    int fd[2];
    AioHandler *h;
    unsigned readable, writable;
} Pipe;

static void pipe_readable(void *opaque)
{
    Pipe *p = opaque;
    char c;

    p->readable++;
    if (read(p->fd[0], &c, 1) == 0) {
        aio_handler_remove(g_steal_pointer(&p->h));
    }
}

static void pipe_writable(void *opaque)
{
    Pipe *p = opaque;

    p->writable++;
    aio_handler_set_writable(p->h, false);
}

static void test_hang_up_calls_readable(const void *monitor)
{
    static const AioHandlerOps ops = { .name = "pipe", .readable = pipe_readable };
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Pipe p = { 0 };

    g_assert_cmpint(pipe(p.fd), ==, 0);
    p.h = aio_handler_add(ctx, p.fd[0], &ops, &p);
    close(p.fd[1]);
    g_assert_true(aio_poll(ctx, true));
    g_assert_null(p.h);
    close(p.fd[0]);
}

static void test_writable_only_while_wanted(const void *monitor)
{
    static const AioHandlerOps ops = { .name = "pipe", .writable = pipe_writable };
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Pipe p = { 0 };

    g_assert_cmpint(pipe(p.fd), ==, 0);
    p.h = aio_handler_add(ctx, p.fd[1], &ops, &p);
    g_assert_false(aio_poll(ctx, false));
    for (unsigned i = 1; i <= 3; i++) {
        aio_handler_set_writable(p.h, true);
        g_assert_true(aio_poll(ctx, true));
        g_assert_false(aio_poll(ctx, false));
        g_assert_cmpuint(p.writable, ==, i);
    }
    /* the other end is gone: an error, which the one direction that is watched hears of */
    close(p.fd[0]);
    g_assert_false(aio_poll(ctx, false));
    aio_handler_set_writable(p.h, true);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpuint(p.writable, ==, 4);
    aio_handler_remove(p.h);
    close(p.fd[1]);
}

static void test_plain_file_is_always_ready(const void *monitor)
{
    static const AioHandlerOps ops = { .name = "file", .readable = pipe_readable };
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    g_autofree char *name = NULL;
    Pipe p = { 0 };
    Fd other;

    fd_init(&other, ctx);
    p.fd[0] = g_file_open_tmp(NULL, &name, NULL);
    g_assert_cmpint(p.fd[0], >=, 0);
    unlink(name);
    g_assert_cmpint(write(p.fd[0], "abc", 3), ==, 3);
    lseek(p.fd[0], 0, SEEK_SET);
    p.h = aio_handler_add(ctx, p.fd[0], &ops, &p);
    while (p.h) {
        g_assert_true(aio_poll(ctx, true));
    }
    g_assert_cmpuint(p.readable, ==, 4);
    event_notifier_set(&other.n);
    settle(ctx);
    g_assert_cmpuint(other.calls, ==, 1);
    fd_cleanup(&other);
    close(p.fd[0]);
}

/* How many more fds we may have, @wanted at most. */
static unsigned fd_budget(unsigned wanted)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = MIN(limit.rlim_max, wanted + 100);
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    return MIN(wanted, limit.rlim_cur - 100);
}

static void test_thousands_of_handlers(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    const unsigned n = fd_budget(5000);
    g_autofree Fd *fds = g_new0(Fd, n);
    g_autofree unsigned *expected = g_new0(unsigned, n);

    for (unsigned i = 0; i < n; i++) {
        fd_init(&fds[i], ctx);
    }
    for (unsigned round = 0; round < rounds(30); round++) {
        unsigned set = g_test_rand_int_range(1, n);

        for (unsigned i = 0; i < set; i++) {
            unsigned k = g_test_rand_int_range(0, n);

            if (fds[k].calls == expected[k]) {
                expected[k]++;
            }
            event_notifier_set(&fds[k].n);
        }
        settle(ctx);
        for (unsigned i = 0; i < n; i++) {
            g_assert_cmpuint(fds[i].calls, ==, expected[i]);
        }
        for (unsigned i = 0; i < 20; i++) {
            Fd *fd = &fds[g_test_rand_int_range(0, n)];

            aio_handler_remove(fd->h);
            fd->h = aio_handler_add(ctx, fd->n.fd, &fd_ops, fd);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        fd_cleanup(&fds[i]);
    }
}

/* ---- deferred work ------------------------------------------------------ */

typedef struct Step {
    AioContext *ctx;
    AioDefer defer;
    char letter;
    unsigned again;
} Step;

static void step_run(void *opaque)
{
    Step *s = opaque;

    g_string_append_c(trail, s->letter);
    if (s->again > 0) {
        s->again--;
        aio_defer(s->ctx, &s->defer);
    }
}

static void test_deferred_runs_once_in_order(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Step s[3];

    trail = g_string_new(NULL);
    for (unsigned i = 0; i < 3; i++) {
        s[i] = (Step) { .ctx = ctx, .letter = 'a' + i };
        aio_defer_init(&s[i].defer, step_run, &s[i]);
    }
    s[0].again = 2;
    aio_defer(ctx, &s[0].defer);
    aio_defer(ctx, &s[1].defer);
    aio_defer(ctx, &s[0].defer);
    aio_defer(ctx, &s[2].defer);
    aio_defer_cancel(ctx, &s[2].defer);
    g_assert_true(aio_poll(ctx, true));         /* and doesn't sleep */
    g_assert_cmpstr(trail->str, ==, "abaa");
    g_assert_false(aio_poll(ctx, false));

    aio_defer(ctx, &s[2].defer);
    aio_defer(ctx, &s[1].defer);
    aio_defer_cancel(ctx, &s[2].defer);
    aio_defer(ctx, &s[0].defer);
    aio_poll(ctx, false);
    g_assert_cmpstr(trail->str, ==, "abaaba");
    g_string_free(trail, TRUE);
}

static Step nested_step;

static void defer_then_poll(Fd *fd)
{
    aio_defer(fd->ctx, &nested_step.defer);
    g_assert_true(aio_poll(fd->ctx, true));
    g_assert_cmpstr(trail->str, ==, "n");
}

static void test_deferred_runs_before_nested_poll_sleeps(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Fd fd;

    trail = g_string_new(NULL);
    fd_init(&fd, ctx);
    fd.then = defer_then_poll;
    nested_step = (Step) { .ctx = ctx, .letter = 'n' };
    aio_defer_init(&nested_step.defer, step_run, &nested_step);
    event_notifier_set(&fd.n);
    settle(ctx);
    g_assert_cmpuint(fd.calls, ==, 1);
    fd_cleanup(&fd);
    g_string_free(trail, TRUE);
}

/* ---- bottom halves ------------------------------------------------------ */

typedef struct Bh {
    AioContext *ctx;
    AioBh *bh;
    unsigned calls;
    unsigned again;
} Bh;

static void bh_run(void *opaque)
{
    Bh *b = opaque;

    b->calls++;
    if (b->again > 0) {
        b->again--;
        aio_bh_schedule(b->bh);
    }
}

static void bh_delete_self(void *opaque)
{
    Bh *b = opaque;

    b->calls++;
    aio_bh_delete(b->bh);
}

static void test_bh_coalesces_and_deletes(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Bh a = { .ctx = ctx }, b = { .ctx = ctx };

    a.bh = aio_bh_new(ctx, "a", bh_run, &a);
    aio_bh_schedule(a.bh);
    aio_bh_schedule(a.bh);
    g_assert_true(aio_poll(ctx, true));
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpuint(a.calls, ==, 1);

    /* one that schedules itself runs once in an iteration */
    a.again = 3;
    aio_bh_schedule(a.bh);
    for (unsigned i = 2; i <= 5; i++) {
        g_assert_true(aio_poll(ctx, true));
        g_assert_cmpuint(a.calls, ==, i);
    }
    g_assert_false(aio_poll(ctx, false));

    aio_bh_schedule(a.bh);
    aio_bh_delete(a.bh);
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpuint(a.calls, ==, 5);

    b.bh = aio_bh_new(ctx, "b", bh_delete_self, &b);
    aio_bh_schedule(b.bh);
    settle(ctx);
    g_assert_cmpuint(b.calls, ==, 1);
    b.bh = aio_bh_new(ctx, "never", bh_run, &b);
    aio_bh_delete(b.bh);                /* the context frees it */
}

static void note_letter(void *opaque)
{
    g_string_append(trail, opaque);
}

static void bh_nests(void *opaque)
{
    AioContext *ctx = opaque;

    g_string_append_c(trail, '(');
    aio_poll(ctx, false);
    g_string_append_c(trail, ')');
}

static void test_bh_runs_in_order_and_nested(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);

    trail = g_string_new(NULL);
    aio_bh_oneshot(ctx, "a", note_letter, (void *)"a");
    aio_bh_oneshot(ctx, "nest", bh_nests, ctx);
    aio_bh_oneshot(ctx, "b", note_letter, (void *)"b");
    aio_bh_oneshot(ctx, "c", note_letter, (void *)"c");
    settle(ctx);
    g_assert_cmpstr(trail->str, ==, "a(bc)");
    g_string_free(trail, TRUE);
}

typedef struct Storm {
    AioContext *ctx;
    AioBh *shared;
    _Atomic unsigned wanted;
    unsigned seen;                      /* home thread */
    unsigned oneshots;                  /* home thread */
    _Atomic unsigned running;
    unsigned count;
} Storm;

static void storm_shared(void *opaque)
{
    Storm *s = opaque;

    s->seen = atomic_load(&s->wanted);
}

static void storm_oneshot(void *opaque)
{
    Storm *s = opaque;

    s->oneshots++;
}

static gpointer storm_thread(gpointer opaque)
{
    Storm *s = opaque;

    for (unsigned i = 0; i < s->count; i++) {
        atomic_fetch_add(&s->wanted, 1);
        aio_bh_schedule(s->shared);
        if (i % 4 == 0) {
            aio_bh_oneshot(s->ctx, "oneshot", storm_oneshot, s);
        }
    }
    atomic_fetch_sub(&s->running, 1);
    aio_notify(s->ctx);
    return NULL;
}

static void test_bh_from_other_threads(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Storm s = { .ctx = ctx, .count = rounds(20000) };
    GThread *threads[3];

    s.shared = aio_bh_new(ctx, "shared", storm_shared, &s);
    atomic_store(&s.running, 3);
    for (unsigned i = 0; i < 3; i++) {
        threads[i] = g_thread_new("storm", storm_thread, &s);
    }
    /* blocking: hangs if a wake-up is lost */
    while (atomic_load(&s.running) > 0) {
        aio_poll(ctx, true);
    }
    settle(ctx);
    for (unsigned i = 0; i < 3; i++) {
        g_thread_join(threads[i]);
    }
    g_assert_cmpuint(s.seen, ==, 3 * s.count);
    g_assert_cmpuint(s.oneshots, ==, 3 * ((s.count + 3) / 4));
    aio_bh_delete(s.shared);
}

/* ---- timers ------------------------------------------------------------- */

typedef struct Clock {
    AioTimer t;
    int64_t wanted_ns;
    char letter;
    AioTimer *cancel;
    unsigned again;
} Clock;

static void clock_fired(void *opaque)
{
    Clock *c = opaque;

    g_assert_cmpint(aio_clock_ns(), >=, c->wanted_ns);
    g_assert_cmpint(c->t.deadline_ns, ==, -1);
    g_string_append_c(trail, c->letter);
    if (c->cancel) {
        aio_timer_cancel(c->cancel);
    }
    if (c->again > 0) {
        c->again--;
        aio_timer_set(&c->t, 0);        /* long past: next iteration */
    }
}

static void clock_set(Clock *c, int64_t deadline_ns)
{
    c->wanted_ns = deadline_ns;
    aio_timer_set(&c->t, deadline_ns);
}

static void test_timers_run_in_order_and_not_early(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    int64_t now = aio_clock_ns();
    Clock c[6];

    trail = g_string_new(NULL);
    for (unsigned i = 0; i < 6; i++) {
        c[i] = (Clock) { .letter = 'a' + i };
        aio_timer_init(&c[i].t, ctx, clock_fired, &c[i]);
    }
    clock_set(&c[3], now + 2000000);
    clock_set(&c[1], now + 300000);
    clock_set(&c[2], now + 300000);
    clock_set(&c[0], now + 100000);
    clock_set(&c[4], now + 2500000);
    clock_set(&c[5], now + 100);
    clock_set(&c[5], now + 3000000);    /* moved */
    c[3].cancel = &c[4].t;
    while (c[5].t.deadline_ns >= 0) {
        aio_poll(ctx, true);
    }
    g_assert_cmpstr(trail->str, ==, "abcdf");
    g_assert_false(aio_poll(ctx, false));

    /* one that arms itself for the past doesn't starve the rest */
    c[0].again = 3;
    clock_set(&c[0], now);
    for (unsigned i = 0; i < 4; i++) {
        g_assert_true(aio_poll(ctx, true));
        g_assert_cmpuint(trail->len, ==, 6 + i);
    }
    g_assert_false(aio_poll(ctx, false));
    g_string_free(trail, TRUE);
}

static void random_fired(void *opaque)
{
    int64_t *last = opaque;

    *last = aio_clock_ns();
}

static void test_timer_heap_keeps_order(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    enum { N = 200 };
    AioTimer t[N];
    int64_t last;

    for (unsigned i = 0; i < N; i++) {
        aio_timer_init(&t[i], ctx, random_fired, &last);
    }
    for (unsigned round = 0; round < rounds(2000); round++) {
        unsigned k = g_test_rand_int_range(0, N);

        if (g_test_rand_bit()) {
            aio_timer_cancel(&t[k]);
        } else {
            aio_timer_set(&t[k], aio_clock_ns() + g_test_rand_int_range(0, 200000));
        }
        aio_poll(ctx, false);
        last = aio_clock_ns();
        for (unsigned i = 0; i < N && round % 50 == 0; i++) {
            g_assert_true(t[i].deadline_ns < 0 || t[i].deadline_ns > last - 1000000000);
        }
    }
    for (unsigned i = 0; i < N; i++) {
        aio_timer_cancel(&t[i]);
    }
}

static const AioCase cases[] = {
    { "handler-is-level-triggered", test_handler_is_level_triggered },
    { "handler-removed-inside-callbacks", test_handler_removed_inside_callbacks },
    { "handler-added-inside-callback", test_handler_added_inside_callback },
    { "handler-replaced-inside-callback", test_handler_replaced_inside_callback },
    { "nested-poll-serves-other-handlers", test_nested_poll_serves_other_handlers },
    { "handlers-removed-before-nested-poll", test_handlers_removed_before_nested_poll },
    { "hang-up-calls-readable", test_hang_up_calls_readable },
    { "writable-only-while-wanted", test_writable_only_while_wanted },
    { "plain-file-is-always-ready", test_plain_file_is_always_ready },
    { "thousands-of-handlers", test_thousands_of_handlers },
    { "deferred-runs-once-in-order", test_deferred_runs_once_in_order },
    { "deferred-runs-before-nested-poll-sleeps", test_deferred_runs_before_nested_poll_sleeps },
    { "bh-coalesces-and-deletes", test_bh_coalesces_and_deletes },
    { "bh-runs-in-order-and-nested", test_bh_runs_in_order_and_nested },
    { "bh-from-other-threads", test_bh_from_other_threads },
    { "timers-run-in-order-and-not-early", test_timers_run_in_order_and_not_early },
    { "timer-heap-keeps-order", test_timer_heap_keeps_order },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    aio_cases_add("aio", cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
