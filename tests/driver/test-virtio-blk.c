/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk queues between a driver that we play and a disk that we play. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "driver/fake-blk.h"
#include "driver/vq-driver.h"
#include "util/log.h"
#include "virtio/virtio-blk.h"

#define QSIZE 64
#define DISK_BYTES (1 << 20)

typedef struct Fixture {
    TestRam ram;
    VqDriver d;
    AioContext *ctx;
    BlockBackend blk;
    VirtioBlk vb;
    VirtioBlkQueue *q;
    int kick_fd;
    unsigned interrupts, broken;
    const char *why;
    VirtioBlkOnError policy;
} Fixture;

/* One request in guest memory. */
typedef struct Req {
    struct virtio_blk_outhdr *hdr;
    uint8_t *data;
    uint8_t *status;
    uint32_t len;
    bool done;
} Req;

static void on_interrupt(void *opaque, unsigned queue)
{
    Fixture *f = opaque;

    f->interrupts++;
}

static void on_broken(void *opaque, unsigned queue, const char *why)
{
    Fixture *f = opaque;

    f->broken++;
    f->why = why;
}

static VirtioBlkOnError on_error(void *opaque, unsigned queue, BlkOp op, int err)
{
    Fixture *f = opaque;

    return f->policy;
}

static const VirtioBlkOps ops = { on_interrupt, on_broken, on_error };

static void queue_start(Fixture *f)
{
    g_autoptr(GError) err = NULL;
    VirtQueueConfig cfg = vq_driver_config(&f->d, true);

    virtio_blk_queue_start(f->q, f->ctx, f->kick_fd, f->ram.mem, &cfg, &err);
    g_assert_no_error(err);
}

static void fixture_start(Fixture *f)
{
    g_autoptr(GError) err = NULL;

    memset(f, 0, sizeof(*f));
    test_ram_init(&f->ram, 8 << 20, true);
    vq_driver_init(&f->d, &f->ram, QSIZE, true);
    f->ctx = aio_context_new("test", &err);
    g_assert_no_error(err);
    aio_context_enter(f->ctx);
    f->blk.length = DISK_BYTES;
    f->blk.write_cache = true;
    f->vb = (VirtioBlk) {
        .blk = &f->blk, .ops = &ops, .opaque = f, .name = "test",
        .capacity = DISK_BYTES / 512, .logical_block = 512, .physical_block = 512,
        .seg_max = QSIZE - 2, .num_queues = 1, .discard = true, .write_zeroes = true,
        .max_discard_sectors = 1024, .max_write_zeroes_sectors = 1024, .config_wce = true,
        .serial = "serial-number",
    };
    f->kick_fd = eventfd(0, EFD_NONBLOCK);
    f->q = virtio_blk_queue_new(&f->vb, 0);
    queue_start(f);
}

static void fixture_end(Fixture *f)
{
    virtio_blk_queue_stop(f->q);
    virtio_blk_queue_free(f->q);
    aio_context_leave(f->ctx);
    aio_context_free(f->ctx);
    close(f->kick_fd);
    vq_driver_cleanup(&f->d);
    test_ram_cleanup(&f->ram);
}

static void kick(Fixture *f)
{
    if (vq_driver_publish(&f->d)) {
        g_assert_cmpint(eventfd_write(f->kick_fd, 1), ==, 0);
    }
}

static Req *req_new(Fixture *f, uint32_t type, uint64_t sector, uint32_t len)
{
    Req *r = g_new0(Req, 1);

    r->hdr = test_ram_alloc(&f->ram, sizeof(*r->hdr));
    r->data = test_ram_alloc(&f->ram, MAX(len, 1));
    r->status = test_ram_alloc(&f->ram, 1);
    r->len = len;
    *r->hdr = (struct virtio_blk_outhdr) { .type = type, .sector = sector };
    *r->status = 0xff;
    return r;
}

