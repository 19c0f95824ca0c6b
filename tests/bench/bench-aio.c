/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the event loop costs: a table on stdout. Figures of one run compare with
 * each other only.
 *
 *     bench-aio [MILLISECONDS per figure, default 200]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/aio.h"
#include "util/event-notifier.h"

static int64_t slice_ns = 200000000;

static AioContext *new_ctx(int64_t max_ns)
{
    g_autoptr(GError) err = NULL;
    AioContext *ctx = aio_context_new("bench", &err);

    if (!ctx) {
        g_error("%s", err->message);
    }
    aio_context_enter(ctx);
    aio_set_poll_params(ctx, &(AioPollParams) { .max_ns = max_ns });
    aio_poll(ctx, false);
    return ctx;
}

static void timer_nothing(void *opaque)
{
    *(bool *)opaque = true;
}

/* ---- turns ------------------------------------------------------------------- */

typedef struct Source {
    AioHandler *h;
    EventNotifier n;
    _Atomic unsigned avail;
    unsigned used;
    uint64_t polls;
    bool always;
} Source;

static unsigned source_poll(void *opaque)
{
    Source *s = opaque;

    s->polls++;
    if (s->always) {
        return 1;
    }
    if (atomic_load_explicit(&s->avail, memory_order_acquire) == s->used) {
        return 0;
    }
    s->used++;
    return 1;
}

static void source_ready(void *opaque)
{
    Source *s = opaque;

    event_notifier_test_and_clear(&s->n);
}

static const AioHandlerOps source_ops = {
    .name = "source",
    .poll = source_poll,
    .readable = source_ready,
};

static void sources_add(Source *s, unsigned count, AioContext *ctx)
{
    for (unsigned i = 0; i < count; i++) {
        s[i] = (Source) { 0 };
        event_notifier_init(&s[i].n, NULL);
        s[i].h = aio_handler_add(ctx, s[i].n.fd, &source_ops, &s[i]);
    }
}

static void sources_drop(Source *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        aio_handler_remove(s[i].h);
        event_notifier_cleanup(&s[i].n);
    }
}

/* The loop polls up to the next timer, which is the way to make it poll for long. */
static void bench_empty_turn(unsigned count)
{
    g_autoptr(AioContext) ctx = new_ctx(INT64_MAX);
    g_autofree Source *s = g_new0(Source, count);
    bool fired = false;
    AioTimer t;
    int64_t start;
    uint64_t polls;

    sources_add(s, count, ctx);
    aio_timer_init(&t, ctx, timer_nothing, &fired);
    aio_timer_set(&t, aio_clock_ns() + 10000000);
    aio_poll(ctx, true);
    polls = s[0].polls;
    start = aio_clock_ns();
    fired = false;
    aio_timer_set(&t, start + slice_ns);
    while (!fired) {
        aio_poll(ctx, true);
    }
    printf("empty turn, %2u handlers         %8.1f ns\n", count,
           (double)(aio_clock_ns() - start) / (s[0].polls - polls));
    sources_drop(s, count);
}

static void bench_hit(unsigned idle)
{
    g_autoptr(AioContext) ctx = new_ctx(INT64_MAX);
    g_autofree Source *s = g_new0(Source, idle + 1);
    bool fired = false;
    AioTimer t;
    int64_t start;
    uint64_t count = 0;

    sources_add(s, idle + 1, ctx);
    aio_timer_init(&t, ctx, timer_nothing, &fired);
    aio_timer_set(&t, aio_clock_ns() + 10000000);
    aio_poll(ctx, true);
    s[0].always = true;
    start = aio_clock_ns();
    while (aio_clock_ns() < start + slice_ns) {
        for (unsigned i = 0; i < 1000; i++) {
            aio_poll(ctx, true);
        }
        count += 1000;
    }
    printf("round with work, %2u idle beside %8.1f ns\n", idle,
           (double)(aio_clock_ns() - start) / count);
    sources_drop(s, idle + 1);
}

/* ---- between threads ------------------------------------------------------------- */

typedef struct Side {
    AioContext *ctx;
    Source *in;
    Source *out;
    AioBh *bh;
    struct Side *peer;
    _Atomic bool *stop;
    _Atomic bool ready;
    int64_t max_ns;
    uint64_t rounds;
} Side;

static void side_bh(void *opaque)
{
    Side *s = opaque;

    s->rounds++;
    aio_bh_schedule(s->peer->bh);
}

static gpointer side_thread(gpointer opaque)
{
    Side *s = opaque;

    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    s->ctx = new_ctx(s->max_ns);
    s->bh = aio_bh_new(s->ctx, "ball", side_bh, s);
    atomic_store(&s->ready, true);
    while (!atomic_load(&s->peer->ready)) {
    }
    while (!atomic_load(s->stop)) {
        aio_poll(s->ctx, true);
    }
    atomic_store(&s->ready, false);
    while (atomic_load(&s->peer->ready)) {
    }
    aio_bh_delete(s->bh);
    aio_context_leave(s->ctx);
    return NULL;
}

static void bench_notify_ping_pong(void)
{
    _Atomic bool stop = false;
    Side a = { .stop = &stop }, b = { .stop = &stop, .peer = &a };
    GThread *ta, *tb;
    int64_t start;

    a.peer = &b;
    ta = g_thread_new("a", side_thread, &a);
    tb = g_thread_new("b", side_thread, &b);
    while (!atomic_load(&a.ready) || !atomic_load(&b.ready)) {
    }
    start = aio_clock_ns();
    aio_bh_schedule(a.bh);
    g_usleep(slice_ns / 1000);
    atomic_store(&stop, true);
    aio_notify(a.ctx);
    aio_notify(b.ctx);
    g_thread_join(ta);
    g_thread_join(tb);
    aio_context_free(a.ctx);
    aio_context_free(b.ctx);
    printf("there and back, asleep          %8.1f ns\n",
           (double)(aio_clock_ns() - start) / MAX(a.rounds, 1));
}

