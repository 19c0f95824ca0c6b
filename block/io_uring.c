/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request path, step 5, second half: aio=io_uring.
 * From file.c; back to block-backend.c (step 4) through the request's frames.
 *
 * One ring per AioContext. Requests queue up and enter the kernel once, at the
 * end of the round. Completions are seen by peeking the completion queue, or by
 * the ring's fd while the loop sleeps.
 *
 * The ring uses default task work. Peeked completions appear in it although we
 * never enter the kernel for them; with DEFER_TASKRUN they would not, and with
 * COOP_TASKRUN only at the next timer tick. COOP_TASKRUN with TASKRUN_FLAG and an
 * enter when that is set took as long (tmpfs and a disk, depths 1 and 32, within
 * noise of 20 %) and costs a system call more.
 */
#include <errno.h>
#include <liburing.h>
#include <limits.h>

#include "block-ctx.h"
#include "file.h"
#include "trace/trace-block.h"
#include "util/err.h"

/* Submission entries; a larger batch takes several system calls. */
#define SQ_ENTRIES 128
/* In flight per AioContext; what is more waits in our queue, so that the
 * completion queue can't overflow. */
#define DEPTH_MAX 1024
/* When the kernel takes nothing and nothing is in flight that would wake us. */
#define RETRY_NS 1000000

typedef struct UringState {
    AioContext *ctx;
    BlockCtx *bc;
    struct io_uring ring;
    unsigned depth, in_flight;          /* in the submission or completion queue or between */
    BlkReq *queue_head;
    BlkReq **queue_tail;
    AioDefer flush;
    AioHandler *handler;
    AioTimer retry;
} UringState;

/* ---- submission ---------------------------------------------------------------- */

static void sqe_fill(struct io_uring_sqe *sqe, BlkReq *req)
{
    const struct iovec *v = req->iov;
    bool write = req->op == BLK_WRITE;

    *sqe = (struct io_uring_sqe) {
        .fd = req->file->fd,
        .off = req->offset,
        .rw_flags = write && (req->flags & BLK_REQ_FUA) ? RWF_DSYNC : 0,
        .user_data = (uintptr_t)req,
    };
    if (G_UNLIKELY(req->op == BLK_FLUSH)) {
        sqe->opcode = IORING_OP_FSYNC;
        sqe->off = 0;
        sqe->fsync_flags = IORING_FSYNC_DATASYNC;
    } else if (req->niov == 1 && v->iov_len <= INT_MAX) {
        /* A single piece saves the kernel the copy of the vector. */
        sqe->opcode = write ? IORING_OP_WRITE : IORING_OP_READ;
        sqe->addr = (uintptr_t)v->iov_base;
        sqe->len = v->iov_len;
    } else {
        sqe->opcode = write ? IORING_OP_WRITEV : IORING_OP_READV;
        sqe->addr = (uintptr_t)v;
        sqe->len = req->niov;
    }
}

/* Into the ring's submission queue; false when there is no room. */
static inline bool sq_push(UringState *us, BlkReq *req)
{
    struct io_uring_sqe *sqe = us->in_flight < us->depth ? io_uring_get_sqe(&us->ring) : NULL;

    if (!sqe) {
        return false;
    }
    us->in_flight++;
    sqe_fill(sqe, req);
    return true;
}

static void req_push(UringState *us, BlkReq *req)
{
    if (G_UNLIKELY(us->queue_head || !sq_push(us, req))) {
        req->next = NULL;
        *us->queue_tail = req;
        us->queue_tail = &req->next;
    }
    if (!us->flush.queued) {
        aio_defer(us->ctx, &us->flush);
    }
}

/* Move what waits to the ring's queue until that is full. */
static void sq_refill(UringState *us)
{
    while (us->queue_head && sq_push(us, us->queue_head)) {
        us->queue_head = us->queue_head->next;
    }
    if (!us->queue_head) {
        us->queue_tail = &us->queue_head;
    }
}

/* ---- completions ------------------------------------------------------------ */

static void cqe_done(UringState *us, BlkReq *req, int res, bool polled)
{
    us->in_flight--;
    trace_luring_process_completion(us, req, res, polled);
    if (G_UNLIKELY(res == -EAGAIN || res == -EINTR)) {
        req_push(us, req);
        return;
    }
    engine_done(req, res, req->bytes);
}

static unsigned uring_reap(UringState *us, bool polled)
{
    struct io_uring_cq *cq = &us->ring.cq;
    unsigned n = 0;

    /* The acquire load of tail inside io_uring_cq_ready() pairs with the kernel's
     * release after it has filled an entry. */
    while (io_uring_cq_ready(&us->ring) > 0) {
        struct io_uring_cqe *cqe = &cq->cqes[*cq->khead & cq->ring_mask];
        BlkReq *req = io_uring_cqe_get_data(cqe);
        int res = cqe->res;

        if (n++ == 0) {
            block_ctx_batch_begin(us->bc);
        }
        /* A release store: the entry was read. Before the completion, which may
         * come back here from a nested loop. */
        io_uring_cq_advance(&us->ring, 1);
        cqe_done(us, req, res, polled);
    }
    if (n > 0) {
        block_ctx_batch_end(us->bc);
        if (us->queue_head) {
            aio_defer(us->ctx, &us->flush);
        }
    }
    return n;
}

