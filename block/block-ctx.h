/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the block layer keeps for each AioContext: a number that indexes the
 * per-context counters of backends, and the requests that complete at the end
 * of this round.
 *
 * Thread: the context's home thread, unless a comment says otherwise.
 */
#ifndef BLOCK_BLOCK_CTX_H
#define BLOCK_BLOCK_CTX_H

#include "block/blk-req.h"

/* Contexts that can use the block layer at the same time. */
#define BLOCK_CTX_MAX 256

typedef struct BlockCtx {
    AioContext *ctx;
    unsigned id;                        /* < BLOCK_CTX_MAX, given back with the context */
    BlkReq *done_head;
    BlkReq **done_tail;
    AioDefer done_defer;
    uint64_t stamp;                     /* see block_ctx_stamp(), 0: none taken */
    struct NullCtx *null;               /* null.c's part, NULL until it is used */
} BlockCtx;

/* Makes it at the first use; NULL when BLOCK_CTX_MAX contexts have one. */
BlockCtx *block_ctx_create(AioContext *ctx);

static inline BlockCtx *block_ctx(AioContext *ctx)
{
    BlockCtx *bc = aio_slot_get(ctx, AIO_SLOT_BLOCK);

    return G_LIKELY(bc) ? bc : block_ctx_create(ctx);
}

/* ---- time stamps for accounting ---------------------------------------- */

/* Ticks of a steady clock that is cheap to read; block_ticks_to_ns() scales a difference. */
static inline uint64_t block_ticks(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return aio_clock_ns();
#endif
}

/* The first call starts the calibration, so make one early. Any thread. */
uint64_t block_ticks_to_ns(uint64_t ticks);

/*
 * One stamp serves all requests that start in a round, and one all that complete in a
 * batch: reading the clock for each would cost more than the rest of the accounting.
 * It ends with the round: whoever keeps a request that it was given sees to that, by
 * block_ctx_round_end() in work that it defers, or by block_ctx_defer_end().
 */
static inline uint64_t block_ctx_stamp(BlockCtx *bc)
{
    if (bc->stamp == 0) {
        bc->stamp = block_ticks();
    }
    return bc->stamp;
}

static inline void block_ctx_round_end(BlockCtx *bc)
{
    bc->stamp = 0;
}

static inline void block_ctx_defer_end(BlockCtx *bc)
{
    aio_defer(bc->ctx, &bc->done_defer);
}

/* Engines: around the completions of one look at their ring. */
static inline void block_ctx_batch_begin(BlockCtx *bc)
{
    bc->stamp = block_ticks();
}

static inline void block_ctx_batch_end(BlockCtx *bc)
{
    bc->stamp = 0;
}

/*
 * Main thread: run @fn in the home thread of context number @id and wait. False when
 * no context has that number now.
 */
bool block_ctx_run_sync(unsigned id, void (*fn)(void *opaque), void *opaque);

/* null.c's part ends with its context. */
void null_ctx_destroy(struct NullCtx *nc);

#endif
