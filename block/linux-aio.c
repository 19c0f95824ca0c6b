/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request path, step 5, second half: aio=native.
 * From file.c; back to block-backend.c (step 4) through the request's frames.
 *
 * One kernel context per AioContext. Requests queue up and enter the kernel
 * once, at the end of the round. Completions are seen by peeking the ring that
 * the kernel maps into our memory, or by the eventfd while the loop sleeps.
 *
 * The ring's layout is the kernel's (fs/aio.c, struct aio_ring; user space has
 * relied on it since libaio 0.3.110): 32 bytes of header, then the events.
 * The kernel moves tail, we move head.
 */
#include "config-host.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "block-ctx.h"
#include "file.h"
#include "trace/trace-block.h"
#include "util/err.h"

#define RING_MAGIC 0xa10a10a1U
/* In flight per AioContext; what is more waits in our queue. */
#define DEPTH_MAX 1024
#define DEPTH_MIN 32
/* io_submit() is called again for the rest of a larger batch. */
#define BATCH_MAX 128U
/* When the kernel had no memory and nothing is in flight that could free some. */
#define RETRY_NS 1000000

typedef struct AioRing {
    uint32_t id;
    uint32_t nr;                        /* events that the ring can hold */
    atomic_uint head;
    atomic_uint tail;
    uint32_t magic;
    uint32_t compat_features;
    uint32_t incompat_features;
    uint32_t header_length;
    struct io_event events[];
} AioRing;

typedef struct LinuxAio {
    AioContext *ctx;
    BlockCtx *bc;
    io_context_t kctx;
    AioRing *ring;                      /* NULL: can't be peeked, ask the kernel */
    unsigned depth, in_flight;
    int efd;
    bool signalled;                     /* the eventfd may be readable */
    AioDefer flush;
    unsigned batched, batch_limit;      /* limit: so that @depth isn't exceeded */
    struct iocb *batch[BATCH_MAX];      /* for the next io_submit() */
    BlkReq *queue_head;                 /* what the batch had no room for */
    BlkReq **queue_tail;
    AioHandler *handler;
    AioTimer retry;
} LinuxAio;

static inline BlkReq *req_of(struct iocb *iocb)
{
    return (BlkReq *)((char *)iocb - offsetof(BlkReq, engine.iocb));
}

/* ---- completions -------------------------------------------------------- */

static inline void event_done(LinuxAio *la, struct iocb *iocb, int64_t result, bool polled)
{
    BlkReq *req = req_of(iocb);

    la->in_flight--;
    trace_laio_process_completion(la, req, result, polled);
    engine_done(req, result, req->bytes);
}

