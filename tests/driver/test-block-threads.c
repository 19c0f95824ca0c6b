/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Several threads on one disk: every engine, drain under load, the write cache
 * switched under load, contexts that come and go.
 *
 * BLOCK_ROUNDS multiplies the rounds (default 1).
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/block-fixture.h"

#define THREADS 3
#define DEPTH 8
#define BLOCK 4096
#define BLOCKS_EACH 64                  /* a thread's own part of the image */

typedef struct Worker Worker;

/* One request after another: write a stamp to a block, or read one back. */
typedef struct Slot {
    Worker *worker;
    BlkReq req;
    struct iovec iov;
    uint64_t *buf;
    unsigned block;
    bool reading;
} Slot;

struct Worker {
    pthread_t thread;
    AioContext *ctx;
    BlockBackend *blk;
    unsigned number;
    uint64_t x;                         /* chance */
    atomic_bool *stop;
    atomic_bool quit, ready;
    atomic_uint running;                /* requests that have started and not completed */
    uint64_t count;
    uint64_t stamps[BLOCKS_EACH];
    Slot slots[DEPTH];
};

static uint64_t chance(Worker *w)
{
    w->x ^= w->x << 13;
    w->x ^= w->x >> 7;
    w->x ^= w->x << 17;
    return w->x;
}

static void slot_start(Slot *s);

static void slot_done(BlkReq *req, void *opaque, int ret)
{
    Slot *s = opaque;
    Worker *w = s->worker;

    g_assert_cmpint(ret, ==, 0);
    g_assert_true(aio_context_current() == w->ctx);
    if (s->reading) {
        for (size_t i = 0; i < BLOCK / sizeof(uint64_t); i++) {
            g_assert_cmpuint(s->buf[i], ==, w->stamps[s->block]);
        }
    }
    w->count++;
    if (atomic_load(w->stop)) {
        atomic_fetch_sub(&w->running, 1);
    } else {
        slot_start(s);
    }
}

/* Slot i uses blocks i, i + DEPTH, ...: no two requests on one block at a time. */
static void slot_start(Slot *s)
{
    Worker *w = s->worker;
    unsigned index = s - w->slots;

    s->block = index + DEPTH * (chance(w) % (BLOCKS_EACH / DEPTH));
    s->reading = chance(w) % 2;
    if (!s->reading) {
        w->stamps[s->block] = chance(w);
        for (size_t i = 0; i < BLOCK / sizeof(uint64_t); i++) {
            s->buf[i] = w->stamps[s->block];
        }
    }
    blk_req_init(&s->req, s->reading ? BLK_READ : BLK_WRITE,
                 ((int64_t)w->number * BLOCKS_EACH + s->block) * BLOCK, BLOCK, &s->iov, 1, 0,
                 slot_done, s);
    g_assert_cmpint(blk_submit(w->blk, &s->req), ==, 0);
}

static void worker_begin(void *opaque)
{
    Worker *w = opaque;

    atomic_store(&w->running, DEPTH);
    for (int i = 0; i < DEPTH; i++) {
        slot_start(&w->slots[i]);
    }
}

static void worker_quit(void *opaque)
{
    Worker *w = opaque;

    atomic_store(&w->quit, true);
}

static void *worker_main(void *opaque)
{
    Worker *w = opaque;
    GError *err = NULL;

    w->ctx = aio_context_new("worker", &err);
    g_assert_no_error(err);
    aio_context_enter(w->ctx);
    aio_set_poll_params(w->ctx, &(AioPollParams) { .max_ns = 20000 });
    atomic_store(&w->ready, true);
    while (!atomic_load(&w->quit)) {
        aio_poll(w->ctx, true);
    }
    aio_context_leave(w->ctx);
    return NULL;
}

static void workers_start(Worker *workers, BlockBackend *blk, atomic_bool *stop)
{
    for (unsigned i = 0; i < THREADS; i++) {
        Worker *w = &workers[i];

        w->blk = blk;
        w->number = i;
        w->x = fx_random() | 1;
        w->stop = stop;
        for (int j = 0; j < DEPTH; j++) {
            Slot *s = &w->slots[j];

            s->worker = w;
            s->buf = aligned_alloc(BLOCK, BLOCK);
            s->iov = (struct iovec) { s->buf, BLOCK };
        }
        g_assert_cmpint(pthread_create(&w->thread, NULL, worker_main, w), ==, 0);
        while (!atomic_load(&w->ready)) {
            g_usleep(100);
        }
    }
}

static void workers_end(Worker *workers)
{
    for (unsigned i = 0; i < THREADS; i++) {
        Worker *w = &workers[i];

        aio_bh_oneshot(w->ctx, "quit", worker_quit, w);
        pthread_join(w->thread, NULL);
        aio_context_free(w->ctx);
        for (int j = 0; j < DEPTH; j++) {
            free(w->slots[j].buf);
        }
    }
}

static unsigned rounds(unsigned n)
{
    const char *s = g_getenv("BLOCK_ROUNDS");

    return n * (s ? MAX(atoi(s), 1) : 1);
}