static _Atomic unsigned reply;

static gpointer spin_thread(gpointer opaque)
{
    Source *s = opaque;
    int64_t end = aio_clock_ns() + slice_ns;
    unsigned i = 0;

    while (i % 256 || aio_clock_ns() < end) {
        i++;
        atomic_store_explicit(&s->avail, i, memory_order_release);
        while (atomic_load_explicit(&reply, memory_order_acquire) != i) {
        }
    }
    atomic_store(&reply, 0);
    return NULL;
}

static unsigned echo_poll(void *opaque)
{
    unsigned n = source_poll(opaque);

    if (n) {
        atomic_store_explicit(&reply, ((Source *)opaque)->used, memory_order_release);
    }
    return n;
}

static gpointer plain_echo(gpointer opaque)
{
    Source *s = opaque;
    unsigned seen = 0;

    while (seen != UINT_MAX) {
        unsigned now = atomic_load_explicit(&s->avail, memory_order_acquire);

        if (now != seen) {
            seen = now;
            atomic_store_explicit(&reply, now, memory_order_release);
        }
    }
    return NULL;
}

/* The floor: two threads, one cache line each way, no event loop. */
static void bench_plain_ping_pong(void)
{
    Source s = { 0 };
    GThread *echo, *spin;
    int64_t start = aio_clock_ns();
    unsigned rounds;

    atomic_store(&reply, 0);
    echo = g_thread_new("echo", plain_echo, &s);
    spin = g_thread_new("spin", spin_thread, &s);
    g_thread_join(spin);
    rounds = atomic_load(&s.avail);
    printf("there and back, bare memory     %8.1f ns\n",
           (double)(aio_clock_ns() - start) / rounds);
    atomic_store(&s.avail, UINT_MAX);
    g_thread_join(echo);
}

static void bench_polled_ping_pong(void)
{
    static const AioHandlerOps ops = {
        .name = "echo",
        .poll = echo_poll,
        .readable = source_ready,
    };
    g_autoptr(AioContext) ctx = new_ctx(INT64_MAX);
    bool fired = false;
    Source s = { 0 };
    GThread *spin;
    AioTimer t;
    int64_t start;

    atomic_store(&reply, 0);
    event_notifier_init(&s.n, NULL);
    s.h = aio_handler_add(ctx, s.n.fd, &ops, &s);
    aio_timer_init(&t, ctx, timer_nothing, &fired);
    aio_timer_set(&t, aio_clock_ns() + slice_ns * 2);
    aio_poll(ctx, false);
    start = aio_clock_ns();
    spin = g_thread_new("spin", spin_thread, &s);
    while (s.used == 0 || atomic_load_explicit(&reply, memory_order_relaxed) != 0) {
        aio_poll(ctx, !fired);
    }
    printf("there and back, polled          %8.1f ns\n",
           (double)(aio_clock_ns() - start) / MAX(s.used, 1));
    g_thread_join(spin);
    aio_timer_cancel(&t);
    sources_drop(&s, 1);
}

/* ---- a device with a latency --------------------------------------------------------- */

typedef struct Device {
    AioHandler *h;
    int fd;
    int64_t latency_ns;
    int64_t due_ns;
    uint64_t by_poll, by_fd;
    int64_t late_ns[4096];              /* the last ones */
} Device;

static void device_start(Device *d)
{
    struct itimerspec its = { 0 };
    int64_t now = aio_clock_ns();

    if (d->due_ns) {
        d->late_ns[(d->by_poll + d->by_fd) % G_N_ELEMENTS(d->late_ns)] = now - d->due_ns;
    }
    d->due_ns = now + d->latency_ns;
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

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int64_t median_late(Device *d)
{
    unsigned n = MIN(d->by_poll + d->by_fd, G_N_ELEMENTS(d->late_ns));

    qsort(d->late_ns, n, sizeof(d->late_ns[0]), compare_ns);
    return d->late_ns[n / 2];
}

static gpointer device_thread(gpointer opaque)
{
    int64_t *args = opaque;
    g_autoptr(AioContext) ctx = new_ctx(args[1]);
    Device d = { .latency_ns = args[0] };
    int64_t end = aio_clock_ns() + slice_ns;

    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    d.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    d.h = aio_handler_add(ctx, d.fd, &device_ops, &d);
    device_start(&d);
    while (aio_clock_ns() < end) {
        aio_poll(ctx, true);
    }
    printf("device of %3d us, max %3d us     %6d   ns late (median), %3.0f %% polled\n",
           (int)(args[0] / 1000), (int)(args[1] / 1000), (int)median_late(&d),
           100.0 * d.by_poll / MAX(d.by_poll + d.by_fd, 1));
    aio_handler_remove(d.h);
    close(d.fd);
    return NULL;
}

int main(int argc, char **argv)
{
    static const unsigned counts[] = { 1, 2, 4, 16, 64 };
    static int64_t devices[][2] = {
        { 3000, 32768 }, { 10000, 32768 }, { 25000, 32768 }, { 60000, 32768 }, { 60000, 200000 },
    };

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) {
        slice_ns = CLAMP(strtoll(argv[1], NULL, 10), 1, 60000) * 1000000;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        bench_empty_turn(counts[i]);
    }
    bench_hit(0);
    bench_hit(1);
    bench_hit(63);
    bench_plain_ping_pong();
    bench_polled_ping_pong();
    bench_notify_ping_pong();
    for (unsigned i = 0; i < G_N_ELEMENTS(devices); i++) {
        g_thread_join(g_thread_new("device", device_thread, devices[i]));
    }
    return 0;
}
