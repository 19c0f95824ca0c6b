/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timers: a binary heap of those that are armed, the next one at its root.
 */
#include "aio-internal.h"

#include "trace/trace-util.h"

static bool before(const AioTimer *a, const AioTimer *b)
{
    return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns : a->seq < b->seq;
}

static void place(AioContext *ctx, unsigned i, AioTimer *t)
{
    ctx->timers[i] = t;
    t->heap_index = i;
}

static void sift_up(AioContext *ctx, unsigned i, AioTimer *t)
{
    while (i > 0 && before(t, ctx->timers[(i - 1) / 2])) {
        place(ctx, i, ctx->timers[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(ctx, i, t);
}

static void sift_down(AioContext *ctx, unsigned i, AioTimer *t)
{
    for (;;) {
        unsigned child = 2 * i + 1;

        if (child + 1 < ctx->timer_count && before(ctx->timers[child + 1], ctx->timers[child])) {
            child++;
        }
        if (child >= ctx->timer_count || !before(ctx->timers[child], t)) {
            break;
        }
        place(ctx, i, ctx->timers[child]);
        i = child;
    }
    place(ctx, i, t);
}

static void heap_remove(AioTimer *t)
{
    AioContext *ctx = t->ctx;
    unsigned i = t->heap_index;
    AioTimer *last = ctx->timers[--ctx->timer_count];

    t->deadline_ns = -1;
    if (last == t) {
        return;
    }
    if (i > 0 && before(last, ctx->timers[(i - 1) / 2])) {
        sift_up(ctx, i, last);
    } else {
        sift_down(ctx, i, last);
    }
}

void aio_timer_init(AioTimer *t, AioContext *ctx, void (*fn)(void *opaque), void *opaque)
{
    *t = (AioTimer) { .ctx = ctx, .fn = fn, .opaque = opaque, .deadline_ns = -1 };
}

void aio_timer_set(AioTimer *t, int64_t deadline_ns)
{
    AioContext *ctx = t->ctx;

    aio_assert_home(ctx);
    aio_timer_cancel(t);
    if (ctx->timer_count == ctx->timer_size) {
        ctx->timer_size = MAX(16, ctx->timer_size * 2);
        ctx->timers = g_renew(AioTimer *, ctx->timers, ctx->timer_size);
    }
    t->deadline_ns = MAX(deadline_ns, 0);
    t->seq = ctx->timer_seq++;
    sift_up(ctx, ctx->timer_count++, t);
}

void aio_timer_cancel(AioTimer *t)
{
    if (t->deadline_ns >= 0) {
        aio_assert_home(t->ctx);
        heap_remove(t);
    }
}

/* A timer that is armed again while they run waits for the next iteration. */
bool aio_timers_expire(AioContext *ctx)
{
    uint64_t seq_end = ctx->timer_seq;
    int64_t now = aio_clock_ns();
    unsigned ran = 0;

    while (ctx->timer_count > 0) {
        AioTimer *t = ctx->timers[0];

        if (t->deadline_ns > now || t->seq >= seq_end) {
            break;
        }
        heap_remove(t);
        t->fn(t->opaque);
        ran++;
    }
    if (ran > 0) {
        trace_aio_timers_done(ctx, ran);
    }
    return ran > 0;
}