/* Header, data if any, status: as Linux lays them out. */
static void req_add(Fixture *f, Req *r, bool data_in)
{
    VqBuf b[3] = { { r->hdr, sizeof(*r->hdr), false } };
    unsigned n = 1;

    if (r->len > 0) {
        b[n++] = (VqBuf) { r->data, r->len, data_in };
    }
    b[n++] = (VqBuf) { r->status, 1, true };
    g_assert_true(vq_driver_add(&f->d, b, n, NULL, r));
}

static unsigned reap(Fixture *f)
{
    unsigned n = 0;
    Req *r;

    while ((r = vq_driver_get(&f->d, NULL)) != NULL) {
        r->done = true;
        n++;
    }
    return n;
}

/* Submit @r alone, run the loop until it is back, return its status. */
static uint8_t req_run(Fixture *f, Req *r, bool data_in)
{
    req_add(f, r, data_in);
    kick(f);
    for (unsigned i = 0; i < 100 && !r->done && f->broken == 0; i++) {
        aio_poll(f->ctx, false);
        reap(f);
    }
    return *r->status;
}

static uint8_t run(Fixture *f, uint32_t type, uint64_t sector, uint32_t len)
{
    g_autofree Req *r = req_new(f, type, sector, len);

    return req_run(f, r, type == VIRTIO_BLK_T_IN || type == VIRTIO_BLK_T_GET_ID);
}

static uint8_t run_zero(Fixture *f, uint32_t type, uint64_t sector, uint32_t n, uint32_t flags)
{
    struct virtio_blk_discard_write_zeroes seg = { sector, n, flags };
    g_autofree Req *r = req_new(f, type, 0, sizeof(seg));

    memcpy(r->data, &seg, sizeof(seg));
    return req_run(f, r, false);
}

/* ---- requests ---------------------------------------------------------------- */

static void test_refused_requests_are_logged_when_asked_for(void)
{
    if (g_test_subprocess()) {
        Fixture f;

        fixture_start(&f);
        run(&f, 77, 1, 512);
        g_assert_true(log_parse_items("guest_errors", NULL));
        run(&f, 77, 1, 512);
        run(&f, VIRTIO_BLK_T_IN, 0, 512);
        run_zero(&f, VIRTIO_BLK_T_DISCARD, 4, 2, 1);
        fixture_end(&f);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr(
        "test: queue 0: request of type 77, sector 1, 512 bytes is refused with status 2\n"
        "test: queue 0: request of type 11, sector 4, 1024 bytes is refused with status 2\n");
}

static void test_each_type_reaches_the_disk(void)
{
    Fixture f;
    Req *r;

    fixture_start(&f);
    f.blk.data = g_malloc0(DISK_BYTES);
    r = req_new(&f, VIRTIO_BLK_T_OUT, 8, 4096);
    memset(r->data, 0x5a, 4096);
    g_assert_cmpint(req_run(&f, r, false), ==, VIRTIO_BLK_S_OK);
    g_free(r);
    r = req_new(&f, VIRTIO_BLK_T_IN, 9, 512);
    g_assert_cmpint(req_run(&f, r, true), ==, VIRTIO_BLK_S_OK);
    g_assert_cmpint(r->data[0], ==, 0x5a);
    g_assert_cmpint(r->data[511], ==, 0x5a);
    g_free(r);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_FLUSH, 0, 0), ==, VIRTIO_BLK_S_OK);
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_DISCARD, 8, 1, 0), ==, VIRTIO_BLK_S_OK);
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_WRITE_ZEROES, 8, 8, 1), ==, VIRTIO_BLK_S_OK);
    g_assert_cmpuint(f.blk.last_flags, ==, BLK_REQ_UNMAP);
    g_assert_cmpint(f.blk.data[8 * 512], ==, 0);
    for (unsigned op = 0; op < BLK_OP_MAX; op++) {
        g_assert_cmpuint(f.blk.submitted[op], ==, 1);
    }
    r = req_new(&f, VIRTIO_BLK_T_GET_ID, 0, 20);
    g_assert_cmpint(req_run(&f, r, true), ==, VIRTIO_BLK_S_OK);
    g_assert_cmpstr((char *)r->data, ==, "serial-number");
    g_free(r);
    g_free(f.blk.data);
    fixture_end(&f);
}

