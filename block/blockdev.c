/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -blockdev: from the generated BlockdevOptions to open nodes.
 *
 * A child that is defined inside its parent takes what isn't said about it from
 * there: read-only, auto-read-only, force-share and the cache options. Discards
 * reach it, since its parent decides about those.
 */
#include <string.h>

#include "block/block-int.h"
#include "block/blockdev.h"
#include "blockdev-int.h"
#include "util/err.h"
#include "util/keyval.h"

/* ---- options that every node has --------------------------------------------------- */

static bool node_flags(const BlockdevOptions *opts, const BlockNode *parent,
                       BlockNodeFlags *flags, GError **errp)
{
    const BlockdevCacheOptions *cache = opts->cache;

    *flags = parent ? parent->flags : (BlockNodeFlags) { 0 };
    flags->unmap = parent != NULL;
    if (opts->has_read_only) {
        flags->read_only = opts->read_only;
    }
    if (opts->has_auto_read_only) {
        flags->auto_read_only = opts->auto_read_only;
    }
    if (opts->has_force_share) {
        flags->force_share = opts->force_share;
    }
    if (opts->has_discard) {
        flags->unmap = opts->discard == BLOCKDEV_DISCARD_OPTIONS_UNMAP;
    }
    if (cache && cache->has_direct) {
        flags->direct = cache->direct;
    }
    if (cache && cache->has_no_flush) {
        flags->no_flush = cache->no_flush;
    }
    if (flags->force_share && !flags->read_only) {
        err_set(errp, "force-share=on can only be used with read-only=on");
        return false;
    }
    return true;
}

/* ---- nodes --------------------------------------------------------------------------- */

static BlockNode *open_definition(const BlockdevOptions *opts, const BlockNode *parent,
                                  GError **errp)
{
    const BlockDriver *drv = driver_find(enum_name(&BlockdevDriver_table, opts->driver));
    BlockNodeFlags flags;
    BlockNode *node;

    g_assert(drv);                      /* the schema lists what node.c has */
    if (!node_flags(opts, parent, &flags, errp)) {
        return NULL;
    }
    if (opts->node_name && drive_find(opts->node_name)) {
        err_set(errp, "node-name=%s is the id of a drive already", opts->node_name);
        return NULL;
    }
    node = node_new(drv, opts->node_name, &flags, errp);
    if (node && !node_open(node, opts, errp)) {
        node_unref(node);
        return NULL;
    }
    return node;
}

BlockNode *node_open_ref(const BlockdevRef *ref, const BlockNode *parent, GError **errp)
{
    BlockNode *node;

    if (ref->kind == BLOCKDEV_REF_DEFINITION) {
        return open_definition(ref->u.definition, parent, errp);
    }
    node = node_find(ref->u.reference);
    if (!node || node == parent) {
        err_set(errp, "There is no block node named '%s'", ref->u.reference);
        return NULL;
    }
    node_ref(node);
    return node;
}

BlockNode *blockdev_open(const BlockdevOptions *opts, GError **errp)
{
    BlockNode *node = open_definition(opts, NULL, errp);

    if (node) {
        node->monitor_owned = true;
    }
    return node;
}

bool blockdev_add(const BlockdevOptions *opts, GError **errp)
{
    if (!opts->node_name) {
        err_set(errp, "'node-name' must be specified for the root node");
        return false;
    }
    return blockdev_open(opts, errp) != NULL;
}

bool blockdev_add_arg(const char *arg, GError **errp)
{
    g_auto(Keyval) kv = { 0 };
    g_autoptr(BlockdevOptions) opts = NULL;

    if (!keyval_parse(&kv, arg, "driver", KEYVAL_JSON, errp)) {
        return false;
    }
    opts = BlockdevOptions_from_json(kv.options, kv.texts, errp);
    return opts && blockdev_add(opts, errp);
}

/* ---- the end ----------------------------------------------------------------------------- */

void blockdev_close_all(void)
{
    BlockNode *node = node_next(NULL);

    drive_forget_all();
    while (node) {
        /* Others may go with this one: start over. */
        if (node->monitor_owned) {
            node->monitor_owned = false;
            node_unref(node);
            node = node_next(NULL);
        } else {
            node = node_next(node);
        }
    }
}
