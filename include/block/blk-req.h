/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BlkReq: one request on its way through the block nodes.
 *
 * The caller owns the memory, fills it in with blk_req_init() and hands it
 * to blk_submit() or, between nodes, bdrv_submit().
 *
 * 0: the completion runs exactly once, later, in the AioContext that
 *    submitted, never before the submit call returns.
 * -errno: the completion never runs.
 *
 * A node on the way pushes a frame with its own continuation before it passes
 * the request down; frames are popped in reverse order on completion. Nothing
 * here allocates.
 */
#ifndef BLOCK_BLK_REQ_H
#define BLOCK_BLK_REQ_H

#include "config-host.h"

#include <assert.h>
#ifdef CONFIG_LINUX_AIO
#include <libaio.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "util/aio.h"
#include "util/thread-pool.h"

typedef struct BlkReq BlkReq;
typedef struct BlockNode BlockNode;
struct FileState;

/* @ret: 0 or -errno. Short transfers were finished or turned into an error. */
typedef void BlkDone(BlkReq *req, void *opaque, int ret);

typedef enum BlkOp {
    BLK_READ,
    BLK_WRITE,
    BLK_FLUSH,          /* all writes completed before it are durable */
    BLK_DISCARD,        /* content is undefined after; may do nothing */
    BLK_WRITE_ZEROES,   /* reads as zeroes after */
    BLK_OP_MAX,
} BlkOp;

enum {
    BLK_REQ_FUA = 1 << 0,       /* write: durable when it completes */
    BLK_REQ_UNMAP = 1 << 1,     /* write zeroes: may deallocate */
    BLK_REQ_NO_FALLBACK = 1 << 2, /* write zeroes: -ENOTSUP rather than slow writes */
};

#define BLK_REQ_FRAMES 8        /* depth of the deepest chain of nodes that keep state */

typedef struct BlkFrame {
    BlkDone *done;
    void *opaque;
    int64_t saved[2];           /* the layer's own: offset, bytes, ... */
} BlkFrame;

struct BlkReq {
    BlkOp op;
    uint32_t flags;
    int64_t offset;             /* bytes, at the node that holds the request now */
    int64_t bytes;              /* sum of iov for read and write */
    const struct iovec *iov;    /* borrowed until completion */
    int niov;
    unsigned depth;             /* frames in use */
    AioContext *ctx;            /* where it completes */
    int ret;                    /* while on a completion list */
    BlkReq *next;               /* of whoever holds the request now */
    uint64_t start_ticks;       /* accounting, of the backend */
    BlkFrame frames[BLK_REQ_FRAMES];
    /* Of the file drivers: the file, and what an engine needs for this request. */
    struct FileState *file;
    unsigned rmw_frame;                 /* which frame is file-rmw.c's */
    union {
#ifdef CONFIG_LINUX_AIO
        struct iocb iocb;
#endif
        struct {
            PoolWork work;
            int64_t skip;               /* bytes that are done already */
            int ret;
        } worker;
        uint64_t words[10];
    } engine;
};

/* @done and @opaque become frame 0. */
static inline void blk_req_init(BlkReq *req, BlkOp op, int64_t offset, int64_t bytes,
                                const struct iovec *iov, int niov, uint32_t flags,
                                BlkDone *done, void *opaque)
{
    req->op = op;
    req->flags = flags;
    req->offset = offset;
    req->bytes = bytes;
    req->iov = iov;
    req->niov = niov;
    req->depth = 1;
    req->frames[0].done = done;
    req->frames[0].opaque = opaque;
}

static inline BlkFrame *blk_req_push(BlkReq *req, BlkDone *done, void *opaque)
{
    assert(req->depth < BLK_REQ_FRAMES);
    BlkFrame *f = &req->frames[req->depth++];

    f->done = done;
    f->opaque = opaque;
    return f;
}

/* The frame of the layer whose completion is running. */
static inline BlkFrame *blk_req_frame(BlkReq *req)
{
    return &req->frames[req->depth];
}

/* Hand the result to the layer above. Home thread of req->ctx. */
static inline void blk_req_complete(BlkReq *req, int ret)
{
    assert(req->depth > 0);
    BlkFrame *f = &req->frames[--req->depth];

    f->done(req, f->opaque, ret);
}

/*
 * Complete @req at the end of this round (see aio_defer()). For drivers that
 * know the result at once. Home thread of @ctx.
 */
void blk_req_complete_deferred(AioContext *ctx, BlkReq *req, int ret);

#endif
