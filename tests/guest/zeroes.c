/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Discard and write-zeroes: ranges of stamped sectors are cleared; what was written as zeroes
 * reads as zeroes, everything around keeps its stamp. Then the requests that a device has to
 * refuse.
 */
#include "blkio.h"
#include "console.h"
#include "mem.h"
#include "ops.h"
#include "stamp.h"

#define AREA_SECTORS  2048u     /* 1 MiB of the disk is used */
#define CHUNK_SECTORS 128u      /* read or written at once */
#define ROUNDS        32
#define MAX_RANGES    16

typedef struct Zeroes {
    const Params *p;
    VirtioDev *dev;
    struct virtio_blk_config config;
    BlkQ q;
    uint64_t first;             /* sector where the area begins */
    uint32_t type;
    uint32_t unit;              /* sectors that ranges are multiples of */
    uint64_t random;
    uint64_t stamp;
    uint8_t state[AREA_SECTORS];    /* what a sector has to be */
    uint64_t bad_status, not_zero, damaged, refused_wrongly;
} Zeroes;

enum { SECTOR_STAMPED, SECTOR_ZERO, SECTOR_ANY };

static int data_request(Zeroes *z, uint32_t type, unsigned chunk)
{
    Seg seg = { z->q.slots[0].data, CHUNK_SECTORS * SECTOR, type == VIRTIO_BLK_T_IN };

    return blkq_sync(&z->q, type, z->first + chunk * CHUNK_SECTORS, &seg, 1, z->p->timeout_ms);
}

static void stamp_area(Zeroes *z)
{
    for (unsigned c = 0; c < AREA_SECTORS / CHUNK_SECTORS; c++) {
        for (unsigned i = 0; i < CHUNK_SECTORS; i++) {
            stamp_write(z->q.slots[0].data + i * SECTOR, z->first + c * CHUNK_SECTORS + i, 1,
                        z->stamp);
        }
        z->bad_status += data_request(z, VIRTIO_BLK_T_OUT, c) != VIRTIO_BLK_S_OK;
    }
    memset(z->state, SECTOR_STAMPED, sizeof(z->state));
}

static bool all_zero(const uint8_t *sector)
{
    const uint64_t *w = (const uint64_t *)sector;

    for (unsigned i = 0; i < SECTOR / 8; i++) {
        if (w[i] != 0) {
            return false;
        }
    }
    return true;
}

static void check_area(Zeroes *z)
{
    uint64_t generation;

    for (unsigned c = 0; c < AREA_SECTORS / CHUNK_SECTORS; c++) {
        if (data_request(z, VIRTIO_BLK_T_IN, c) != VIRTIO_BLK_S_OK) {
            z->bad_status++;
            continue;
        }
        for (unsigned i = 0; i < CHUNK_SECTORS; i++) {
            unsigned at = c * CHUNK_SECTORS + i;
            const uint8_t *sector = z->q.slots[0].data + i * SECTOR;

            if (z->state[at] == SECTOR_ZERO) {
                z->not_zero += !all_zero(sector);
            } else if (z->state[at] == SECTOR_STAMPED) {
                z->damaged += stamp_check(sector, z->first + at, z->stamp, &generation) !=
                              STAMP_GOOD;
            }
        }
    }
}

static int range_request(Zeroes *z, const struct virtio_blk_discard_write_zeroes *r, unsigned n)
{
    uint8_t *data = z->q.slots[0].data;

    memcpy(data, r, n * sizeof(*r));
    return blkq_sync(&z->q, z->type, 0, &(Seg) { data, n * sizeof(*r), false }, 1,
                     z->p->timeout_ms);
}

