/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the hostile cases and the fuzzer. The cases are in hostile-queue.c and hostile-
 * registers.c. */
#include "hostile.h"
#include "console.h"
#include "mem.h"
#include "ops.h"

#define OUTCOME_MS 500

void hostile_begin(Hostile *h, bool indirect, bool ready)
{
    Params p = *h->p;

    p.indirect = indirect;
    virtio_run_begin();
    virtio_begin(h->dev, &p);
    virtio_negotiate(h->dev, virtio_wanted(&p));
    virtio_setup_irqs(h->dev, &p, 1);
    h->q = virtio_setup_queue(h->dev, 0, p.qsize);
    h->capacity = virtio_capacity(h->dev) / SECTOR;
    h->desc = h->q->desc;
    h->table = mem_alloc(HOSTILE_TABLE * sizeof(h->table[0]), 64);
    h->head = mem_alloc(sizeof(*h->head), 64);
    h->data = mem_alloc(HOSTILE_DATA, 4096);
    h->head->status = STATUS_UNSET;
    h->avail_idx = 1;
    h->table[0] = (struct vring_desc) { (uintptr_t)&h->head->hdr, sizeof(h->head->hdr),
                                        VRING_DESC_F_NEXT, 1 };
    h->table[1] = (struct vring_desc) { (uintptr_t)h->data, HOSTILE_DATA,
                                        VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 2 };
    h->table[2] = (struct vring_desc) { (uintptr_t)&h->head->status, 1, VRING_DESC_F_WRITE, 0 };
    memcpy(h->desc, h->table, 3 * sizeof(h->desc[0]));
    if (ready) {
        virtio_driver_ok(h->dev);
    }
}

void hostile_kick(Hostile *h)
{
    __atomic_store_n(&h->q->avail->idx, h->avail_idx, __ATOMIC_RELEASE);
    full_barrier();
    *h->q->notify = 0;
}

unsigned hostile_outcome(Hostile *h)
{
    uint64_t until = rdtsc() + tsc_khz * OUTCOME_MS, look = 0;

    while (rdtsc() < until) {
        if (vq_used_idx(h->q) != h->q->last_used) {
            uint8_t status = h->head->status;

            return status == VIRTIO_BLK_S_OK ? ANSWER_OK :
                   status == STATUS_UNSET ? ANSWER_NONE : ANSWER_ERROR;
        }
        if (rdtsc() > look) {
            if (virtio_status(h->dev) & VIRTIO_CONFIG_S_NEEDS_RESET) {
                return NEEDS_RESET;
            }
            look = rdtsc() + tsc_khz;
        }
        cpu_pause();
    }
    return SILENT;
}

bool hostile_recovers(Hostile *h)
{
    if (!virtio_reset(h->dev, h->p->timeout_ms)) {
        return false;
    }
    hostile_begin(h, true, true);
    hostile_kick(h);
    return hostile_outcome(h) == ANSWER_OK;
}

static const char *outcome_name(unsigned outcome)
{
    return outcome == ANSWER_OK ? "ok" : outcome == ANSWER_ERROR ? "error_status" :
           outcome == ANSWER_NONE ? "no_status" : outcome == NEEDS_RESET ? "needs_reset" : "silent";
}

static uint64_t run_queue_case(Hostile *h, const QueueCase *c)
{
    uint64_t mark = mem_mark(), errors, config_irqs;
    unsigned outcome;
    uint8_t status;
    bool recovered;

    hostile_begin(h, !c->no_indirect, true);
    config_irqs = *h->dev->config_irqs;
    c->spoil(h);
    hostile_kick(h);
    outcome = hostile_outcome(h);
    status = virtio_status(h->dev);
    config_irqs = *h->dev->config_irqs - config_irqs;
    out_begin(h->p->op);
    out_str("case", c->name);
    out_str("outcome", outcome_name(outcome));
    out_u64("status", h->head->status);
    out_hex("device_status", status);
    out_u64("config_interrupts", config_irqs);
    recovered = hostile_recovers(h);
    errors = !(outcome & c->allowed) + !recovered;
    out_bool("recovered", recovered);
    out_u64("errors", errors);
    out_end();
    mem_release(mark);
    return errors;
}

