/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop and other threads, by every fd monitor.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "aio-cases.h"

/* ---- notification ------------------------------------------------------- */

/* Two loops throw a ball to each other; one lost wake-up, and the test hangs. */
typedef struct Player {
    AioContext *ctx;
    AioBh *bh;
    struct Player *peer;
    unsigned left;
    _Atomic bool done;
    _Atomic bool ready;
    const void *monitor;
} Player;

static void player_hit(void *opaque)
{
    Player *p = opaque;

    if (p->left > 0) {
        p->left--;
        aio_bh_schedule(p->peer->bh);
    }
    if (p->left == 0) {
        atomic_store(&p->done, true);
    }
}

static gpointer player_thread(gpointer opaque)
{
    Player *p = opaque;

    p->ctx = new_ctx(p->monitor);
    p->bh = aio_bh_new(p->ctx, "ball", player_hit, p);
    atomic_store(&p->ready, true);
    while (!atomic_load(&p->done)) {
        aio_poll(p->ctx, true);
    }
    while (!atomic_load(&p->peer->done)) {
        g_thread_yield();
    }
    aio_bh_delete(p->bh);
    aio_context_free(p->ctx);
    return NULL;
}

static void test_ping_pong_loses_nothing(const void *monitor)
{
    Player a = { .left = rounds(20000), .monitor = monitor };
    Player b = { .left = a.left, .monitor = monitor };
    GThread *ta, *tb;

    a.peer = &b;
    b.peer = &a;
    ta = g_thread_new("a", player_thread, &a);
    tb = g_thread_new("b", player_thread, &b);
    while (!atomic_load(&a.ready) || !atomic_load(&b.ready)) {
        g_thread_yield();
    }
    aio_bh_schedule(a.bh);
    g_thread_join(ta);
    g_thread_join(tb);
    g_assert_cmpuint(a.left + b.left, ==, 0);
}

/* ---- between threads ---------------------------------------------------- */

typedef struct Home {
    const void *monitor;
    AioContext *ctx;
    GThread *thread;
    _Atomic bool ready;
    _Atomic bool stop;
    unsigned calls;                     /* home thread */
} Home;

static gpointer home_thread(gpointer opaque)
{
    Home *h = opaque;

    h->ctx = new_ctx(h->monitor);
    atomic_store(&h->ready, true);
    while (!atomic_load(&h->stop)) {
        aio_poll(h->ctx, true);
    }
    settle(h->ctx);
    aio_context_leave(h->ctx);
    return NULL;
}

static void home_start(Home *h, const void *monitor)
{
    *h = (Home) { .monitor = monitor };
    h->thread = g_thread_new("home", home_thread, h);
    while (!atomic_load(&h->ready)) {
        g_thread_yield();
    }
}

static void home_stop(Home *h)
{
    atomic_store(&h->stop, true);
    aio_notify(h->ctx);
    g_thread_join(h->thread);
    aio_context_free(h->ctx);
}

static void home_call(void *opaque)
{
    Home *h = opaque;

    g_assert_true(aio_context_current() == h->ctx);
    h->calls++;
}

static void test_run_sync_without_a_loop(const void *monitor)
{
    Home h;

    home_start(&h, monitor);
    for (unsigned i = 1; i <= rounds(2000); i++) {
        aio_run_sync(h.ctx, home_call, &h);
        g_assert_cmpuint(h.calls, ==, i);
    }
    home_stop(&h);
}

typedef struct Mutual {
    Home *peer;
    AioContext *mine;
    unsigned count;
    unsigned calls;
} Mutual;

static void mutual_call(void *opaque)
{
    unsigned *calls = opaque;

    (*calls)++;
}

static void mutual_run(void *opaque)
{
    Mutual *m = opaque;

    for (unsigned i = 0; i < m->count; i++) {
        aio_run_sync(m->mine, mutual_call, &m->calls);
    }
}

/* Each waits for the other: both must keep their own loop running meanwhile. */
static void test_run_sync_both_ways(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    Mutual m = { .mine = ctx, .count = rounds(500) };
    unsigned calls = 0;
    Home h;

    home_start(&h, monitor);
    aio_bh_oneshot(h.ctx, "mutual", mutual_run, &m);
    for (unsigned i = 0; i < m.count; i++) {
        aio_run_sync(h.ctx, mutual_call, &calls);
    }
    while (m.calls < m.count) {
        aio_poll(ctx, true);
    }
    home_stop(&h);
    g_assert_cmpuint(calls, ==, m.count);
}

typedef struct Cond {
    _Atomic unsigned value;
    unsigned wanted;
} Cond;

static bool cond_done(void *opaque)
{
    Cond *c = opaque;

    return atomic_load(&c->value) >= c->wanted;
}

static gpointer cond_thread(gpointer opaque)
{
    Cond *c = opaque;

    for (unsigned i = 0; i < c->wanted; i++) {
        atomic_fetch_add(&c->value, 1);
        aio_wait_kick();
    }
    return NULL;
}

static void test_wait_until_another_thread_is_done(const void *monitor)
{
    for (unsigned i = 0; i < rounds(200); i++) {
        g_autoptr(AioContext) ctx = i % 2 ? new_ctx(monitor) : NULL;
        Cond c = { .wanted = 1 + i % 7 };
        GThread *t = g_thread_new("cond", cond_thread, &c);

        aio_wait_until(cond_done, &c);
        g_thread_join(t);
    }
}

