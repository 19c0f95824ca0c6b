/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of one virtio-blk queue: into service in an AioContext, drained,
 * paused, out of service. The request path is in blk-request.c.
 *
 * The control thread decides; what touches the queue runs in its home thread.
 */
#include "blk-queue.h"

#include <string.h>
#include <unistd.h>

#include "trace/trace-virtio.h"
#include "util/err.h"

/* Room for a buffer that crosses the border of two RAM regions. */
#define IOV_SLACK 4

/* ---- step 1: the queue was kicked, or the poll saw it ----------------------- */

static void queue_kicked(void *opaque)
{
    VirtioBlkQueue *q = opaque;
    uint64_t count;

    if (read(q->kick_fd, &count, sizeof(count)) == sizeof(count)) {
        q->kicks++;
        trace_virtio_queue_notify(q->vb, q->index, false, count);
    }
    virtio_blk_queue_take(q);
}

void virtio_blk_queue_again(VirtioBlkQueue *q)
{
    uint64_t one = 1;

    /* polling looks again anyway; else as if the driver had kicked */
    if (!q->polling && write(q->kick_fd, &one, sizeof(one)) < 0) {
        /* EAGAIN: it is signalled as much as can be */
    }
}

static unsigned queue_poll(void *opaque)
{
    VirtioBlkQueue *q = opaque;

    if (G_LIKELY(!virtqueue_pending(&q->vq))) {
        return 0;
    }
    trace_virtio_queue_notify(q->vb, q->index, true, 0);
    return virtio_blk_queue_take(q);
}

static void queue_poll_begin(void *opaque)
{
    VirtioBlkQueue *q = opaque;

    q->polling = true;
    virtqueue_notify_off(&q->vq);
}

static bool queue_poll_end(void *opaque)
{
    VirtioBlkQueue *q = opaque;

    q->polling = false;
    return virtqueue_notify_on(&q->vq);
}

static const AioHandlerOps queue_handler_ops = {
    .name = "virtio-blk",
    .readable = queue_kicked,
    .poll = queue_poll,
    .poll_begin = queue_poll_begin,
    .poll_end = queue_poll_end,
};

/* ---- memory -------------------------------------------------------------------- */

static size_t req_bytes(unsigned iov_max)
{
    size_t n = sizeof(VirtioBlkReq) + iov_max * sizeof(struct iovec);

    return (n + 63) & ~(size_t)63;
}

/* One block for all requests; pages are touched as the depth needs them. */
static bool pool_new(VirtioBlkQueue *q, unsigned size, unsigned iov_max, GError **errp)
{
    size_t each = req_bytes(iov_max);
    uint8_t *mem = NULL;

    if (posix_memalign((void **)&mem, 64, each * size) != 0) {
        err_set(errp, "%s: no memory for the requests of queue %u", q->vb->name, q->index);
        return false;
    }
    q->pool_mem = mem;
    q->pool = NULL;
    for (unsigned i = size; i-- > 0;) {
        VirtioBlkReq *req = (VirtioBlkReq *)(mem + i * each);

        memset(req, 0, sizeof(*req));
        req->q = q;
        req->elem.iov = req->iov;
        req->elem.iov_max = iov_max;
        req->next = q->pool;
        q->pool = req;
    }
    return true;
}

VirtioBlkQueue *virtio_blk_queue_new(VirtioBlk *vb, unsigned index)
{
    VirtioBlkQueue *q = g_new0(VirtioBlkQueue, 1);

    q->vb = vb;
    q->index = index;
    q->kick_fd = -1;
    return q;
}

void virtio_blk_queue_free(VirtioBlkQueue *q)
{
    if (q != NULL) {
        g_assert(q->ctx == NULL);
        g_free(q);
    }
}

/* ---- home thread ----------------------------------------------------------------- */

static void queue_retry_held(VirtioBlkQueue *q)
{
    VirtioBlkReq *req = q->held;

    q->held = NULL;
    q->nheld = 0;
    while (req != NULL) {
        VirtioBlkReq *next = req->next;

        virtio_blk_req_start(req);      /* may be held again */
        req = next;
    }
}

