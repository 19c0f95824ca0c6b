/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block nodes and their drivers: the inside of the block layer.
 *
 * A node is an open image, protocol or filter. It has one driver, at most
 * BLOCK_NODE_CHILDREN children, and any number of users: parents above it and
 * BlockBackends. A use is a BlockEdge; the edges say who may do what.
 *
 * Set-up (everything but node_submit()) belongs to the main thread. A driver
 * whose state is immutable after open needs no lock in submit().
 */
#ifndef BLOCK_BLOCK_INT_H
#define BLOCK_BLOCK_INT_H

#include <glib.h>
#include <stdatomic.h>

#include "block/blk-req.h"
#include "block/block-backend.h"
#include "trace/trace-block.h"

typedef struct BlockDriver BlockDriver;
typedef struct BlockEdge BlockEdge;

/* The generated type of -blockdev and blockdev-add. */
typedef struct BlockdevOptions BlockdevOptions;

#define BLOCK_NODE_CHILDREN 2
#define BLOCK_NODE_NAME_MAX 31          /* bytes, without the NUL */
/* Largest image: keeps offset + bytes and roundings inside int64_t. */
#define BLOCK_LENGTH_MAX ((int64_t)1 << 62)

/* Options that every node has, and that an inline child takes from its parent. */
typedef struct BlockNodeFlags {
    bool read_only;
    bool auto_read_only;                /* fall back to read-only when writing is refused */
    bool direct;                        /* bypass the host's page cache */
    bool no_flush;                      /* ignore flushes */
    bool unmap;                         /* discards reach the host */
    bool force_share;                   /* share everything; needs read_only */
} BlockNodeFlags;

/* @user of @node: may hold @perm while all others stay within @shared. */
struct BlockEdge {
    BlockNode *node;
    BlockNode *parent;                  /* NULL: the user isn't a node */
    const char *user;                   /* for messages; owned by the user */
    unsigned perm, shared;
    unsigned new_perm, new_shared;      /* between check and commit */
    void (*resized)(void *opaque);      /* the node's length changed; may be NULL */
    void *opaque;
};

struct BlockNode {
    /* What the request path reads, first. */
    const BlockDriver *drv;
    int (*submit)(BlockNode *node, BlkReq *req);
    void *state;                        /* the driver's */
    _Atomic int64_t length;             /* bytes, a multiple of 512 */
    BlockNodeFlags flags;

    char *name;
    char *filename;                     /* for messages, may be NULL */
    bool short_image;                   /* shorter than a sector before it was rounded up */
    BlkLimits limits;
    BlockEdge *children[BLOCK_NODE_CHILDREN];
    GQueue users;                       /* of BlockEdge */
    unsigned refs;
    bool monitor_owned;                 /* by -blockdev: holds one reference */
};

struct BlockDriver {
    const char *name;                   /* as users type it */
    size_t state_size;                  /* zeroed, in node->state before open() */
    bool is_protocol;                   /* the bottom of a chain */

    /* Fill state, limits and length. On failure, close() isn't called. */
    bool (*open)(BlockNode *node, const BlockdevOptions *opts, GError **errp);
    void (*close)(BlockNode *node);

    /*
     * The one data operation, see BlkReq. The request is inside the node and
     * allowed. A pass-through driver re-aims it and calls node_submit() of its
     * child. Any thread with an AioContext.
     */
    int (*submit)(BlockNode *node, BlkReq *req);

    /* Look at the real length again. -errno. May block a little. NULL: fixed. */
    int64_t (*refresh_length)(BlockNode *node);
    /* All completed writes are durable when this returns. Any thread; blocks.
     * NULL: nothing to do. */
    int (*flush_blocking)(BlockNode *node);

    /* May the node be used like this from now on? Takes what locks it needs;
     * perm_commit() or perm_abort() follows. NULL: always. */
    bool (*perm_check)(BlockNode *node, unsigned perm, unsigned shared, GError **errp);
    void (*perm_commit)(BlockNode *node);
    void (*perm_abort)(BlockNode *node);
};

static inline int node_submit(BlockNode *node, BlkReq *req)
{
    if (trace_event_on(bdrv_submit)) {
        trace_bdrv_submit(node, node->drv->name, req, req->offset, req->bytes);
    }
    return node->submit(node, req);
}

static inline int64_t node_length(const BlockNode *node)
{
    return atomic_load_explicit(&((BlockNode *)node)->length, memory_order_relaxed);
}

/* ---- nodes by name --------------------------------------------------- */

/* NULL: there is none. */
BlockNode *node_find(const char *name);
/* The next one after @node, or the first for NULL; in the order of creation. */
BlockNode *node_next(const BlockNode *node);

/*
 * A node with one reference, not yet open. @name NULL: one is made up. Fails
 * when the name is malformed or taken.
 */
BlockNode *node_new(const BlockDriver *drv, const char *name, const BlockNodeFlags *flags,
                    GError **errp);
/* Open @node by its driver. On failure the node is still the caller's, to unref. */
bool node_open(BlockNode *node, const BlockdevOptions *opts, GError **errp);
/* The same by one of drivers.h's functions. */
typedef bool BlockOpenFn(BlockNode *node, const void *params, GError **errp);
bool node_open_by(BlockNode *node, BlockOpenFn *open, const void *params, GError **errp);
/* For drivers that open: make @child, used as @role ("file"), the node's next one. */
bool node_add_child(BlockNode *node, const char *role, BlockNode *child, GError **errp);
void node_ref(BlockNode *node);
/* The last reference closes the node and lets its children go. */
void node_unref(BlockNode *node);

/* ---- edges ------------------------------------------------------------ */

/*
 * Let @user use @node. Holds a reference until edge_drop(). Fails, with
 * nothing changed, when the permissions conflict with another user's.
 */
BlockEdge *edge_new(BlockNode *node, BlockNode *parent, const char *user, unsigned perm,
                    unsigned shared, GError **errp);
bool edge_set_perm(BlockEdge *edge, unsigned perm, unsigned shared, GError **errp);
void edge_drop(BlockEdge *edge);
/* "write", "resize", ...: the lowest bit of @perm. */
const char *perm_name(unsigned perm);

/* Ask the driver for the length again and tell all users above when it
 * changed. -errno. */
int64_t node_refresh_length(BlockNode *node);
/* @node has a new length: store it and tell the users. */
void node_set_length(BlockNode *node, int64_t length);

/*
 * Any thread, while a user holds the node: all writes that completed before are
 * durable when this returns. 0 or -errno. Blocks.
 */
int node_flush_blocking(BlockNode *node);

/* As blk_open(), for who has the node already. */
BlockBackend *blk_open_node(BlockNode *node, const char *user, unsigned perm, unsigned shared,
                            GError **errp);

/* ---- drivers ----------------------------------------------------------- */

extern const BlockDriver bdrv_file;
extern const BlockDriver bdrv_host_device;
extern const BlockDriver bdrv_null_co;
extern const BlockDriver bdrv_null_aio;
extern const BlockDriver bdrv_raw;

/* NULL: we have none of that name. */
const BlockDriver *driver_find(const char *name);

#endif
