/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * I/O engines: how a file node's requests reach the kernel.
 *
 * An engine's state belongs to an AioContext, not to a file, and is made by
 * the first request there. It takes a request with op, offset, bytes, iov and
 * FUA flag as the kernel shall see them, and file.
 */
#ifndef BLOCK_ENGINE_H
#define BLOCK_ENGINE_H

#include "block/block-int.h"

typedef struct BlkEngine {
    const char *name;                   /* of -blockdev's aio= */
    bool needs_direct;                  /* would block in the kernel without O_DIRECT */

    /* Does the kernel let us? Asked when a node is opened. */
    bool (*available)(GError **errp);

    /*
     * Read, write or flush (of 0 bytes). Never enters the kernel: the batch does,
     * at the end of the round. 0 or -errno as for BlockDriver.submit.
     */
    int (*submit)(AioContext *ctx, BlkReq *req);
} BlkEngine;

extern const BlkEngine engine_threads;
extern const BlkEngine engine_linux_aio;
extern const BlkEngine engine_io_uring;

/*
 * For engines whose state could not be made in @ctx although the kernel let
 * us when the node was opened: a worker takes the request. Warns once.
 */
int engine_unusable_here(AioContext *ctx, BlkReq *req, const char *name, int error);

/*
 * For engines: one request's result, bytes or -errno, in its home thread.
 * Everything but full success is file.c's business.
 */
void file_op_odd(BlkReq *req, int64_t result);

static inline void engine_done(BlkReq *req, int64_t result, int64_t wanted)
{
    if (G_LIKELY(result == wanted)) {
        blk_req_complete(req, 0);
    } else {
        file_op_odd(req, result);
    }
}

#endif