static uint64_t run_register_case(Hostile *h, const RegisterCase *c)
{
    uint64_t mark = mem_mark(), errors;
    const char *wrong;
    bool recovered;

    wrong = c->run(h);
    recovered = hostile_recovers(h);
    errors = (wrong != NULL) + !recovered;
    out_begin(h->p->op);
    out_str("case", c->name);
    out_str("outcome", wrong == NULL ? "ok" : wrong);
    out_bool("recovered", recovered);
    out_u64("errors", errors);
    out_end();
    mem_release(mark);
    return errors;
}

static void hostile_init(Hostile *h, const Params *p)
{
    memset(h, 0, sizeof(*h));
    h->p = p;
    h->dev = op_device(p);
    h->ram_top = (mem_end() + (1 << 20) - 1) & ~((1ull << 20) - 1);
}

uint64_t op_hostile(const Params *p)
{
    bool all = str_eq(p->hostile_case, "all"), known = all;
    uint64_t errors = 0;
    Hostile h;

    hostile_init(&h, p);
    for (unsigned i = 0; i < queue_case_count; i++) {
        if (all || str_eq(p->hostile_case, queue_cases[i].name)) {
            errors += run_queue_case(&h, &queue_cases[i]);
            known = true;
        }
    }
    for (unsigned i = 0; i < register_case_count; i++) {
        if (all || str_eq(p->hostile_case, register_cases[i].name)) {
            errors += run_register_case(&h, &register_cases[i]);
            known = true;
        }
    }
    if (!known) {
        fail("unknown hostile case", p->hostile_case);
    }
    return errors;
}

/* -- fuzzing: random chains, mostly wrong, on a device that is reset when it gives up -- */

#define FUZZ_ROUNDS   200
#define FUZZ_BATCH    16
#define SANDBOX_BYTES (1u << 20)

typedef struct Fuzz {
    Hostile h;
    uint8_t *sandbox;           /* what the device may write to, with as much room behind it */
    uint64_t random;
} Fuzz;

static uint64_t fuzz_address(Fuzz *f)
{
    switch (random_below(&f->random, 16)) {
    case 0:
        return NOWHERE + random_below(&f->random, 1 << 20);
    case 1:
        return -(int64_t)random_below(&f->random, 8192);
    case 2:
        return f->h.ram_top + random_below(&f->random, 4096);
    case 3:
        return (uintptr_t)f->h.dev->common + random_below(&f->random, 0x4000);
    default:
        return (uintptr_t)f->sandbox + random_below(&f->random, SANDBOX_BYTES);
    }
}

static uint32_t fuzz_length(Fuzz *f)
{
    switch (random_below(&f->random, 8)) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX - random_below(&f->random, 4096);
    case 2:
        return random_below(&f->random, SANDBOX_BYTES);
    case 3:
        return 1;
    case 4:
        return 16 * random_below(&f->random, 64);
    default:
        return SECTOR * random_below(&f->random, 16);
    }
}

static void fuzz_table(Fuzz *f, struct vring_desc *d, unsigned entries)
{
    for (unsigned i = 0; i < entries; i++) {
        uint64_t r = next_random(&f->random);

        d[i] = (struct vring_desc) {
            .addr = fuzz_address(f),
            .len = fuzz_length(f),
            .flags = r & 7 & ((r & 0x30) != 0 ? 3 : 7),
            .next = r & 0x700 ? random_below(&f->random, entries) : r >> 48,
        };
    }
}

