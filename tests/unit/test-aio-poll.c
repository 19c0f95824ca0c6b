/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Busy polling: what it finds, when it stops, what it tells the handlers.
 */
#include <stdatomic.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "aio-cases.h"

#define LONG_NS 10000000000             /* nothing here may take that long */

static void set_max(AioContext *ctx, int64_t max_ns)
{
    aio_set_poll_params(ctx, &(AioPollParams) { .max_ns = max_ns });
    aio_poll(ctx, false);
}

static AioStats stats(AioContext *ctx)
{
    AioStats s;

    aio_get_stats(ctx, &s);
    return s;
}

/* ---- a queue: an index in memory, and an eventfd while the consumer wants it ------ */

typedef struct Queue Queue;
struct Queue {
    AioContext *ctx;
    AioHandler *h;
    EventNotifier kick;
    _Atomic unsigned avail;
    _Atomic bool want_kick;
    _Atomic unsigned used;
    _Atomic unsigned kicks;
    /* home thread */
    unsigned polls, begins, ends;
    bool polling;
    bool refill_at_end;                 /* the other side is always quicker */
    void (*then)(Queue *q);
    Queue *other;
};

static unsigned queue_take(Queue *q)
{
    unsigned n = atomic_load_explicit(&q->avail, memory_order_acquire) - atomic_load(&q->used);

    if (n > 0) {
        atomic_fetch_add(&q->used, n);
        if (q->then) {
            q->then(q);
        }
    }
    return n;
}

static unsigned queue_poll(void *opaque)
{
    Queue *q = opaque;

    q->polls++;
    return queue_take(q);
}

static void queue_kicked(void *opaque)
{
    Queue *q = opaque;

    event_notifier_test_and_clear(&q->kick);
    queue_take(q);
}

static void queue_begin(void *opaque)
{
    Queue *q = opaque;

    g_assert_false(q->polling);
    q->polling = true;
    q->begins++;
    atomic_store(&q->want_kick, false);
}

static bool queue_end(void *opaque)
{
    Queue *q = opaque;

    q->polling = false;
    q->ends++;
    if (q->refill_at_end) {
        q->refill_at_end = false;
        atomic_fetch_add(&q->avail, 1);
    }
    /* On, then look: pairs with queue_put(). */
    atomic_store(&q->want_kick, true);
    return atomic_load(&q->avail) != atomic_load(&q->used);
}

static const AioHandlerOps queue_ops = {
    .name = "queue",
    .readable = queue_kicked,
    .poll = queue_poll,
    .poll_begin = queue_begin,
    .poll_end = queue_end,
};

/* Any thread. */
static void queue_put(Queue *q)
{
    atomic_fetch_add(&q->avail, 1);
    if (atomic_load(&q->want_kick)) {
        atomic_fetch_add(&q->kicks, 1);
        event_notifier_set(&q->kick);
    }
}

static void queue_init(Queue *q, AioContext *ctx)
{
    *q = (Queue) { .ctx = ctx };
    atomic_store(&q->want_kick, true);
    g_assert_true(event_notifier_init(&q->kick, NULL));
    q->h = aio_handler_add(ctx, q->kick.fd, &queue_ops, q);
}

static void queue_drop(Queue *q)
{
    if (q->h) {
        aio_handler_remove(g_steal_pointer(&q->h));
    }
}

static void queue_cleanup(Queue *q)
{
    queue_drop(q);
    event_notifier_cleanup(&q->kick);
}

/* Teach it a window by waits that are longer than the one it has. */
static void queue_learn(Queue *q, int64_t window_ns)
{
    while ((int64_t)stats(q->ctx).window_ns < window_ns) {
        int64_t until = aio_clock_ns() + stats(q->ctx).window_ns + 1000;

        aio_poll(q->ctx, false);
        while (aio_clock_ns() < until) {
        }
        queue_put(q);
        while (aio_poll(q->ctx, false)) {
        }
    }
}

static void test_memory_is_looked_at_before_sleeping(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Queue q;

    queue_init(&q, ctx);
    atomic_store(&q.avail, 3);          /* and no kick: a sleep would last */
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpuint(q.used, ==, 3);
    g_assert_cmpuint(q.begins, ==, 0);
    aio_notify(ctx);
    aio_poll(ctx, true);
    queue_cleanup(&q);
}

