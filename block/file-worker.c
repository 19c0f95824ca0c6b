/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a pool worker does with a request to a file: plain system calls that may
 * block, each repeated until all bytes are done.
 *
 * Under O_DIRECT, memory that the kernel refuses goes through a bounce buffer of
 * at most BOUNCE_MAX bytes a worker, so memory is bounded by the size of the
 * pool. Writes of half a block are read, changed and written back; file-rmw.c
 * keeps other writes out of that block meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block-ctx.h"
#include "file.h"

#define BOUNCE_MAX (1024 * 1024)
#define IOV_CHUNK 64

/* ---- a request's memory as a string of bytes --------------------------------- */

/* The pieces of @req from byte @skip on, at most @max of them. */
static int iov_slice(const BlkReq *req, int64_t skip, struct iovec *out, int max)
{
    int n = 0;

    for (int i = 0; i < req->niov && n < max; i++) {
        const struct iovec *v = &req->iov[i];

        if (skip >= (int64_t)v->iov_len) {
            skip -= v->iov_len;
            continue;
        }
        out[n++] = (struct iovec) { (char *)v->iov_base + skip, v->iov_len - skip };
        skip = 0;
    }
    return n;
}

/* Copy between @buf and bytes [skip, skip + bytes) of the request. */
static void iov_copy(const BlkReq *req, int64_t skip, char *buf, int64_t bytes, bool to_iov)
{
    for (int i = 0; i < req->niov && bytes > 0; i++) {
        const struct iovec *v = &req->iov[i];
        int64_t n;

        if (skip >= (int64_t)v->iov_len) {
            skip -= v->iov_len;
            continue;
        }
        n = MIN((int64_t)v->iov_len - skip, bytes);
        if (to_iov) {
            memcpy((char *)v->iov_base + skip, buf, n);
        } else {
            memcpy(buf, (char *)v->iov_base + skip, n);
        }
        buf += n;
        bytes -= n;
        skip = 0;
    }
}

static void iov_zero(const BlkReq *req, int64_t skip)
{
    for (int i = 0; i < req->niov; i++) {
        const struct iovec *v = &req->iov[i];

        if (skip >= (int64_t)v->iov_len) {
            skip -= v->iov_len;
            continue;
        }
        memset((char *)v->iov_base + skip, 0, v->iov_len - skip);
        skip = 0;
    }
}

/* ---- single transfers: bytes done (0: end of file) or -errno --------------------- */

static int64_t transfer_plain(const FileState *f, const BlkReq *req, int64_t skip)
{
    struct iovec iov[IOV_CHUNK];
    int n = iov_slice(req, skip, iov, IOV_CHUNK);
    int64_t offset = req->offset + skip;
    ssize_t ret = req->op == BLK_READ ? preadv(f->fd, iov, n, offset)
                                      : pwritev(f->fd, iov, n, offset);

    return ret < 0 ? -errno : ret;
}

static void *bounce_alloc(const FileState *f, int64_t bytes)
{
    void *buf = NULL;

    return posix_memalign(&buf, MAX(f->mem_align, 4096), bytes) == 0 ? buf : NULL;
}

