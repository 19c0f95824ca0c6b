/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One request, six files: its trace events arrive in the order of the map in
 * docs/devel/tracing.md, whatever the engine and whether by polling or by fds.
 * Everything between the ring and the kernel is real.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "block/drivers.h"
#include "driver/vq-driver.h"
#include "trace/control.h"
#include "unit/trace-helpers.h"
#include "unit/trace-reader.h"
#include "virtio/virtio-blk.h"

#define QSIZE 16
#define DISK_BYTES (1 << 20)
#define IO_BYTES 4096
#define REST_US 1000
#define LESSON_US 16000         /* the windows learn a far longer rest than they will see */
#define LESSONS 15              /* 4 us, doubled so often, is more than that */
#define TRIES 10

typedef struct Fixture {
    TestRam ram;
    VqDriver d;
    AioContext *ctx;
    BlockNode *file, *raw;
    BlockBackend *blk;
    VirtioBlk vb;
    VirtioBlkQueue *q;
    int kick_fd;
    unsigned interrupts;
} Fixture;

static void on_interrupt(void *opaque, unsigned queue)
{
    Fixture *f = opaque;

    f->interrupts++;
}

static void on_broken(void *opaque, unsigned queue, const char *why)
{
    g_error("queue broken: %s", why);
}

static const VirtioBlkOps ops = { on_interrupt, on_broken, NULL };

/* A raw node over a file with @aio, or over null-co if that is NULL. False: skipped. */
static bool nodes_open(Fixture *f, const char *aio)
{
    BlockNodeFlags flags = { .direct = aio && strcmp(aio, "native") == 0 };
    g_autofree char *path = temp_path("disk"), *disk = g_strnfill(DISK_BYTES, 'd');
    g_autoptr(GError) err = NULL;
    FileParams file = { .filename = path, .aio = aio, .locking = ON_OFF_AUTO_OFF };
    NullParams null = { .size = DISK_BYTES, .latency_ns = 20000 };
    RawParams raw = { .size = -1 };
    bool opened;

    g_assert_true(g_file_set_contents(path, disk, DISK_BYTES, NULL));
    f->file = node_new(aio ? &bdrv_file : &bdrv_null_co, "file", &flags, &err);
    g_assert_no_error(err);
    opened = aio ? node_open_by(f->file, file_open, &file, &err) :
        node_open_by(f->file, null_open, &null, &err);
    if (!opened) {
        node_unref(f->file);
        g_test_skip(err->message);
        return false;
    }
    raw.file = f->file;
    f->raw = node_new(&bdrv_raw, "raw", &flags, &err);
    g_assert_no_error(err);
    node_open_by(f->raw, raw_open, &raw, &err);
    g_assert_no_error(err);
    f->blk = blk_open_node(f->raw, "test", BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE,
                           BLK_PERM_ALL, &err);
    g_assert_no_error(err);
    return true;
}

static bool fixture_start(Fixture *f, const char *aio, int64_t poll_max_ns)
{
    g_autoptr(GError) err = NULL;
    VirtQueueConfig cfg;

    memset(f, 0, sizeof(*f));
    f->ctx = aio_context_new("test", &err);
    g_assert_no_error(err);
    aio_context_enter(f->ctx);
    if (!nodes_open(f, aio)) {
        aio_context_free(f->ctx);
        return false;
    }
    aio_set_poll_params(f->ctx, &(AioPollParams) { .max_ns = poll_max_ns });
    test_ram_init(&f->ram, 1 << 20, false);
    vq_driver_init(&f->d, &f->ram, QSIZE, true);
    f->vb = (VirtioBlk) {
        .blk = f->blk, .ops = &ops, .opaque = f, .name = "test",
        .capacity = DISK_BYTES / 512, .logical_block = 512, .physical_block = 512,
        .seg_max = QSIZE - 2, .num_queues = 1,
    };
    f->kick_fd = eventfd(0, EFD_NONBLOCK);
    f->q = virtio_blk_queue_new(&f->vb, 0);
    cfg = vq_driver_config(&f->d, false);
    virtio_blk_queue_start(f->q, f->ctx, f->kick_fd, f->ram.mem, &cfg, &err);
    g_assert_no_error(err);
    return true;
}