static void test_bad_requests_get_an_error_and_touch_nothing(void)
{
    const uint64_t end = DISK_BYTES / 512;
    Fixture f;

    fixture_start(&f);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_IN, end, 512), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_IN, end - 1, 1024), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_OUT, UINT64_MAX, 512), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_OUT, UINT64_MAX / 512, 512), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_IN, 0, 511), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run(&f, 2, 0, 512), ==, VIRTIO_BLK_S_UNSUPP);       /* SCSI command */
    g_assert_cmpint(run(&f, 0xffffffff, 0, 512), ==, VIRTIO_BLK_S_UNSUPP);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_DISCARD, 0, 15), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_DISCARD, 0, 32), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_DISCARD, 0, 1025, 0), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_DISCARD, end, 1, 0), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_DISCARD, 0, 1, 1), ==, VIRTIO_BLK_S_UNSUPP);
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_WRITE_ZEROES, UINT64_MAX, 1, 0), ==,
                    VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_WRITE_ZEROES, 0, 1, 2), ==, VIRTIO_BLK_S_UNSUPP);
    f.vb.read_only = true;
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_OUT, 0, 512), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_DISCARD, 0, 1, 0), ==, VIRTIO_BLK_S_IOERR);
    f.vb.discard = f.vb.write_zeroes = false;
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_DISCARD, 0, 1, 0), ==, VIRTIO_BLK_S_UNSUPP);
    f.vb.logical_block = 4096;
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_IN, 1, 4096), ==, VIRTIO_BLK_S_IOERR);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_IN, 8, 512), ==, VIRTIO_BLK_S_IOERR);
    for (unsigned op = 0; op < BLK_OP_MAX; op++) {
        g_assert_cmpuint(f.blk.submitted[op], ==, 0);
    }
    g_assert_cmpuint(f.broken, ==, 0);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_IN, 8, 4096), ==, VIRTIO_BLK_S_OK);
    fixture_end(&f);
}

static void test_descriptor_borders_mean_nothing(void)
{
    Fixture f;
    Req *r;
    uint8_t *h;

    fixture_start(&f);
    r = req_new(&f, VIRTIO_BLK_T_IN, 0, 1024 + 1);
    h = (uint8_t *)r->hdr;
    /* The header in three pieces; data and status in one. */
    g_assert_true(vq_driver_add(&f.d, (VqBuf[]) {
        { h, 1, false }, { h + 1, 10, false }, { h + 11, 5, false },
        { r->data, 100, true }, { r->data + 100, 925, true } }, 5, NULL, r));
    kick(&f);
    aio_poll(f.ctx, false);
    g_assert_cmpuint(reap(&f), ==, 1);
    g_assert_cmpint(r->data[0], ==, 0xa5);
    g_assert_cmpint(r->data[1023], ==, 0xa5);
    g_assert_cmpint(r->data[1024], ==, VIRTIO_BLK_S_OK);
    g_free(r);
    fixture_end(&f);
}

static void test_used_length_is_what_was_written(void)
{
    Fixture f;
    uint32_t len;
    Req *r;

    fixture_start(&f);
    r = req_new(&f, VIRTIO_BLK_T_IN, 0, 4096);
    req_add(&f, r, true);
    kick(&f);
    aio_poll(f.ctx, false);
    g_assert_true(vq_driver_get(&f.d, &len) == r);
    g_assert_cmpuint(len, ==, 4097);
    r->hdr->sector = DISK_BYTES;
    req_add(&f, r, true);
    kick(&f);
    aio_poll(f.ctx, false);
    g_assert_true(vq_driver_get(&f.d, &len) == r);
    g_assert_cmpuint(len, ==, 1);
    g_free(r);
    fixture_end(&f);
}

static void test_a_batch_is_published_and_announced_once(void)
{
    Req *r[20];
    Fixture f;

    fixture_start(&f);
    vq_driver_want_interrupt(&f.d, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(r); i++) {
        r[i] = req_new(&f, VIRTIO_BLK_T_IN, i * 8, 4096);
        req_add(&f, r[i], true);
    }
    kick(&f);
    aio_poll(f.ctx, false);
    g_assert_cmpuint(reap(&f), ==, G_N_ELEMENTS(r));
    g_assert_cmpuint(f.interrupts, ==, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(r); i++) {
        g_assert_cmpint(*r[i]->status, ==, VIRTIO_BLK_S_OK);
        g_free(r[i]);
    }
    fixture_end(&f);
}

