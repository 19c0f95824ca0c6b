/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BlockBackend: the front door of the block layer for a device, an export or
 * a tool. It holds what the user of a disk sees (write cache, read-only,
 * permissions, accounting) over one root node.
 *
 * Set-up functions belong to the main thread; blk_submit() and the read-only
 * queries may run in any AioContext.
 */
#ifndef BLOCK_BLOCK_BACKEND_H
#define BLOCK_BLOCK_BACKEND_H

#include "block/blk-req.h"

typedef struct BlockBackend BlockBackend;

enum {
    BLK_PERM_CONSISTENT_READ = 1 << 0,
    BLK_PERM_WRITE = 1 << 1,
    BLK_PERM_WRITE_UNCHANGED = 1 << 2,
    BLK_PERM_RESIZE = 1 << 3,
    BLK_PERM_ALL = 0xf,
};

/* What requests must look like; constant while the backend is attached. */
typedef struct BlkLimits {
    uint32_t request_align;     /* offset and bytes: multiples of this (1: none needed) */
    uint32_t mem_align;         /* iovec bases and lengths; others are bounced inside */
    uint32_t max_iov;           /* larger ones are split or bounced inside */
    int64_t max_transfer;       /* bytes, 0: none */
    uint32_t discard_align;     /* bytes, 0: discard not supported */
    uint32_t opt_transfer;      /* bytes, 0: unknown */
} BlkLimits;

/*
 * Take node @node_name (of -blockdev, or a -drive id) for @user, a name for
 * messages such as the device's id. @perm is needed, @shared is what others
 * may hold at the same time. Of a read-only node BLK_PERM_WRITE isn't taken:
 * see blk_is_read_only(). NULL and @errp: no such node, in use, or shorter
 * than a sector.
 */
BlockBackend *blk_open(const char *node_name, const char *user, unsigned perm, unsigned shared,
                       GError **errp);
/* No request may be in flight. Flushes unless cache.no-flush. */
void blk_close(BlockBackend *blk);

/* The -drive that it was opened by, NULL for a node. See block/blockdev.h. */
const struct Drive *blk_drive(const BlockBackend *blk);

const char *blk_node_name(const BlockBackend *blk);
bool blk_is_read_only(const BlockBackend *blk);
/* Bytes; may grow while in use, see blk_set_resize_cb(). -errno on failure. */
int64_t blk_length(BlockBackend *blk);
void blk_get_limits(BlockBackend *blk, BlkLimits *limits);

/*
 * Off: every write is durable when it completes. Any thread. Switching off
 * blocks until what completed before is durable too; -errno when that fails,
 * and then the cache stays on.
 */
int blk_set_write_cache(BlockBackend *blk, bool on);
bool blk_write_cache(const BlockBackend *blk);
/* What the node's or drive's cache options asked for: the device's default. */
bool blk_default_write_cache(const BlockBackend *blk);

/* Main thread: called after the node's length changed. */
void blk_set_resize_cb(BlockBackend *blk, void (*fn)(void *opaque), void *opaque);

/*
 * The one data operation, see BlkReq. Thread: any with an AioContext; the
 * request completes there. Refuses (-EIO beyond the end, -EPERM on a write to
 * a read-only disk, -EINVAL on bad alignment) before anything is started.
 */
int blk_submit(BlockBackend *blk, BlkReq *req);

/* Requests in flight through this backend in all contexts. Any thread. */
unsigned blk_in_flight(const BlockBackend *blk);

/*
 * Main thread. Wait until nothing is in flight. The user has seen to it that no
 * request starts meanwhile. May be called from a bottom half of the main loop.
 */
void blk_drain(BlockBackend *blk);

/* What went through since blk_open(), over all contexts. Any thread. */
typedef struct BlkOpStats {
    uint64_t count, bytes, errors;      /* requests that completed; those that failed */
    uint64_t time_ns;                   /* sum over both */
} BlkOpStats;

typedef struct BlkStats {
    BlkOpStats op[BLK_OP_MAX];
    uint64_t refused;                   /* by blk_submit() itself */
} BlkStats;

void blk_get_stats(const BlockBackend *blk, BlkStats *stats);

#endif