static void fixture_end(Fixture *f)
{
    virtio_blk_queue_stop(f->q);
    virtio_blk_queue_free(f->q);
    close(f->kick_fd);
    blk_close(f->blk);
    node_unref(f->raw);
    node_unref(f->file);
    vq_driver_cleanup(&f->d);
    test_ram_cleanup(&f->ram);
    aio_context_free(f->ctx);
}

typedef struct Sender {
    Fixture *f;
    uint8_t *status;
    unsigned rest_us;
    bool asleep;                    /* the loop has to be */
    uint64_t waits;
} Sender;

static uint64_t waits(Fixture *f)
{
    AioStats stats;

    aio_get_stats(f->ctx, &stats);
    return stats.waits;
}

static void wait_for_rest(const Sender *s)
{
    do {
        g_usleep(s->rest_us);
    } while (s->asleep && waits(s->f) == s->waits);
}

/* The guest: when the loop has come to rest, a read of one block. */
static gpointer request_send(gpointer opaque)
{
    Sender *s = opaque;
    TestRam *ram = &s->f->ram;
    struct virtio_blk_outhdr *hdr = test_ram_alloc(ram, sizeof(*hdr));
    uintptr_t data = (uintptr_t)test_ram_alloc(ram, 2 * IO_BYTES);
    VqBuf bufs[] = {
        { hdr, sizeof(*hdr), false },
        { (void *)((data + IO_BYTES - 1) & ~(uintptr_t)(IO_BYTES - 1)), IO_BYTES, true },
        { s->status, 1, true },
    };
    const uint64_t one = 1;

    wait_for_rest(s);
    hdr->type = VIRTIO_BLK_T_IN;
    hdr->sector = 8;
    g_assert_true(vq_driver_add(&s->f->d, bufs, G_N_ELEMENTS(bufs), NULL, s->status));
    if (vq_driver_publish(&s->f->d)) {
        g_assert_cmpint(write(s->f->kick_fd, &one, sizeof(one)), ==, sizeof(one));
    }
    return NULL;
}

static void request_run(Fixture *f, unsigned rest_us, bool asleep)
{
    Sender s = { f, test_ram_alloc(&f->ram, 1), rest_us, asleep, waits(f) };
    unsigned interrupts = f->interrupts;
    GThread *guest;

    *s.status = 0xff;
    vq_driver_want_interrupt(&f->d, true);
    guest = g_thread_new("guest", request_send, &s);
    while (f->interrupts == interrupts) {
        aio_poll(f->ctx, true);
    }
    g_thread_join(guest);
    g_assert_true(vq_driver_get(&f->d, NULL) == s.status);
    g_assert_cmpuint(*s.status, ==, VIRTIO_BLK_S_OK);
}

static uint64_t arg_number(Record *rec, unsigned index)
{
    while (index-- > 0) {
        arg_u64(rec);
    }
    return arg_u64(rec);
}

/* Each name of @map, in this order, possibly with others between them; one pointer to follow. */
static void expect_in_order(const char *path, const char *const *map, bool polled)
{
    static const char *const with_req[] = {
        "virtio_blk_handle_read", "blk_submit", "laio_queue", "laio_process_completion",
        "luring_queue", "luring_process_completion", "blk_complete", "virtio_blk_rw_complete",
        "virtio_blk_req_complete", "virtqueue_fill", NULL
    };
    g_autoptr(GString) seen = g_string_new(NULL);
    uint64_t req = 0;
    Reader r;
    Record rec;

    reader_open(&r, path);
    while (reader_next(&r, &rec)) {
        g_string_append_printf(seen, " %s", rec.name);
        if (*map && strcmp(rec.name, *map) == 0) {
            map++;
        }
        if (strcmp(rec.name, "virtio_queue_notify") == 0) {
            g_assert_cmpuint(arg_number(&rec, 2), ==, polled);
        } else if (strcmp(rec.name, "virtqueue_pop") == 0) {
            req = arg_number(&rec, 1);
        } else if (g_strv_contains(with_req, rec.name)) {
            g_assert_cmphex(arg_number(&rec, 1), ==, req);
        }
    }
    reader_close(&r);
    if (*map) {
        g_error("no %s in its place among:%s", *map, seen->str);
    }
}

