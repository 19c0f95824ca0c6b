/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Integrity under load: random reads, writes and flushes of stamped blocks, many in flight, with a
 * shadow of every block's generation. A block is written by one request at a time; a read may
 * overtake or be overtaken by a write, so it has to show a generation between the last one
 * acknowledged when the read was issued and the last one issued when it came back. Every block
 * written is read once more at the end.
 */
#include "blkio.h"
#include "console.h"
#include "mem.h"
#include "ops.h"
#include "stamp.h"

#define GUARD_BYTES   64
#define GUARD         0xa5
#define MAX_BLOCKS    64
#define MAX_CHAIN     (64 + 2)

/*
 * Memory of one request: guard, header, data, status, guard, all adjacent, so that with odd=1 what
 * the device reads and what it writes can each be cut anywhere. The data begins on a page.
 */
typedef struct Req {
    struct virtio_blk_outhdr *hdr;
    uint8_t *data;
    volatile uint8_t *status;   /* moves with the length of the data */
    uint32_t type;
    uint32_t nblocks;           /* 0 for a flush */
    uint64_t block;
    uint64_t writable;          /* bytes that the device may write */
    uint32_t floor[MAX_BLOCKS]; /* generation acknowledged when the read was issued */
} Req;

typedef struct Check {
    const Params *p;
    VirtioDev *dev;
    BlkQ *queues;
    Vq *vqs[MAX_QUEUES];
    Req *reqs;                  /* queue-major, qd of each */
    uint64_t nblocks;
    uint32_t sectors;           /* per block */
    uint32_t *acked, *issued;   /* generations by block; 0: never written */
    uint8_t *writing;
    uint64_t random;
    uint64_t stamp;             /* in each sector, so that an earlier run's are told apart */
    uint64_t in_flight;
    uint64_t next_final;        /* final pass: next block to read */
    bool final;
    uint64_t reads, writes, flushes, verified, mixed;
    uint64_t lost, stale, torn, future, bad_status, bad_guard, bad_len, late, missed_irqs;
    bool reported;
} Check;

/* The first wrong block is described on a line of its own. */
static void report_block(Check *c, const Req *r, uint64_t block, uint32_t floor,
                         const uint8_t *data)
{
    if (c->reported) {
        return;
    }
    c->reported = true;
    out_begin("bad_block");
    out_u64("block", block);
    out_u64("request_block", r->block);
    out_u64("request_blocks", r->nblocks);
    out_u64("acked_at_issue", floor);
    out_u64("issued_now", c->issued[block]);
    out_array_begin("sector_states");
    for (uint32_t i = 0; i < c->sectors; i++) {
        uint64_t generation = 0, lba = c->p->start / SECTOR + block * c->sectors + i;

        out_array_u64(stamp_check(data + i * SECTOR, lba, c->stamp, &generation));
        out_array_u64(generation);
    }
    out_array_end();
    out_end();
}

static void check_block(Check *c, const Req *r, uint32_t nth)
{
    uint64_t block = r->block + nth, lba = c->p->start / SECTOR + block * c->sectors;
    const uint8_t *data = r->data + nth * c->p->bs;
    uint32_t floor = r->floor[nth], lost = 0, stale = 0, future = 0;

    if (floor == 0) {
        return;                 /* never written, or first being written: anything may be there */
    }
    for (uint32_t i = 0; i < c->sectors; i++) {
        uint64_t generation = 0;

        StampState state = stamp_check(data + i * SECTOR, lba + i, c->stamp, &generation);

        if (state == STAMP_CORRUPT && c->issued[block] > floor) {
            c->mixed++;         /* a write went on meanwhile: nothing promises whole sectors */
        } else if (state != STAMP_GOOD) {
            lost++;
        } else if (generation < floor) {
            stale++;
        } else if (generation > c->issued[block]) {
            future++;
        }
    }
    c->verified++;
    if (lost + stale + future == 0) {
        return;
    }
    if (stale > 0 && stale < c->sectors) {
        c->torn++;
    } else if (stale > 0) {
        c->stale++;
    }
    c->lost += lost > 0;
    c->future += future > 0;
    report_block(c, r, block, floor, data);
}

static bool guards_whole(const Req *r)
{
    const uint8_t *before = (const uint8_t *)r->hdr - GUARD_BYTES;
    const uint8_t *after = (const uint8_t *)r->status + 1;

    for (unsigned i = 0; i < GUARD_BYTES; i++) {
        if (before[i] != GUARD || after[i] != GUARD) {
            return false;
        }
    }
    return true;
}

