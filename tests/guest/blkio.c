/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "blkio.h"
#include "console.h"
#include "mem.h"

void blkq_init(BlkQ *b, Vq *q, unsigned nslots, unsigned max_segs, uint64_t data_bytes)
{
    bool indirect = q->dev->accepted & F(VIRTIO_RING_F_INDIRECT_DESC);
    unsigned max_desc = max_segs + 2, per_slot = indirect ? 1 : max_desc;
    ReqHead *heads;

    if (nslots * per_slot > q->size) {
        fail_num("the queue is too small for that depth, its size is", q->size);
    }
    memset(b, 0, sizeof(*b));
    b->vq = q;
    b->nslots = nslots;
    b->max_desc = max_desc;
    b->indirect = indirect;
    b->slots = mem_alloc(nslots * sizeof(Slot), 64);
    b->slot_of = mem_alloc(q->size * sizeof(uint16_t), 64);
    memset(b->slot_of, 0xff, q->size * sizeof(uint16_t));
    heads = mem_alloc(nslots * sizeof(ReqHead), 64);
    for (unsigned i = 0; i < nslots; i++) {
        Slot *s = &b->slots[i];

        s->head = &heads[i];
        s->data = data_bytes != 0 ? mem_alloc(data_bytes, 4096) : NULL;
        s->id = i * per_slot;
        s->first = indirect ? 0 : s->id;
        s->table = indirect ? mem_alloc(max_desc * sizeof(s->table[0]), 64) : &q->desc[s->id];
        b->slot_of[s->id] = i;
    }
}

void blkq_init_shared(BlkQ *b, Vq *q, unsigned nslots, unsigned max_segs)
{
    if (q->dev->accepted & F(VIRTIO_RING_F_INDIRECT_DESC)) {
        blkq_init(b, q, nslots, max_segs, 0);
        return;
    }
    if (max_segs + 2 > q->size) {
        fail_num("the queue is too small for that many segments, its size is", q->size);
    }
    memset(b, 0, sizeof(*b));
    b->vq = q;
    b->nslots = nslots;
    b->max_desc = max_segs + 2;
    b->shared = true;
    b->slots = mem_alloc(nslots * sizeof(Slot), 64);
    b->slot_of = mem_alloc(q->size * sizeof(uint16_t), 64);
    memset(b->slot_of, 0xff, q->size * sizeof(uint16_t));
    b->free = mem_alloc(q->size * sizeof(uint16_t), 64);
    while (b->nfree < q->size) {
        b->free[b->nfree] = b->nfree;
        b->nfree++;
    }
    for (unsigned i = 0; i < nslots; i++) {
        b->slots[i].head = mem_alloc(sizeof(ReqHead), 64);
        b->slots[i].chain = mem_alloc(b->max_desc * sizeof(uint16_t), 64);
    }
}

static bool describe_shared(BlkQ *b, Slot *s, const Seg *segs, unsigned nsegs)
{
    if (nsegs > b->nfree) {
        return false;
    }
    for (unsigned i = 0; i < nsegs; i++) {
        s->chain[i] = b->free[--b->nfree];
    }
    s->nchain = nsegs;
    s->id = s->chain[0];
    b->slot_of[s->id] = s - b->slots;
    for (unsigned i = 0; i < nsegs; i++) {
        bool last = i + 1 == nsegs;

        b->vq->desc[s->chain[i]] = (struct vring_desc) {
            .addr = (uintptr_t)segs[i].p,
            .len = segs[i].len,
            .flags = (segs[i].in ? VRING_DESC_F_WRITE : 0) | (last ? 0 : VRING_DESC_F_NEXT),
            .next = last ? 0 : s->chain[i + 1],
        };
    }
    return true;
}

static void release_shared(BlkQ *b, Slot *s)
{
    b->slot_of[s->id] = NO_SLOT;
    while (s->nchain > 0) {
        b->free[b->nfree++] = s->chain[--s->nchain];
    }
}

bool slot_describe_raw(BlkQ *b, Slot *s, const Seg *segs, unsigned nsegs)
{
    if (nsegs > b->max_desc) {
        fail_num("more segments than the slot has room for, it has", b->max_desc);
    }
    if (b->shared) {
        return describe_shared(b, s, segs, nsegs);
    }
    for (unsigned i = 0; i < nsegs; i++) {
        bool last = i + 1 == nsegs;

        s->table[i] = (struct vring_desc) {
            .addr = (uintptr_t)segs[i].p,
            .len = segs[i].len,
            .flags = (segs[i].in ? VRING_DESC_F_WRITE : 0) | (last ? 0 : VRING_DESC_F_NEXT),
            .next = last ? 0 : s->first + i + 1,
        };
    }
    if (b->indirect) {
        b->vq->desc[s->id] = (struct vring_desc) {
            .addr = (uintptr_t)s->table,
            .len = nsegs * sizeof(s->table[0]),
            .flags = VRING_DESC_F_INDIRECT,
        };
    }
    return true;
}

