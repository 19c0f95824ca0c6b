/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The graph of block nodes: names, references, users and what they may do.
 * Main thread only.
 */
#include <errno.h>
#include <string.h>

#include "block/block-int.h"
#include "util/err.h"

static const BlockDriver *const drivers[] = {
    &bdrv_file,
    &bdrv_host_device,
    &bdrv_null_aio,
    &bdrv_null_co,
    &bdrv_raw,
};

/* All open nodes in the order of creation, and the last number made up for a name. */
static GQueue nodes = G_QUEUE_INIT;
static unsigned last_auto_name;

const BlockDriver *driver_find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(drivers); i++) {
        if (strcmp(drivers[i]->name, name) == 0) {
            return drivers[i];
        }
    }
    return NULL;
}

/* ---- names ------------------------------------------------------------------- */

BlockNode *node_find(const char *name)
{
    for (GList *l = nodes.head; l; l = l->next) {
        BlockNode *node = l->data;

        if (strcmp(node->name, name) == 0) {
            return node;
        }
    }
    return NULL;
}

BlockNode *node_next(const BlockNode *node)
{
    GList *l = node ? g_queue_find(&nodes, node)->next : nodes.head;

    return l ? l->data : NULL;
}

/* A letter, then letters, digits and "-._": what can't be confused with made-up names. */
static bool name_is_valid(const char *name)
{
    size_t len = strlen(name);

    return len <= BLOCK_NODE_NAME_MAX && g_ascii_isalpha(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == len;
}

static char *name_choose(const char *name, GError **errp)
{
    if (!name) {
        return g_strdup_printf("#block%03u", ++last_auto_name);
    }
    if (!name_is_valid(name)) {
        err_set(errp, "Invalid node-name: '%s'", name);
        return NULL;
    }
    if (node_find(name)) {
        err_set(errp, "Duplicate nodes with node-name='%s'", name);
        return NULL;
    }
    return g_strdup(name);
}

/* ---- life ---------------------------------------------------------------------- */

BlockNode *node_new(const BlockDriver *drv, const char *name, const BlockNodeFlags *flags,
                    GError **errp)
{
    char *chosen = name_choose(name, errp);
    BlockNode *node;

    if (!chosen) {
        return NULL;
    }
    node = g_new0(BlockNode, 1);
    node->drv = drv;
    node->name = chosen;
    node->flags = *flags;
    node->refs = 1;
    g_queue_init(&node->users);
    g_queue_push_tail(&nodes, node);
    return node;
}

bool node_open_by(BlockNode *node, BlockOpenFn *open, const void *params, GError **errp)
{
    node->state = g_malloc0(node->drv->state_size);
    if (!open(node, params, errp)) {
        g_clear_pointer(&node->state, g_free);
        return false;
    }
    node->submit = node->drv->submit;
    return true;
}

static bool open_by_driver(BlockNode *node, const void *opts, GError **errp)
{
    return node->drv->open(node, opts, errp);
}

bool node_open(BlockNode *node, const BlockdevOptions *opts, GError **errp)
{
    return node_open_by(node, open_by_driver, opts, errp);
}

void node_ref(BlockNode *node)
{
    node->refs++;
}

void node_unref(BlockNode *node)
{
    g_assert(node->refs > 0);
    if (--node->refs > 0) {
        return;
    }
    g_assert(g_queue_is_empty(&node->users));
    if (node->state && node->drv->close) {
        node->drv->close(node);
    }
    for (int i = 0; i < BLOCK_NODE_CHILDREN; i++) {
        if (node->children[i]) {
            edge_drop(node->children[i]);
        }
    }
    g_queue_remove(&nodes, node);
    g_free(node->state);
    g_free(node->filename);
    g_free(node->name);
    g_free(node);
}

bool node_add_child(BlockNode *node, const char *role, BlockNode *child, GError **errp)
{
    int i = 0;

    while (node->children[i]) {
        i++;
        g_assert(i < BLOCK_NODE_CHILDREN);
    }
    node->children[i] = edge_new(child, node, role, 0, BLK_PERM_ALL, errp);
    return node->children[i] != NULL;
}

/* ---- permissions: check everything down to the protocols, then commit ------------- */

const char *perm_name(unsigned perm)
{
    static const char *const names[] = {
        "consistent read", "write", "write unchanged", "resize",
    };

    for (unsigned bit = 0; bit < G_N_ELEMENTS(names); bit++) {
        if (perm & (1u << bit)) {
            return names[bit];
        }
    }
    return "none";
}

static bool edges_conflict(const BlockEdge *e, const BlockEdge *other, GError **errp)
{
    unsigned taken = e->new_perm & ~other->shared;
    unsigned refused = other->perm & ~e->new_shared;

    if (taken) {
        err_set(errp, "Node '%s' is in use by '%s', which does not share '%s' with '%s'",
                e->node->name, other->user, perm_name(taken), e->user);
        return true;
    }
    if (refused) {
        err_set(errp, "Node '%s' is in use by '%s' with '%s', which '%s' does not share",
                e->node->name, other->user, perm_name(refused), e->user);
        return true;
    }
    return false;
}

/* What all users of @node together hold and share, with @e as it is going to be. */
static bool users_sum(const BlockEdge *e, unsigned *perm, unsigned *shared, GError **errp)
{
    *perm = e->new_perm;
    *shared = e->new_shared;
    for (GList *l = e->node->users.head; l; l = l->next) {
        const BlockEdge *other = l->data;

        if (other == e) {
            continue;
        }
        if (edges_conflict(e, other, errp)) {
            return false;
        }
        *perm |= other->perm;
        *shared &= other->shared;
    }
    if (e->node->flags.force_share) {
        *shared = BLK_PERM_ALL;
    }
    return true;
}

static void edge_abort(BlockEdge *e);
static bool edge_check(BlockEdge *e, unsigned perm, unsigned shared, GError **errp);

/* Nodes pass on to their children what is asked of them. */
static bool children_check(BlockNode *node, unsigned perm, unsigned shared, GError **errp)
{
    for (int i = 0; i < BLOCK_NODE_CHILDREN && node->children[i]; i++) {
        if (!edge_check(node->children[i], perm, shared, errp)) {
            while (--i >= 0) {
                edge_abort(node->children[i]);
            }
            return false;
        }
    }
    return true;
}

static bool edge_check(BlockEdge *e, unsigned perm, unsigned shared, GError **errp)
{
    BlockNode *node = e->node;
    unsigned all_perm, all_shared;

    e->new_perm = perm;
    e->new_shared = shared;
    if (node->flags.read_only && (perm & (BLK_PERM_WRITE | BLK_PERM_RESIZE))) {
        err_set(errp, "Block node '%s' is read-only", node->name);
        return false;
    }
    if (!users_sum(e, &all_perm, &all_shared, errp)) {
        return false;
    }
    if (node->drv->perm_check && !node->drv->perm_check(node, all_perm, all_shared, errp)) {
        return false;
    }
    if (!children_check(node, all_perm, all_shared, errp)) {
        if (node->drv->perm_abort) {
            node->drv->perm_abort(node);
        }
        return false;
    }
    return true;
}

static void edge_abort(BlockEdge *e)
{
    BlockNode *node = e->node;

    if (node->drv->perm_abort) {
        node->drv->perm_abort(node);
    }
    for (int i = 0; i < BLOCK_NODE_CHILDREN && node->children[i]; i++) {
        edge_abort(node->children[i]);
    }
}

static void edge_commit(BlockEdge *e)
{
    BlockNode *node = e->node;

    e->perm = e->new_perm;
    e->shared = e->new_shared;
    if (node->drv->perm_commit) {
        node->drv->perm_commit(node);
    }
    for (int i = 0; i < BLOCK_NODE_CHILDREN && node->children[i]; i++) {
        edge_commit(node->children[i]);
    }
}

bool edge_set_perm(BlockEdge *e, unsigned perm, unsigned shared, GError **errp)
{
    if (!edge_check(e, perm, shared, errp)) {
        return false;
    }
    edge_commit(e);
    return true;
}

BlockEdge *edge_new(BlockNode *node, BlockNode *parent, const char *user, unsigned perm,
                    unsigned shared, GError **errp)
{
    BlockEdge *e = g_new0(BlockEdge, 1);

    e->node = node;
    e->parent = parent;
    e->user = user;
    e->shared = BLK_PERM_ALL;
    if (!edge_set_perm(e, perm, shared, errp)) {
        g_free(e);
        return NULL;
    }
    g_queue_push_tail(&node->users, e);
    node_ref(node);
    return e;
}

void edge_drop(BlockEdge *e)
{
    BlockNode *node = e->node;

    /* To hold less is always allowed. */
    edge_set_perm(e, 0, BLK_PERM_ALL, NULL);
    g_queue_remove(&node->users, e);
    g_free(e);
    node_unref(node);
}

/* ---- length and durability ------------------------------------------------------------ */

void node_set_length(BlockNode *node, int64_t length)
{
    atomic_store_explicit(&node->length, length, memory_order_relaxed);
    for (GList *l = node->users.head; l; l = l->next) {
        BlockEdge *e = l->data;

        if (e->parent) {
            node_refresh_length(e->parent);
        } else if (e->resized) {
            e->resized(e->opaque);
        }
    }
}

int64_t node_refresh_length(BlockNode *node)
{
    int64_t length = node_length(node);

    if (node->drv->refresh_length) {
        length = node->drv->refresh_length(node);
        if (length >= 0 && length != node_length(node)) {
            node_set_length(node, length);
        }
    }
    return length;
}

int node_flush_blocking(BlockNode *node)
{
    if (node->drv->flush_blocking) {
        int ret = node->drv->flush_blocking(node);

        if (ret < 0) {
            return ret;
        }
    }
    for (int i = 0; i < BLOCK_NODE_CHILDREN && node->children[i]; i++) {
        int ret = node_flush_blocking(node->children[i]->node);

        if (ret < 0) {
            return ret;
        }
    }
    return 0;
}
