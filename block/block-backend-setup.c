/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BlockBackend: everything but the request path, which is in block-backend.c. */
#include <errno.h>
#include <stdlib.h>

#include "backend-priv.h"
#include "block/blockdev.h"
#include "growth.h"
#include "util/err.h"

/* ---- open and close -------------------------------------------------------------- */

static void backend_resized(void *opaque)
{
    BlockBackend *blk = opaque;

    if (blk->resize_cb) {
        blk->resize_cb(blk->resize_opaque);
    }
}

BlockBackend *blk_open_node(BlockNode *node, const char *user, unsigned perm, unsigned shared,
                            GError **errp)
{
    BlockBackend *blk = g_new0(BlockBackend, 1);

    block_ticks_to_ns(0);               /* starts the calibration */
    if (node->flags.read_only) {
        perm &= ~(BLK_PERM_WRITE | BLK_PERM_RESIZE);
    }
    blk->user = g_strdup(user);
    blk->edge = edge_new(node, NULL, blk->user, perm, shared, errp);
    if (!blk->edge) {
        g_free(blk->user);
        g_free(blk);
        return NULL;
    }
    blk->edge->resized = backend_resized;
    blk->edge->opaque = blk;
    blk->root = node;
    blk->read_only = !(perm & BLK_PERM_WRITE);
    blk->align_mask = node->limits.request_align - 1;
    atomic_store(&blk->write_cache, true);
    return blk;
}

BlockBackend *blk_open(const char *node_name, const char *user, unsigned perm, unsigned shared,
                       GError **errp)
{
    const Drive *drive = drive_find(node_name);
    BlockNode *node = drive ? drive->node : node_find(node_name);
    BlockBackend *blk;

    if (!node) {
        err_set(errp, "There is no block node or drive named '%s'", node_name);
        return NULL;
    }
    if (node->short_image || node_length(node) < 512) {
        err_set(errp, "The image of '%s' is shorter than a sector of 512 bytes", node_name);
        return NULL;
    }
    blk = blk_open_node(node, user, perm, shared, errp);
    if (blk) {
        blk->drive = drive;
    }
    return blk;
}

void blk_close(BlockBackend *blk)
{
    g_assert(blk_in_flight(blk) == 0);
    blk_set_resize_cb(blk, NULL, NULL);
    if (!blk->read_only) {
        int ret = node_flush_blocking(blk->root);

        if (ret < 0) {
            report_error("Could not flush node '%s' of '%s': %s", blk->root->name, blk->user,
                         g_strerror(-ret));
        }
    }
    edge_drop(blk->edge);
    for (unsigned id = 0; id < BLOCK_CTX_MAX; id++) {
        free(atomic_load(&blk->shard[id]));
    }
    g_free(blk->user);
    g_free(blk);
}

/* ---- what the user sees -------------------------------------------------------------- */

const char *blk_node_name(const BlockBackend *blk)
{
    return blk->root->name;
}

bool blk_is_read_only(const BlockBackend *blk)
{
    return blk->read_only;
}

int64_t blk_length(BlockBackend *blk)
{
    return node_length(blk->root);
}

const Drive *blk_drive(const BlockBackend *blk)
{
    return blk->drive;
}

void blk_get_limits(BlockBackend *blk, BlkLimits *limits)
{
    *limits = blk->root->limits;
}

void blk_set_resize_cb(BlockBackend *blk, void (*fn)(void *opaque), void *opaque)
{
    if (!blk->resize_cb != !fn) {
        growth_watch(fn ? 1 : -1);
    }
    blk->resize_cb = fn;
    blk->resize_opaque = opaque;
}

/* ---- write cache ------------------------------------------------------------------------ */

int blk_set_write_cache(BlockBackend *blk, bool on)
{
    int ret = 0;

    /*
     * The store comes before the flush: a write that completes without having
     * seen it is covered by the flush, one that sees it adds its own (blk_done()).
     */
    if (atomic_exchange(&blk->write_cache, on) && !on && !blk->read_only) {
        ret = node_flush_blocking(blk->root);
        if (ret < 0) {
            atomic_store(&blk->write_cache, true);
        }
    }
    return ret;
}

bool blk_write_cache(const BlockBackend *blk)
{
    return atomic_load_explicit(&((BlockBackend *)blk)->write_cache, memory_order_relaxed);
}

bool blk_default_write_cache(const BlockBackend *blk)
{
    return !blk->drive || blk->drive->write_cache;
}

/* ---- drain -------------------------------------------------------------------------------- */

typedef struct DrainStep {
    BlkShard *shard;
    bool draining;
} DrainStep;

static void drain_set(void *opaque)
{
    DrainStep *step = opaque;

    step->shard->draining = step->draining;
}

/*
 * Tell every context that uses @blk, in its own thread: whichever finishes its
 * last request then wakes us. No request pays for that while nobody drains.
 */
static void drain_announce(BlockBackend *blk, bool draining)
{
    for (unsigned id = 0; id < BLOCK_CTX_MAX; id++) {
        BlkShard *shard = atomic_load_explicit(&blk->shard[id], memory_order_acquire);

        if (shard) {
            block_ctx_run_sync(id, drain_set, &(DrainStep) { shard, draining });
        }
    }
}

static bool nothing_in_flight(void *opaque)
{
    return blk_in_flight(opaque) == 0;
}

void blk_drain(BlockBackend *blk)
{
    if (blk_in_flight(blk) == 0) {
        return;
    }
    drain_announce(blk, true);
    aio_wait_until(nothing_in_flight, blk);
    drain_announce(blk, false);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static uint64_t count_read(const atomic_uint_fast64_t *count)
{
    return atomic_load_explicit((atomic_uint_fast64_t *)count, memory_order_relaxed);
}

void blk_get_stats(const BlockBackend *blk, BlkStats *stats)
{
    *stats = (BlkStats) { 0 };
    for (unsigned id = 0; id < BLOCK_CTX_MAX; id++) {
        const BlkShard *shard = atomic_load_explicit(&((BlockBackend *)blk)->shard[id],
                                                     memory_order_acquire);

        if (!shard) {
            continue;
        }
        for (int op = 0; op < BLK_OP_MAX; op++) {
            stats->op[op].count += count_read(&shard->op[op].count);
            stats->op[op].bytes += count_read(&shard->op[op].bytes);
            stats->op[op].errors += count_read(&shard->op[op].errors);
            stats->op[op].time_ns += block_ticks_to_ns(count_read(&shard->op[op].ticks));
        }
        stats->refused += count_read(&shard->refused);
    }
}