/* The ends of the path are common to all engines. */
static char **whole_path(const char *seen_by, const char *const *engine)
{
    static const char *const down[] = {
        "virtio_queue_notify", "virtqueue_pop", "virtio_blk_handle_read", "blk_submit",
        "bdrv_submit", "bdrv_submit", NULL
    };
    static const char *const up[] = {
        "blk_complete", "virtio_blk_rw_complete", "virtio_blk_req_complete", "virtqueue_fill",
        "virtqueue_flush", "virtio_notify", NULL
    };
    GStrvBuilder *all = g_strv_builder_new();
    char **map;

    g_strv_builder_add(all, seen_by);
    g_strv_builder_addv(all, (const char **)down);
    g_strv_builder_addv(all, (const char **)engine);
    g_strv_builder_addv(all, (const char **)up);
    map = g_strv_builder_end(all);
    g_strv_builder_unref(all);
    return map;
}

static void trace_one_request(const char *aio, bool polled, const char *const *engine)
{
    g_autofree char *path = temp_path("trace");
    g_auto(GStrv) map = whole_path(polled ? "run_poll_handlers_begin" : "aio_handler_ready",
                                   engine);
    unsigned tries = 0;
    uint64_t before;
    Fixture f;

    if (!(trace_backends & TRACE_BACKEND_SIMPLE)) {
        g_test_skip("the trace backend 'simple' was not built");
        return;
    }
    if (!fixture_start(&f, aio, polled ? 1000000000 : 0)) {
        return;
    }
    for (int i = 0; polled && i < LESSONS; i++) {
        request_run(&f, LESSON_US, false);
    }
    enable("*");
    /* On a busy machine the rest may last longer than was learned: the loop sleeps after all. */
    do {
        before = waits(&f);
        open_file(path);
        start();
        request_run(&f, REST_US, !polled);
        trace_stop();
        tries++;
    } while (polled && waits(&f) != before && tries < TRIES);
    everything_off();
    expect_in_order(path, (const char *const *)map, polled);
    fixture_end(&f);
}

static const char *const native[] = {
    "laio_queue", "laio_do_submit", "laio_io_submit", "laio_process_completion", NULL
};
static const char *const uring[] = {
    "luring_queue", "luring_do_submit", "luring_io_uring_submit", "luring_process_completion", NULL
};
static const char *const threads[] = {
    "thread_pool_submit", "thread_pool_run", "thread_pool_complete", NULL
};
static const char *const null_co[] = { "null_process_completion", NULL };

static void test_native_woken_by_fds(void)
{
    trace_one_request("native", false, native);
}

static void test_native_polled(void)
{
    trace_one_request("native", true, native);
}

static void test_io_uring_woken_by_fds(void)
{
    trace_one_request("io_uring", false, uring);
}

static void test_io_uring_polled(void)
{
    trace_one_request("io_uring", true, uring);
}

static void test_threads(void)
{
    trace_one_request("threads", false, threads);
}

static void test_null_woken_by_fds(void)
{
    trace_one_request(NULL, false, null_co);
}

static void test_null_polled(void)
{
    trace_one_request(NULL, true, null_co);
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    temp_dir_make();
    g_test_add_func("/request-path/native/fd", test_native_woken_by_fds);
    g_test_add_func("/request-path/native/polled", test_native_polled);
    g_test_add_func("/request-path/io_uring/fd", test_io_uring_woken_by_fds);
    g_test_add_func("/request-path/io_uring/polled", test_io_uring_polled);
    g_test_add_func("/request-path/threads", test_threads);
    g_test_add_func("/request-path/null/fd", test_null_woken_by_fds);
    g_test_add_func("/request-path/null/polled", test_null_polled);
    ret = g_test_run();
    temp_dir_remove();
    return ret;
}