/* ---- failures ------------------------------------------------------------------- */

static void test_failed_requests_are_reported_or_ignored(void)
{
    Fixture f;

    fixture_start(&f);
    f.blk.complete_error = EIO;
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_IN, 0, 512), ==, VIRTIO_BLK_S_IOERR);
    f.blk.complete_error = ENOTSUP;
    g_assert_cmpint(run_zero(&f, VIRTIO_BLK_T_DISCARD, 0, 1, 0), ==, VIRTIO_BLK_S_UNSUPP);
    f.policy = VIRTIO_BLK_IGNORE;
    f.blk.complete_error = EIO;
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_OUT, 0, 512), ==, VIRTIO_BLK_S_OK);
    f.policy = VIRTIO_BLK_REPORT;
    f.blk.complete_error = 0;
    f.blk.submit_error = EPERM;
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_OUT, 0, 512), ==, VIRTIO_BLK_S_IOERR);
    fixture_end(&f);
}

static void test_held_requests_are_retried_in_order(void)
{
    VirtioBlkQueueInfo info;
    Req *w, *z;
    Fixture f;

    fixture_start(&f);
    f.policy = VIRTIO_BLK_HOLD;
    f.blk.complete_error = ENOSPC;
    w = req_new(&f, VIRTIO_BLK_T_OUT, 0, 512);
    z = req_new(&f, VIRTIO_BLK_T_WRITE_ZEROES, 0, 16);
    ((struct virtio_blk_discard_write_zeroes *)z->data)->num_sectors = 4;
    req_run(&f, w, false);
    req_run(&f, z, false);
    g_assert_false(w->done || z->done);
    virtio_blk_queue_info(f.q, &info);
    g_assert_cmpuint(info.held, ==, 2);
    virtio_blk_queue_pause(f.q);
    f.blk.complete_error = 0;
    virtio_blk_queue_resume(f.q);
    aio_poll(f.ctx, false);
    g_assert_cmpuint(reap(&f), ==, 2);
    g_assert_cmpint(*w->status, ==, VIRTIO_BLK_S_OK);
    g_assert_cmpint(*z->status, ==, VIRTIO_BLK_S_OK);
    g_assert_cmpuint(f.blk.submitted[BLK_WRITE], ==, 2);
    g_assert_cmpuint(f.blk.submitted[BLK_WRITE_ZEROES], ==, 2);
    g_free(w);
    g_free(z);
    fixture_end(&f);
}

/* Completes what the disk holds, from inside the drain. */
static void release_bh(void *opaque)
{
    Fixture *f = opaque;

    f->blk.hold = false;
    fake_blk_release(&f->blk, f->ctx);
}

static void test_pause_waits_and_resume_goes_on(void)
{
    Req *r[8], *late;
    Fixture f;

    fixture_start(&f);
    f.blk.hold = true;
    for (unsigned i = 0; i < G_N_ELEMENTS(r); i++) {
        r[i] = req_new(&f, VIRTIO_BLK_T_IN, i, 512);
        req_add(&f, r[i], true);
    }
    kick(&f);
    aio_poll(f.ctx, false);
    g_assert_cmpuint(f.blk.submitted[BLK_READ], ==, G_N_ELEMENTS(r));
    aio_bh_oneshot(f.ctx, "release", release_bh, &f);
    virtio_blk_queue_pause(f.q);
    g_assert_cmpuint(reap(&f), ==, G_N_ELEMENTS(r));
    /* Paused: nothing is taken, though the guest asks. */
    late = req_new(&f, VIRTIO_BLK_T_IN, 0, 512);
    g_assert_cmpint(req_run(&f, late, true), ==, 0xff);
    virtio_blk_queue_resume(f.q);
    aio_poll(f.ctx, false);
    g_assert_cmpuint(reap(&f), ==, 1);
    g_assert_cmpint(*late->status, ==, VIRTIO_BLK_S_OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(r); i++) {
        g_free(r[i]);
    }
    g_free(late);
    fixture_end(&f);
}

