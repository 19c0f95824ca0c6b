/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resets with requests in flight. After a reset the device may not touch memory any more: the
 * rings and buffers of the previous round are watched for a while, then the device is negotiated
 * again, each time differently, and has to serve.
 */
#include "blkio.h"
#include "console.h"
#include "mem.h"
#include "ops.h"

#define ROUNDS       50
#define POISON       0xc3
#define ROUND_READS  32

typedef struct Resets {
    const Params *p;
    VirtioDev *dev;
    uint64_t blocks;            /* of bs bytes */
    uint64_t random;
    uint64_t in_flight;         /* requests that resets cut off, in all */
    uint64_t served;
    uint64_t touched;           /* rounds in which memory changed after the reset */
    uint64_t bad_status;
    uint64_t slowest;           /* cycles that a reset took */
} Resets;

static void submit_reads(Resets *r, BlkQ *q)
{
    for (unsigned i = 0; i < q->nslots; i++) {
        Slot *s = &q->slots[i];
        Seg seg = { s->data, r->p->bs, true };

        if (!s->busy) {
            slot_describe(q, s, &seg, 1);
            slot_submit(q, s, VIRTIO_BLK_T_IN,
                        random_below(&r->random, r->blocks) * r->p->bs / SECTOR);
        }
    }
    vq_publish(q->vq);
}

static unsigned count_busy(const BlkQ *q)
{
    unsigned busy = 0;

    for (unsigned i = 0; i < q->nslots; i++) {
        busy += q->slots[i].busy;
    }
    return busy;
}

/* Keep the queue full until @wanted reads are done. */
static void serve(Resets *r, BlkQ *q, unsigned wanted)
{
    uint64_t last = rdtsc();
    unsigned done = 0;
    Slot *s;

    submit_reads(r, q);
    while (done < wanted) {
        if ((s = blkq_reap(q)) == NULL) {
            if (rdtsc() - last > tsc_khz * r->p->timeout_ms) {
                blkq_stalled(q, r->p->op);
            }
            cpu_pause();
            continue;
        }
        last = rdtsc();
        done++;
        r->bad_status += s->head->status != VIRTIO_BLK_S_OK;
        submit_reads(r, q);
    }
    r->served += done;
    r->bad_status += q->bad_ids;
}

static bool memory_changed(const BlkQ *q, uint16_t used_idx, uint64_t bs)
{
    if (vq_used_idx(q->vq) != used_idx) {
        return true;
    }
    for (unsigned i = 0; i < q->nslots; i++) {
        const uint64_t *w = (const uint64_t *)q->slots[i].data;

        for (uint64_t k = 0; k < bs / 8; k++) {
            if (w[k] != POISON * 0x0101010101010101u) {
                return true;
            }
        }
        if (q->slots[i].head->status != POISON) {
            return true;
        }
    }
    return false;
}

/* Reset now; afterwards nothing may write to what was lent to the device. */
static void cut_off(Resets *r, BlkQ *q)
{
    uint64_t begin = rdtsc(), took;
    uint16_t used_idx;

    if (!virtio_reset(r->dev, r->p->timeout_ms)) {
        fail("the device does not finish its reset", NULL);
    }
    took = rdtsc() - begin;
    r->slowest = MAX(r->slowest, took);
    used_idx = vq_used_idx(q->vq);
    for (unsigned i = 0; i < q->nslots; i++) {
        r->in_flight += q->slots[i].busy;
        memset(q->slots[i].data, POISON, r->p->bs);
        q->slots[i].head->status = POISON;
    }
    for (begin = rdtsc(); rdtsc() - begin < tsc_khz * 2;) {
        cpu_pause();
    }
    r->touched += memory_changed(q, used_idx, r->p->bs);
}

/* Every round has other features, ring sizes and ways to end. */
static void round(Resets *r, unsigned nth)
{
    Params p = *r->p;
    uint64_t mark = mem_mark();
    BlkQ q;

    p.event_idx = nth & 1;
    p.indirect = nth & 2;
    p.qsize = nth % 3 == 0 ? p.qsize : 3 * p.qd <= 128 ? 128 : 0;
    virtio_run_begin();
    virtio_start(r->dev, &p, 1);
    blkq_init(&q, &r->dev->vq[0], p.qd, 1, p.bs);
    serve(r, &q, nth % 4 == 0 ? 0 : random_below(&r->random, ROUND_READS));
    if (nth % 8 == 7) {
        while (count_busy(&q) > 0) {
            blkq_reap(&q);
        }
    }
    cut_off(r, &q);
    mem_release(mark);
}

uint64_t op_reset(const Params *p)
{
    uint64_t rounds = p->count != 0 ? p->count : ROUNDS, errors, begin = rdtsc();
    Resets r = { .p = p, .dev = op_device(p), .random = p->seed };
    BlkQ q;

    virtio_start(r.dev, p, 1);
    r.blocks = virtio_capacity(r.dev) / p->bs;
    if (r.blocks == 0 || p->bs % SECTOR != 0) {
        fail("bs is a multiple of 512 and fits on the disk", NULL);
    }
    for (uint64_t i = 0; i < rounds; i++) {
        round(&r, i);
    }
    virtio_run_begin();
    virtio_start(r.dev, p, 1);
    blkq_init(&q, &r.dev->vq[0], p->qd, 1, p->bs);
    serve(&r, &q, ROUND_READS);
    errors = r.touched + r.bad_status;
    out_begin(p->op);
    out_u64("resets", rounds);
    out_u64("cut_off", r.in_flight);
    out_u64("served", r.served);
    out_u64("touched_after_reset", r.touched);
    out_u64("bad_status", r.bad_status);
    out_u64("slowest_reset_ns", cycles_to_ns(r.slowest));
    out_u64("elapsed_ns", cycles_to_ns(rdtsc() - begin));
    out_u64("errors", errors);
    out_end();
    return errors;
}
