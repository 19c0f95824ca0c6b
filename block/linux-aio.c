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
#define BATCH_MAX 128
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
    BlkReq *queue_head;
    BlkReq **queue_tail;
    AioDefer flush;
    bool signalled;                     /* the eventfd may be readable */
    int efd;
    AioHandler *handler;
    AioTimer retry;
} LinuxAio;

static inline BlkReq *req_of(struct iocb *iocb)
{
    return (BlkReq *)((char *)iocb - offsetof(BlkReq, engine.iocb));
}

/* ---- completions -------------------------------------------------------- */

static void event_done(LinuxAio *la, const struct io_event *ev, bool polled)
{
    BlkReq *req = req_of(ev->obj);

    la->in_flight--;
    trace_laio_process_completion(la, req, (int64_t)ev->res, polled);
    engine_done(req, (int64_t)ev->res, req->op == BLK_FLUSH ? 0 : req->bytes);
}

static unsigned ring_reap(LinuxAio *la, bool polled)
{
    AioRing *ring = la->ring;
    /* Only we write head: it needs no order here. */
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    unsigned n = 0;

    /* Acquire: the events before tail are read after it. Pairs with the
     * kernel's write barrier between filling an event and moving tail. */
    while (head != atomic_load_explicit(&ring->tail, memory_order_acquire)) {
        struct io_event ev = ring->events[head];

        if (n++ == 0) {
            block_ctx_batch_begin(la->bc);
        }
        head = head + 1 == ring->nr ? 0 : head + 1;
        /* Release: the event was read before the kernel may reuse its place.
         * Pairs with the kernel's read of head before it writes an event. The
         * completion may come back here (nested loop), so head moves first. */
        atomic_store_explicit(&ring->head, head, memory_order_release);
        event_done(la, &ev, polled);
        head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    }
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
            event_done(la, &ev[i], false);
        }
        total += MAX(n, 0);
    } while (n == G_N_ELEMENTS(ev));
    return total;
}

static unsigned laio_reap(LinuxAio *la, bool polled)
{
    unsigned n = G_LIKELY(la->ring) ? ring_reap(la, polled) : kernel_reap(la);

    if (n > 0) {
        block_ctx_batch_end(la->bc);
        la->signalled = true;
        if (la->queue_head) {
            aio_defer(la->ctx, &la->flush);
        }
    }
    return n;
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
    return laio_reap(opaque, true);
}

/* Before the loop sleeps: clear the eventfd once, then look again. What
 * completes after the look signals it anew. */
static bool laio_poll_end(void *opaque)
{
    LinuxAio *la = opaque;

    efd_clear(la);
    return la->ring && atomic_load_explicit(&la->ring->head, memory_order_relaxed) !=
                       atomic_load_explicit(&la->ring->tail, memory_order_acquire);
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

static void queue_push_front(LinuxAio *la, BlkReq *req)
{
    req->next = la->queue_head;
    la->queue_head = req;
    if (!req->next) {
        la->queue_tail = &req->next;
    }
}

/* What the kernel didn't take goes back to the queue, in order. */
static void batch_undo(LinuxAio *la, struct iocb **batch, unsigned from, unsigned to)
{
    while (to > from) {
        la->in_flight--;
        queue_push_front(la, req_of(batch[--to]));
    }
}

static unsigned batch_fill(LinuxAio *la, struct iocb **batch)
{
    unsigned n = 0;

    while (la->queue_head && n < BATCH_MAX && la->in_flight < la->depth) {
        BlkReq *req = la->queue_head;

        la->queue_head = req->next;
        la->in_flight++;
        batch[n++] = &req->engine.iocb;
    }
    if (!la->queue_head) {
        la->queue_tail = &la->queue_head;
    }
    return n;
}

/* Submit one batch. False: the kernel can't take more now. */
static bool batch_submit(LinuxAio *la)
{
    struct iocb *batch[BATCH_MAX];
    unsigned n = batch_fill(la, batch);

    if (n == 0) {
        return false;
    }

    trace_laio_do_submit(la, n);

    int taken = io_submit(la->kctx, n, batch);

    trace_laio_io_submit(la, n, taken);
    if (G_LIKELY(taken == (int)n)) {
        return true;
    }
    if (taken >= 0) {
        batch_undo(la, batch, taken, n);
        return taken > 0;
    }
    if (taken == -EAGAIN || taken == -EINTR) {
        batch_undo(la, batch, 0, n);
        return taken == -EINTR;
    }
    /* The first one is what the kernel refuses. */
    batch_undo(la, batch, 1, n);
    la->in_flight--;
    file_op_odd(req_of(batch[0]), taken);
    return true;
}

static void laio_flush(void *opaque)
{
    LinuxAio *la = opaque;

    while (la->queue_head && batch_submit(la)) {
    }
    /* Some files complete inside io_submit(). */
    laio_reap(la, true);
    if (la->queue_head && la->in_flight == 0) {
        aio_timer_set(&la->retry, aio_clock_ns() + RETRY_NS);
    }
}

/* ---- life ----------------------------------------------------------------- */

static void laio_destroy(void *opaque)
{
    LinuxAio *la = opaque;

    g_assert(la->in_flight == 0 && !la->queue_head);
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
    *iocb = (struct iocb) {
        .aio_fildes = req->file->fd,
        .u.c.flags = 1,                 /* IOCB_FLAG_RESFD */
        .u.c.resfd = efd,
    };
    if (req->op == BLK_FLUSH) {
        iocb->aio_lio_opcode = IO_CMD_FDSYNC;
        return;
    }
    iocb->aio_lio_opcode = req->op == BLK_READ ? IO_CMD_PREADV : IO_CMD_PWRITEV;
    iocb->u.c.buf = (void *)req->iov;
    iocb->u.c.nbytes = req->niov;
    iocb->u.c.offset = req->offset;
    if (req->flags & BLK_REQ_FUA) {
        iocb->aio_rw_flags = RWF_DSYNC;
    }
}

static int laio_submit(AioContext *ctx, BlkReq *req)
{
    LinuxAio *la = aio_slot_get(ctx, AIO_SLOT_LINUX_AIO);

    if (G_UNLIKELY(!la)) {
        int ret = laio_create(ctx, block_ctx(ctx), &la);

        if (ret < 0) {
            return engine_unusable_here(ctx, req, "native", ret);
        }
    }
    trace_laio_queue(la, req, req->file->fd, req->offset, req->bytes);
    iocb_fill(&req->engine.iocb, req, la->efd);
    req->next = NULL;
    *la->queue_tail = req;
    la->queue_tail = &req->next;
    aio_defer(ctx, &la->flush);
    return 0;
}

const BlkEngine engine_linux_aio = {
    .name = "native",
    .needs_direct = true,
    .available = laio_available,
    .submit = laio_submit,
};
