/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Latency and throughput: keeps a fixed number of requests in flight on each queue. A request's
 * time runs from before its publication to the moment when its completion is seen. All that is
 * found complete at one look is replaced and published together.
 */
#include "blkio.h"
#include "console.h"
#include "histogram.h"
#include "mem.h"
#include "ops.h"

#define MAX_LANES 64

typedef struct DevStats {
    VirtioDev *dev;
    Histogram latency;          /* cycles */
    uint64_t errors;
    uint64_t first_bad_status;
    uint64_t bad_ids;
    uint64_t kicks, interrupts;
    uint64_t blocks;            /* requests that fit in the part of the disk that is used */
    uint64_t issued;            /* since the phase began */
} DevStats;

/* One queue of one device. */
typedef struct Lane {
    BlkQ q;
    DevStats *stats;
    uint64_t next;              /* sequential: next block */
    uint64_t random;
    bool counts_irqs;           /* false: an earlier queue of the device has the same vector */
} Lane;

typedef struct Bench {
    const Params *p;
    Lane *lanes;
    Vq *queues[MAX_LANES];
    unsigned nlanes;
    DevStats *stats;
    unsigned ndevs;
    uint32_t expected;          /* status byte that is no error */
    bool stopping;
    uint64_t limit;             /* requests per device in this phase, or UINT64_MAX */
    uint64_t in_flight;
    uint64_t last_progress;     /* TSC at the last completion */
    uint64_t elapsed;           /* cycles of the measured phase */
    uint64_t missed_irqs;       /* completions whose interrupt never came */
} Bench;

static uint32_t pick_type(const Bench *b, Lane *l)
{
    const char *op = b->p->op;

    switch (op[0]) {
    case 'f':
        return VIRTIO_BLK_T_FLUSH;
    case 'w':
        return VIRTIO_BLK_T_OUT;
    default:
        if (op[1] == 'w' && random_below(&l->random, 100) >= b->p->rwmix) {
            return VIRTIO_BLK_T_OUT;
        }
        return VIRTIO_BLK_T_IN;
    }
}

static uint64_t pick_sector(const Bench *b, Lane *l)
{
    uint64_t block;

    if (b->p->op[0] == 'f') {
        return 0;
    }
    if (b->p->rand) {
        block = random_below(&l->random, l->stats->blocks);
    } else {
        block = l->next++;
        if (l->next >= l->stats->blocks) {
            l->next = 0;
        }
    }
    return (b->p->start + block * b->p->bs) / SECTOR;
}

/* Point the chain's data descriptors the way @type needs; the rest stays as it was laid out. */
static void set_direction(Bench *b, Slot *s, uint32_t type)
{
    for (unsigned i = 0; i < b->p->segs; i++) {
        struct vring_desc *d = &s->table[1 + i];

        d->flags = VRING_DESC_F_NEXT | (type == VIRTIO_BLK_T_IN ? VRING_DESC_F_WRITE : 0);
    }
}

static void issue(Bench *b, Lane *l, Slot *s, uint64_t now)
{
    uint32_t type = pick_type(b, l);

    if (b->p->op[1] == 'w') {
        set_direction(b, s, type);
    }
    s->started = now;
    slot_submit(&l->q, s, type, pick_sector(b, l));
    l->stats->issued++;
    b->in_flight++;
}

static void complete(Bench *b, Lane *l, Slot *s, uint64_t now)
{
    DevStats *st = l->stats;

    b->in_flight--;
    if (s->head->status != b->expected) {
        if (st->errors++ == 0) {
            st->first_bad_status = s->head->status;
        }
    }
    hist_add(&st->latency, now - s->started);
}

/* Take what is complete and put as much back; true if there was anything. */
static bool lane_turn(Bench *b, Lane *l)
{
    uint64_t now;
    Slot *s;

    if (vq_used_idx(l->q.vq) == l->q.vq->last_used) {
        return false;
    }
    now = rdtsc();
    while ((s = blkq_reap(&l->q)) != NULL) {
        complete(b, l, s, now);
        if (!b->stopping && l->stats->issued < b->limit) {
            issue(b, l, s, now);
        }
    }
    vq_publish(l->q.vq);
    b->last_progress = now;
    return true;
}

static void check_stall(Bench *b, uint64_t now)
{
    if (now - b->last_progress > ns_to_cycles(b->p->timeout_ms * 1000000)) {
        for (unsigned i = 0; i < b->nlanes; i++) {
            for (unsigned s = 0; s < b->lanes[i].q.nslots; s++) {
                if (b->lanes[i].q.slots[s].busy) {
                    blkq_stalled(&b->lanes[i].q, b->p->op);
                }
            }
        }
    }
}