static void queue_enter_service(void *opaque)
{
    VirtioBlkQueue *q = opaque;

    q->stopping = false;
    __atomic_store_n(&q->quiet, false, __ATOMIC_RELAXED);
    q->in_service = true;
    aio_defer_init(&q->publish, virtio_blk_queue_publish, q);
    q->handler = aio_handler_add(q->ctx, q->kick_fd, &queue_handler_ops, q);
    queue_retry_held(q);
    /* What was made available before we listened came without a kick. */
    virtio_blk_queue_take(q);
}

static void queue_leave_service(void *opaque)
{
    VirtioBlkQueue *q = opaque;

    aio_handler_remove(q->handler);
    q->handler = NULL;
    q->polling = false;
    q->stopping = true;
    if (q->vq.in_flight == q->nheld) {
        virtio_blk_queue_publish(q);    /* sets quiet */
    }
}

static void queue_forget_defer(void *opaque)
{
    VirtioBlkQueue *q = opaque;

    aio_defer_cancel(q->ctx, &q->publish);
}

/* ---- control thread ----------------------------------------------------------------- */

bool virtio_blk_queue_running(const VirtioBlkQueue *q)
{
    return q->ctx != NULL && q->in_service;
}

bool virtio_blk_queue_start(VirtioBlkQueue *q, AioContext *ctx, int kick_fd, GuestMemory *mem,
                            const VirtQueueConfig *cfg, GError **errp)
{
    g_assert(q->ctx == NULL);
    if (!virtqueue_start(&q->vq, mem, cfg, errp)) {
        return false;
    }
    if (!pool_new(q, cfg->size, cfg->size + IOV_SLACK, errp)) {
        virtqueue_stop(&q->vq);
        return false;
    }
    q->ctx = ctx;
    q->kick_fd = kick_fd;
    q->told_broken = false;
    q->held = NULL;
    q->nheld = 0;
    q->requests = q->batches = q->kicks = 0;
    aio_run_sync(ctx, queue_enter_service, q);
    return true;
}

static bool queue_is_quiet(void *opaque)
{
    VirtioBlkQueue *q = opaque;

    return __atomic_load_n(&q->quiet, __ATOMIC_ACQUIRE);
}

/* In two steps, so that several queues could drain at the same time. */
void virtio_blk_queue_pause(VirtioBlkQueue *q)
{
    if (!virtio_blk_queue_running(q)) {
        return;
    }
    aio_run_sync(q->ctx, queue_leave_service, q);
    aio_wait_until(queue_is_quiet, q);
    aio_run_sync(q->ctx, queue_forget_defer, q);
    q->in_service = false;
}

void virtio_blk_queue_resume(VirtioBlkQueue *q)
{
    if (q->ctx != NULL && !q->in_service) {
        aio_run_sync(q->ctx, queue_enter_service, q);
    }
}

uint16_t virtio_blk_queue_stop(VirtioBlkQueue *q)
{
    uint16_t next;

    if (q->ctx == NULL) {
        return 0;
    }
    virtio_blk_queue_pause(q);
    next = q->vq.next_avail;
    virtqueue_stop(&q->vq);
    free(q->pool_mem);
    q->pool_mem = NULL;
    q->pool = q->held = NULL;
    q->nheld = 0;
    q->ctx = NULL;
    q->kick_fd = -1;
    return next;
}

typedef struct Snapshot {
    const VirtioBlkQueue *q;
    VirtioBlkQueueInfo *info;
} Snapshot;

static void queue_snapshot(void *opaque)
{
    const Snapshot *a = opaque;
    const VirtioBlkQueue *q = a->q;

    *a->info = (VirtioBlkQueueInfo) {
        .size = q->vq.size,
        .next_avail = q->vq.next_avail,
        .next_used = q->vq.next_used,
        .in_flight = q->vq.in_flight,
        .held = q->nheld,
        .running = q->in_service,
        .broken = q->vq.broken != NULL,
        .requests = q->requests,
        .batches = q->batches,
        .kicks = q->kicks,
    };
}

void virtio_blk_queue_info(VirtioBlkQueue *q, VirtioBlkQueueInfo *info)
{
    Snapshot a = { q, info };

    if (q->ctx != NULL) {
        aio_run_sync(q->ctx, queue_snapshot, &a);
    } else {
        memset(info, 0, sizeof(*info));
    }
}