static BlockNode *open_disk(const char *aio, char **path)
{
    BlockNodeFlags flags = { .direct = true };
    g_autoptr(GError) err = NULL;
    BlockNode *node;

    *path = fx_image("disk", (int64_t)THREADS * BLOCKS_EACH * BLOCK);
    node = fx_file(*path, aio, flags, &err);
    if (!node) {
        g_test_skip(err->message);
        unlink(*path);
    }
    return node;
}

/* The main thread stops the load, drains, and then nothing is on its way. */
static void test_drain_under_load(const void *opaque)
{
    g_autofree Worker *workers = g_new0(Worker, THREADS);
    g_autofree char *path = NULL;
    BlockNode *node = open_disk(opaque, &path);
    atomic_bool stop = false;
    BlockBackend *blk;
    uint64_t count = 0;
    BlkStats stats;

    if (!node) {
        return;
    }
    fx_ctx();
    blk = fx_blk(node);
    workers_start(workers, blk, &stop);
    /* Blocks are read before they are written, too. */
    for (unsigned round = 0; round < rounds(30); round++) {
        atomic_store(&stop, false);
        for (unsigned i = 0; i < THREADS; i++) {
            aio_run_sync(workers[i].ctx, worker_begin, &workers[i]);
        }
        g_usleep(1000 + fx_random() % 2000);
        atomic_store(&stop, true);
        blk_drain(blk);
        g_assert_cmpuint(blk_in_flight(blk), ==, 0);
        for (unsigned i = 0; i < THREADS; i++) {
            g_assert_cmpuint(atomic_load(&workers[i].running), ==, 0);
        }
    }
    workers_end(workers);
    blk_get_stats(blk, &stats);
    for (unsigned i = 0; i < THREADS; i++) {
        count += workers[i].count;
    }
    g_assert_cmpuint(stats.op[BLK_READ].count + stats.op[BLK_WRITE].count, ==, count);
    g_assert_cmpuint(stats.op[BLK_READ].bytes + stats.op[BLK_WRITE].bytes, ==, count * BLOCK);
    g_assert_cmpuint(stats.op[BLK_READ].errors + stats.op[BLK_WRITE].errors, ==, 0);
    blk_close(blk);
    node_unref(node);
    unlink(path);
}

static void test_write_cache_under_load(const void *opaque)
{
    g_autofree Worker *workers = g_new0(Worker, THREADS);
    g_autofree char *path = NULL;
    BlockNode *node = open_disk(opaque, &path);
    atomic_bool stop = false;
    BlockBackend *blk;

    if (!node) {
        return;
    }
    fx_ctx();
    blk = fx_blk(node);
    workers_start(workers, blk, &stop);
    for (unsigned i = 0; i < THREADS; i++) {
        aio_run_sync(workers[i].ctx, worker_begin, &workers[i]);
    }
    for (unsigned round = 0; round < rounds(50); round++) {
        g_assert_cmpint(blk_set_write_cache(blk, round % 2), ==, 0);
        g_usleep(fx_random() % 2000);
    }
    atomic_store(&stop, true);
    blk_drain(blk);
    workers_end(workers);
    blk_close(blk);
    node_unref(node);
    unlink(path);
}

/* Contexts come and go while a disk stays: its books keep everything. */
static void test_contexts_come_and_go(void)
{
    g_autofree char *path = NULL;
    BlockNode *node = open_disk("threads", &path);
    BlockBackend *blk = fx_blk(node);
    uint64_t count = 0;
    BlkStats stats;

    fx_ctx();
    for (unsigned round = 0; round < rounds(20); round++) {
        g_autofree Worker *workers = g_new0(Worker, THREADS);
        atomic_bool stop = true;        /* each slot runs once */

        /* What earlier rounds wrote is not known to this one's. */
        g_assert_cmpint(truncate(path, 0), ==, 0);
        workers_start(workers, blk, &stop);
        for (unsigned i = 0; i < THREADS; i++) {
            aio_run_sync(workers[i].ctx, worker_begin, &workers[i]);
        }
        blk_drain(blk);
        workers_end(workers);
        count += THREADS * DEPTH;
        blk_get_stats(blk, &stats);
        g_assert_cmpuint(stats.op[BLK_READ].count + stats.op[BLK_WRITE].count, ==, count);
    }
    blk_close(blk);
    node_unref(node);
    unlink(path);
}

int main(int argc, char **argv)
{
    static const char *const aios[] = { "threads", "native", "io_uring" };
    int ret;

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(aios); i++) {
        g_autofree char *drain = g_strdup_printf("/block/threads/%s/drain-under-load", aios[i]);
        g_autofree char *cache = g_strdup_printf("/block/threads/%s/write-cache-under-load",
                                                 aios[i]);

        g_test_add_data_func(drain, aios[i], test_drain_under_load);
        g_test_add_data_func(cache, aios[i], test_write_cache_under_load);
    }
    g_test_add_func("/block/threads/contexts-come-and-go", test_contexts_come_and_go);
    ret = g_test_run();
    fx_ctx_free();
    return ret;
}
