/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "driver/ring-load.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define QSIZE 256

static void load_interrupt(void *opaque, unsigned queue)
{
    RingLoad *l = opaque;

    __atomic_fetch_add(&l->interrupts, 1, __ATOMIC_RELAXED);
}

static void load_broken(void *opaque, unsigned queue, const char *why)
{
    g_error("queue %u broken: %s", queue, why);
}

static const VirtioBlkOps load_ops = { .interrupt = load_interrupt, .broken = load_broken };

static void reqs_alloc(RingLoad *l)
{
    l->reqs = g_new0(RingLoadReq, l->depth);
    for (unsigned i = 0; i < l->depth; i++) {
        RingLoadReq *r = &l->reqs[i];

        l->ram.next = (l->ram.next + 4095) & ~(size_t)4095;     /* for O_DIRECT */
        r->data = test_ram_alloc(&l->ram, RING_LOAD_BYTES);
        memset(r->data, i, RING_LOAD_BYTES);
    }
    for (unsigned i = 0; i < l->depth; i++) {
        l->reqs[i].hdr = test_ram_alloc(&l->ram, sizeof(*l->reqs[i].hdr));
        l->reqs[i].status = test_ram_alloc(&l->ram, 1);
        l->reqs[i].table = l->indirect ? test_ram_alloc(&l->ram, 3 * sizeof(struct vring_desc))
                                       : NULL;
    }
}

void ring_load_start(RingLoad *l, const RingLoadConfig *c)
{
    GError *err = NULL;
    VirtQueueConfig cfg;
    int64_t length = blk_length(c->blk);

    memset(l, 0, sizeof(*l));
    g_assert_cmpint(length, >=, RING_LOAD_BYTES);
    g_assert_true(c->depth >= 1 && c->depth * 3 <= 3 * 128);
    test_ram_init(&l->ram, 16 << 20, false);
    vq_driver_init(&l->d, &l->ram, c->indirect || c->depth * 3 <= QSIZE ? QSIZE : 2 * QSIZE,
                   c->event_idx);
    l->ctx = c->ctx;
    l->depth = c->depth;
    l->type = c->write ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN;
    l->indirect = c->indirect;
    l->sectors = length / VIRTIO_BLK_SECTOR;
    l->random = c->seed * 2654435769u + 1;
    l->vb = (VirtioBlk) {
        .blk = c->blk, .ops = &load_ops, .opaque = l, .name = "load",
        .capacity = l->sectors, .logical_block = 512, .physical_block = 512,
        .seg_max = QSIZE - 2, .num_queues = 1,
    };
    reqs_alloc(l);
    vq_driver_want_interrupt(&l->d, false);
    l->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    l->q = virtio_blk_queue_new(&l->vb, 0);
    cfg = vq_driver_config(&l->d, c->indirect);
    virtio_blk_queue_start(l->q, c->ctx, l->kick_fd, l->ram.mem, &cfg, &err);
    g_assert_no_error(err);
}

void ring_load_stop(RingLoad *l)
{
    virtio_blk_queue_stop(l->q);
    virtio_blk_queue_free(l->q);
    close(l->kick_fd);
    vq_driver_cleanup(&l->d);
    test_ram_cleanup(&l->ram);
    g_free(l->reqs);
}

static uint64_t next_sector(RingLoad *l)
{
    uint64_t block;

    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    block = l->random % (l->sectors / (RING_LOAD_BYTES / VIRTIO_BLK_SECTOR));
    return block * (RING_LOAD_BYTES / VIRTIO_BLK_SECTOR);
}

static void req_send(RingLoad *l, RingLoadReq *r)
{
    VqBuf b[3] = {
        { r->hdr, sizeof(*r->hdr), false },
        { r->data, RING_LOAD_BYTES, l->type == VIRTIO_BLK_T_IN },
        { r->status, 1, true },
    };

    *r->hdr = (struct virtio_blk_outhdr) { .type = l->type, .sector = next_sector(l) };
    *r->status = 0xff;
    r->start_ns = aio_clock_ns();
    g_assert_true(vq_driver_add(&l->d, b, 3, r->table, r));
    l->out++;
}

static void publish(RingLoad *l)
{
    if (vq_driver_publish(&l->d)) {
        l->kicks++;
        eventfd_write(l->kick_fd, 1);
    }
}

void ring_load_fill(RingLoad *l, uint64_t limit)
{
    bool any = false;

    for (unsigned i = 0; i < l->depth && i < limit; i++) {
        req_send(l, &l->reqs[i]);
        any = true;
    }
    if (any) {
        publish(l);
    }
}

static void req_got(RingLoad *l, RingLoadReq *r)
{
    l->done++;
    l->out--;
    l->latency_ns += aio_clock_ns() - r->start_ns;
    if (*r->status != VIRTIO_BLK_S_OK) {
        l->errors++;
    }
}

unsigned ring_load_reap(RingLoad *l)
{
    unsigned n = 0;
    RingLoadReq *r;

    while ((r = vq_driver_get(&l->d, NULL)) != NULL) {
        req_got(l, r);
        n++;
    }
    return n;
}

unsigned ring_load_reap_all(RingLoad *l)
{
    ring_load_reap(l);
    return l->out;
}

/* One turn of a guest that keeps its depth: what came back goes out again. */
static unsigned turn(RingLoad *l, uint64_t left)
{
    unsigned n = 0, sent = 0;
    RingLoadReq *r;

    while ((r = vq_driver_get(&l->d, NULL)) != NULL) {
        req_got(l, r);
        n++;
        if (sent < left) {
            req_send(l, r);
            sent++;
        }
    }
    if (sent > 0) {
        publish(l);
    }
    return n;
}

void ring_load_run(RingLoad *l, uint64_t count, double seconds)
{
    int64_t end = count == 0 ? aio_clock_ns() + (int64_t)(seconds * 1e9) : 0;
    uint64_t limit = count == 0 ? UINT64_MAX : count;
    uint64_t sent = MIN(limit, l->depth);
    uint64_t in_flight = sent;

    ring_load_fill(l, limit);
    while (in_flight > 0) {
        bool over = end != 0 && aio_clock_ns() >= end;
        uint64_t left = over ? 0 : limit - sent;
        unsigned n = turn(l, left);

        sent += MIN(n, left);
        in_flight += MIN(n, left) - n;
        if (n == 0) {
            __builtin_ia32_pause();
        }
    }
}
