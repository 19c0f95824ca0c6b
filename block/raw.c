/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * raw: the image is the bytes of its child, or a window of them
 * (offset=, size=). A request is re-aimed and passed on; nothing is kept.
 */
#include <errno.h>
#include <inttypes.h>

#include "block/drivers.h"
#include "util/err.h"

typedef struct RawState {
    BlockNode *file;
    int64_t offset;                     /* bytes, where the window starts in the child */
    int64_t size;                       /* of the window, -1: up to the child's end */
} RawState;

static int raw_submit(BlockNode *node, BlkReq *req)
{
    RawState *s = node->state;

    req->offset += s->offset;
    return node_submit(s->file, req);
}

/* What the window shows of a child of @below bytes. */
static int64_t window_length(const RawState *s, int64_t below)
{
    int64_t rest = below > s->offset ? below - s->offset : 0;

    return s->size >= 0 ? s->size : (rest + 511) & ~INT64_C(511);
}

static int64_t raw_refresh_length(BlockNode *node)
{
    RawState *s = node->state;

    return window_length(s, node_length(s->file));
}

bool raw_open(BlockNode *node, const void *params, GError **errp)
{
    const RawParams *p = params;
    RawState *s = node->state;
    int64_t below = node_length(p->file);

    s->file = p->file;
    s->offset = p->offset;
    s->size = p->size;
    if (s->offset > below) {
        err_set(errp, "offset (%" PRId64 ") is beyond the end of the image below (%" PRId64
                " bytes)", s->offset, below);
        return false;
    }
    if (s->size >= 0 && s->size > below - s->offset) {
        err_set(errp, "offset (%" PRId64 ") plus size (%" PRId64 ") is beyond the end of the "
                "image below (%" PRId64 " bytes)", s->offset, s->size, below);
        return false;
    }
    if (s->size >= 0 && s->size % 512) {
        err_set(errp, "size (%" PRId64 ") is not a multiple of 512", s->size);
        return false;
    }
    if (!node_add_child(node, "file", p->file, errp)) {
        return false;
    }
    node->limits = p->file->limits;
    atomic_store(&node->length, window_length(s, below));
    return true;
}

const BlockDriver bdrv_raw = {
    .name = "raw",
    .state_size = sizeof(RawState),
    .submit = raw_submit,
    .refresh_length = raw_refresh_length,
};
