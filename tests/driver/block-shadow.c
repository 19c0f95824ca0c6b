/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/block-shadow.h"

#define ZONES 16
#define ZONE_BYTES (SHADOW_BYTES / ZONES)
#define PIECES 8

typedef struct Shadow Shadow;

/* One request at a time in each part of the image, so that its result is known. */
typedef struct Zone {
    Shadow *shadow;
    int64_t start;
    bool busy;
    BlkReq req;
    BlkOp op;
    int64_t offset, bytes;
    struct iovec iov[PIECES];
    int niov;
    uint8_t *memory;                    /* ZONE_BYTES and some */
} Zone;

struct Shadow {
    BlockBackend *blk;
    bool unaligned;
    uint8_t *data;                      /* what the image must hold */
    bool *undefined;                    /* by sector: discarded */
    Zone zones[ZONES];
    unsigned left;
};

static void zone_check_read(Zone *z)
{
    int64_t at = z->offset;

    for (int i = 0; i < z->niov; i++) {
        const uint8_t *got = z->iov[i].iov_base;

        for (size_t j = 0; j < z->iov[i].iov_len; j++, at++) {
            if (got[j] != z->shadow->data[at] && !z->shadow->undefined[at / 512]) {
                g_error("byte %" PRId64 " is 0x%02x, not 0x%02x (request at %" PRId64
                        ", %" PRId64 " bytes)", at, got[j], z->shadow->data[at], z->offset,
                        z->bytes);
            }
        }
    }
}

static void zone_done(BlkReq *req, void *opaque, int ret)
{
    Zone *z = opaque;

    g_assert_cmpint(ret, ==, 0);
    g_assert_true(z->busy);
    z->busy = false;
    if (z->op == BLK_READ) {
        zone_check_read(z);
    }
}

/* Cut the request's memory into pieces of whole sectors, or of any size and place. */
static void zone_cut(Zone *z)
{
    int64_t left = z->bytes;
    uint8_t *p = z->memory;

    z->niov = 0;
    while (left > 0) {
        int64_t n = left;

        if (z->niov < PIECES - 1 && fx_random() % 2) {
            n = z->shadow->unaligned ? 1 + (int64_t)(fx_random() % left)
                                     : 512 * (1 + (int64_t)(fx_random() % (left / 512)));
        }
        if (z->shadow->unaligned) {
            p += fx_random() % 64;
        }
        z->iov[z->niov++] = (struct iovec) { p, n };
        p += n;
        left -= n;
    }
}

static void zone_fill(Zone *z)
{
    int64_t at = z->offset;

    for (int i = 0; i < z->niov; i++) {
        uint8_t *p = z->iov[i].iov_base;

        for (size_t j = 0; j < z->iov[i].iov_len; j++) {
            p[j] = fx_random();
        }
        memcpy(z->shadow->data + at, p, z->iov[i].iov_len);
        at += z->iov[i].iov_len;
    }
}

static void zone_shadow(Zone *z, BlkOp op)
{
    bool *undefined = z->shadow->undefined + z->offset / 512;

    if (op == BLK_READ) {
        return;
    }
    for (int64_t i = 0; i < z->bytes / 512; i++) {
        undefined[i] = op == BLK_DISCARD;
    }
    if (op == BLK_WRITE_ZEROES) {
        memset(z->shadow->data + z->offset, 0, z->bytes);
    }
}

static void zone_start(Zone *z)
{
    static const BlkOp ops[] = {
        BLK_READ, BLK_READ, BLK_READ, BLK_WRITE, BLK_WRITE, BLK_WRITE, BLK_FLUSH, BLK_DISCARD,
        BLK_WRITE_ZEROES,
    };
    int64_t sectors = ZONE_BYTES / 512, first = fx_random() % sectors;
    uint32_t flags = 0;

    z->op = ops[fx_random() % G_N_ELEMENTS(ops)];
    z->offset = z->start + first * 512;
    z->bytes = 512 * (1 + (int64_t)(fx_random() % (sectors - first)));
    if (z->op == BLK_FLUSH) {
        z->bytes = 0;
    }
    zone_cut(z);
    if (z->op == BLK_WRITE) {
        zone_fill(z);
        flags = fx_random() % 8 == 0 ? BLK_REQ_FUA : 0;
    } else if (z->op == BLK_WRITE_ZEROES && fx_random() % 2) {
        flags = BLK_REQ_UNMAP;
    }
    zone_shadow(z, z->op);
    z->busy = true;
    blk_req_init(&z->req, z->op, z->offset, z->bytes, z->iov, z->niov, flags, zone_done, z);
    g_assert_cmpint(blk_submit(z->shadow->blk, &z->req), ==, 0);
}

static unsigned rounds(unsigned n)
{
    const char *s = g_getenv("BLOCK_ROUNDS");

    return n * (s ? MAX(atoi(s), 1) : 1);
}

/* What is left must also be what another reader finds in the file. */
static void shadow_compare_file(Shadow *s, const char *path)
{
    g_autofree uint8_t *found = g_malloc(SHADOW_BYTES);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    g_assert_cmpint(pread(fd, found, SHADOW_BYTES, 0), ==, SHADOW_BYTES);
    close(fd);
    for (int64_t i = 0; i < SHADOW_BYTES; i++) {
        if (!s->undefined[i / 512] && found[i] != s->data[i]) {
            g_error("byte %" PRId64 " of the file is 0x%02x, not 0x%02x", i, found[i],
                    s->data[i]);
        }
    }
}

static Shadow *shadow_new(BlockBackend *blk, bool unaligned)
{
    Shadow *s = g_new0(Shadow, 1);

    s->blk = blk;
    s->unaligned = unaligned;
    s->data = g_malloc0(SHADOW_BYTES);
    s->undefined = g_new0(bool, SHADOW_BYTES / 512);
    for (int i = 0; i < ZONES; i++) {
        s->zones[i].shadow = s;
        s->zones[i].start = (int64_t)i * ZONE_BYTES;
        s->zones[i].memory = aligned_alloc(4096, ZONE_BYTES + 4096);
    }
    return s;
}

static void shadow_free(Shadow *s)
{
    for (int i = 0; i < ZONES; i++) {
        free(s->zones[i].memory);
    }
    g_free(s->data);
    g_free(s->undefined);
    g_free(s);
}

void shadow_run(BlockBackend *blk, const char *path, bool unaligned, unsigned requests)
{
    Shadow *s = shadow_new(blk, unaligned);

    fx_ctx();
    for (s->left = rounds(requests); s->left > 0 || blk_in_flight(blk) > 0; ) {
        for (int i = 0; i < ZONES && s->left > 0; i++) {
            if (!s->zones[i].busy && fx_random() % 4) {
                zone_start(&s->zones[i]);
                s->left--;
            }
        }
        aio_poll(fx_ctx(), blk_in_flight(blk) > 0);
    }
    shadow_compare_file(s, path);
    shadow_free(s);
}
