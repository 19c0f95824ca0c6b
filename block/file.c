/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request path, step 5: a host file or block device.
 * From block-backend.c (step 4), to linux-aio.c, io_uring.c or threads.c.
 *
 * What the engine can take as it is goes there; what it can't (unaligned under
 * O_DIRECT, discard, zeroes) or did by halves goes to a pool worker.
 */
#include <errno.h>
#include <limits.h>

#include "file.h"

/* Can the kernel take the request as it is? */
static inline bool req_fits(const FileState *f, const BlkReq *req)
{
    const struct iovec *v = req->iov, *end = v + req->niov;
    uint64_t bits = req->offset | req->bytes;
    uintptr_t mem_bits = 0;

    if (G_UNLIKELY(req->niov > IOV_MAX)) {
        return false;
    }
    if (!f->direct) {
        return true;
    }
    for (; v < end; v++) {
        mem_bits |= (uintptr_t)v->iov_base | v->iov_len;
    }
    return ((bits & (f->request_align - 1)) | (mem_bits & (f->mem_align - 1))) == 0;
}

/* Everything but reads and writes. */
static G_GNUC_NO_INLINE int submit_other(FileState *f, BlkReq *req)
{
    if (req->op == BLK_FLUSH) {
        if (f->no_flush) {
            blk_req_complete_deferred(req->ctx, req, 0);
            return 0;
        }
        if (atomic_load_explicit(&f->engine_flush, memory_order_relaxed)) {
            req->bytes = 0;
            return f->engine->submit(req->ctx, req);
        }
    }
    if (req->op == BLK_DISCARD && !f->unmap) {
        blk_req_complete_deferred(req->ctx, req, 0);
        return 0;
    }
    return file_worker_submit(f, req, 0);
}

int file_submit_tracked(FileState *f, BlkReq *req)
{
    if (G_UNLIKELY(req->op > BLK_WRITE)) {
        return submit_other(f, req);
    }
    if (G_UNLIKELY(!req_fits(f, req))) {
        return file_worker_submit(f, req, 0);
    }
    return f->engine->submit(req->ctx, req);
}

/* What isn't a plain read or write of a plain file. */
static G_GNUC_NO_INLINE int submit_special(FileState *f, BlkReq *req)
{
    if (f->no_flush) {
        req->flags &= ~BLK_REQ_FUA;
    }
    if (f->rmw && req->op != BLK_READ && req->op != BLK_FLUSH) {
        return rmw_submit(f, req);
    }
    return file_submit_tracked(f, req);
}

int file_submit(BlockNode *node, BlkReq *req)
{
    FileState *f = node->state;

    req->file = f;
    if (G_UNLIKELY(f->special & (1u << req->op))) {
        return submit_special(f, req);
    }
    if (G_UNLIKELY(!req_fits(f, req))) {
        return file_worker_submit(f, req, 0);
    }
    return f->engine->submit(req->ctx, req);
}

/* Errors that say "not like this", after which a worker's plain calls may do. */
static bool worth_a_worker(const FileState *f, int64_t result)
{
    return result >= 0 || result == -EAGAIN || result == -EINTR || result == -EOPNOTSUPP ||
           result == -ENOSYS || result == -EINVAL;
}

void file_op_odd(BlkReq *req, int64_t result)
{
    FileState *f = req->file;
    int ret = result;

    if (req->op == BLK_FLUSH && (result == -EINVAL || result == -EOPNOTSUPP)) {
        atomic_store_explicit(&f->engine_flush, false, memory_order_relaxed);
    }
    if (worth_a_worker(f, result)) {
        /* A short transfer: the rest, or zeroes beyond the end of the file. */
        ret = file_worker_submit(f, req, MAX(result, 0));
    }
    if (ret < 0) {
        blk_req_complete(req, ret);
    }
}
