/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Durability across two boots. op=stamp writes blocks in an order that seed, span and bs decide,
 * and prints how many writes, counted from the first, are acknowledged, and how many of them a
 * completed flush covers. Whoever watches kills the VMM at any time. op=verify acked=N, in a later
 * boot with the same seed, span and bs, checks that the first N writes are all on the disk.
 */
#include "blkio.h"
#include "console.h"
#include "mem.h"
#include "ops.h"
#include "stamp.h"

/* Write number s goes to block order_block(s % n) and has generation s / n + 1. */
typedef struct Order {
    uint64_t n;                 /* blocks */
    uint64_t step;              /* coprime to n */
    uint64_t seed;
    uint64_t first_lba;
    uint32_t sectors;           /* per block */
} Order;

typedef struct Stamper {
    const Params *p;
    Order order;
    BlkQ q;
    uint64_t *seq;              /* by slot: number of its write */
    uint64_t next;              /* number of the next write */
    uint64_t flushed;           /* writes that a completed flush covers */
    uint64_t flush_covers;      /* writes that the flush in flight covers */
    Slot *flush;                /* the slot reserved for flushes */
    uint64_t last_flush;        /* value of next when it was issued */
    uint64_t flushes;
    uint64_t errors;
} Stamper;

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

static void order_init(Order *o, const Params *p, uint64_t size)
{
    uint64_t span = p->span != 0 ? p->span : 16 << 20, random = p->seed;

    if (p->bs % SECTOR != 0 || p->start % SECTOR != 0 || p->start >= size) {
        fail("bs and start are multiples of 512, start is on the disk", NULL);
    }
    o->n = MIN(span, size - p->start) / p->bs;
    if (o->n < 2 || o->n > UINT32_MAX) {
        fail_num("span holds too few or too many blocks", o->n);
    }
    o->seed = p->seed;
    o->first_lba = p->start / SECTOR;
    o->sectors = p->bs / SECTOR;
    do {
        o->step = 1 + random_below(&random, o->n - 1);
    } while (gcd(o->step, o->n) != 1);
}

static uint64_t order_lba(const Order *o, uint64_t seq)
{
    uint64_t at = seq % o->n * o->step % o->n;

    return o->first_lba + at * o->sectors;
}

/* Every write below this number is acknowledged. */
static uint64_t acked(const Stamper *s)
{
    uint64_t low = s->next;

    for (unsigned i = 1; i < s->q.nslots; i++) {
        if (s->q.slots[i].busy && s->seq[i] < low) {
            low = s->seq[i];
        }
    }
    return low;
}

static void issue_write(Stamper *s, Slot *slot)
{
    const Order *o = &s->order;
    uint64_t lba = order_lba(o, s->next);

    for (uint32_t k = 0; k < o->sectors; k++) {
        stamp_write(slot->data + k * SECTOR, lba + k, s->next / o->n + 1, o->seed);
    }
    s->seq[slot - s->q.slots] = s->next++;
    slot_submit(&s->q, slot, VIRTIO_BLK_T_OUT, lba);
}

static void issue_flush(Stamper *s)
{
    s->flush_covers = acked(s);
    s->last_flush = s->next;
    slot_submit(&s->q, s->flush, VIRTIO_BLK_T_FLUSH, 0);
}

static void print_progress(const Stamper *s, const char *op)
{
    out_begin(op);
    out_u64("acked", acked(s));
    out_u64("flushed", s->flushed);
    out_u64("flushes", s->flushes);
    if (str_eq(op, "stamp")) {
        out_u64("blocks", s->order.n);
        out_u64("errors", s->errors + s->q.bad_ids);
    }
    out_end();
}

/* True if there was a completion. */
static bool stamp_turn(Stamper *s, bool more)
{
    bool any = false;
    Slot *slot;

    while ((slot = blkq_reap(&s->q)) != NULL) {
        any = true;
        s->errors += slot->head->status != VIRTIO_BLK_S_OK;
        if (slot == s->flush) {
            s->flushed = s->flush_covers;
            s->flushes++;
        }
    }
    if (s->p->flush_every != 0 && !s->flush->busy &&
        s->next - s->last_flush >= s->p->flush_every) {
        issue_flush(s);
    }
    for (unsigned i = 1; more && i < s->q.nslots; i++) {
        /* a block must not be in flight twice */
        if (!s->q.slots[i].busy && s->next - acked(s) < s->order.n) {
            issue_write(s, &s->q.slots[i]);
        }
    }
    vq_publish(s->q.vq);
    return any;
}