static void test_polling_state_lasts_until_the_loop_sleeps(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    AioStats before;
    Queue q;

    queue_init(&q, ctx);
    set_max(ctx, LONG_NS);
    queue_learn(&q, 50000);
    before = stats(ctx);
    for (unsigned i = 0; i < 10; i++) {
        atomic_fetch_add(&q.avail, 1);
        g_assert_true(aio_poll(ctx, true));
    }
    g_assert_true(q.polling);
    g_assert_cmpuint(q.begins, ==, 1);
    g_assert_cmpuint(q.ends, ==, 0);
    g_assert_cmpuint(stats(ctx).wakeups_poll - before.wakeups_poll, ==, 10);
    g_assert_cmpuint(stats(ctx).waits, ==, before.waits);
    g_assert_cmpuint(stats(ctx).fd_checks, ==, before.fd_checks);

    q.refill_at_end = true;             /* the window passes, and then this */
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpuint(q.used, ==, q.avail);
    g_assert_cmpuint(q.ends, ==, 1);
    g_assert_cmpuint(stats(ctx).waits, ==, before.waits);
    queue_cleanup(&q);
}

static void test_unpollable_fd_switches_polling_off(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Queue q;
    Fd fd;

    queue_init(&q, ctx);
    set_max(ctx, LONG_NS);
    queue_learn(&q, 20000);
    fd_init(&fd, ctx);
    event_notifier_set(&fd.n);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpuint(fd.calls, ==, 1);
    g_assert_cmpuint(q.begins, ==, 0);
    fd_cleanup(&fd);
    atomic_fetch_add(&q.avail, 1);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpuint(q.begins, ==, 1);
    queue_cleanup(&q);
}

static void test_parameters_reset_what_was_learned(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Queue q;

    queue_init(&q, ctx);
    set_max(ctx, LONG_NS);
    queue_learn(&q, 20000);
    g_assert_cmpuint(stats(ctx).windows_grown, >=, 3);
    g_assert_cmpuint(stats(ctx).windows_reset, ==, 0);
    set_max(ctx, LONG_NS);
    g_assert_cmpuint(stats(ctx).window_ns, ==, 0);
    g_assert_cmpuint(stats(ctx).windows_reset, ==, 1);
    queue_cleanup(&q);
}

static void queue_drop_both(Queue *q)
{
    queue_drop(q);
    queue_drop(q->other);
}

static void queue_add_other(Queue *q)
{
    q->then = NULL;
    for (unsigned i = 0; i < 40; i++) {
        queue_init(&q->other[i], q->ctx);
        atomic_store(&q->other[i].avail, 1);
    }
}

static void test_handlers_come_and_go_while_polled(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Queue a, b, more[40];

    set_max(ctx, LONG_NS);
    queue_init(&a, ctx);
    queue_init(&b, ctx);
    queue_learn(&a, 20000);
    a.then = b.then = queue_drop_both;
    a.other = &b;
    b.other = &a;
    atomic_fetch_add(&a.avail, 1);
    atomic_fetch_add(&b.avail, 1);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpuint((a.avail - a.used) + (b.avail - b.used), ==, 1);
    g_assert_cmpuint(stats(ctx).window_ns, ==, 0);
    queue_cleanup(&a);
    queue_cleanup(&b);

    queue_init(&a, ctx);
    a.then = queue_add_other;
    a.other = more;
    atomic_fetch_add(&a.avail, 1);
    g_assert_true(aio_poll(ctx, true));
    for (unsigned i = 0; i < 40; i++) {
        g_assert_cmpuint(more[i].used, ==, 1);
        queue_cleanup(&more[i]);
    }
    queue_cleanup(&a);
}

static void bh_note(void *opaque)
{
    *(bool *)opaque = true;
}

static gpointer bh_later(gpointer opaque)
{
    void **args = opaque;

    g_usleep(2000);
    aio_bh_oneshot(args[0], "note", bh_note, args[1]);
    return NULL;
}

static void test_bh_ends_polling(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    bool seen = false;
    void *args[] = { ctx, &seen };
    AioStats before;
    GThread *t;
    Queue q;

    queue_init(&q, ctx);
    set_max(ctx, LONG_NS);
    queue_learn(&q, 500000000);
    before = stats(ctx);
    t = g_thread_new("bh-later", bh_later, args);
    while (!seen) {
        aio_poll(ctx, true);
    }
    g_thread_join(t);
    g_assert_cmpuint(stats(ctx).waits, ==, before.waits);
    g_assert_cmpuint(stats(ctx).polled_miss_ns, ==, before.polled_miss_ns);
    queue_cleanup(&q);
}

static void timer_note(void *opaque)
{
    *(int64_t *)opaque = aio_clock_ns();
}