static int64_t pread_full(const FileState *f, char *buf, int64_t bytes, int64_t offset)
{
    int64_t done = 0;

    while (done < bytes) {
        ssize_t n = pread(f->fd, buf + done, bytes - done, offset + done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        done += n;
        /* Short of a whole block: the end of the file. */
        if (n == 0 || (done & (f->request_align - 1))) {
            break;
        }
    }
    return done;
}

static int64_t pwrite_full(const FileState *f, const char *buf, int64_t bytes, int64_t offset)
{
    int64_t done = 0;

    while (done < bytes) {
        ssize_t n = pwrite(f->fd, buf + done, bytes - done, offset + done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -ENOSPC;
        }
        done += n;
    }
    return done;
}

/* The blocks around the next part of the request that fits into a bounce buffer. */
typedef struct Window {
    int64_t start, end;                 /* in the file, aligned */
    int64_t offset, bytes;              /* of the request's part */
    char *buf;
} Window;

static bool window_open(const FileState *f, const BlkReq *req, int64_t skip, Window *w)
{
    int64_t align = f->request_align;

    w->offset = req->offset + skip;
    w->start = w->offset & -align;
    w->end = (req->offset + req->bytes + align - 1) & -align;
    w->end = MIN(w->end, w->start + BOUNCE_MAX);
    w->bytes = MIN(req->bytes - skip, w->end - w->offset);
    w->buf = bounce_alloc(f, w->end - w->start);
    return w->buf != NULL;
}

static int64_t bounce_read(const FileState *f, const BlkReq *req, int64_t skip)
{
    Window w;
    int64_t n;

    if (!window_open(f, req, skip, &w)) {
        return -ENOMEM;
    }
    n = pread_full(f, w.buf, w.end - w.start, w.start);
    if (n >= 0) {
        n = CLAMP(n - (w.offset - w.start), 0, w.bytes);
        iov_copy(req, skip, w.buf + (w.offset - w.start), n, true);
    }
    free(w.buf);
    return n;
}

/* Read block [at, at + align) of the window from the file, zeroes beyond its end. */
static int64_t window_fill_block(const FileState *f, Window *w, int64_t at)
{
    char *block = w->buf + (at - w->start);
    int64_t n = pread_full(f, block, f->request_align, at);

    if (n >= 0) {
        memset(block + n, 0, f->request_align - n);
    }
    return n;
}

/* A block that was written whole must not make the file longer than the request did. */
static int64_t trim_tail(const FileState *f, const Window *w, int64_t old_size)
{
    int64_t size = MAX(old_size, w->offset + w->bytes);

    if (f->is_device || w->end <= size) {
        return 0;
    }
    return ftruncate(f->fd, size) < 0 ? -errno : 0;
}

static int64_t bounce_write(const FileState *f, const BlkReq *req, int64_t skip)
{
    struct stat st;
    Window w;
    int64_t ret = 0;

    if (!window_open(f, req, skip, &w)) {
        return -ENOMEM;
    }
    if (fstat(f->fd, &st) < 0) {
        ret = -errno;
    }
    if (ret >= 0 && w.start < w.offset) {
        ret = window_fill_block(f, &w, w.start);
    }
    if (ret >= 0 && w.end > w.offset + w.bytes) {
        ret = window_fill_block(f, &w, w.end - f->request_align);
    }
    if (ret >= 0) {
        iov_copy(req, skip, w.buf + (w.offset - w.start), w.bytes, false);
        ret = pwrite_full(f, w.buf, w.end - w.start, w.start);
    }
    if (ret >= 0) {
        ret = trim_tail(f, &w, st.st_size);
    }
    free(w.buf);
    return ret < 0 ? ret : w.bytes;
}

static bool needs_bounce(const FileState *f, const BlkReq *req, int64_t skip)
{
    uintptr_t bits = 0;

    if (!f->direct) {
        return false;
    }
    if (((req->offset + skip) | req->bytes) & (f->request_align - 1)) {
        return true;
    }
    for (int i = 0; i < req->niov; i++) {
        bits |= (uintptr_t)req->iov[i].iov_base | req->iov[i].iov_len;
    }
    return bits & (f->mem_align - 1);
}

static int64_t transfer(const FileState *f, const BlkReq *req, int64_t skip, bool bounce)
{
    if (!bounce) {
        return transfer_plain(f, req, skip);
    }
    return req->op == BLK_READ ? bounce_read(f, req, skip) : bounce_write(f, req, skip);
}

/* ---- whole requests: 0 or -errno --------------------------------------------------- */

static int run_rw(const FileState *f, const BlkReq *req, int64_t skip)
{
    bool bounce = needs_bounce(f, req, skip);

    while (skip < req->bytes) {
        int64_t n = transfer(f, req, skip, bounce);

        if (n == -EINTR) {
            continue;
        }
        if (n == -EINVAL && f->direct && !bounce) {
            bounce = true;              /* stricter than it said */
            continue;
        }
        if (n < 0) {
            return n;
        }
        if (n == 0) {
            if (req->op == BLK_WRITE) {
                return -ENOSPC;
            }
            iov_zero(req, skip);        /* the file ends here, the image doesn't */
            return 0;
        }
        skip += n;
        bounce = bounce || needs_bounce(f, req, skip);
    }
    return 0;
}

static int run_flush(const FileState *f)
{
    int ret;

    do {
        ret = fdatasync(f->fd);
    } while (ret < 0 && errno == EINTR);
    return ret < 0 ? -errno : 0;
}

static int do_fallocate(const FileState *f, int mode, int64_t offset, int64_t bytes)
{
    int ret;

    do {
        ret = fallocate(f->fd, mode, offset, bytes);
    } while (ret < 0 && errno == EINTR);
    return ret < 0 ? -errno : 0;
}

static bool is_unsupported(int ret)
{
    return ret == -EOPNOTSUPP || ret == -ENOSYS || ret == -ENOTTY || ret == -EINVAL ||
           ret == -ENODEV;
}

static int punch_hole(FileState *f, int64_t offset, int64_t bytes)
{
    int ret;

    if (atomic_load_explicit(&f->no_punch_hole, memory_order_relaxed)) {
        return -ENOTSUP;
    }
    ret = do_fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
    if (ret == -EOPNOTSUPP || ret == -ENOSYS) {
        atomic_store_explicit(&f->no_punch_hole, true, memory_order_relaxed);
    }
    return is_unsupported(ret) ? -ENOTSUP : ret;
}

static int run_discard(FileState *f, const BlkReq *req)
{
    int ret;

    if (f->is_device) {
        uint64_t range[2] = { req->offset, req->bytes };

        ret = ioctl(f->fd, BLKDISCARD, range) < 0 ? -errno : 0;
        return is_unsupported(ret) ? 0 : ret;
    }
    ret = punch_hole(f, req->offset, req->bytes);
    /* A discard is a hint: nothing is lost when the host can't take it. */
    return ret == -ENOTSUP ? 0 : ret;
}

static int zero_range(FileState *f, int64_t offset, int64_t bytes)
{
    int ret;

    if (atomic_load_explicit(&f->no_zero_range, memory_order_relaxed)) {
        return -ENOTSUP;
    }
    ret = do_fallocate(f, FALLOC_FL_ZERO_RANGE, offset, bytes);
    if (ret == -EOPNOTSUPP || ret == -ENOSYS) {
        atomic_store_explicit(&f->no_zero_range, true, memory_order_relaxed);
    }
    return is_unsupported(ret) ? -ENOTSUP : ret;
}

/* Write zeroes from a bounded buffer. */
static int write_zeroes_slowly(const FileState *f, const BlkReq *req)
{
    g_autofree struct iovec *iov = NULL;
    int64_t chunk = MIN(req->bytes, BOUNCE_MAX);
    char *zeroes = bounce_alloc(f, chunk);
    int ret = 0;

    if (!zeroes) {
        return -ENOMEM;
    }
    memset(zeroes, 0, chunk);
    for (int64_t done = 0; done < req->bytes && ret == 0; done += chunk) {
        struct iovec v = { zeroes, MIN(chunk, req->bytes - done) };
        BlkReq part = {
            .op = BLK_WRITE, .offset = req->offset + done, .bytes = v.iov_len,
            .iov = &v, .niov = 1,
        };

        ret = run_rw(f, &part, 0);
    }
    free(zeroes);
    return ret;
}

static int run_write_zeroes(FileState *f, const BlkReq *req)
{
    int ret = -ENOTSUP;

    /* Both read as zeroes afterwards. A block device that can do neither says so. */
    if ((req->flags & BLK_REQ_UNMAP) && f->unmap) {
        ret = punch_hole(f, req->offset, req->bytes);
    }
    if (ret == -ENOTSUP) {
        ret = zero_range(f, req->offset, req->bytes);
    }
    if (ret == -ENOTSUP && !(req->flags & BLK_REQ_NO_FALLBACK)) {
        ret = write_zeroes_slowly(f, req);
    }
    return ret;
}

static int run_request(FileState *f, const BlkReq *req, int64_t skip)
{
    int ret;

    switch (req->op) {
    case BLK_READ:
        return run_rw(f, req, skip);
    case BLK_WRITE:
        ret = run_rw(f, req, skip);
        break;
    case BLK_DISCARD:
        ret = run_discard(f, req);
        break;
    case BLK_WRITE_ZEROES:
        ret = run_write_zeroes(f, req);
        break;
    default:
        return run_flush(f);
    }
    return ret == 0 && (req->flags & BLK_REQ_FUA) ? run_flush(f) : ret;
}

/* ---- in and out of the pool ----------------------------------------------------------- */

static inline BlkReq *req_of(PoolWork *work)
{
    return (BlkReq *)((char *)work - offsetof(BlkReq, engine.worker.work));
}

static void work_run(PoolWork *work)
{
    BlkReq *req = req_of(work);

    req->engine.worker.ret = run_request(req->file, req, req->engine.worker.skip);
}

static void work_done(PoolWork *work)
{
    BlkReq *req = req_of(work);

    blk_req_complete(req, req->engine.worker.ret);
}

int file_worker_submit(FileState *f, BlkReq *req, int64_t skip)
{
    req->engine.worker.work.run = work_run;
    req->engine.worker.work.done = work_done;
    req->engine.worker.skip = skip;
    block_ctx_defer_end(block_ctx(req->ctx));
    return thread_pool_submit(req->ctx, &req->engine.worker.work);
}