static bool all_turns(Bench *b)
{
    bool any = false;

    for (unsigned i = 0; i < b->nlanes; i++) {
        any |= lane_turn(b, &b->lanes[i]);
    }
    return any;
}

/* Run until @cycles have passed, or every device has answered b->limit requests; then drain. */
static void phase(Bench *b, uint64_t cycles)
{
    bool intr = str_eq(b->p->complete, "intr"), halt = str_eq(b->p->wait, "hlt");
    bool pause = b->p->pause;
    uint64_t begin = rdtsc(), now = begin;

    b->stopping = false;
    b->last_progress = begin;
    for (unsigned i = 0; i < b->nlanes; i++) {
        Lane *l = &b->lanes[i];

        for (unsigned s = 0; s < l->q.nslots && l->stats->issued < b->limit; s++) {
            issue(b, l, &l->q.slots[s], now);
        }
        vq_publish(l->q.vq);
    }
    while (b->in_flight > 0) {
        if (all_turns(b)) {
            now = b->last_progress;
        } else if (intr) {
            b->missed_irqs += !blkq_wait(b->queues, b->nlanes, halt);
            now = rdtsc();
        } else {
            if (pause) {
                cpu_pause();
            }
            now = rdtsc();
        }
        if (!b->stopping && now - begin >= cycles) {
            b->stopping = true;
            b->elapsed = now - begin;
        }
        check_stall(b, now);
    }
    if (!b->stopping) {
        b->elapsed = now - begin;
    }
}

static void stats_begin(Bench *b)
{
    for (unsigned i = 0; i < b->ndevs; i++) {
        DevStats *st = &b->stats[i];

        hist_clear(&st->latency);
        st->kicks = 0;
        st->interrupts = 0;
        st->issued = 0;
    }
    for (unsigned i = 0; i < b->nlanes; i++) {
        b->lanes[i].stats->kicks -= b->lanes[i].q.vq->kicks;
        b->lanes[i].stats->interrupts -= b->lanes[i].counts_irqs ? *b->lanes[i].q.vq->irqs : 0;
    }
}

static void stats_end(Bench *b)
{
    for (unsigned i = 0; i < b->nlanes; i++) {
        b->lanes[i].stats->kicks += b->lanes[i].q.vq->kicks;
        b->lanes[i].stats->interrupts += b->lanes[i].counts_irqs ? *b->lanes[i].q.vq->irqs : 0;
        b->lanes[i].stats->bad_ids += b->lanes[i].q.bad_ids;
    }
}

static void print_latency(const Histogram *h)
{
    static const struct {
        const char *key;
        unsigned parts;
    } points[] = {
        { "p50_ns", 5000 }, { "p90_ns", 9000 }, { "p99_ns", 9900 }, { "p999_ns", 9990 },
    };

    if (h->count == 0) {
        return;
    }
    out_tenths("mean_ns", mul_div(h->sum, 10000000, tsc_khz) / h->count);
    out_u64("min_ns", cycles_to_ns(h->min));
    for (unsigned i = 0; i < ARRAY_SIZE(points); i++) {
        out_u64(points[i].key, cycles_to_ns(hist_quantile(h, points[i].parts)));
    }
    out_u64("max_ns", cycles_to_ns(h->max));
}

static uint64_t print_device(const Bench *b, const DevStats *st)
{
    const Params *p = b->p;
    bool intr = str_eq(p->complete, "intr");
    uint64_t ns = cycles_to_ns(b->elapsed), errors = st->errors + st->bad_ids + b->missed_irqs;

    out_begin(p->op);
    out_u64("dev", st->dev->index);
    out_u64("bs", p->bs);
    out_u64("qd", p->qd);
    out_u64("queues", p->queues);
    out_u64("segs", p->segs);
    out_bool("rand", p->rand);
    out_str("complete", p->complete);
    if (intr) {
        out_str("wait", p->wait);
        out_u64("missed_interrupts", b->missed_irqs);
    }
    out_bool("event_idx", st->dev->accepted & F(VIRTIO_RING_F_EVENT_IDX));
    out_bool("indirect", st->dev->accepted & F(VIRTIO_RING_F_INDIRECT_DESC));
    out_u64("ios", st->latency.count);
    out_u64("elapsed_ns", ns);
    out_u64("iops", ns != 0 ? mul_div(st->latency.count, 1000000000, ns) : 0);
    print_latency(&st->latency);
    out_u64("kicks", st->kicks);
    out_u64("interrupts", st->interrupts);
    out_u64("bad_ids", st->bad_ids);
    if (st->errors > 0) {
        out_u64("first_bad_status", st->first_bad_status);
    }
    out_u64("errors", errors);
    out_end();
    return errors;
}

