/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bottom halves: functions that other threads or callbacks ask the loop to run.
 *
 * Scheduling pushes onto a stack that the loop takes as a whole, so there is no
 * lock. What one bottom half schedules runs in the next iteration.
 */
#include "aio-internal.h"

#include "trace/trace-util.h"

enum {
    BH_QUEUED = 1,                      /* on a list; on no more than one */
    BH_DELETED = 2,
    BH_ONESHOT = 4,
};

struct AioBh {
    AioContext *ctx;
    const char *name;
    void (*fn)(void *opaque);
    void *opaque;
    AioBh *next;
    _Atomic unsigned flags;
};

static AioBh *bh_new(AioContext *ctx, const char *name, void (*fn)(void *opaque), void *opaque,
                     unsigned flags)
{
    AioBh *bh = g_new(AioBh, 1);

    bh->ctx = ctx;
    bh->name = name;
    bh->fn = fn;
    bh->opaque = opaque;
    bh->next = NULL;
    atomic_init(&bh->flags, flags);
    return bh;
}

AioBh *aio_bh_new(AioContext *ctx, const char *name, void (*fn)(void *opaque), void *opaque)
{
    return bh_new(ctx, name, fn, opaque, 0);
}

static void enqueue(AioBh *bh, unsigned flags)
{
    AioContext *ctx = bh->ctx;
    AioBh *head;

    /* Release: pairs with the acquire in run_one(), if it is queued already. */
    if (atomic_fetch_or(&bh->flags, BH_QUEUED | flags) & BH_QUEUED) {
        return;
    }
    head = atomic_load_explicit(&ctx->bh_incoming, memory_order_relaxed);
    do {
        bh->next = head;
        /* Release: pairs with the acquire in take_incoming(). */
    } while (!atomic_compare_exchange_weak_explicit(&ctx->bh_incoming, &head, bh,
                                                    memory_order_release, memory_order_relaxed));
    aio_notify(ctx);
}

void aio_bh_schedule(AioBh *bh)
{
    enqueue(bh, 0);
}

void aio_bh_delete(AioBh *bh)
{
    enqueue(bh, BH_DELETED);
}

void aio_bh_oneshot(AioContext *ctx, const char *name, void (*fn)(void *opaque), void *opaque)
{
    enqueue(bh_new(ctx, name, fn, opaque, BH_ONESHOT), 0);
}

/* Append what came in, oldest first, to what is still to be run. */
static void take_incoming(AioContext *ctx)
{
    AioBh *newest, *oldest_first = NULL;

    if (!atomic_load_explicit(&ctx->bh_incoming, memory_order_relaxed)) {
        return;
    }
    newest = atomic_exchange_explicit(&ctx->bh_incoming, NULL, memory_order_acquire);
    *ctx->bh_tail = NULL;
    for (AioBh *bh = newest; bh; ) {
        AioBh *next = bh->next;

        bh->next = oldest_first;
        oldest_first = bh;
        bh = next;
    }
    *ctx->bh_tail = oldest_first;
    if (newest) {
        ctx->bh_tail = &newest->next;   /* the last one now */
    }
}

static AioBh *bh_pop(AioContext *ctx)
{
    AioBh *bh = ctx->bh_head;

    if (bh) {
        ctx->bh_head = bh->next;
        if (!bh->next) {
            ctx->bh_tail = &ctx->bh_head;
        }
    }
    return bh;
}

/* After the flag is gone another thread may queue it again. */
static bool run_one(AioBh *bh)
{
    unsigned flags = atomic_fetch_and(&bh->flags, ~BH_QUEUED);

    if (flags & BH_DELETED) {
        g_free(bh);
        return false;
    }
    bh->fn(bh->opaque);
    if (flags & BH_ONESHOT) {
        g_free(bh);
    }
    return true;
}

/* Also runs what a nested aio_poll() interrupted. */
bool aio_bh_drain(AioContext *ctx)
{
    unsigned ran = 0;
    AioBh *bh;

    take_incoming(ctx);
    while ((bh = bh_pop(ctx)) != NULL) {
        ran += run_one(bh);
    }
    if (ran > 0) {
        trace_aio_bh_done(ctx, ran);
    }
    return ran > 0;
}

/* The context ends: only deleted ones may be left. */
void aio_free_bhs(AioContext *ctx)
{
    AioBh *bh;

    take_incoming(ctx);
    while ((bh = bh_pop(ctx)) != NULL) {
        g_assert(atomic_load(&bh->flags) & BH_DELETED);
        g_free(bh);
    }
}
