/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request path, step 3 of 6, and the way back through 6: the header parsed,
 * the request validated against the device's limits and its capacity, then
 * handed to the block layer; on completion the status written and the chain
 * given back.
 * Before: virtio/virtqueue.c. After: block/block-backend.c.
 *
 * A popped request is finished exactly once, whatever is in it. A chain that
 * can't carry a status at all breaks the queue.
 */
#include <errno.h>
#include <string.h>

#include "blk-queue.h"
#include "trace/trace-virtio.h"
#include "util/log.h"

/* ---- finish -------------------------------------------------------------- */

/* Write the status and give the chain back; published at the end of the round. */
static void req_finish(VirtioBlkReq *req, uint8_t status)
{
    VirtioBlkQueue *q = req->q;
    uint32_t len = 1 + (status == VIRTIO_BLK_S_OK ? req->in_len : 0);

    trace_virtio_blk_req_complete(q->vb, req, status);
    /* Published with the used index, but a driver may watch it before. */
    __atomic_store_n(req->status, status, __ATOMIC_RELEASE);
    virtqueue_push(&q->vq, req->elem.head, len);
    trace_virtqueue_fill(&q->vq, req, req->elem.head, len);
    req->next = q->pool;
    q->pool = req;
    aio_defer(q->ctx, &q->publish);
}

/* What no driver should ask for. @sector and @bytes as the request has them. */
static void req_refuse(VirtioBlkReq *req, uint8_t status, uint64_t sector, uint64_t bytes)
{
    VirtioBlk *vb = req->q->vb;

    trace_virtio_blk_req_invalid(vb, req, req->hdr.type, sector, bytes);
    log_mask(LOG_GUEST_ERROR, "%s: queue %u: request of type %u, sector %" PRIu64 ", %" PRIu64
             " bytes is refused with status %u\n", vb->name, req->q->index, req->hdr.type, sector,
             bytes, status);
    req_finish(req, status);
}

static void req_hold(VirtioBlkReq *req)
{
    VirtioBlkReq **tail = &req->q->held;

    while (*tail != NULL) {
        tail = &(*tail)->next;
    }
    req->next = NULL;
    *tail = req;
    req->q->nheld++;
    aio_defer(req->q->ctx, &req->q->publish);   /* a stop may wait for this */
}

static void req_failed(VirtioBlkReq *req, int err)
{
    VirtioBlkQueue *q = req->q;
    VirtioBlkOnError what = VIRTIO_BLK_REPORT;

    if (q->vb->ops->error != NULL) {
        what = q->vb->ops->error(q->vb->opaque, q->index, req->blk.op, err);
    }
    trace_virtio_blk_req_failed(q->vb, req, err, what);
    switch (what) {
    case VIRTIO_BLK_HOLD:
        req_hold(req);
        break;
    case VIRTIO_BLK_IGNORE:
        req_finish(req, VIRTIO_BLK_S_OK);
        break;
    default:
        req_finish(req, err == ENOTSUP ? VIRTIO_BLK_S_UNSUPP : VIRTIO_BLK_S_IOERR);
        break;
    }
}

static void req_done(BlkReq *blk, void *opaque, int ret)
{
    VirtioBlkReq *req = opaque;

    (void)blk;
    trace_virtio_blk_rw_complete(req->q->vb, req, ret);
    if (ret < 0) {
        req_failed(req, -ret);
    } else {
        req_finish(req, VIRTIO_BLK_S_OK);
    }
}

/* ---- parse ------------------------------------------------------------------ */

/* Copy the first @n bytes out; false when there are fewer. */
static bool iov_peek(const struct iovec *iov, int niov, void *buf, size_t n)
{
    uint8_t *p = buf;

    for (int i = 0; i < niov && n > 0; i++) {
        size_t part = MIN(n, iov[i].iov_len);

        memcpy(p, iov[i].iov_base, part);
        p += part;
        n -= part;
    }
    return n == 0;
}

/* Drop the first @n bytes; there are that many. */
static void iov_skip(struct iovec **iov, int *niov, size_t n)
{
    while (n > 0 && n >= (*iov)->iov_len) {
        n -= (*iov)->iov_len;
        (*iov)++;
        (*niov)--;
    }
    if (n > 0) {
        (*iov)->iov_base = (uint8_t *)(*iov)->iov_base + n;
        (*iov)->iov_len -= n;
    }
}

static uint64_t iov_bytes(const struct iovec *iov, int niov)
{
    uint64_t n = 0;

    for (int i = 0; i < niov; i++) {
        n += iov[i].iov_len;
    }
    return n;
}

/*
 * Find header, data and status, wherever the driver put the borders between
 * descriptors (§2.7.4). NULL, or why the queue can't be trusted any more.
 */
