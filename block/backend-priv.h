/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BlockBackend's own fields, for block-backend.c (requests) and
 * block-backend-setup.c (everything else).
 */
#ifndef BLOCK_BLOCK_BACKEND_PRIVATE_H
#define BLOCK_BLOCK_BACKEND_PRIVATE_H

#include "block-ctx.h"
#include "block/block-int.h"

/*
 * What one AioContext counts for one backend. Written by its home thread only,
 * with plain stores; others read single values, without a lock.
 */
typedef struct BlkShard {
    BlockBackend *blk;
    BlockCtx *bc;                       /* home thread only */
    atomic_uint in_flight;
    bool draining;                      /* home thread only, see blk_drain() */
    struct {
        atomic_uint_fast64_t count, bytes, errors, ticks;
    } op[BLK_OP_MAX];
    atomic_uint_fast64_t refused;
} BlkShard;

struct BlockBackend {
    BlockNode *root;
    bool read_only;
    atomic_bool write_cache;
    uint32_t align_mask;                /* of offset and bytes: these bits must be clear */
    _Atomic(BlkShard *) shard[BLOCK_CTX_MAX];

    /* Not on the request path. */
    BlockEdge *edge;
    char *user;
    const struct Drive *drive;          /* NULL: opened by a node's name */
    void (*resize_cb)(void *opaque);
    void *resize_opaque;
};

#endif