static void lane_init(Bench *b, Lane *l, Vq *vq, unsigned nth)
{
    const Params *p = b->p;
    bool flush = p->op[0] == 'f';
    unsigned segs = flush ? 0 : p->segs;
    uint32_t part = flush ? 0 : p->bs / p->segs;
    Seg seg[MAX_SEGS];

    l->random = p->seed + nth * 0x5851f42d4c957f2du;
    l->next = l->stats->blocks / MAX(b->nlanes, 1) * nth;
    blkq_init(&l->q, vq, p->qd, segs, flush ? 0 : p->bs);
    for (unsigned s = 0; s < p->qd; s++) {
        Slot *slot = &l->q.slots[s];

        memset(slot->data, 0x5a + s, flush ? 0 : p->bs);
        for (unsigned i = 0; i < segs; i++) {
            uint32_t len = i + 1 == segs ? p->bs - part * i : part;

            seg[i] = (Seg) { slot->data + part * i, len, p->op[0] == 'r' };
        }
        slot_describe(&l->q, slot, seg, segs);
    }
}

static void dev_init(Bench *b, DevStats *st, VirtioDev *d)
{
    const Params *p = b->p;
    uint64_t size;

    st->dev = d;
    virtio_start(d, p, p->queues);
    size = virtio_capacity(d);
    if (p->start + p->bs > size || p->span > size - p->start) {
        fail_num("start, span or bs go beyond the disk's size", size);
    }
    st->blocks = (p->span != 0 ? p->span : size - p->start) / p->bs;
    if (st->blocks == 0) {
        fail("span is smaller than bs", NULL);
    }
    for (unsigned i = 0; i < p->queues; i++) {
        Lane *l = &b->lanes[b->nlanes];

        l->stats = st;
        l->counts_irqs = i == 0 || d->vq[i].irqs != d->vq[i - 1].irqs;
        lane_init(b, l, &d->vq[i], b->nlanes);
        b->queues[b->nlanes] = &d->vq[i];
        b->nlanes++;
    }
}

static void bench_init(Bench *b, const Params *p)
{
    unsigned n = virtio_count();

    memset(b, 0, sizeof(*b));
    b->p = p;
    b->expected = str_eq(p->expect, "ioerr") ? VIRTIO_BLK_S_IOERR : VIRTIO_BLK_S_OK;
    for (unsigned i = 0; i < n; i++) {
        b->ndevs += p->dev.bits >> i & 1;
    }
    if (b->ndevs == 0) {
        fail_num("dev= names none of the devices, there are", n);
    }
    if (b->ndevs * p->queues > MAX_LANES) {
        fail_num("more queues than this guest can drive", MAX_LANES);
    }
    if (p->bs % SECTOR != 0 || p->start % SECTOR != 0) {
        fail("bs and start are multiples of 512", NULL);
    }
    b->stats = mem_alloc(b->ndevs * sizeof(DevStats), 64);
    b->lanes = mem_alloc(b->ndevs * p->queues * sizeof(Lane), 64);
    for (unsigned i = 0, k = 0; i < n; i++) {
        if (p->dev.bits >> i & 1) {
            dev_init(b, &b->stats[k++], virtio_dev(i));
        } else if (p->idle.bits >> i & 1) {
            virtio_start(virtio_dev(i), p, 1);
        }
    }
}

uint64_t op_bench(const Params *p)
{
    uint64_t errors = 0;
    Bench b;

    bench_init(&b, p);
    lapic_timer(str_eq(p->complete, "intr") ? 100 : 0);
    b.limit = UINT64_MAX;
    if (p->warmup_ms > 0) {
        stats_begin(&b);
        phase(&b, ns_to_cycles(p->warmup_ms * 1000000));
    }
    /* Nothing is in flight here: whoever watches from outside starts counting at this line. */
    out_begin("begin");
    out_str("of", p->op);
    out_end();
    stats_begin(&b);
    b.limit = p->count != 0 ? p->count : UINT64_MAX;
    phase(&b, p->count != 0 ? UINT64_MAX : ns_to_cycles(p->seconds_ms * 1000000));
    stats_end(&b);
    lapic_timer(0);
    for (unsigned i = 0; i < b.ndevs; i++) {
        errors += print_device(&b, &b.stats[i]);
    }
    return errors;
}