static const char *req_parse(VirtioBlkReq *req)
{
    struct iovec *out = req->iov;
    struct iovec *in = req->iov + req->elem.n_out;
    int nout = req->elem.n_out;
    int nin = req->elem.n_in;
    struct iovec *last;

    if (!iov_peek(out, nout, &req->hdr, sizeof(req->hdr))) {
        return "virtio-blk request with a short header";
    }
    iov_skip(&out, &nout, sizeof(req->hdr));
    if (nin == 0) {
        return "virtio-blk request without room for a status";
    }
    last = &in[nin - 1];
    last->iov_len--;
    req->status = (uint8_t *)last->iov_base + last->iov_len;
    if (last->iov_len == 0) {
        nin--;
    }
    req->hdr.type = GUINT32_FROM_LE(req->hdr.type);
    req->hdr.sector = GUINT64_FROM_LE(req->hdr.sector);
    req->in_len = 0;
    /* Data flows one way; which one depends on the type. */
    if (req->hdr.type == VIRTIO_BLK_T_IN || req->hdr.type == VIRTIO_BLK_T_GET_ID) {
        req->data = in;
        req->ndata = nin;
    } else {
        req->data = out;
        req->ndata = nout;
    }
    req->data_bytes = iov_bytes(req->data, req->ndata);
    return NULL;
}

/* ---- validate and start -------------------------------------------------------- */

static void req_submit(VirtioBlkReq *req, BlkOp op, int64_t offset, int64_t bytes, bool data,
                       uint32_t flags)
{
    int ret;

    blk_req_init(&req->blk, op, offset, bytes, data ? req->data : NULL, data ? req->ndata : 0,
                 flags, req_done, req);
    ret = blk_submit(req->q->vb->blk, &req->blk);
    if (ret < 0) {
        req_failed(req, -ret);
    }
}

/* Is [@sector, @sector + @bytes) on the disk, in whole logical blocks? */
static bool range_ok(const VirtioBlk *vb, uint64_t sector, uint64_t bytes)
{
    uint64_t capacity = __atomic_load_n(&vb->capacity, __ATOMIC_RELAXED);
    uint64_t n = bytes / VIRTIO_BLK_SECTOR;
    uint64_t mask = vb->logical_block - 1;

    /* A capacity fits 2^54 sectors, so the shift can't overflow once checked. */
    return (bytes & mask) == 0 && sector <= capacity && n <= capacity - sector
        && ((sector * VIRTIO_BLK_SECTOR) & mask) == 0;
}

static void req_rw(VirtioBlkReq *req, BlkOp op)
{
    VirtioBlk *vb = req->q->vb;

    req->blk.op = op;
    if (!range_ok(vb, req->hdr.sector, req->data_bytes)) {
        req_refuse(req, VIRTIO_BLK_S_IOERR, req->hdr.sector, req->data_bytes);
        return;
    }
    if (op == BLK_WRITE && vb->read_only) {
        req_refuse(req, VIRTIO_BLK_S_IOERR, req->hdr.sector, req->data_bytes);
        return;
    }
    if (req->data_bytes == 0) {
        req_finish(req, VIRTIO_BLK_S_OK);
        return;
    }
    if (op == BLK_READ) {
        req->in_len = req->data_bytes;
    }
    req_submit(req, op, req->hdr.sector * VIRTIO_BLK_SECTOR, req->data_bytes, true, 0);
}

static void req_get_id(VirtioBlkReq *req)
{
    const char *id = req->q->vb->serial;
    size_t left = VIRTIO_BLK_ID_BYTES;
    size_t done = 0;

    for (int i = 0; i < req->ndata && left > 0; i++) {
        size_t n = MIN(left, req->data[i].iov_len);

        memcpy(req->data[i].iov_base, id + done, n);
        done += n;
        left -= n;
    }
    req->in_len = done;
    req_finish(req, VIRTIO_BLK_S_OK);
}

/* Discard and write-zeroes: one segment, §5.2.6.1. */
static void req_discard_or_zero(VirtioBlkReq *req, bool zero)
{
    VirtioBlk *vb = req->q->vb;
    struct virtio_blk_discard_write_zeroes seg;
    uint32_t sectors, flags, max = zero ? vb->max_write_zeroes_sectors : vb->max_discard_sectors;
    uint64_t sector;

    req->blk.op = zero ? BLK_WRITE_ZEROES : BLK_DISCARD;
    if (!(zero ? vb->write_zeroes : vb->discard)) {
        req_refuse(req, VIRTIO_BLK_S_UNSUPP, req->hdr.sector, req->data_bytes);
        return;
    }
    if (req->data_bytes != sizeof(seg) || vb->read_only
        || !iov_peek(req->data, req->ndata, &seg, sizeof(seg))) {
        req_refuse(req, VIRTIO_BLK_S_IOERR, req->hdr.sector, req->data_bytes);
        return;
    }
    sector = GUINT64_FROM_LE(seg.sector);
    sectors = GUINT32_FROM_LE(seg.num_sectors);
    flags = GUINT32_FROM_LE(seg.flags);
    if ((flags & ~(zero ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP : 0)) != 0) {
        req_refuse(req, VIRTIO_BLK_S_UNSUPP, sector, (uint64_t)sectors * VIRTIO_BLK_SECTOR);
        return;
    }
    if (sectors > max || !range_ok(vb, sector, (uint64_t)sectors * VIRTIO_BLK_SECTOR)) {
        req_refuse(req, VIRTIO_BLK_S_IOERR, sector, (uint64_t)sectors * VIRTIO_BLK_SECTOR);
        return;
    }
    if (sectors == 0) {
        req_finish(req, VIRTIO_BLK_S_OK);
        return;
    }
    req_submit(req, req->blk.op, sector * VIRTIO_BLK_SECTOR,
               (int64_t)sectors * VIRTIO_BLK_SECTOR, false, flags != 0 ? BLK_REQ_UNMAP : 0);
}