static void test_timer_is_on_time_while_polling(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    int64_t best_late = INT64_MAX;
    AioTimer timer;
    AioStats before;
    Queue q;

    queue_init(&q, ctx);
    set_max(ctx, LONG_NS);
    before = stats(ctx);
    for (unsigned i = 0; i < 50; i++) {
        int64_t deadline = aio_clock_ns() + 50000, fired = 0;

        aio_timer_init(&timer, ctx, timer_note, &fired);
        aio_timer_set(&timer, deadline);
        while (!fired) {
            aio_poll(ctx, true);
        }
        g_assert_cmpint(fired, >=, deadline);
        best_late = MIN(best_late, fired - deadline);
    }
    g_assert_cmpint(best_late, <, 5000);
    g_assert_cmpuint(stats(ctx).waits, ==, before.waits);
    queue_cleanup(&q);
}

static int64_t watched_since_ns, watched_best_ns;

static void watch_seen(Fd *fd)
{
    watched_best_ns = MIN(watched_best_ns, aio_clock_ns() - watched_since_ns);
}

/* A handler that always has work must not keep others waiting. */
static void queue_put_again(Queue *q)
{
    atomic_fetch_add(&q->avail, 1);
}

static void test_other_fds_are_served_while_polling_succeeds(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Queue q;
    Fd fd;

    queue_init(&q, ctx);
    fd_init(&fd, ctx);
    fd.then = watch_seen;
    q.then = queue_put_again;
    set_max(ctx, 100000);
    watched_best_ns = INT64_MAX;
    atomic_fetch_add(&q.avail, 1);
    for (unsigned i = 1; i <= 50; i++) {
        watched_since_ns = aio_clock_ns();
        event_notifier_set(&fd.n);
        while (fd.calls < i) {
            g_assert_true(aio_poll(ctx, true));
        }
    }
    g_assert_cmpint(watched_best_ns, <, 100000);
    queue_cleanup(&q);
    fd_cleanup(&fd);
}

static void test_idle_handler_leaves_the_list_and_returns(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    int64_t end = aio_clock_ns() + 2200000000;
    Queue busy, idle;
    unsigned polls;

    queue_init(&busy, ctx);
    queue_init(&idle, ctx);
    set_max(ctx, 1000000);
    while (aio_clock_ns() < end) {
        atomic_fetch_add(&busy.avail, 1);
        aio_poll(ctx, true);
    }
    polls = idle.polls;
    for (unsigned i = 0; i < 1000; i++) {
        atomic_fetch_add(&busy.avail, 1);
        g_assert_true(aio_poll(ctx, true));
    }
    g_assert_cmpuint(idle.polls, ==, polls);
    g_assert_true(idle.want_kick);

    /* its fd is still watched, and brings it back */
    queue_put(&idle);
    g_assert_cmpuint(idle.kicks, ==, 1);
    while (idle.used == 0) {
        atomic_fetch_add(&busy.avail, 1);
        aio_poll(ctx, true);
    }
    atomic_fetch_add(&busy.avail, 1);
    aio_poll(ctx, true);
    g_assert_cmpuint(idle.polls, >, polls);
    queue_cleanup(&busy);
    queue_cleanup(&idle);
}

static void idle_nests(Queue *q)
{
    q->then = NULL;
    aio_poll(q->ctx, false);            /* a look around for idle handlers is due */
}

/* It was idle a moment ago: its callback must not find it gone from the list. */
static void test_idle_handler_polls_inside_its_callback(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Queue q;

    queue_init(&q, ctx);
    set_max(ctx, 1000000);
    g_usleep(1100000);
    q.then = idle_nests;
    queue_put(&q);
    aio_poll(ctx, true);
    g_assert_cmpuint(q.used, ==, 1);
    queue_learn(&q, 20000);
    atomic_fetch_add(&q.avail, 1);
    g_assert_true(aio_poll(ctx, true));
    g_assert_true(q.polling);
    queue_cleanup(&q);
}

static double share_of_polling(AioContext *ctx, AioTimer *timer)
{
    AioStats before, after;
    int64_t start, elapsed;

    before = stats(ctx);
    start = aio_clock_ns();
    for (unsigned i = 0; i < 100; i++) {
        aio_timer_set(timer, aio_clock_ns() + 500000);
        aio_poll(ctx, true);
    }
    elapsed = aio_clock_ns() - start;
    after = stats(ctx);
    g_assert_cmpuint(after.polled_hit_ns - before.polled_hit_ns, <=, elapsed);
    g_assert_cmpuint(after.polled_miss_ns, ==, before.polled_miss_ns);
    return (double)(after.polled_hit_ns - before.polled_hit_ns) / elapsed;
}