/* ---- chains that can't be answered -------------------------------------------------- */

static void expect_broken(Fixture *f, const VqBuf *bufs, unsigned n, const char *why)
{
    VirtioBlkQueueInfo info;

    g_assert_true(vq_driver_add(&f->d, bufs, n, NULL, f));
    kick(f);
    aio_poll(f->ctx, false);
    g_assert_cmpuint(f->broken, ==, 1);
    g_assert_nonnull(strstr(f->why, why));
    g_assert_cmpuint(reap(f), ==, 0);
    virtio_blk_queue_info(f->q, &info);
    g_assert_true(info.broken);
    g_assert_cmpuint(info.in_flight, ==, 0);
}

static void test_short_header_breaks_the_queue_until_reset(void)
{
    Fixture f;
    Req *r;

    fixture_start(&f);
    r = req_new(&f, VIRTIO_BLK_T_IN, 0, 512);
    expect_broken(&f, (VqBuf[]) { { r->hdr, 15, false }, { r->status, 1, true } }, 2,
                  "short header");
    virtio_blk_queue_stop(f.q);
    vq_driver_cleanup(&f.d);
    vq_driver_init(&f.d, &f.ram, QSIZE, true);
    f.broken = 0;
    queue_start(&f);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_IN, 0, 512), ==, VIRTIO_BLK_S_OK);
    g_free(r);
    fixture_end(&f);
}

static void test_missing_status_breaks_the_queue(void)
{
    Fixture f;
    Req *r;

    fixture_start(&f);
    r = req_new(&f, VIRTIO_BLK_T_OUT, 0, 512);
    expect_broken(&f, (VqBuf[]) { { r->hdr, 16, false }, { r->data, 512, false } }, 2,
                  "room for a status");
    g_free(r);
    fixture_end(&f);
}

static void test_broken_queue_still_drains(void)
{
    Fixture f;
    Req *r;

    fixture_start(&f);
    f.blk.hold = true;
    r = req_new(&f, VIRTIO_BLK_T_IN, 0, 512);
    req_add(&f, r, true);
    kick(&f);
    aio_poll(f.ctx, false);
    f.d.avail->ring[f.d.next_avail & (QSIZE - 1)] = QSIZE;
    f.d.next_avail++;
    kick(&f);
    aio_poll(f.ctx, false);
    g_assert_cmpuint(f.broken, ==, 1);
    aio_bh_oneshot(f.ctx, "release", release_bh, &f);
    virtio_blk_queue_stop(f.q);         /* returns: the request came back */
    g_assert_null(f.blk.held);
    g_free(r);
    fixture_end(&f);
}

/* Scribble at random over rings and descriptors; the process lives, and the queue
 * serves again after a reset. */
static void test_random_garbage_is_survived(void)
{
    unsigned rounds = g_test_thorough() ? 100000 : 2000;
    GRand *rand = g_rand_new_with_seed(g_test_rand_int());
    unsigned broken = 0;
    Fixture f;

    fixture_start(&f);
    for (unsigned i = 0; i < rounds; i++) {
        size_t mark = f.ram.next;
        Req *r = req_new(&f, g_rand_int_range(rand, 0, 16), g_rand_int_range(rand, 0, 4096), 512);
        uint8_t *at = (uint8_t *)f.d.desc;
        /* Few bytes, so that much of it stays nearly right. */
        unsigned hits = g_rand_int_range(rand, 0, 4);

        req_add(&f, r, g_rand_boolean(rand));
        while (hits-- > 0) {
            at[g_rand_int_range(rand, 0, QSIZE * 16)] = g_rand_int_range(rand, 0, 256);
        }
        if (g_rand_int_range(rand, 0, 20) == 0) {
            f.d.next_avail += g_rand_int_range(rand, 0, 100);
        }
        kick(&f);
        aio_poll(f.ctx, false);
        broken += f.broken;
        f.broken = 0;
        /* A fresh queue over the same memory. */
        virtio_blk_queue_stop(f.q);
        g_free(r);
        vq_driver_cleanup(&f.d);
        f.ram.next = 0;
        vq_driver_init(&f.d, &f.ram, QSIZE, true);
        memset(f.ram.host, 0, mark);
        queue_start(&f);
    }
    g_assert_cmpuint(broken, >, rounds / 50);
    g_assert_cmpint(run(&f, VIRTIO_BLK_T_IN, 0, 512), ==, VIRTIO_BLK_S_OK);
    g_rand_free(rand);
    fixture_end(&f);
}