/* Everything but reads and writes. */
static void req_other(VirtioBlkReq *req)
{
    trace_virtio_blk_handle_other(req->q->vb, req, req->hdr.type);
    switch (req->hdr.type) {
    case VIRTIO_BLK_T_FLUSH:
        req->blk.op = BLK_FLUSH;
        req_submit(req, BLK_FLUSH, 0, 0, false, 0);
        break;
    case VIRTIO_BLK_T_GET_ID:
        req_get_id(req);
        break;
    case VIRTIO_BLK_T_DISCARD:
        req_discard_or_zero(req, false);
        break;
    case VIRTIO_BLK_T_WRITE_ZEROES:
        req_discard_or_zero(req, true);
        break;
    default:
        req_refuse(req, VIRTIO_BLK_S_UNSUPP, req->hdr.sector, req->data_bytes);
        break;
    }
}

void virtio_blk_req_start(VirtioBlkReq *req)
{
    switch (req->hdr.type) {
    case VIRTIO_BLK_T_IN:
        trace_virtio_blk_handle_read(req->q->vb, req, req->hdr.sector,
                                     req->data_bytes / VIRTIO_BLK_SECTOR);
        req_rw(req, BLK_READ);
        break;
    case VIRTIO_BLK_T_OUT:
        trace_virtio_blk_handle_write(req->q->vb, req, req->hdr.sector,
                                      req->data_bytes / VIRTIO_BLK_SECTOR);
        req_rw(req, BLK_WRITE);
        break;
    default:
        req_other(req);
        break;
    }
}

/* ---- the queue's round --------------------------------------------------------- */

static void queue_broken(VirtioBlkQueue *q, const char *why)
{
    virtqueue_break(&q->vq, why);
    if (!q->told_broken) {
        trace_virtio_error(q->vb, q->index, q->vq.broken);
        q->told_broken = true;
        q->vb->ops->broken(q->vb->opaque, q->index, q->vq.broken);
    }
}

/* One chain taken and started. 0: none there, or the queue is broken. */
static bool queue_take_one(VirtioBlkQueue *q)
{
    VirtioBlkReq *req = q->pool;
    const char *err;

    if (!virtqueue_pending(&q->vq)) {
        return false;
    }
    if (req == NULL) {
        queue_broken(q, "more requests in flight than the queue has entries");
        return false;
    }
    if (virtqueue_pop(&q->vq, &req->elem) <= 0) {
        queue_broken(q, "virtqueue");
        return false;
    }
    q->pool = req->next;
    trace_virtqueue_pop(&q->vq, req, req->elem.head, req->elem.n_in, req->elem.n_out);
    err = req_parse(req);
    if (err != NULL) {
        /* The chain can't be answered; it stays in flight until the reset. */
        q->vq.in_flight--;
        req->next = q->pool;
        q->pool = req;
        queue_broken(q, err);
        return false;
    }
    virtio_blk_req_start(req);          /* leads to exactly one req_finish() */
    return true;
}

/*
 * A turn of the ring at a time: requests that are answered at once would let a
 * driver that runs on and on keep us here for ever.
 */
unsigned virtio_blk_queue_take(VirtioBlkQueue *q)
{
    unsigned taken = 0;

    if (q->stopping) {
        return 0;
    }
    do {
        /* While we look anyway, the driver need not kick. */
        virtqueue_notify_off(&q->vq);
        while (taken < q->vq.size && queue_take_one(q)) {
            taken++;
        }
        if (G_UNLIKELY(taken == q->vq.size)) {
            virtio_blk_queue_again(q);
            break;
        }
    } while (!q->polling && virtqueue_notify_on(&q->vq));
    if (taken > 0) {
        q->requests += taken;
        q->batches++;
    }
    return taken;
}

void virtio_blk_queue_publish(void *opaque)
{
    VirtioBlkQueue *q = opaque;

    uint16_t count = q->vq.next_used - q->vq.published;

    if (count > 0) {
        bool wanted = virtqueue_publish(&q->vq);

        trace_virtqueue_flush(&q->vq, count, q->vq.published);
        if (wanted) {
            trace_virtio_notify(q->vb, &q->vq, q->index);
            q->vb->ops->interrupt(q->vb->opaque, q->index);
        } else {
            trace_virtio_notify_suppressed(q->vb, &q->vq, q->index);
        }
    }
    if (q->stopping && q->vq.in_flight == q->nheld) {
        __atomic_store_n(&q->quiet, true, __ATOMIC_RELEASE);    /* pairs with queue_is_quiet() */
        aio_wait_kick();
    }
}