static void test_books_add_up(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    AioStats before, after;
    double best = 0;
    AioTimer timer;
    int64_t fired;
    Queue q;

    queue_init(&q, ctx);
    set_max(ctx, LONG_NS);
    aio_timer_init(&timer, ctx, timer_note, &fired);
    /* the clock learns its rate in the first milliseconds */
    aio_timer_set(&timer, aio_clock_ns() + 20000000);
    aio_poll(ctx, true);
    /* other processes may take the CPU away between two polls */
    for (unsigned tries = 0; tries < 20 && best < 0.97; tries++) {
        best = MAX(best, share_of_polling(ctx, &timer));
    }
    g_assert_cmpfloat(best, >=, 0.97);

    /* a window that passes in vain: the timer that ends the sleep is beyond it */
    set_max(ctx, 1000000);
    queue_learn(&q, 200000);
    before = stats(ctx);
    g_assert_cmpuint(before.window_ns, >, 0);
    aio_timer_set(&timer, aio_clock_ns() + 50000000);
    aio_poll(ctx, true);
    after = stats(ctx);
    g_assert_cmpuint(after.waits - before.waits, ==, 1);
    g_assert_cmpuint(after.polled_miss_ns - before.polled_miss_ns, >=, before.window_ns / 2);
    g_assert_cmpuint(after.polled_hit_ns, ==, before.polled_hit_ns);
    queue_cleanup(&q);
}

/* ---- no notification is lost ---------------------------------------------------- */

typedef struct Driver {
    Queue *q;
    unsigned count;
    GRand *rand;
} Driver;

static void driver_delay(Driver *d)
{
    /* around the windows, so that polling starts and stops all the time */
    static const int64_t around_ns[] = { 0, 500, 1000, 2000, 3000, 5000, 12000, 30000 };
    int64_t until = aio_clock_ns();

    until += around_ns[g_rand_int_range(d->rand, 0, G_N_ELEMENTS(around_ns))];
    while (aio_clock_ns() < until) {
    }
}

static gpointer driver_thread(gpointer opaque)
{
    Driver *d = opaque;

    for (unsigned i = 1; i <= d->count; i++) {
        queue_put(d->q);
        while (atomic_load_explicit(&d->q->used, memory_order_acquire) != i) {
            if (i % 16 == 0) {
                g_thread_yield();
            }
        }
        driver_delay(d);
    }
    return NULL;
}

static void test_no_kick_is_lost(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    GThread *t;
    Queue q;
    Driver d = { .q = &q, .count = rounds(10000) };

    d.rand = g_rand_new_with_seed(g_test_rand_int());
    queue_init(&q, ctx);
    aio_set_poll_params(ctx, &(AioPollParams) { .max_ns = 20000, .shrink = 2 });
    t = g_thread_new("driver", driver_thread, &d);
    while (atomic_load(&q.used) < d.count) {
        aio_poll(ctx, true);
    }
    g_thread_join(t);
    g_test_message("%u requests, %u kicks, %u times polling", d.count, q.kicks, q.begins);
    g_assert_cmpuint(q.avail, ==, q.used);
    g_rand_free(d.rand);
    queue_cleanup(&q);
}

typedef struct Tuner {
    AioContext *ctx;
    _Atomic bool stop;
    unsigned changes;
} Tuner;

static gpointer tuner_thread(gpointer opaque)
{
    static const int64_t max_ns[] = { 0, 20000, 1000, LONG_NS };
    Tuner *t = opaque;

    while (!atomic_load(&t->stop)) {
        aio_set_poll_params(t->ctx, &(AioPollParams) {
            .max_ns = max_ns[t->changes++ % G_N_ELEMENTS(max_ns)],
        });
        g_usleep(100);
    }
    return NULL;
}

static void test_no_kick_is_lost_while_parameters_change(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    GThread *driver, *tuner;
    Queue q;
    Driver d = { .q = &q, .count = rounds(5000) };
    Tuner t = { .ctx = ctx };

    d.rand = g_rand_new_with_seed(g_test_rand_int());
    queue_init(&q, ctx);
    driver = g_thread_new("driver", driver_thread, &d);
    tuner = g_thread_new("tuner", tuner_thread, &t);
    while (atomic_load(&q.used) < d.count) {
        aio_poll(ctx, true);
    }
    atomic_store(&t.stop, true);
    g_thread_join(driver);
    g_thread_join(tuner);
    g_test_message("%u requests, %u kicks, %u changes", d.count, q.kicks, t.changes);
    g_assert_cmpuint(q.avail, ==, q.used);
    g_rand_free(d.rand);
    queue_cleanup(&q);
}

/* ---- devices with a latency -------------------------------------------------------- */