/* ---- configuration -------------------------------------------------------------------- */

static void test_write_cache_follows_the_driver(void)
{
    const uint64_t wce = UINT64_C(1) << VIRTIO_BLK_F_CONFIG_WCE;
    const uint64_t flush = UINT64_C(1) << VIRTIO_BLK_F_FLUSH;
    struct virtio_blk_config cfg;
    Fixture f;

    fixture_start(&f);
    f.vb.write_cache_default = true;
    g_assert_cmphex(virtio_blk_features(&f.vb) & (wce | flush), ==, wce | flush);
    virtio_blk_driver_ok(&f.vb, 0);     /* a driver that can't flush */
    g_assert_false(f.blk.write_cache);
    virtio_blk_reset(&f.vb);
    g_assert_true(f.blk.write_cache);
    virtio_blk_driver_ok(&f.vb, wce | flush);
    g_assert_true(virtio_blk_set_config_byte(&f.vb, wce, 32, 0));
    g_assert_false(f.blk.write_cache);
    virtio_blk_get_config(&f.vb, &cfg);
    g_assert_cmpint(cfg.wce, ==, 0);
    g_assert_false(virtio_blk_set_config_byte(&f.vb, 0, 32, 1));
    g_assert_false(virtio_blk_set_config_byte(&f.vb, wce, 0, 1));
    g_assert_false(f.blk.write_cache);
    f.vb.config_wce = false;
    f.vb.write_cache_default = false;
    g_assert_cmphex(virtio_blk_features(&f.vb) & (wce | flush), ==, 0);
    fixture_end(&f);
}

static void test_capacity_grows_in_whole_blocks(void)
{
    struct virtio_blk_config cfg;
    Fixture f;

    fixture_start(&f);
    f.vb.logical_block = f.vb.physical_block = 4096;
    g_assert_false(virtio_blk_update_capacity(&f.vb));
    f.blk.length += 4095;
    g_assert_false(virtio_blk_update_capacity(&f.vb));
    f.blk.length += 1;
    g_assert_true(virtio_blk_update_capacity(&f.vb));
    virtio_blk_get_config(&f.vb, &cfg);
    g_assert_cmpuint(cfg.capacity, ==, DISK_BYTES / 512 + 8);
    g_assert_cmpuint(cfg.blk_size, ==, 4096);
    fixture_end(&f);
}

/* ---- a driver that never lets the ring run empty ---- */

#define RUNNER_CHAINS 32

typedef struct Runner {
    Fixture *f;
    struct virtio_blk_outhdr *hdr;
    uint8_t *status[RUNNER_CHAINS];
    bool stop;                          /* atomic */
} Runner;

