/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * raw: the image is the bytes of its child, or a window of them
 * (offset=, size=). A request is re-aimed and passed on; nothing is kept.
 *
 * When the format was guessed, the guest must not be able to make it another
 * one by what it writes: the next start would open that one, with a backing file
 * of the guest's choice. Writes to the first sector are then looked at.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "block/drivers.h"
#include "blockdev-int.h"
#include "util/err.h"

typedef struct RawState {
    BlockNode *file;
    int64_t offset;                     /* bytes, where the window starts in the child */
    int64_t size;                       /* of the window, -1: up to the child's end */
    unsigned special;                   /* bits of BlkOp that submit_special() is for */
    bool guessed;
    bool unmap;
} RawState;

/* ---- writes to the first sector of a guessed image ------------------------------------ */

/* A copy, since the guest can change its own memory while we look. */
typedef struct GuardedWrite {
    uint8_t first[PROBE_BYTES];
    const struct iovec *guest_iov;
    int guest_niov;
    struct iovec iov[];
} GuardedWrite;

static void guarded_done(BlkReq *req, void *opaque, int ret)
{
    GuardedWrite *g = opaque;

    req->iov = g->guest_iov;
    req->niov = g->guest_niov;
    free(g);
    blk_req_complete(req, ret);
}

/* The copy first, then the guest's memory behind its first PROBE_BYTES. */
static int guarded_vector(GuardedWrite *g, const BlkReq *req)
{
    size_t skip = PROBE_BYTES;
    uint8_t *to = g->first;
    int n = 0;

    g->iov[n++] = (struct iovec) { g->first, PROBE_BYTES };
    for (int i = 0; i < req->niov; i++) {
        const struct iovec *v = &req->iov[i];
        size_t part = MIN(skip, v->iov_len);

        memcpy(to, v->iov_base, part);
        to += part;
        skip -= part;
        if (part < v->iov_len) {
            g->iov[n++] = (struct iovec) { (char *)v->iov_base + part, v->iov_len - part };
        }
    }
    return n;
}

static int submit_guarded(RawState *s, BlkReq *req)
{
    GuardedWrite *g = NULL;
    int niov, ret;

    if (req->offset != 0 || req->bytes < PROBE_BYTES) {
        return -EPERM;                  /* a part of it tells too little */
    }
    if (req->niov > IOV_MAX ||
        posix_memalign((void **)&g, 4096, sizeof(*g) + (req->niov + 1) * sizeof(g->iov[0]))) {
        return -ENOMEM;
    }
    g->guest_iov = req->iov;
    g->guest_niov = req->niov;
    niov = guarded_vector(g, req);
    if (strcmp(probe_format(g->first, PROBE_BYTES), "raw") != 0) {
        free(g);
        return -EPERM;
    }
    req->iov = g->iov;
    req->niov = niov;
    req->offset += s->offset;
    blk_req_push(req, guarded_done, g);
    ret = node_submit(s->file, req);
    if (ret < 0) {
        req->depth--;
        req->iov = g->guest_iov;
        req->niov = g->guest_niov;
        free(g);
    }
    return ret;
}

void raw_set_guessed(BlockNode *node)
{
    RawState *s = node->state;

    g_assert(node->drv == &bdrv_raw);
    s->guessed = true;
    s->special |= 1u << BLK_WRITE;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* What a plain window doesn't do: discard=ignore, and guarding a guess. */
static G_GNUC_NO_INLINE int submit_special(RawState *s, BlkReq *req)
{
    if (s->guessed && req->op == BLK_WRITE && req->offset < PROBE_BYTES) {
        return submit_guarded(s, req);
    }
    if (req->op == BLK_DISCARD && !s->unmap) {
        blk_req_complete_deferred(req->ctx, req, 0);
        return 0;
    }
    if (!s->unmap) {
        req->flags &= ~BLK_REQ_UNMAP;
    }
    req->offset += s->offset;
    return node_submit(s->file, req);
}

static int raw_submit(BlockNode *node, BlkReq *req)
{
    RawState *s = node->state;

    if (G_UNLIKELY(s->special & (1u << req->op))) {
        return submit_special(s, req);
    }
    req->offset += s->offset;
    return node_submit(s->file, req);
}

/* ---- set-up -------------------------------------------------------------------------------- */

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

static bool window_check(const RawState *s, int64_t below, GError **errp)
{
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
    return true;
}

bool raw_open(BlockNode *node, const void *params, GError **errp)
{
    const RawParams *p = params;
    RawState *s = node->state;
    int64_t below = node_length(p->file);

    s->file = p->file;
    s->offset = p->offset;
    s->size = p->size;
    s->unmap = node->flags.unmap;
    if (!window_check(s, below, errp) || !node_add_child(node, "file", p->file, errp)) {
        return false;
    }
    node->limits = p->file->limits;
    node->short_image = p->file->short_image;
    if (!s->unmap) {
        node->limits.discard_align = 0;
        s->special |= 1u << BLK_DISCARD | 1u << BLK_WRITE_ZEROES;
    }
    atomic_store(&node->length, window_length(s, below));
    return true;
}

static bool raw_open_opts(BlockNode *node, const BlockdevOptions *opts, GError **errp)
{
    const BlockdevOptionsRaw *o = &opts->u.raw;
    RawParams p = { .offset = MIN(o->offset, INT64_MAX), .size = -1 };
    bool ok;

    if (o->has_size) {
        p.size = MIN(o->size, INT64_MAX);
    }
    p.file = node_open_ref(o->file, node, errp);
    if (!p.file) {
        return false;
    }
    ok = raw_open(node, &p, errp);
    node_unref(p.file);                 /* the edge has its own */
    return ok;
}

const BlockDriver bdrv_raw = {
    .name = "raw",
    .state_size = sizeof(RawState),
    .open = raw_open_opts,
    .submit = raw_submit,
    .refresh_length = raw_refresh_length,
};
