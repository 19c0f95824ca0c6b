/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request path, step 4: the front door.
 * From virtio/blk-request.c (step 3), to file.c (step 5) or another driver.
 *
 * Bounds and permission, write-cache policy, accounting; then the root node's
 * driver. On the way back: accounting, then step 3's completion.
 */
#include <errno.h>

#include "block/block-backend.h"
#include "block-ctx.h"
#include "backend-priv.h"
#include "trace/trace-block.h"

/* Only the home thread writes: a load and a store, no locked instruction. */
static inline void count_add(atomic_uint_fast64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static BlkShard *shard_create(BlockBackend *blk, BlockCtx *bc)
{
    BlkShard *shard = NULL;

    if (posix_memalign((void **)&shard, 64, sizeof(*shard)) != 0) {
        return NULL;
    }
    *shard = (BlkShard) { .blk = blk, .bc = bc };
    /* Pairs with the acquire in shard_get(), for the threads that add up. */
    atomic_store_explicit(&blk->shard[bc->id], shard, memory_order_release);
    return shard;
}

static inline BlkShard *shard_here(BlockBackend *blk, BlockCtx *bc)
{
    BlkShard *shard = atomic_load_explicit(&blk->shard[bc->id], memory_order_relaxed);

    if (G_UNLIKELY(!shard)) {
        return shard_create(blk, bc);
    }
    shard->bc = bc;                     /* the number may have had another context before */
    return shard;
}

/* 0, or why the request must not start. */
static inline int req_check(const BlockBackend *blk, const BlkReq *req)
{
    if (req->op == BLK_FLUSH) {
        return 0;
    }
    if (G_UNLIKELY(req->op != BLK_READ && blk->read_only)) {
        return -EPERM;
    }

    int64_t length = node_length(blk->root);

    if (G_UNLIKELY(req->offset < 0 || req->bytes < 0 || req->offset > length ||
                   req->bytes > length - req->offset)) {
        return -EIO;
    }
    if (G_UNLIKELY((req->offset | req->bytes) & (blk->request_align - 1))) {
        return -EINVAL;
    }
    return 0;
}

static void blk_done(BlkReq *req, void *opaque, int ret);

/* In the frame: what was asked for; nodes below change the request's own fields. */
enum { SAVED_OP, SAVED_BYTES };
enum { SAVED_FUA = 1 << 8 };

static int shard_start(BlkShard *shard, BlkReq *req)
{
    BlkFrame *f = blk_req_push(req, blk_done, shard);
    unsigned in_flight = atomic_load_explicit(&shard->in_flight, memory_order_relaxed);

    f->saved[SAVED_OP] = req->op | (req->flags & BLK_REQ_FUA ? SAVED_FUA : 0);
    f->saved[SAVED_BYTES] = req->bytes;
    atomic_store_explicit(&shard->in_flight, in_flight + 1, memory_order_relaxed);

    int ret = node_submit(shard->blk->root, req);

    if (G_UNLIKELY(ret < 0)) {
        req->depth--;
        atomic_store_explicit(&shard->in_flight, in_flight, memory_order_release);
        count_add(&shard->op[req->op].errors, 1);
    }
    return ret;
}

int blk_submit(BlockBackend *blk, BlkReq *req)
{
    AioContext *ctx = aio_context_current();
    BlockCtx *bc = block_ctx(ctx);
    BlkShard *shard = G_LIKELY(bc) ? shard_here(blk, bc) : NULL;

    if (G_UNLIKELY(!shard)) {
        return -ENOMEM;
    }

    int ret = req_check(blk, req);

    if (G_UNLIKELY(ret < 0)) {
        count_add(&shard->refused, 1);
        return ret;
    }
    trace_blk_submit(blk, req, req->op, req->offset, req->bytes);
    req->ctx = ctx;
    req->start_ticks = block_ctx_stamp(bc);
    if (req->op != BLK_READ && !atomic_load_explicit(&blk->write_cache, memory_order_relaxed)) {
        req->flags |= BLK_REQ_FUA;
    }
    return shard_start(shard, req);
}

/* The write cache was switched off while this write was on its way. */
static bool write_cache_went_off(const BlkShard *shard, int64_t saved)
{
    BlkOp op = saved & 0xff;

    return op != BLK_READ && op != BLK_FLUSH && !(saved & SAVED_FUA) &&
           !atomic_load_explicit(&shard->blk->write_cache, memory_order_relaxed);
}

/* A flush on behalf of the write in @req: true when it started. */
static bool write_add_flush(BlkShard *shard, BlkReq *req, const BlkFrame *was, int *ret)
{
    BlkFrame *f = blk_req_push(req, blk_done, shard);

    f->saved[SAVED_OP] = was->saved[SAVED_OP] | SAVED_FUA;
    f->saved[SAVED_BYTES] = was->saved[SAVED_BYTES];
    req->op = BLK_FLUSH;
    *ret = node_submit(shard->blk->root, req);
    if (*ret < 0) {
        req->depth--;
    }
    return *ret == 0;
}

static void blk_done(BlkReq *req, void *opaque, int ret)
{
    BlkShard *shard = opaque;
    BlkFrame *f = blk_req_frame(req);
    int64_t saved = f->saved[SAVED_OP];
    unsigned op = saved & 0xff;

    if (G_UNLIKELY(ret == 0 && write_cache_went_off(shard, saved)) &&
        write_add_flush(shard, req, &(BlkFrame) { .saved = { saved, f->saved[SAVED_BYTES] } },
                        &ret)) {
        return;
    }
    if (G_LIKELY(ret == 0)) {
        count_add(&shard->op[op].count, 1);
        count_add(&shard->op[op].bytes, f->saved[SAVED_BYTES]);
    } else {
        count_add(&shard->op[op].errors, 1);
    }
    count_add(&shard->op[op].ticks, block_ctx_stamp(shard->bc) - req->start_ticks);

    trace_blk_complete(shard->blk, req, ret);
    blk_req_complete(req, ret);

    /* Last: once nothing is in flight the main thread may free the shard. */
    unsigned in_flight = atomic_load_explicit(&shard->in_flight, memory_order_relaxed) - 1;
    bool kick = shard->draining && in_flight == 0;

    /* Pairs with the acquire in blk_in_flight(): what the completion did is seen. */
    atomic_store_explicit(&shard->in_flight, in_flight, memory_order_release);
    if (G_UNLIKELY(kick)) {
        aio_wait_kick();
    }
}

unsigned blk_in_flight(const BlockBackend *blk)
{
    unsigned sum = 0;

    for (unsigned id = 0; id < BLOCK_CTX_MAX; id++) {
        BlkShard *shard = atomic_load_explicit(&((BlockBackend *)blk)->shard[id],
                                               memory_order_acquire);

        if (shard) {
            sum += atomic_load_explicit(&shard->in_flight, memory_order_acquire);
        }
    }
    return sum;
}
