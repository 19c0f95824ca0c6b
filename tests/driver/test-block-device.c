/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_device on a loop device whose blocks are larger than a guest's sectors.
 * Needs the right to set one up.
 *
 * BLOCK_ROUNDS multiplies the random requests (default 1).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "block/blockdev.h"
#include "driver/block-fixture.h"
#include "driver/block-shadow.h"

/* ---- a loop device --------------------------------------------------------------------- */

typedef struct Loop {
    char *image, *device;
    int fd;
} Loop;

/* Fails where we may not, or where the kernel has none. */
static bool loop_attach(Loop *l, int64_t bytes, unsigned block_size)
{
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    int number = control >= 0 ? ioctl(control, LOOP_CTL_GET_FREE) : -1;
    /* A crash of ours must not leave it behind. */
    struct loop_config config = {
        .block_size = block_size, .info.lo_flags = LO_FLAGS_AUTOCLEAR,
    };
    int backing;

    if (control >= 0) {
        close(control);
    }
    if (number < 0) {
        return false;
    }
    l->image = fx_image("disk", bytes);
    l->device = g_strdup_printf("/dev/loop%d", number);
    l->fd = open(l->device, O_RDWR | O_CLOEXEC);
    backing = open(l->image, O_RDWR | O_CLOEXEC);
    config.fd = backing;
    if (l->fd < 0 || backing < 0 || ioctl(l->fd, LOOP_CONFIGURE, &config) < 0) {
        unlink(l->image);
        return false;
    }
    close(backing);
    return true;
}

static void loop_detach(Loop *l)
{
    close(l->fd);
    unlink(l->image);
    g_free(l->image);
    g_free(l->device);
}

static BlockNode *device_open(const Loop *l, const char *aio, bool direct, GError **errp)
{
    g_autofree char *arg = g_strdup_printf("driver=host_device,node-name=d,filename=%s,aio=%s,"
                                           "cache.direct=%s,discard=unmap", l->device, aio,
                                           direct ? "on" : "off");

    return blockdev_add_arg(arg, errp) ? node_find("d") : NULL;
}

/* ---- tests -------------------------------------------------------------------------------- */

typedef struct Variant {
    const char *aio;
    unsigned block_size;
    bool direct, unaligned;
} Variant;

/* NULL: skipped. */
static BlockBackend *disk_open(Loop *l, const Variant *v)
{
    g_autoptr(GError) err = NULL;
    BlockNode *node;

    if (!loop_attach(l, SHADOW_BYTES, v->block_size)) {
        g_test_skip("no loop device here, or not permitted");
        return NULL;
    }
    node = device_open(l, v->aio, v->direct, &err);
    if (!node) {
        g_test_skip(err->message);
        loop_detach(l);
        return NULL;
    }
    return fx_blk(node);
}

static void disk_close(Loop *l, BlockBackend *blk)
{
    blk_close(blk);
    blockdev_close_all();
    loop_detach(l);
}

static void test_random(const void *opaque)
{
    const Variant *v = opaque;
    BlockBackend *blk;
    Loop l;

    blk = disk_open(&l, v);
    if (blk) {
        shadow_run(blk, l.device, v->unaligned, 1000);
        disk_close(&l, blk);
    }
}

/* ---- many writers in one block --------------------------------------------------------------- */

#define WRITERS 16
#define SECTORS 64                      /* all writers together use so many */

typedef struct Writer {
    BlockBackend *blk;
    BlkReq req;
    struct iovec iov;
    uint64_t *buf;
    unsigned index, left, sector, sectors;
    uint64_t *stamps;                   /* of all sectors */
} Writer;

static void writer_start(Writer *w);

static void writer_done(BlkReq *req, void *opaque, int ret)
{
    Writer *w = opaque;

    g_assert_cmpint(ret, ==, 0);
    if (--w->left > 0) {
        writer_start(w);
    }
}

/* Writer 0 writes whole blocks of its own, the others each their sectors of the rest. */
static void writer_start(Writer *w)
{
    if (w->index == 0) {
        w->sectors = 8;
        w->sector = SECTORS + 8 * (fx_random() % 4);
    } else {
        w->sectors = 1;
        w->sector = w->index + WRITERS * (fx_random() % (SECTORS / WRITERS));
    }
    for (unsigned s = 0; s < w->sectors; s++) {
        uint64_t stamp = fx_random();

        w->stamps[w->sector + s] = stamp;
        for (int i = 0; i < 64; i++) {
            w->buf[s * 64 + i] = stamp;
        }
    }
    w->iov = (struct iovec) { w->buf, w->sectors * 512 };
    blk_req_init(&w->req, BLK_WRITE, w->sector * 512, w->iov.iov_len, &w->iov, 1, 0, writer_done,
                 w);
    g_assert_cmpint(blk_submit(w->blk, &w->req), ==, 0);
}

static void check_stamps(BlockBackend *blk, const uint64_t *stamps, unsigned sectors)
{
    uint64_t *data = aligned_alloc(4096, sectors * 512);

    g_assert_cmpint(fx_rw(blk, BLK_READ, 0, data, sectors * 512, 0), ==, 0);
    for (unsigned s = 0; s < sectors; s++) {
        for (int i = 0; i < 64; i++) {
            g_assert_cmphex(data[s * 64 + i], ==, stamps[s]);
        }
    }
    free(data);
}

/* Each writes its own sectors; a block holds those of eight. None gets lost. */
static void test_neighbours_keep_their_sectors(const void *opaque)
{
    Writer writers[WRITERS] = { 0 };
    uint64_t stamps[SECTORS + 32] = { 0 };
    BlockBackend *blk;
    Loop l;

    blk = disk_open(&l, opaque);
    if (!blk) {
        return;
    }
    fx_ctx();
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (Writer) {
            .blk = blk, .index = i, .left = 300, .stamps = stamps,
            .buf = aligned_alloc(4096, 4096),
        };
        writer_start(&writers[i]);
    }
    while (blk_in_flight(blk) > 0) {
        aio_poll(fx_ctx(), true);
    }
    check_stamps(blk, stamps, SECTORS + 32);
    for (unsigned i = 0; i < WRITERS; i++) {
        free(writers[i].buf);
    }
    disk_close(&l, blk);
}

int main(int argc, char **argv)
{
    static const char *const aios[] = { "threads", "native", "io_uring" };
    static Variant variants[G_N_ELEMENTS(aios) * 4];
    int ret, n = 0;

    g_test_init(&argc, &argv, NULL);
    for (size_t a = 0; a < G_N_ELEMENTS(aios); a++) {
        for (int kind = 0; kind < 4; kind++) {
            Variant *v = &variants[n++];
            g_autofree char *base = NULL, *random = NULL, *sectors = NULL;

            *v = (Variant) { aios[a], kind & 1 ? 4096 : 512, true, kind & 2 };
            base = g_strdup_printf("/block/device/%s/%u%s", v->aio, v->block_size,
                                   v->unaligned ? "-odd-memory" : "");
            random = g_strdup_printf("%s/random-against-shadow", base);
            sectors = g_strdup_printf("%s/neighbours-keep-their-sectors", base);
            g_test_add_data_func(random, v, test_random);
            if (kind == 1) {
                g_test_add_data_func(sectors, v, test_neighbours_keep_their_sectors);
            }
        }
    }
    ret = g_test_run();
    fx_ctx_free();
    return ret;
}