/* Each chain is offered again as soon as its status is there, published or not. */
static void *runner_thread(void *opaque)
{
    Runner *r = opaque;
    VqDriver *d = &r->f->d;

    for (uint16_t n = 0; !__atomic_load_n(&r->stop, __ATOMIC_RELAXED); n++) {
        uint8_t *status = r->status[n % RUNNER_CHAINS];

        while (__atomic_load_n(status, __ATOMIC_ACQUIRE) == 0xff) {
            if (__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
                return NULL;
            }
        }
        __atomic_store_n(status, 0xff, __ATOMIC_RELAXED);
        __atomic_store_n(&d->avail->ring[n % QSIZE], n % RUNNER_CHAINS * 2, __ATOMIC_RELAXED);
        __atomic_store_n(&d->avail->idx, n + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void runner_init(Runner *r, Fixture *f)
{
    *r = (Runner) { .f = f, .hdr = test_ram_alloc(&f->ram, sizeof(*r->hdr)) };
    r->hdr->type = 12345;               /* refused at once */
    for (unsigned i = 0; i < RUNNER_CHAINS; i++) {
        r->status[i] = test_ram_alloc(&f->ram, 1);
        f->d.desc[2 * i] = (struct vring_desc) {
            test_ram_gpa(&f->ram, r->hdr), sizeof(*r->hdr), VRING_DESC_F_NEXT, 2 * i + 1,
        };
        f->d.desc[2 * i + 1] = (struct vring_desc) {
            test_ram_gpa(&f->ram, r->status[i]), 1, VRING_DESC_F_WRITE, 0,
        };
    }
}

static void test_a_driver_that_runs_on_does_not_hold_the_loop(void)
{
    VirtioBlkQueueInfo info = { 0 };
    gint64 deadline;
    uint64_t before;
    GThread *t;
    Fixture f;
    Runner r;

    fixture_start(&f);
    runner_init(&r, &f);
    t = g_thread_new("runner", runner_thread, &r);
    deadline = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
    while (info.requests < 200000 && g_get_monotonic_time() < deadline) {
        before = info.requests;
        g_assert_cmpint(eventfd_write(f.kick_fd, 1), ==, 0);
        aio_poll(f.ctx, false);
        virtio_blk_queue_info(f.q, &info);
        g_assert_false(info.broken);
        /* by its fd, and once by looking */
        g_assert_cmpuint(info.requests - before, <=, 2 * QSIZE);
    }
    g_assert_cmpuint(info.requests, >, QSIZE);
    __atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
    g_thread_join(t);
    fixture_end(&f);
}

static void test_a_broken_queue_has_nothing_to_do(void)
{
    Fixture f;
    VirtQueue vq = { 0 };
    VirtQueueConfig cfg;

    fixture_start(&f);
    cfg = vq_driver_config(&f.d, true);
    g_assert_true(virtqueue_start(&vq, f.ram.mem, &cfg, NULL));
    f.d.avail->idx = 0xffff;
    virtqueue_break(&vq, "test");
    for (unsigned i = 0; i < 3; i++) {
        g_assert_false(virtqueue_pending(&vq));
        g_assert_false(virtqueue_notify_on(&vq));
    }
    f.d.avail->idx = 0;
    virtqueue_stop(&vq);
    fixture_end(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/virtio-blk/log", test_refused_requests_are_logged_when_asked_for);
    g_test_add_func("/virtio-blk/types", test_each_type_reaches_the_disk);
    g_test_add_func("/virtio-blk/bad-requests", test_bad_requests_get_an_error_and_touch_nothing);
    g_test_add_func("/virtio-blk/any-layout", test_descriptor_borders_mean_nothing);
    g_test_add_func("/virtio-blk/used-length", test_used_length_is_what_was_written);
    g_test_add_func("/virtio-blk/batch", test_a_batch_is_published_and_announced_once);
    g_test_add_func("/virtio-blk/errors", test_failed_requests_are_reported_or_ignored);
    g_test_add_func("/virtio-blk/held", test_held_requests_are_retried_in_order);
    g_test_add_func("/virtio-blk/pause", test_pause_waits_and_resume_goes_on);
    g_test_add_func("/virtio-blk/short-header", test_short_header_breaks_the_queue_until_reset);
    g_test_add_func("/virtio-blk/no-status", test_missing_status_breaks_the_queue);
    g_test_add_func("/virtio-blk/broken-drains", test_broken_queue_still_drains);
    g_test_add_func("/virtio-blk/garbage", test_random_garbage_is_survived);
    g_test_add_func("/virtio-blk/write-cache", test_write_cache_follows_the_driver);
    g_test_add_func("/virtio-blk/capacity", test_capacity_grows_in_whole_blocks);
    g_test_add_func("/virtio-blk/runs-on", test_a_driver_that_runs_on_does_not_hold_the_loop);
    g_test_add_func("/virtio-blk/broken-is-idle", test_a_broken_queue_has_nothing_to_do);
    return g_test_run();
}