/* Completes a fixed time after the last completion: seen in "memory" or by a timerfd. */
typedef struct Device {
    AioHandler *h;
    int fd;
    int64_t latency_ns;
    int64_t due_ns;
    unsigned by_poll, by_fd;
} Device;

static void device_start(Device *d)
{
    struct itimerspec its = { 0 };

    d->due_ns = aio_clock_ns() + d->latency_ns;
    its.it_value.tv_sec = d->due_ns / 1000000000;
    its.it_value.tv_nsec = d->due_ns % 1000000000;
    timerfd_settime(d->fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static unsigned device_poll(void *opaque)
{
    Device *d = opaque;

    if (aio_clock_ns() < d->due_ns) {
        return 0;
    }
    d->by_poll++;
    device_start(d);
    return 1;
}

static void device_ready(void *opaque)
{
    Device *d = opaque;

    d->by_fd++;
    device_start(d);
}

static const AioHandlerOps device_ops = {
    .name = "device",
    .readable = device_ready,
    .poll = device_poll,
};

static void device_init(Device *d, AioContext *ctx, int64_t latency_ns)
{
    *d = (Device) { .latency_ns = latency_ns };
    d->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    d->h = aio_handler_add(ctx, d->fd, &device_ops, d);
    device_start(d);
}

static void device_cleanup(Device *d)
{
    aio_handler_remove(d->h);
    close(d->fd);
}

static void run_for(AioContext *ctx, int64_t ns)
{
    int64_t end = aio_clock_ns() + ns;

    while (aio_clock_ns() < end) {
        aio_poll(ctx, true);
    }
}

static void test_window_fits_the_device(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Device d;

    device_init(&d, ctx, 60000);
    set_max(ctx, 1000000);              /* room for a sleep that overshoots */
    run_for(ctx, 50000000);
    g_test_message("by poll %u, by fd %u", d.by_poll, d.by_fd);
    g_assert_cmpuint(d.by_poll, >, d.by_fd);
    g_assert_cmpuint(stats(ctx).windows_grown, >=, 5);
    device_cleanup(&d);

    device_init(&d, ctx, 3000000);      /* too slow to poll for */
    run_for(ctx, 100000000);
    g_test_message("by poll %u, by fd %u", d.by_poll, d.by_fd);
    g_assert_cmpuint(d.by_poll, <, d.by_fd);
    g_assert_cmpuint(stats(ctx).window_ns, ==, 0);
    device_cleanup(&d);
}

static void test_slow_device_leaves_polling_to_the_fast_one(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Device fast, slow;

    set_max(ctx, 500000);
    device_init(&fast, ctx, 60000);
    device_init(&slow, ctx, 2000000);
    while (slow.by_poll + slow.by_fd < 50) {
        aio_poll(ctx, true);
    }
    g_test_message("fast: by poll %u, by fd %u; slow: %u, %u", fast.by_poll, fast.by_fd,
                   slow.by_poll, slow.by_fd);
    g_assert_cmpuint(fast.by_poll, >, fast.by_fd);
    device_cleanup(&fast);
    device_cleanup(&slow);
}

int main(int argc, char **argv)
{
    static const AioCase cases[] = {
        { "memory-is-looked-at-before-sleeping", test_memory_is_looked_at_before_sleeping },
        { "polling-state-lasts-until-the-loop-sleeps",
          test_polling_state_lasts_until_the_loop_sleeps },
        { "unpollable-fd-switches-polling-off", test_unpollable_fd_switches_polling_off },
        { "parameters-reset-what-was-learned", test_parameters_reset_what_was_learned },
        { "handlers-come-and-go-while-polled", test_handlers_come_and_go_while_polled },
        { "bh-ends-polling", test_bh_ends_polling },
        { "timer-is-on-time-while-polling", test_timer_is_on_time_while_polling },
        { "other-fds-are-served-while-polling-succeeds",
          test_other_fds_are_served_while_polling_succeeds },
        { "idle-handler-leaves-the-list-and-returns",
          test_idle_handler_leaves_the_list_and_returns },
        { "idle-handler-polls-inside-its-callback",
          test_idle_handler_polls_inside_its_callback },
        { "books-add-up", test_books_add_up },
        { "no-kick-is-lost", test_no_kick_is_lost },
        { "no-kick-is-lost-while-parameters-change",
          test_no_kick_is_lost_while_parameters_change },
        { "window-fits-the-device", test_window_fits_the_device },
        { "slow-device-leaves-polling-to-the-fast-one",
          test_slow_device_leaves_polling_to_the_fast_one },
    };

    g_test_init(&argc, &argv, NULL);
    aio_cases_add("aio-poll", cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