static void req_done(Check *c, Req *r, uint32_t len)
{
    c->in_flight--;
    if (*r->status != VIRTIO_BLK_S_OK) {
        c->bad_status++;
    }
    if (!guards_whole(r) || r->hdr->type != r->type) {
        c->bad_guard++;
    }
    if (len > r->writable) {
        c->bad_len++;
    }
    for (uint32_t i = 0; i < r->nblocks; i++) {
        uint64_t block = r->block + i;

        if (r->type == VIRTIO_BLK_T_OUT) {
            c->acked[block] = c->issued[block];
            c->writing[block] = 0;
        } else if (*r->status == VIRTIO_BLK_S_OK) {
            check_block(c, r, i);
        }
    }
}

/* Cut [@at, @at + @len) into @n pieces at multiples of @unit. Returns how many there are. */
static unsigned cut(Check *c, Seg *segs, const volatile uint8_t *at, uint32_t len, unsigned n,
                    uint32_t unit, bool in)
{
    unsigned made = 0;

    while (len > 0) {
        uint32_t piece = len;

        if (made + 1 < n && len > unit) {
            piece = (1 + random_below(&c->random, (len - 1) / unit)) * unit;
        }
        segs[made++] = (Seg) { at, piece, in };
        at += piece;
        len -= piece;
    }
    return made;
}

static bool describe(Check *c, BlkQ *b, Slot *s, Req *r)
{
    uint32_t bytes = r->nblocks * c->p->bs;
    bool out = r->type == VIRTIO_BLK_T_OUT;
    unsigned pieces = 1 + random_below(&c->random, c->p->maxsegs), n;
    Seg segs[MAX_CHAIN];

    r->writable = (out ? 0 : bytes) + 1;
    if (c->p->odd) {
        n = cut(c, segs, (uint8_t *)r->hdr, sizeof(*r->hdr) + (out ? bytes : 0),
                out ? pieces + 1 : 1, 1, false);
        n += cut(c, segs + n, r->data + (out ? bytes : 0), r->writable, out ? 1 : pieces + 1, 1,
                 true);
        return slot_describe_raw(b, s, segs, n);
    }
    segs[0] = (Seg) { r->hdr, sizeof(*r->hdr), false };
    n = 1 + cut(c, segs + 1, r->data, bytes, pieces, SECTOR, !out);
    segs[n++] = (Seg) { r->status, 1, true };
    return slot_describe_raw(b, s, segs, n);
}

/* How many of @want blocks from @block nobody is writing. */
static uint32_t writable_run(const Check *c, uint64_t block, uint32_t want)
{
    uint32_t n = 0;

    while (n < want && !c->writing[block + n]) {
        n++;
    }
    return n;
}

static void choose(Check *c, Req *r)
{
    const Params *p = c->p;
    uint32_t want = 1 + random_below(&c->random, p->maxblocks), n;

    if (p->flushmix != 0 && random_below(&c->random, p->flushmix) == 0) {
        r->type = VIRTIO_BLK_T_FLUSH;
        r->nblocks = 0;
        r->block = 0;
        return;
    }
    r->block = random_below(&c->random, c->nblocks);
    want = MIN(want, c->nblocks - r->block);
    n = random_below(&c->random, 100) < p->rwmix ? 0 : writable_run(c, r->block, want);
    r->type = n == 0 ? VIRTIO_BLK_T_IN : VIRTIO_BLK_T_OUT;
    r->nblocks = n == 0 ? want : n;
}

/* In the final pass: the next blocks in order. False when all have been read. */
static bool choose_final(Check *c, Req *r)
{
    if (c->next_final == c->nblocks) {
        return false;
    }
    r->type = VIRTIO_BLK_T_IN;
    r->block = c->next_final;
    r->nblocks = MIN(c->p->maxblocks, c->nblocks - r->block);
    c->next_final += r->nblocks;
    return true;
}