static void clear_some(Zeroes *z)
{
    bool discard = z->type == VIRTIO_BLK_T_DISCARD;
    uint32_t most = discard ? z->config.max_discard_seg : z->config.max_write_zeroes_seg;
    uint32_t longest = discard ? z->config.max_discard_sectors : z->config.max_write_zeroes_sectors;
    struct virtio_blk_discard_write_zeroes r[MAX_RANGES];
    unsigned n = 1 + random_below(&z->random, MIN(MAX(most, 1), MAX_RANGES));

    for (unsigned i = 0; i < n; i++) {
        uint32_t units = AREA_SECTORS / z->unit, at = random_below(&z->random, units);
        uint32_t len = 1 + random_below(&z->random, MIN(units - at, 64));
        bool unmap = !discard && z->config.write_zeroes_may_unmap && (next_random(&z->random) & 1);

        len = MAX(MIN(len, longest / z->unit), 1);
        r[i] = (struct virtio_blk_discard_write_zeroes) {
            .sector = z->first + at * z->unit,
            .num_sectors = len * z->unit,
            .flags = unmap ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP : 0,
        };
        memset(&z->state[at * z->unit], discard ? SECTOR_ANY : SECTOR_ZERO, len * z->unit);
    }
    z->bad_status += range_request(z, r, n) != VIRTIO_BLK_S_OK;
}

/* Requests that must fail, with the status that VIRTIO 1.2 §5.2.6.2 demands or any failure. */
static void refuse_bad(Zeroes *z)
{
    bool discard = z->type == VIRTIO_BLK_T_DISCARD;
    uint64_t end = z->config.capacity;
    uint32_t longest = discard ? z->config.max_discard_sectors : z->config.max_write_zeroes_sectors;
    const struct {
        struct virtio_blk_discard_write_zeroes r;
        bool unsupported;
    } bad[] = {
        { { end, z->unit, 0 }, false },
        { { end - z->unit, 2 * z->unit, 0 }, false },
        { { UINT64_MAX - 1, z->unit, 0 }, false },
        { { UINT64_MAX / SECTOR, z->unit, 0 }, false },
        { { 0, UINT32_MAX, 0 }, false },
        { { z->first, z->unit, 2 }, true },
        { { z->first, z->unit, 1u << 31 }, true },
        { { z->first, z->unit, discard ? 1 : 3 }, true },
    };
    int status;

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        if (bad[i].r.num_sectors == UINT32_MAX && longest == UINT32_MAX) {
            continue;
        }
        status = range_request(z, &bad[i].r, 1);
        if (bad[i].unsupported ? status != VIRTIO_BLK_S_UNSUPP : status <= VIRTIO_BLK_S_OK) {
            z->refused_wrongly++;
        }
    }
}

static uint64_t zeroes_result(const Zeroes *z)
{
    uint64_t errors = z->bad_status + z->not_zero + z->damaged + z->refused_wrongly +
                      z->q.bad_ids;

    out_begin(z->p->op);
    out_u64("dev", z->dev->index);
    out_u64("bad_status", z->bad_status);
    out_u64("not_zero", z->not_zero);
    out_u64("damaged", z->damaged);
    out_u64("refused_wrongly", z->refused_wrongly);
    out_u64("errors", errors);
    out_end();
    return errors;
}

uint64_t op_zeroes(const Params *p)
{
    Zeroes *z = mem_alloc(sizeof(*z), 64);
    bool discard = str_eq(p->op, "discard");
    unsigned feature = discard ? VIRTIO_BLK_F_DISCARD : VIRTIO_BLK_F_WRITE_ZEROES;
    uint64_t rounds = p->count != 0 ? p->count : ROUNDS;

    z->p = p;
    z->dev = op_device(p);
    z->type = discard ? VIRTIO_BLK_T_DISCARD : VIRTIO_BLK_T_WRITE_ZEROES;
    z->random = p->seed;
    z->stamp = p->seed ^ rdtsc();
    virtio_start(z->dev, p, 1);
    if (!(z->dev->accepted & F(feature))) {
        fail("the device does not offer", p->op);
    }
    virtio_read_config(z->dev, &z->config);
    z->unit = MAX(MAX(z->config.blk_size / SECTOR, 1),
                  discard ? z->config.discard_sector_alignment : 1);
    z->first = p->start / SECTOR;
    if (z->first + AREA_SECTORS > z->config.capacity || z->unit > AREA_SECTORS / 8) {
        fail("the disk has no room for the test", NULL);
    }
    blkq_init(&z->q, &z->dev->vq[0], 1, 1, CHUNK_SECTORS * SECTOR);
    for (uint64_t i = 0; i < rounds; i++) {
        stamp_area(z);
        clear_some(z);
        check_area(z);
    }
    refuse_bad(z);
    stamp_area(z);
    check_area(z);
    return zeroes_result(z);
}
