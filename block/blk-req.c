/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests that are finished as soon as they are submitted wait here for the
 * end of the round: the submit call must have returned before they complete.
 */
#include <errno.h>

#include "block-ctx.h"

/* Which context has which number. Main thread and first uses only. */
static struct {
    GMutex lock;
    BlockCtx *ctx[BLOCK_CTX_MAX];
} registry;

static void done_list_run(void *opaque)
{
    BlockCtx *bc = opaque;
    BlkReq *req = bc->done_head;

    block_ctx_round_end(bc);
    if (!req) {
        return;
    }
    /* What completes from here on goes to the next list, in the same round. */
    bc->done_head = NULL;
    bc->done_tail = &bc->done_head;

    block_ctx_batch_begin(bc);
    while (req) {
        BlkReq *next = req->next;

        blk_req_complete(req, req->ret);
        req = next;
    }
    block_ctx_batch_end(bc);
}

void blk_req_complete_deferred(AioContext *ctx, BlkReq *req, int ret)
{
    BlockCtx *bc = block_ctx(ctx);

    req->ret = ret;
    req->next = NULL;
    *bc->done_tail = req;
    bc->done_tail = &req->next;
    aio_defer(ctx, &bc->done_defer);
}

static void block_ctx_destroy(void *opaque)
{
    BlockCtx *bc = opaque;

    g_assert(!bc->done_head);
    aio_defer_cancel(bc->ctx, &bc->done_defer);
    if (bc->null) {
        null_ctx_destroy(bc->null);
    }
    g_mutex_lock(&registry.lock);
    registry.ctx[bc->id] = NULL;
    g_mutex_unlock(&registry.lock);
    g_free(bc);
}

BlockCtx *block_ctx_create(AioContext *ctx)
{
    BlockCtx *bc = NULL;

    g_mutex_lock(&registry.lock);
    for (unsigned id = 0; id < BLOCK_CTX_MAX; id++) {
        if (!registry.ctx[id]) {
            bc = g_new0(BlockCtx, 1);
            bc->ctx = ctx;
            bc->id = id;
            registry.ctx[id] = bc;
            break;
        }
    }
    g_mutex_unlock(&registry.lock);
    if (!bc) {
        return NULL;
    }
    bc->done_tail = &bc->done_head;
    aio_defer_init(&bc->done_defer, done_list_run, bc);
    aio_slot_set(ctx, AIO_SLOT_BLOCK, bc, block_ctx_destroy);
    return bc;
}

uint64_t block_ticks_to_ns(uint64_t ticks)
{
#ifdef __x86_64__
    /* Measured against the system's clock over the time since the first call. */
    static gsize started;
    static int64_t ns0;
    static uint64_t ticks0;

    if (g_once_init_enter(&started)) {
        ns0 = aio_clock_ns();
        ticks0 = block_ticks();
        g_once_init_leave(&started, 1);
    }

    uint64_t span_ticks = block_ticks() - ticks0;
    int64_t span_ns = aio_clock_ns() - ns0;

    return span_ticks > 0 ? (uint64_t)((double)ticks * span_ns / span_ticks) : 0;
#else
    return ticks;
#endif
}

bool block_ctx_run_sync(unsigned id, void (*fn)(void *opaque), void *opaque)
{
    AioContext *ctx = NULL;

    g_mutex_lock(&registry.lock);
    if (registry.ctx[id]) {
        ctx = registry.ctx[id]->ctx;
    }
    g_mutex_unlock(&registry.lock);
    /* Contexts end in the main thread, which is us: @ctx stays. */
    if (ctx) {
        aio_run_sync(ctx, fn, opaque);
    }
    return ctx != NULL;
}