/* Count the request and bring shadow and data in line with it. */
static void prepare(Check *c, Req *r)
{
    uint64_t lba = c->p->start / SECTOR + r->block * c->sectors;

    r->status = r->data + r->nblocks * c->p->bs;
    r->hdr->type = r->type;
    r->hdr->ioprio = 0;
    r->hdr->sector = r->type == VIRTIO_BLK_T_FLUSH ? 0 : lba;
    for (uint32_t i = 0; i < r->nblocks; i++) {
        uint64_t block = r->block + i;

        r->floor[i] = c->acked[block];
        if (r->type != VIRTIO_BLK_T_OUT) {
            continue;
        }
        c->writing[block] = 1;
        c->issued[block]++;
        for (uint32_t k = 0; k < c->sectors; k++) {
            stamp_write(r->data + i * c->p->bs + k * SECTOR, lba + i * c->sectors + k,
                        c->issued[block], c->stamp);
        }
    }
    if (r->type == VIRTIO_BLK_T_IN) {
        memset(r->data, 0, r->nblocks * c->p->bs);
    }
    *r->status = STATUS_UNSET;
    memset((void *)(r->status + 1), GUARD, GUARD_BYTES);
}

/* False when there is nothing to issue or no room in the ring for it. */
static bool issue(Check *c, BlkQ *b, Slot *s, Req *r, uint64_t now)
{
    if (b->shared && b->nfree < c->p->maxsegs + 2) {
        return false;
    }
    if (!c->final) {
        choose(c, r);
    } else if (!choose_final(c, r)) {
        return false;
    }
    prepare(c, r);
    if (!describe(c, b, s, r)) {
        fail("no descriptors although enough were free", NULL);
    }
    c->reads += r->type == VIRTIO_BLK_T_IN;
    c->writes += r->type == VIRTIO_BLK_T_OUT;
    c->flushes += r->type == VIRTIO_BLK_T_FLUSH;
    s->started = now;
    slot_queue(b, s);
    c->in_flight++;
    return true;
}

static bool queue_turn(Check *c, unsigned nth, bool more)
{
    BlkQ *b = &c->queues[nth];
    Req *reqs = c->reqs + nth * c->p->qd;
    uint64_t now = rdtsc();
    bool any = false;
    Slot *s;

    while ((s = blkq_reap(b)) != NULL) {
        req_done(c, &reqs[s - b->slots], b->last_len);
        any = true;
    }
    for (unsigned i = 0; more && i < b->nslots; i++) {
        if (!b->slots[i].busy && !issue(c, b, &b->slots[i], &reqs[i], now)) {
            break;
        }
    }
    vq_publish(b->vq);
    return any;
}

static void check_stall(Check *c, uint64_t last)
{
    if (rdtsc() - last < ns_to_cycles(c->p->timeout_ms * 1000000)) {
        return;
    }
    for (unsigned i = 0; i < c->p->queues; i++) {
        for (unsigned s = 0; s < c->queues[i].nslots; s++) {
            if (c->queues[i].slots[s].busy) {
                blkq_stalled(&c->queues[i], c->final ? "integrity, final pass" : "integrity");
            }
        }
    }
}

static bool more_wanted(const Check *c, uint64_t until)
{
    if (c->final) {
        return c->next_final < c->nblocks;
    }
    if (c->p->count != 0) {
        return c->reads + c->writes + c->flushes < c->p->count;
    }
    return rdtsc() < until;
}

static void load(Check *c)
{
    uint64_t until = rdtsc() + ns_to_cycles(c->p->seconds_ms * 1000000), last = rdtsc();
    bool intr = str_eq(c->p->complete, "intr"), halt = str_eq(c->p->wait, "hlt");
    bool more = true;

    while (more || c->in_flight > 0) {
        bool any = false;

        more = more && more_wanted(c, until);
        for (unsigned i = 0; i < c->p->queues; i++) {
            any |= queue_turn(c, i, more);
        }
        if (any) {
            last = rdtsc();
        } else if (intr && c->in_flight > 0) {
            c->missed_irqs += !blkq_wait(c->vqs, c->p->queues, halt);
        } else {
            cpu_pause();
        }
        check_stall(c, last);
    }
}

/* Answers that come when nothing is in flight any more. */
static void watch_late(Check *c)
{
    uint64_t until = rdtsc() + tsc_khz * 20;

    while (rdtsc() < until) {
        cpu_pause();
    }
    for (unsigned i = 0; i < c->p->queues; i++) {
        c->late += vq_used_idx(c->vqs[i]) != c->vqs[i]->last_used;
    }
}