void slot_describe(BlkQ *b, Slot *s, const Seg *segs, unsigned nsegs)
{
    Seg all[MAX_SEGS + 2];

    if (nsegs > MAX_SEGS) {
        fail_num("more segments than this guest can describe", MAX_SEGS);
    }
    all[0] = (Seg) { &s->head->hdr, sizeof(s->head->hdr), false };
    memcpy(&all[1], segs, nsegs * sizeof(segs[0]));
    all[nsegs + 1] = (Seg) { &s->head->status, 1, true };
    slot_describe_raw(b, s, all, nsegs + 2);
}

Slot *blkq_reap(BlkQ *b)
{
    Vq *q = b->vq;

    while (q->last_used != vq_used_idx(q)) {
        struct vring_used_elem e = q->used->ring[q->last_used++ & (q->size - 1)];
        uint16_t i = e.id < q->size ? b->slot_of[e.id] : NO_SLOT;

        if (i == NO_SLOT || !b->slots[i].busy) {
            b->bad_ids++;
            continue;
        }
        b->slots[i].busy = false;
        if (b->shared) {
            release_shared(b, &b->slots[i]);
        }
        b->last_len = e.len;
        return &b->slots[i];
    }
    return NULL;
}

int blkq_sync(BlkQ *b, uint32_t type, uint64_t sector, const Seg *segs, unsigned nsegs,
              uint64_t timeout_ms)
{
    uint64_t until = rdtsc() + ns_to_cycles(timeout_ms * 1000000);
    Slot *s = &b->slots[0];

    slot_describe(b, s, segs, nsegs);
    slot_submit(b, s, type, sector);
    vq_publish(b->vq);
    while (blkq_reap(b) != s) {
        if (rdtsc() > until) {
            return -1;
        }
        cpu_pause();
    }
    return s->head->status;
}

static uint64_t irqs_of(Vq *const *queues, unsigned n)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < n; i++) {
        sum += *queues[i]->irqs;
    }
    return sum;
}

static bool any_used(Vq *const *queues, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (vq_used_idx(queues[i]) != queues[i]->last_used) {
            return true;
        }
    }
    return false;
}

bool blkq_wait(Vq *const *queues, unsigned n, bool halt)
{
    uint64_t seen = irq_total, irqs = irqs_of(queues, n), begin;
    bool idle = true, owed = false;

    for (unsigned i = 0; i < n; i++) {
        idle &= vq_irq_on(queues[i]);
    }
    begin = rdtsc();
    if (idle && halt) {
        cpu_wait_irq(seen);
    } else if (idle) {
        while (irq_total == seen && rdtsc() - begin < tsc_khz * 100) {
            cpu_pause();
        }
    }
    /* Woken by the timer with a completion there: the interrupt may be on its way, but not for
     * long. */
    owed = idle && any_used(queues, n) && irqs_of(queues, n) == irqs;
    for (begin = rdtsc(); owed && rdtsc() - begin < tsc_khz * 50;) {
        owed = irqs_of(queues, n) == irqs;
    }
    for (unsigned i = 0; i < n; i++) {
        vq_irq_off(queues[i]);
    }
    return !owed;
}

void blkq_stalled(const BlkQ *b, const char *op)
{
    const Vq *q = b->vq;
    unsigned busy = 0;

    for (unsigned i = 0; i < b->nslots; i++) {
        busy += b->slots[i].busy;
    }
    out_begin("error");
    out_str("message", "no completion in time");
    out_str("in", op);
    out_u64("dev", q->dev->index);
    out_u64("queue", q->index);
    out_u64("in_flight", busy);
    out_u64("avail_idx", q->published);
    out_u64("used_idx", vq_used_idx(q));
    out_u64("avail_event", *q->avail_event);
    out_u64("used_event", *q->used_event);
    out_u64("kicks", q->kicks);
    out_u64("interrupts", *q->irqs);
    out_hex("device_status", virtio_status(q->dev));
    out_u64("bad_ids", b->bad_ids);
    out_u64("errors", 1);
    out_end();
    cpu_exit("auto", 1);
}