/* Requests that are right but for one thing, if that, get further than noise does. */
static void fuzz_nearly(Fuzz *f, struct vring_desc *d, uint16_t at)
{
    struct virtio_blk_outhdr *hdr = (void *)(f->sandbox + SANDBOX_BYTES / 2 + at * 64);
    uint64_t r = next_random(&f->random);

    *hdr = (struct virtio_blk_outhdr) {
        .type = r & 0x700 ? r & 1 : r & 0x3000 ? r >> 2 & 15 : r >> 2 & UINT32_MAX,
        .sector = r & 0x30000 ? random_below(&f->random, f->h.capacity + 8) : r,
    };
    d[at] = (struct vring_desc) { (uintptr_t)hdr, sizeof(*hdr), VRING_DESC_F_NEXT, at + 1 };
    d[at + 1] = (struct vring_desc) { (uintptr_t)f->sandbox + at * SECTOR,
                                      SECTOR * (1 + random_below(&f->random, 16)),
                                      VRING_DESC_F_NEXT | (hdr->type == 1 ? 0 : 2), at + 2 };
    d[at + 2] = (struct vring_desc) { (uintptr_t)f->sandbox + at, 1, VRING_DESC_F_WRITE, 0 };
    switch (random_below(&f->random, 256)) {
    case 0:
        d[at + random_below(&f->random, 3)].flags ^= 1 << random_below(&f->random, 3);
        break;
    case 1:
        d[at + random_below(&f->random, 3)].len ^= 1u << random_below(&f->random, 32);
        break;
    case 2:
        d[at + random_below(&f->random, 3)].next ^= 1 << random_below(&f->random, 16);
        break;
    case 3:
        d[at + random_below(&f->random, 3)].addr = fuzz_address(f);
        break;
    case 4:
        d[at + random_below(&f->random, 3)].len = fuzz_length(f);
        break;
    }
}

static void fuzz_batch(Fuzz *f)
{
    Hostile *h = &f->h;
    uint16_t size = h->q->size, first = random_below(&f->random, size / 4);

    fuzz_table(f, h->desc, size);
    fuzz_table(f, (struct vring_desc *)f->sandbox, 1024);
    for (unsigned i = 0; i < FUZZ_BATCH; i++) {
        /* mostly another chain each time: one that is in flight twice ends the round */
        uint16_t at = (first + i) % (size / 4) * 4;

        if (random_below(&f->random, 256) != 0) {
            fuzz_nearly(f, h->desc, at);
        }
        if (random_below(&f->random, 256) == 0) {
            at = random_below(&f->random, size / 4) * 4;
        } else if (random_below(&f->random, 512) == 0) {
            at = next_random(&f->random);
        }
        h->q->avail->ring[h->avail_idx++ & (size - 1)] = at;
    }
    if (random_below(&f->random, 128) == 0) {
        h->avail_idx = next_random(&f->random);
    }
    hostile_kick(h);
}

uint64_t op_fuzz(const Params *p)
{
    uint64_t rounds = p->count != 0 ? p->count : FUZZ_ROUNDS, mark, broken = 0, answers = 0;
    bool recovered = true;
    uint64_t done = 0;
    Fuzz f;

    hostile_init(&f.h, p);
    f.random = p->seed;
    mem_alloc(2 * SANDBOX_BYTES, 4096);
    f.sandbox = (uint8_t *)mem_mark() - 2 * SANDBOX_BYTES;
    mark = mem_mark();
    for (; done < rounds && recovered; done++) {
        hostile_begin(&f.h, next_random(&f.random) & 1, true);
        f.h.avail_idx = 0;
        for (unsigned batch = 0; batch < 8; batch++) {
            uint64_t until = rdtsc() + tsc_khz;

            fuzz_batch(&f);
            while (rdtsc() < until && vq_used_idx(f.h.q) != f.h.avail_idx) {
                cpu_pause();
            }
            if (virtio_status(f.h.dev) & VIRTIO_CONFIG_S_NEEDS_RESET) {
                broken++;
                break;
            }
        }
        answers += vq_used_idx(f.h.q);
        recovered = hostile_recovers(&f.h);
        mem_release(mark);
    }
    out_begin(p->op);
    out_u64("rounds", done);
    out_u64("seed", p->seed);
    out_u64("broken", broken);
    out_u64("answers", answers);
    out_bool("recovered", recovered);
    out_u64("errors", !recovered);
    out_end();
    return !recovered;
}