static inline uint32_t ring_tail(AioRing *ring)
{
    /* Acquire: the events before tail are read after it. Pairs with the kernel's
     * write barrier between filling an event and moving tail. */
    return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

static unsigned ring_reap(LinuxAio *la, bool polled)
{
    AioRing *ring = la->ring;
    /* Only we write head: it needs no order here. */
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    unsigned n = 0;

    if (head == ring_tail(ring)) {
        return 0;
    }
    block_ctx_batch_begin(la->bc);
    do {
        struct iocb *iocb = ring->events[head].obj;
        int64_t result = ring->events[head].res;

        head = head + 1 == ring->nr ? 0 : head + 1;
        /* Release: the event was read before the kernel may reuse its place.
         * Pairs with the kernel's read of head before it writes an event. The
         * completion may come back here (nested loop), so head moves first. */
        atomic_store_explicit(&ring->head, head, memory_order_release);
        event_done(la, iocb, result, polled);
        n++;
        head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    } while (head != ring_tail(ring));
    return n;
}

static unsigned kernel_reap(LinuxAio *la)
{
    struct io_event ev[32];
    struct timespec no_wait = { 0, 0 };
    unsigned total = 0;
    int n;

    do {
        n = la->in_flight ? io_getevents(la->kctx, 0, G_N_ELEMENTS(ev), ev, &no_wait) : 0;
        if (n > 0) {
            block_ctx_batch_begin(la->bc);
        }
        for (int i = 0; i < n; i++) {
            event_done(la, ev[i].obj, (int64_t)ev[i].res, false);
        }
        total += MAX(n, 0);
    } while (n == G_N_ELEMENTS(ev));
    return total;
}

static G_GNUC_NO_INLINE unsigned laio_reap(LinuxAio *la, bool polled)
{
    unsigned n = G_LIKELY(la->ring) ? ring_reap(la, polled) : kernel_reap(la);

    if (n > 0) {
        block_ctx_batch_end(la->bc);
        la->signalled = true;
        if (G_UNLIKELY(la->batched > 0 || la->queue_head)) {
            aio_defer(la->ctx, &la->flush);
        }
    }
    return n;
}

/* Nothing to see in the ring. False also when it can't be peeked. */
static inline bool ring_is_empty(const LinuxAio *la)
{
    return la->ring && atomic_load_explicit(&la->ring->head, memory_order_relaxed) ==
                       ring_tail(la->ring);
}

static void efd_clear(LinuxAio *la)
{
    uint64_t count;

    if (la->signalled) {
        la->signalled = false;
        /* Nonblocking: -1 means that it was clear, which is as good. */
        (void)!read(la->efd, &count, sizeof(count));
    }
}

static void laio_readable(void *opaque)
{
    LinuxAio *la = opaque;

    la->signalled = true;
    efd_clear(la);
    laio_reap(la, false);
    /* Of these the signal is gone already. */
    la->signalled = false;
}

static unsigned laio_poll(void *opaque)
{
    LinuxAio *la = opaque;

    return ring_is_empty(la) ? 0 : laio_reap(la, true);
}

/* Before the loop sleeps: clear the eventfd once, then look again. What
 * completes after the look signals it anew. */
static bool laio_poll_end(void *opaque)
{
    LinuxAio *la = opaque;

    efd_clear(la);
    return !ring_is_empty(la);
}

static const AioHandlerOps laio_polled_ops = {
    .name = "linux-aio",
    .readable = laio_readable,
    .poll = laio_poll,
    .poll_end = laio_poll_end,
};

/* A ring that can't be peeked costs a system call a look: fd only. */
static const AioHandlerOps laio_fd_ops = {
    .name = "linux-aio",
    .readable = laio_readable,
};

/* ---- submission ---------------------------------------------------------- */

/* Fill the batch from the queue. */
static void batch_refill(LinuxAio *la)
{
    la->batch_limit = MIN(BATCH_MAX, la->depth - la->in_flight);
    while (la->queue_head && la->batched < la->batch_limit) {
        la->batch[la->batched++] = &la->queue_head->engine.iocb;
        la->queue_head = la->queue_head->next;
    }
    if (!la->queue_head) {
        la->queue_tail = &la->queue_head;
    }
}

static void batch_drop_first(LinuxAio *la, unsigned n)
{
    la->batched -= n;
    memmove(la->batch, la->batch + n, la->batched * sizeof(la->batch[0]));
}

/* The kernel took @taken requests only, or refused with -errno. True: try again. */
static G_GNUC_NO_INLINE bool batch_partly_taken(LinuxAio *la, int taken)
{
    if (taken >= 0) {
        la->in_flight += taken;
        batch_drop_first(la, taken);
        return taken > 0;
    }
    if (taken == -EAGAIN || taken == -EINTR) {
        return taken == -EINTR;
    }

    /* The first one is what the kernel refuses. */
    BlkReq *req = req_of(la->batch[0]);

    batch_drop_first(la, 1);
    file_op_odd(req, taken);
    return true;
}

/* libaio's io_submit() has a look at the ring's magic each time. */
static inline int kernel_submit(LinuxAio *la, unsigned n)
{
    long ret = syscall(SYS_io_submit, la->kctx, (long)n, la->batch);

    return G_LIKELY(ret >= 0) ? ret : -errno;
}

/* Enter the kernel with the batch. False: it can't take more now. */
static inline bool batch_submit(LinuxAio *la)
{
    unsigned n = la->batched;
    int taken;

    trace_laio_do_submit(la, n);
    taken = kernel_submit(la, n);
    trace_laio_io_submit(la, n, taken);
    if (G_UNLIKELY(taken != (int)n)) {
        return batch_partly_taken(la, taken);
    }
    la->in_flight += n;
    la->batched = 0;
    return true;
}

/* More than one batch, or a kernel that won't take it. */
static G_GNUC_NO_INLINE void flush_more(LinuxAio *la)
{
    batch_refill(la);
    while (la->batched > 0 && batch_submit(la)) {
        batch_refill(la);
    }
    if (la->batched > 0 && la->in_flight == 0) {
        aio_timer_set(&la->retry, aio_clock_ns() + RETRY_NS);
    }
}

static void laio_flush(void *opaque)
{
    LinuxAio *la = opaque;

    block_ctx_round_end(la->bc);
    if (G_LIKELY(la->batched > 0)) {
        batch_submit(la);
    }
    la->batch_limit = MIN(BATCH_MAX, la->depth - la->in_flight);
    if (G_UNLIKELY(la->batched > 0 || la->queue_head)) {
        flush_more(la);
    }
    /* Some files complete inside io_submit(). */
    if (!ring_is_empty(la)) {
        laio_reap(la, true);
    }
}

/* ---- life ----------------------------------------------------------------- */

static void laio_destroy(void *opaque)
{
    LinuxAio *la = opaque;

    g_assert(la->in_flight == 0 && la->batched == 0 && !la->queue_head);
    aio_defer_cancel(la->ctx, &la->flush);
    aio_timer_cancel(&la->retry);
    if (la->handler) {
        aio_handler_remove(la->handler);
    }
    if (la->kctx) {
        io_destroy(la->kctx);
    }
    if (la->efd >= 0) {
        close(la->efd);
    }
    g_free(la);
}

static int kctx_create(io_context_t *kctx, unsigned *depth)
{
    int ret;

    /* All processes share /proc/sys/fs/aio-max-nr: be content with less. */
    for (*depth = DEPTH_MAX; ; *depth /= 2) {
        *kctx = NULL;
        ret = io_setup(*depth, kctx);
        if (ret != -EAGAIN || *depth <= DEPTH_MIN) {
            return ret;
        }
    }
}

static AioRing *ring_check(io_context_t kctx)
{
    AioRing *ring = (AioRing *)kctx;
    bool ok = ring->magic == RING_MAGIC && ring->incompat_features == 0 &&
              ring->header_length == sizeof(*ring) && ring->nr > 0;

    return ok ? ring : NULL;
}

static int laio_create(AioContext *ctx, BlockCtx *bc, LinuxAio **out)
{
    LinuxAio *la = g_new0(LinuxAio, 1);
    int ret;

    *out = NULL;
    la->ctx = ctx;
    la->bc = bc;
    la->queue_tail = &la->queue_head;
    aio_defer_init(&la->flush, laio_flush, la);
    aio_timer_init(&la->retry, ctx, laio_flush, la);
    la->efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ret = la->efd < 0 ? -errno : kctx_create(&la->kctx, &la->depth);
    if (ret < 0) {
        laio_destroy(la);
        return ret;
    }
    la->ring = ring_check(la->kctx);
    la->batch_limit = MIN(BATCH_MAX, la->depth);
    la->handler = aio_handler_add(ctx, la->efd, la->ring ? &laio_polled_ops : &laio_fd_ops, la);
    aio_slot_set(ctx, AIO_SLOT_LINUX_AIO, la, laio_destroy);
    *out = la;
    return 0;
}

static bool laio_available(GError **errp)
{
    io_context_t kctx;
    unsigned depth;
    int ret = kctx_create(&kctx, &depth);

    if (ret < 0) {
        err_set_errno(errp, ret, "aio=native: the kernel refuses a Linux AIO context%s",
                      ret == -EAGAIN ? " (see /proc/sys/fs/aio-max-nr)" : "");
        return false;
    }
    io_destroy(kctx);
    return true;
}

static inline void iocb_fill(struct iocb *iocb, const BlkReq *req, int efd)
{
    bool write = req->op == BLK_WRITE;

    *iocb = (struct iocb) {
        .aio_fildes = req->file->fd,
        .aio_lio_opcode = write ? IO_CMD_PWRITEV : IO_CMD_PREADV,
        .aio_rw_flags = write && (req->flags & BLK_REQ_FUA) ? RWF_DSYNC : 0,
        .u.c.buf = (void *)req->iov,
        .u.c.nbytes = req->niov,
        .u.c.offset = req->offset,
        .u.c.flags = 1,                 /* IOCB_FLAG_RESFD */
        .u.c.resfd = efd,
    };
    if (G_UNLIKELY(req->op == BLK_FLUSH)) {
        iocb->aio_lio_opcode = IO_CMD_FDSYNC;
        iocb->u.c.buf = NULL;
        iocb->u.c.nbytes = 0;
        iocb->u.c.offset = 0;
    }
}

static int laio_submit(AioContext *ctx, BlkReq *req);

/* The first request in @ctx makes the state. */
static G_GNUC_NO_INLINE int submit_first(AioContext *ctx, BlkReq *req)
{
    LinuxAio *la;
    int ret = laio_create(ctx, block_ctx(ctx), &la);

    return ret < 0 ? engine_unusable_here(ctx, req, "native", ret) : laio_submit(ctx, req);
}

static int laio_submit(AioContext *ctx, BlkReq *req)
{
    LinuxAio *la = aio_slot_get(ctx, AIO_SLOT_LINUX_AIO);

    if (G_UNLIKELY(!la)) {
        return submit_first(ctx, req);
    }
    trace_laio_queue(la, req, req->file->fd, req->offset, req->bytes);
    iocb_fill(&req->engine.iocb, req, la->efd);
    if (G_LIKELY(la->batched < la->batch_limit && !la->queue_head)) {
        la->batch[la->batched++] = &req->engine.iocb;
    } else {
        req->next = NULL;
        *la->queue_tail = req;
        la->queue_tail = &req->next;
    }
    if (!la->flush.queued) {
        aio_defer(ctx, &la->flush);
    }
    return 0;
}

const BlkEngine engine_linux_aio = {
    .name = "native",
    .needs_direct = true,
    .available = laio_available,
    .submit = laio_submit,
};