static void stamp_init(Stamper *s, const Params *p)
{
    VirtioDev *d = op_device(p);

    memset(s, 0, sizeof(*s));
    s->p = p;
    virtio_start(d, p, 1);
    order_init(&s->order, p, virtio_capacity(d));
    blkq_init(&s->q, &d->vq[0], p->qd + 1, 1, p->bs);
    s->seq = mem_alloc((p->qd + 1) * sizeof(s->seq[0]), 8);
    s->flush = &s->q.slots[0];
    slot_describe(&s->q, s->flush, NULL, 0);
    for (unsigned i = 1; i <= p->qd; i++) {
        Seg seg = { s->q.slots[i].data, p->bs, false };

        slot_describe(&s->q, &s->q.slots[i], &seg, 1);
    }
}

static bool any_busy(const Stamper *s)
{
    for (unsigned i = 0; i < s->q.nslots; i++) {
        if (s->q.slots[i].busy) {
            return true;
        }
    }
    return false;
}

uint64_t op_stamp(const Params *p)
{
    uint64_t begin, last, printed;
    bool more = true;
    Stamper s;

    stamp_init(&s, p);
    begin = last = printed = rdtsc();
    out_begin("begin");
    out_str("of", p->op);
    out_end();
    while (more || any_busy(&s)) {
        uint64_t now = rdtsc();

        more = p->count != 0 ? s.next < p->count : now - begin < tsc_khz * p->seconds_ms;
        if (stamp_turn(&s, more)) {
            last = now;
        } else {
            cpu_pause();
        }
        if (now - printed > tsc_khz * p->progress_ms) {
            print_progress(&s, "progress");
            printed = rdtsc();
        }
        if (now - last > tsc_khz * p->timeout_ms && any_busy(&s)) {
            blkq_stalled(&s.q, p->op);
        }
    }
    print_progress(&s, "stamp");
    return s.errors + s.q.bad_ids;
}

typedef struct Findings {
    uint64_t lost, stale, misplaced, corrupt, unread, ahead, max_generation;
} Findings;

static void verify_block(const Order *o, const uint8_t *data, uint64_t lba, uint64_t floor,
                         Findings *f)
{
    uint64_t lost = 0, stale = 0, misplaced = 0, corrupt = 0, ahead = 0;

    for (uint32_t i = 0; i < o->sectors; i++) {
        uint64_t generation = 0;

        switch (stamp_check(data + i * SECTOR, lba + i, o->seed, &generation)) {
        case STAMP_GOOD:
            stale += generation < floor;
            ahead += generation > floor;
            f->max_generation = MAX(f->max_generation, generation);
            break;
        case STAMP_NONE:
            lost += floor > 0;
            break;
        case STAMP_MISPLACED:
            misplaced += floor > 0;
            break;
        case STAMP_CORRUPT:
            corrupt++;
            break;
        }
    }
    f->lost += lost > 0;
    f->stale += stale > 0;
    f->misplaced += misplaced > 0;
    f->corrupt += corrupt > 0;
    f->ahead += ahead > 0;
}

uint64_t op_verify(const Params *p)
{
    VirtioDev *d = op_device(p);
    Findings f = { 0 };
    uint64_t errors;
    Order o;
    BlkQ q;

    virtio_start(d, p, 1);
    order_init(&o, p, virtio_capacity(d));
    blkq_init(&q, &d->vq[0], 1, 1, p->bs);
    for (uint64_t at = 0; at < o.n; at++) {
        uint64_t floor = p->acked / o.n + (at < p->acked % o.n), lba = order_lba(&o, at);
        Seg seg = { q.slots[0].data, p->bs, true };

        if (blkq_sync(&q, VIRTIO_BLK_T_IN, lba, &seg, 1, p->timeout_ms) != VIRTIO_BLK_S_OK) {
            f.unread++;
            continue;
        }
        verify_block(&o, q.slots[0].data, lba, floor, &f);
    }
    errors = f.lost + f.stale + f.misplaced + f.corrupt + f.unread;
    out_begin(p->op);
    out_u64("blocks", o.n);
    out_u64("acked", p->acked);
    out_u64("lost", f.lost);
    out_u64("stale", f.stale);
    out_u64("misplaced", f.misplaced);
    out_u64("corrupt", f.corrupt);
    out_u64("unread", f.unread);
    out_u64("ahead", f.ahead);
    out_u64("max_generation", f.max_generation);
    out_u64("errors", errors);
    out_end();
    return errors;
}
