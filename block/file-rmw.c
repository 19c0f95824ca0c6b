/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes of less than a block, where O_DIRECT wants blocks larger than a sector:
 * a worker reads the block, changes it and writes it back. What others write to
 * that block meanwhile would be lost, so such a write has its blocks to itself.
 *
 * Only files with request_align > 512 come here, with all that changes them. Whole
 * blocks run side by side as ever; for them this is a lock and a list. Requests that
 * must wait start in the order in which they came, each in its own context.
 *
 * A request's frame holds its range and is the link of the list it is on:
 * opaque is the next request.
 */
#include <errno.h>

#include "block-ctx.h"
#include "file.h"

enum { SAVED_START, SAVED_END };        /* of whole blocks; bit 0 of the start: exclusive */

struct RmwTracker {
    GMutex lock;
    void *active;                       /* BlkReqs in any order, linked by frame */
    void *waiting;                      /* first come first */
};

RmwTracker *rmw_new(void)
{
    RmwTracker *t = g_new0(RmwTracker, 1);

    g_mutex_init(&t->lock);
    return t;
}

void rmw_free(RmwTracker *t)
{
    if (t) {
        g_assert(!t->active && !t->waiting);
        g_mutex_clear(&t->lock);
        g_free(t);
    }
}

/* While a request is tracked its top frame is ours. */
static inline BlkFrame *frame_of(BlkReq *req)
{
    return &req->frames[req->rmw_frame];
}

static bool conflict(BlkReq *a, BlkReq *b)
{
    const BlkFrame *x = frame_of(a), *y = frame_of(b);

    return x->saved[SAVED_START] < y->saved[SAVED_END] &&
           y->saved[SAVED_START] < x->saved[SAVED_END] &&
           ((x->saved[SAVED_START] | y->saved[SAVED_START]) & 1);
}

/* Does @req conflict with anything on @list before @end? */
static bool list_conflicts(BlkReq *list, const BlkReq *end, BlkReq *req)
{
    for (; list && list != end; list = frame_of(list)->opaque) {
        if (conflict(list, req)) {
            return true;
        }
    }
    return false;
}

static void list_remove(void **list, BlkReq *req)
{
    while (*list != req) {
        list = &frame_of(*list)->opaque;
    }
    *list = frame_of(req)->opaque;
}

static void list_push(void **list, BlkReq *req)
{
    frame_of(req)->opaque = *list;
    *list = req;
}

static void list_append(void **list, BlkReq *req)
{
    while (*list) {
        list = &frame_of(*list)->opaque;
    }
    list_push(list, req);
}

/* ---- starting what waited -------------------------------------------------------------- */

static void start_late(void *opaque)
{
    BlkReq *req = opaque;
    int ret = file_submit_tracked(req->file, req);

    if (ret < 0) {
        blk_req_complete(req, ret);
    }
}

/* Locked. Moves to @ready, linked by next, what nothing stands in the way of now. */
static BlkReq *take_ready(RmwTracker *t)
{
    BlkReq *ready = NULL, **tail = &ready, *next;

    for (BlkReq *req = t->waiting; req; req = next) {
        next = frame_of(req)->opaque;
        if (list_conflicts(t->active, NULL, req) || list_conflicts(t->waiting, req, req)) {
            continue;
        }
        list_remove(&t->waiting, req);
        list_push(&t->active, req);
        req->next = NULL;
        *tail = req;
        tail = &req->next;
    }
    return ready;
}

/* @req is out of the way: whoever waited for it may start. */
static void release(RmwTracker *t, BlkReq *req)
{
    BlkReq *ready;

    g_mutex_lock(&t->lock);
    list_remove(&t->active, req);
    ready = take_ready(t);
    g_mutex_unlock(&t->lock);
    while (ready) {
        BlkReq *next = ready->next;

        aio_bh_oneshot(ready->ctx, "file-rmw", start_late, ready);
        ready = next;
    }
}

static void tracked_done(BlkReq *req, void *opaque, int ret)
{
    release(req->file->rmw, req);
    blk_req_complete(req, ret);
}

int rmw_submit(FileState *f, BlkReq *req)
{
    int64_t align = f->request_align, end = req->offset + req->bytes;
    BlkFrame *frame = blk_req_push(req, tracked_done, NULL);
    RmwTracker *t = f->rmw;
    bool exclusive = ((req->offset | end) & (align - 1)) != 0, wait;
    int ret = 0;

    req->rmw_frame = req->depth - 1;
    frame->saved[SAVED_START] = (req->offset & -align) | exclusive;
    frame->saved[SAVED_END] = (end + align - 1) & -align;
    g_mutex_lock(&t->lock);
    wait = list_conflicts(t->active, NULL, req) || list_conflicts(t->waiting, NULL, req);
    if (wait) {
        list_append(&t->waiting, req);
        block_ctx_defer_end(block_ctx(req->ctx));
    } else {
        list_push(&t->active, req);
    }
    g_mutex_unlock(&t->lock);
    if (!wait) {
        ret = file_submit_tracked(f, req);
    }
    if (ret < 0) {
        release(t, req);
        req->depth--;
    }
    return ret;
}