/* ---- main loop ---------------------------------------------------------- */

typedef struct MainLoop {
    GMainLoop *loop;
    Fd fd;
    AioTimer timer;
    AioDefer defer;
    int64_t deadline_ns;
    _Atomic unsigned bhs;
    unsigned timers, defers;
} MainLoop;

static void main_deferred(void *opaque)
{
    MainLoop *m = opaque;

    m->defers++;
}

static void main_timer(void *opaque)
{
    MainLoop *m = opaque;

    g_assert_cmpint(aio_clock_ns(), >=, m->deadline_ns);
    m->timers++;
}

static void main_quit(Fd *fd)
{
    MainLoop *m = (MainLoop *)((char *)fd - offsetof(MainLoop, fd));

    aio_defer(fd->ctx, &m->defer);
    g_main_loop_quit(m->loop);
}

static void main_bh(void *opaque)
{
    MainLoop *m = opaque;

    m->deadline_ns = aio_clock_ns() + 1500000;
    aio_timer_set(&m->timer, m->deadline_ns);
    atomic_fetch_add(&m->bhs, 1);
}

static gpointer main_bh_thread(gpointer opaque)
{
    MainLoop *m = opaque;

    g_usleep(2000);
    aio_bh_oneshot(m->fd.ctx, "main", main_bh, m);
    while (atomic_load(&m->bhs) == 0) {
        g_usleep(100);
    }
    g_usleep(3000);
    event_notifier_set(&m->fd.n);
    return NULL;
}

static void test_gsource_serves_everything(const void *monitor)
{
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    GMainContext *main_ctx = g_main_context_new();
    GSource *source = aio_context_gsource(ctx, NULL);
    MainLoop m = { .loop = g_main_loop_new(main_ctx, FALSE) };
    GThread *t;

    g_assert_nonnull(source);
    g_source_attach(source, main_ctx);
    fd_init(&m.fd, ctx);
    m.fd.then = main_quit;
    aio_defer_init(&m.defer, main_deferred, &m);
    aio_timer_init(&m.timer, ctx, main_timer, &m);
    t = g_thread_new("main-bh", main_bh_thread, &m);
    g_main_loop_run(m.loop);
    g_thread_join(t);
    g_assert_cmpuint(m.bhs, ==, 1);
    g_assert_cmpuint(m.fd.calls, ==, 1);
    g_assert_cmpuint(m.timers, ==, 1);
    g_assert_cmpuint(m.defers, ==, 1);

    /* what is deferred outside of the loop wakes it */
    aio_defer(ctx, &m.defer);
    g_assert_true(g_main_context_iteration(main_ctx, TRUE));
    g_assert_cmpuint(m.defers, ==, 2);
    fd_cleanup(&m.fd);
    g_source_destroy(source);
    g_source_unref(source);
    g_main_loop_unref(m.loop);
    g_main_context_unref(main_ctx);
}

static void plain_readable(void *opaque)
{
    int *fd = opaque;
    char c;

    if (read(*fd, &c, 1) == 0) {
        *fd = -1;
    }
}

/* epoll refuses it, so that the source must watch every fd by itself from then on. */
static void test_gsource_watches_a_plain_file(const void *monitor)
{
    static const AioHandlerOps ops = { .name = "file", .readable = plain_readable };
    g_autoptr(AioContext) ctx = new_ctx(monitor);
    GMainContext *main_ctx = g_main_context_new();
    GSource *source = aio_context_gsource(ctx, NULL);
    g_autofree char *name = NULL;
    int fd = g_file_open_tmp(NULL, &name, NULL), left = fd;
    AioHandler *h;
    Fd before, after;

    g_assert_cmpint(fd, >=, 0);
    unlink(name);
    g_source_attach(source, main_ctx);
    fd_init(&before, ctx);
    h = aio_handler_add(ctx, fd, &ops, &left);
    fd_init(&after, ctx);
    while (left >= 0) {
        g_main_context_iteration(main_ctx, TRUE);
    }
    aio_handler_remove(h);
    event_notifier_set(&before.n);
    event_notifier_set(&after.n);
    while (before.calls == 0 || after.calls == 0) {
        g_main_context_iteration(main_ctx, TRUE);
    }
    aio_notify(ctx);
    g_assert_true(g_main_context_iteration(main_ctx, TRUE));
    fd_cleanup(&before);
    fd_cleanup(&after);
    g_source_destroy(source);
    g_source_unref(source);
    g_main_context_unref(main_ctx);
    close(fd);
}

static const AioCase cases[] = {
    { "ping-pong-loses-nothing", test_ping_pong_loses_nothing },
    { "run-sync-without-a-loop", test_run_sync_without_a_loop },
    { "run-sync-both-ways", test_run_sync_both_ways },
    { "wait-until-another-thread-is-done", test_wait_until_another_thread_is_done },
    { "gsource-serves-everything", test_gsource_serves_everything },
    { "gsource-watches-a-plain-file", test_gsource_watches_a_plain_file },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    aio_cases_add("aio-threads", cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