static void uring_readable(void *opaque)
{
    uring_reap(opaque, false);
}

static unsigned uring_poll(void *opaque)
{
    UringState *us = opaque;

    return io_uring_cq_ready(&us->ring) > 0 ? uring_reap(us, true) : 0;
}

/* The fd stays readable as long as there are completions: only look once more. */
static bool uring_poll_end(void *opaque)
{
    UringState *us = opaque;

    return io_uring_cq_ready(&us->ring) > 0;
}

static const AioHandlerOps uring_ops = {
    .name = "io_uring",
    .readable = uring_readable,
    .poll = uring_poll,
    .poll_end = uring_poll_end,
};

/* ---- the end of a round ---------------------------------------------------------- */

static void uring_flush(void *opaque)
{
    UringState *us = opaque;
    unsigned ready;

    block_ctx_round_end(us->bc);
    for (;;) {
        int ret;

        sq_refill(us);
        ready = io_uring_sq_ready(&us->ring);
        if (ready == 0) {
            break;
        }
        trace_luring_do_submit(us, ready);
        ret = io_uring_submit(&us->ring);
        trace_luring_io_uring_submit(us, ready, ret);
        if (ret == -EINTR) {
            continue;
        }
        if (ret <= 0) {
            break;                      /* EAGAIN, EBUSY: the entries stay in the ring */
        }
    }
    /* Some files complete while they are submitted. */
    uring_reap(us, true);
    if (io_uring_sq_ready(&us->ring) > 0 || (us->queue_head && us->in_flight == 0)) {
        aio_timer_set(&us->retry, aio_clock_ns() + RETRY_NS);
    }
}

/* ---- life -------------------------------------------------------------------------- */

static void uring_destroy(void *opaque)
{
    UringState *us = opaque;

    g_assert(us->in_flight == 0 && !us->queue_head);
    aio_defer_cancel(us->ctx, &us->flush);
    aio_timer_cancel(&us->retry);
    aio_handler_remove(us->handler);
    io_uring_queue_exit(&us->ring);
    g_free(us);
}

static int ring_create(struct io_uring *ring, unsigned cq_entries)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE,
        .cq_entries = cq_entries,
    };

    return io_uring_queue_init_params(SQ_ENTRIES, ring, &params);
}

static int uring_create(AioContext *ctx, BlockCtx *bc, UringState **out)
{
    UringState *us = g_new0(UringState, 1);
    int ret = ring_create(&us->ring, DEPTH_MAX);

    if (ret < 0) {
        g_free(us);
        return ret;
    }
    /* Spares the kernel a look at the fd table on every enter; needn't work. */
    io_uring_register_ring_fd(&us->ring);
    us->ctx = ctx;
    us->bc = bc;
    us->depth = MIN(us->ring.cq.ring_entries, DEPTH_MAX);
    us->queue_tail = &us->queue_head;
    aio_defer_init(&us->flush, uring_flush, us);
    aio_timer_init(&us->retry, ctx, uring_flush, us);
    us->handler = aio_handler_add(ctx, us->ring.ring_fd, &uring_ops, us);
    aio_slot_set(ctx, AIO_SLOT_IO_URING, us, uring_destroy);
    *out = us;
    return 0;
}

static bool uring_available(GError **errp)
{
    struct io_uring ring;
    int ret = ring_create(&ring, SQ_ENTRIES);

    if (ret < 0) {
        err_set_errno(errp, ret, "aio=io_uring: the kernel refuses an io_uring%s",
                      ret == -EPERM ? " (see /proc/sys/kernel/io_uring_disabled)" : "");
        return false;
    }
    io_uring_queue_exit(&ring);
    return true;
}

static int uring_submit(AioContext *ctx, BlkReq *req);

/* The first request in @ctx makes the state. */
static G_GNUC_NO_INLINE int submit_first(AioContext *ctx, BlkReq *req)
{
    UringState *us;
    int ret = uring_create(ctx, block_ctx(ctx), &us);

    return ret < 0 ? engine_unusable_here(ctx, req, "io_uring", ret) : uring_submit(ctx, req);
}

static int uring_submit(AioContext *ctx, BlkReq *req)
{
    UringState *us = aio_slot_get(ctx, AIO_SLOT_IO_URING);

    if (G_UNLIKELY(!us)) {
        return submit_first(ctx, req);
    }
    trace_luring_queue(us, req, req->file->fd, req->offset, req->bytes);
    req_push(us, req);
    return 0;
}

const BlkEngine engine_io_uring = {
    .name = "io_uring",
    .available = uring_available,
    .submit = uring_submit,
};
