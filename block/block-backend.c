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

/* This context's part of @blk's counters: at its first request, and when its number
 * had another context before. */
static G_GNUC_NO_INLINE BlkShard *shard_make(BlockBackend *blk)
{
    BlockCtx *bc = block_ctx(aio_context_current());
    BlkShard *shard;

    if (!bc) {
        return NULL;
    }
    shard = atomic_load_explicit(&blk->shard[bc->id], memory_order_relaxed);
    if (!shard) {
        if (posix_memalign((void **)&shard, 64, sizeof(*shard)) != 0) {
            return NULL;
        }
        *shard = (BlkShard) { .blk = blk };
    }
    shard->bc = bc;
    /* Pairs with the acquires of those who add up. */
    atomic_store_explicit(&blk->shard[bc->id], shard, memory_order_release);
    return shard;
}

static inline BlkShard *shard_here(BlockBackend *blk)
{
    BlockCtx *bc = aio_slot_get(aio_context_current(), AIO_SLOT_BLOCK);

    if (G_LIKELY(bc)) {
        BlkShard *shard = atomic_load_explicit(&blk->shard[bc->id], memory_order_relaxed);

        if (G_LIKELY(shard && shard->bc == bc)) {
            return shard;
        }
    }
    return shard_make(blk);
}

/* 0, or why the request must not start. */
static inline int req_check(const BlockBackend *blk, const BlkReq *req)
{
    uint64_t offset = req->offset, bytes = req->bytes;
    uint64_t length = node_length(blk->root);

    /* As unsigned numbers, negative ones are beyond any end. */
    if (G_LIKELY(bytes <= length && offset <= length - bytes)) {
        return G_LIKELY(((offset | bytes) & blk->align_mask) == 0) ? 0 : -EINVAL;
    }
    return req->op == BLK_FLUSH ? 0 : -EIO;
}

static void blk_done(BlkReq *req, void *opaque, int ret);

/* In the frame: what was asked for; nodes below change the request's own fields. */
enum { SAVED_OP, SAVED_BYTES };
enum { SAVED_FUA = 1 << 8 };

static G_GNUC_NO_INLINE int submit_failed(BlkShard *shard, BlkReq *req, int ret)
{
    unsigned in_flight = atomic_load_explicit(&shard->in_flight, memory_order_relaxed);

    req->depth--;
    count_add(&shard->op[req->op].errors, 1);
    atomic_store_explicit(&shard->in_flight, in_flight - 1, memory_order_release);
    return ret;
}

static inline int shard_start(BlkShard *shard, BlkReq *req)
{
    BlkFrame *f = blk_req_push(req, blk_done, shard);
    unsigned in_flight = atomic_load_explicit(&shard->in_flight, memory_order_relaxed);
    int ret;

    f->saved[SAVED_OP] = req->op | (req->flags & BLK_REQ_FUA ? SAVED_FUA : 0);
    f->saved[SAVED_BYTES] = req->bytes;
    atomic_store_explicit(&shard->in_flight, in_flight + 1, memory_order_relaxed);
    ret = node_submit(shard->blk->root, req);
    return G_LIKELY(ret == 0) ? 0 : submit_failed(shard, req, ret);
}

static G_GNUC_NO_INLINE int refuse(BlkShard *shard, int ret)
{
    count_add(&shard->refused, 1);
    return ret;
}

int blk_submit(BlockBackend *blk, BlkReq *req)
{
    BlkShard *shard = shard_here(blk);
    int ret;

    if (G_UNLIKELY(!shard)) {
        return -ENOMEM;
    }
    ret = req_check(blk, req);
    if (G_UNLIKELY(ret < 0)) {
        return refuse(shard, ret);
    }
    if (req->op != BLK_READ) {
        if (G_UNLIKELY(blk->read_only && req->op != BLK_FLUSH)) {
            return refuse(shard, -EPERM);
        }
        if (!atomic_load_explicit(&blk->write_cache, memory_order_relaxed)) {
            req->flags |= BLK_REQ_FUA;
        }
    }
    trace_blk_submit(blk, req, req->op, req->offset, req->bytes);
    req->ctx = shard->bc->ctx;
    req->start_ticks = block_ctx_stamp(shard->bc);
    return shard_start(shard, req);
}

/* The write cache was switched off while this write was on its way. */
static inline bool write_cache_went_off(const BlkShard *shard, int64_t saved)
{
    /* Flags and reads and flushes aside; one without BLK_REQ_FUA is below SAVED_FUA. */
    return saved != BLK_READ && saved != BLK_FLUSH && saved < SAVED_FUA &&
           !atomic_load_explicit(&shard->blk->write_cache, memory_order_relaxed);
}

/* A flush on behalf of the write in @req, whose frame was taken off. 0: it started. */
static G_GNUC_NO_INLINE int write_add_flush(BlkShard *shard, BlkReq *req)
{
    /* The same frame again, so what is saved there stays. */
    BlkFrame *f = blk_req_push(req, blk_done, shard);
    int ret;

    f->saved[SAVED_OP] |= SAVED_FUA;
    req->op = BLK_FLUSH;
    ret = node_submit(shard->blk->root, req);
    if (ret < 0) {
        req->depth--;
    }
    return ret;
}

static void blk_done(BlkReq *req, void *opaque, int ret)
{
    BlkShard *shard = opaque;
    const BlkFrame *f = blk_req_frame(req);
    unsigned op = f->saved[SAVED_OP] & 0xff, in_flight;
    bool kick;

    if (G_UNLIKELY(ret == 0 && write_cache_went_off(shard, f->saved[SAVED_OP]))) {
        ret = write_add_flush(shard, req);
        if (ret == 0) {
            return;
        }
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

    /* Last: once nothing is in flight the main thread may free the shard. Release
     * pairs with the acquire in blk_in_flight(): what the completion did is seen. */
    in_flight = atomic_load_explicit(&shard->in_flight, memory_order_relaxed) - 1;
    kick = shard->draining && in_flight == 0;
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