static void init_reqs(Check *c)
{
    uint64_t data = c->p->maxblocks * c->p->bs;

    c->reqs = mem_alloc(c->p->queues * c->p->qd * sizeof(Req), 64);
    for (unsigned i = 0; i < c->p->queues * c->p->qd; i++) {
        uint8_t *page = mem_alloc(4096 + data + 1 + GUARD_BYTES, 4096);
        Req *r = &c->reqs[i];

        r->data = page + 4096;
        r->hdr = (void *)(r->data - sizeof(*r->hdr));
        memset((uint8_t *)r->hdr - GUARD_BYTES, GUARD, GUARD_BYTES);
    }
}

static void check_init(Check *c, const Params *p)
{
    uint64_t size, span = p->span != 0 ? p->span : 16 << 20;

    memset(c, 0, sizeof(*c));
    c->p = p;
    c->dev = op_device(p);
    c->random = p->seed;
    c->stamp = p->seed ^ rdtsc();
    if (p->bs % SECTOR != 0 || p->start % SECTOR != 0) {
        fail("bs and start are multiples of 512", NULL);
    }
    virtio_start(c->dev, p, p->queues);
    size = virtio_capacity(c->dev);
    if (p->start >= size) {
        fail_num("start goes beyond the disk's size", size);
    }
    c->nblocks = MIN(span, size - p->start) / p->bs;
    c->sectors = p->bs / SECTOR;
    if (c->nblocks < 1) {
        fail("no block fits in span", NULL);
    }
    c->acked = mem_alloc(c->nblocks * sizeof(c->acked[0]), 64);
    c->issued = mem_alloc(c->nblocks * sizeof(c->issued[0]), 64);
    c->writing = mem_alloc(c->nblocks, 64);
    c->queues = mem_alloc(p->queues * sizeof(BlkQ), 64);
    for (unsigned i = 0; i < p->queues; i++) {
        c->vqs[i] = &c->dev->vq[i];
        blkq_init_shared(&c->queues[i], c->vqs[i], p->qd, p->maxsegs + 1);
    }
    init_reqs(c);
}

static uint64_t print_result(const Check *c, uint64_t cycles)
{
    const Params *p = c->p;
    uint64_t bad_ids = 0, kicks = 0, errors;

    for (unsigned i = 0; i < p->queues; i++) {
        bad_ids += c->queues[i].bad_ids;
        kicks += c->vqs[i]->kicks;
    }
    errors = c->lost + c->stale + c->torn + c->future + c->bad_status + c->bad_guard + c->bad_len +
             c->late + c->missed_irqs + bad_ids;
    out_begin(p->op);
    out_u64("dev", c->dev->index);
    out_u64("bs", p->bs);
    out_u64("qd", p->qd);
    out_u64("queues", p->queues);
    out_str("complete", p->complete);
    out_bool("event_idx", c->dev->accepted & F(VIRTIO_RING_F_EVENT_IDX));
    out_bool("indirect", c->dev->accepted & F(VIRTIO_RING_F_INDIRECT_DESC));
    out_bool("odd", p->odd);
    out_u64("seed", p->seed);
    out_u64("ios", c->reads + c->writes + c->flushes);
    out_u64("reads", c->reads);
    out_u64("writes", c->writes);
    out_u64("flushes", c->flushes);
    out_u64("blocks", c->nblocks);
    out_u64("blocks_verified", c->verified);
    out_u64("sectors_mixed", c->mixed);
    out_u64("elapsed_ns", cycles_to_ns(cycles));
    out_u64("kicks", kicks);
    out_u64("lost", c->lost);
    out_u64("stale", c->stale);
    out_u64("torn", c->torn);
    out_u64("future", c->future);
    out_u64("bad_status", c->bad_status);
    out_u64("bad_guard", c->bad_guard);
    out_u64("bad_len", c->bad_len);
    out_u64("bad_ids", bad_ids);
    out_u64("late", c->late);
    out_u64("missed_interrupts", c->missed_irqs);
    out_u64("errors", errors);
    out_end();
    return errors;
}

uint64_t op_integrity(const Params *p)
{
    uint64_t begin = rdtsc();
    Check c;

    check_init(&c, p);
    lapic_timer(str_eq(p->complete, "intr") ? 100 : 0);
    load(&c);
    c.final = true;
    load(&c);
    lapic_timer(0);
    watch_late(&c);
    return print_result(&c, rdtsc() - begin);
}
