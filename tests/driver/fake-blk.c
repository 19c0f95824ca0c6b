/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fake-blk.h"

#include <string.h>

static void iov_transfer(BlockBackend *blk, const BlkReq *req)
{
    int64_t at = req->offset;

    for (int i = 0; i < req->niov; i++) {
        size_t n = req->iov[i].iov_len;

        g_assert_cmpint(at + (int64_t)n, <=, blk->length);
        if (blk->data == NULL) {
            if (req->op == BLK_READ) {
                memset(req->iov[i].iov_base, 0xa5, n);
            }
        } else if (req->op == BLK_READ) {
            memcpy(req->iov[i].iov_base, blk->data + at, n);
        } else {
            memcpy(blk->data + at, req->iov[i].iov_base, n);
        }
        at += n;
    }
    g_assert_cmpint(at - req->offset, ==, req->bytes);
}

static void fake_finish(BlockBackend *blk, AioContext *ctx, BlkReq *req)
{
    if (blk->complete_error == 0) {
        if (req->op == BLK_READ || req->op == BLK_WRITE) {
            iov_transfer(blk, req);
        } else if (req->op == BLK_WRITE_ZEROES && blk->data != NULL) {
            memset(blk->data + req->offset, 0, req->bytes);
        }
    }
    blk_req_complete_deferred(ctx, req, -blk->complete_error);
}

int blk_submit(BlockBackend *blk, BlkReq *req)
{
    if (blk->submit_error != 0) {
        return -blk->submit_error;
    }
    g_assert_cmpint(req->offset, >=, 0);
    g_assert_cmpint(req->offset + req->bytes, <=, blk->length);
    blk->submitted[req->op]++;
    blk->last_flags = req->flags;
    req->ctx = aio_context_current();
    if (blk->hold) {
        req->next = blk->held;
        blk->held = req;
    } else {
        fake_finish(blk, req->ctx, req);
    }
    return 0;
}

void fake_blk_release(BlockBackend *blk, AioContext *ctx)
{
    while (blk->held != NULL) {
        BlkReq *req = blk->held;

        blk->held = req->next;
        fake_finish(blk, ctx, req);
    }
}

int64_t blk_length(BlockBackend *blk)
{
    return blk->length;
}

bool blk_is_read_only(const BlockBackend *blk)
{
    return blk->read_only;
}

bool blk_write_cache(const BlockBackend *blk)
{
    return blk->write_cache;
}

int blk_set_write_cache(BlockBackend *blk, bool on)
{
    blk->write_cache = on;
    return 0;
}
