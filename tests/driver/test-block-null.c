/* SPDX-License-Identifier: GPL-2.0-or-later */
/* null-co and null-aio, and what the front door does for every driver. */
#include <errno.h>
#include <string.h>

#include "driver/block-fixture.h"

typedef struct Timed {
    BlkReq req;
    struct iovec iov;
    int64_t submitted_ns, done_ns;
    int ret;
    int order;
} Timed;

static int order;

static void timed_done(BlkReq *req, void *opaque, int ret)
{
    Timed *t = opaque;

    g_assert_cmpint(t->done_ns, ==, 0);
    t->done_ns = aio_clock_ns();
    t->ret = ret;
    t->order = order++;
}

static void timed_start(Timed *t, BlockBackend *blk, BlkOp op, int64_t offset, void *buf,
                        int64_t bytes)
{
    t->iov = (struct iovec) { buf, bytes };
    t->done_ns = 0;
    blk_req_init(&t->req, op, offset, bytes, &t->iov, 1, 0, timed_done, t);
    t->submitted_ns = aio_clock_ns();
    g_assert_cmpint(blk_submit(blk, &t->req), ==, 0);
    g_assert_cmpint(t->done_ns, ==, 0);
}

static void wait_all(BlockBackend *blk)
{
    while (blk_in_flight(blk) > 0) {
        aio_poll(fx_ctx(), true);
    }
}

static void set_polling(int64_t max_ns)
{
    aio_set_poll_params(fx_ctx(), &(AioPollParams) { .max_ns = max_ns });
}

static void test_no_latency(void)
{
    BlockNode *node = fx_null("n", 1 << 20, 0, true);
    BlockBackend *blk = fx_blk(node);
    char buf[512];

    memset(buf, 0x55, sizeof(buf));
    g_assert_cmpint(fx_rw(blk, BLK_READ, 0, buf, sizeof(buf), 0), ==, 0);
    for (size_t i = 0; i < sizeof(buf); i++) {
        g_assert_cmpint(buf[i], ==, 0);
    }
    g_assert_cmpint(fx_rw(blk, BLK_WRITE, 512, buf, sizeof(buf), 0), ==, 0);
    g_assert_cmpint(fx_rw(blk, BLK_DISCARD, 0, NULL, 4096, 0), ==, 0);
    g_assert_cmpint(fx_rw(blk, BLK_WRITE_ZEROES, 0, NULL, 4096, 0), ==, 0);
    g_assert_cmpint(fx_flush(blk), ==, 0);
    blk_close(blk);
    node_unref(node);
}

/* A buffer that isn't to be zeroed is left alone. */
static void test_read_leaves_buffer(void)
{
    BlockNode *node = fx_null(NULL, 1 << 20, 0, false);
    BlockBackend *blk = fx_blk(node);
    char buf[512];

    memset(buf, 0x55, sizeof(buf));
    g_assert_cmpint(fx_rw(blk, BLK_READ, 0, buf, sizeof(buf), 0), ==, 0);
    g_assert_cmpint(buf[0], ==, 0x55);
    blk_close(blk);
    node_unref(node);
}

static void test_bounds(void)
{
    BlockNode *node = fx_null(NULL, 1 << 20, 0, false);
    BlockBackend *blk = fx_blk(node);
    const int64_t end = 1 << 20;
    char buf[1024];
    BlkStats stats;

    g_assert_cmpint(fx_rw(blk, BLK_READ, end - 512, buf, 512, 0), ==, 0);
    g_assert_cmpint(fx_rw(blk, BLK_READ, end - 512, buf, 1024, 0), ==, -EIO);
    g_assert_cmpint(fx_rw(blk, BLK_WRITE, end, buf, 512, 0), ==, -EIO);
    g_assert_cmpint(fx_rw(blk, BLK_WRITE, end, buf, 0, 0), ==, 0);
    g_assert_cmpint(fx_rw(blk, BLK_READ, -512, buf, 512, 0), ==, -EIO);
    g_assert_cmpint(fx_rw(blk, BLK_READ, INT64_MAX - 511, buf, 512, 0), ==, -EIO);
    g_assert_cmpint(fx_rw(blk, BLK_READ, 0, buf, -512, 0), ==, -EIO);
    g_assert_cmpint(fx_rw(blk, BLK_DISCARD, 0, NULL, INT64_MAX, 0), ==, -EIO);
    g_assert_cmpint(fx_rw(blk, BLK_WRITE_ZEROES, 512, NULL, end, 0), ==, -EIO);
    blk_get_stats(blk, &stats);
    g_assert_cmpuint(stats.refused, ==, 7);
    g_assert_cmpuint(stats.op[BLK_READ].count, ==, 1);
    g_assert_cmpuint(stats.op[BLK_READ].bytes, ==, 512);
    g_assert_cmpuint(stats.op[BLK_WRITE].count, ==, 1);
    blk_close(blk);
    node_unref(node);
}

static void test_read_only(void)
{
    BlockNode *node = fx_null(NULL, 1 << 20, 0, false);
    GError *err = NULL;
    BlockBackend *blk = blk_open_node(node, "reader", BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL,
                                      &err);
    char buf[512];

    g_assert_no_error(err);
    g_assert_cmpint(fx_rw(blk, BLK_READ, 0, buf, 512, 0), ==, 0);
    g_assert_cmpint(fx_rw(blk, BLK_WRITE, 0, buf, 512, 0), ==, -EPERM);
    g_assert_cmpint(fx_rw(blk, BLK_DISCARD, 0, NULL, 512, 0), ==, -EPERM);
    g_assert_cmpint(fx_rw(blk, BLK_WRITE_ZEROES, 0, NULL, 512, 0), ==, -EPERM);
    g_assert_cmpint(fx_flush(blk), ==, 0);
    blk_close(blk);
    node_unref(node);
}

static void latency_never_early(int64_t latency_ns, int64_t poll_max_ns)
{
    BlockNode *node = fx_null(NULL, 1 << 20, latency_ns, false);
    BlockBackend *blk = fx_blk(node);
    Timed *t = g_new0(Timed, 100);
    char buf[512];

    set_polling(poll_max_ns);
    for (int i = 0; i < 100; i++) {
        timed_start(&t[i], blk, BLK_READ, 0, buf, sizeof(buf));
        if (i % 10 == 9) {
            wait_all(blk);
        }
    }
    for (int i = 0; i < 100; i++) {
        g_assert_cmpint(t[i].ret, ==, 0);
        g_assert_cmpint(t[i].done_ns - t[i].submitted_ns, >=, latency_ns);
    }
    set_polling(0);
    g_free(t);
    blk_close(blk);
    node_unref(node);
}

static void test_latency_sleeping(void)
{
    latency_never_early(200000, 0);
    latency_never_early(1, 0);
}

static void test_latency_polling(void)
{
    latency_never_early(20000, 1000000);
    latency_never_early(200000, 32768);
}

/* Devices of different speed in one context: each by its own deadline, those of
 * one device in the order in which they came. */
static void test_latencies_mixed(void)
{
    BlockNode *slow = fx_null("slow", 1 << 20, 3000000, false);
    BlockNode *fast = fx_null("fast", 1 << 20, 500000, false);
    BlockBackend *blk_slow = fx_blk(slow), *blk_fast = fx_blk(fast);
    Timed s[4] = { 0 }, f[4] = { 0 };
    char buf[512];

    order = 0;
    for (int i = 0; i < 4; i++) {
        timed_start(&s[i], blk_slow, BLK_READ, 0, buf, sizeof(buf));
        timed_start(&f[i], blk_fast, BLK_READ, 0, buf, sizeof(buf));
    }
    wait_all(blk_fast);
    wait_all(blk_slow);
    for (int i = 0; i < 4; i++) {
        g_assert_cmpint(f[i].done_ns - f[i].submitted_ns, >=, 500000);
        g_assert_cmpint(s[i].done_ns - s[i].submitted_ns, >=, 3000000);
        g_assert_cmpint(f[i].order, ==, i);
        g_assert_cmpint(s[i].order, ==, 4 + i);
    }
    blk_close(blk_slow);
    blk_close(blk_fast);
    node_unref(slow);
    node_unref(fast);
}

/* A completion may submit again; the new request completes in its own turn. */
typedef struct Chain {
    BlockBackend *blk;
    BlkReq req;
    struct iovec iov;
    char buf[512];
    int left;
    int depth;                          /* completions on the stack */
} Chain;

static void chain_done(BlkReq *req, void *opaque, int ret)
{
    Chain *c = opaque;

    g_assert_cmpint(ret, ==, 0);
    g_assert_cmpint(c->depth++, ==, 0);
    if (--c->left > 0) {
        blk_req_init(&c->req, BLK_READ, 0, 512, &c->iov, 1, 0, chain_done, c);
        g_assert_cmpint(blk_submit(c->blk, &c->req), ==, 0);
    }
    c->depth--;
}

static void test_resubmit_from_completion(void)
{
    BlockNode *node = fx_null(NULL, 1 << 20, 0, false);
    Chain c = { .blk = fx_blk(node), .left = 1000 };

    c.iov = (struct iovec) { c.buf, sizeof(c.buf) };
    blk_req_init(&c.req, BLK_READ, 0, 512, &c.iov, 1, 0, chain_done, &c);
    g_assert_cmpint(blk_submit(c.blk, &c.req), ==, 0);
    g_assert_cmpint(c.left, ==, 1000);
    while (c.left > 0) {
        aio_poll(fx_ctx(), true);
    }
    g_assert_cmpuint(blk_in_flight(c.blk), ==, 0);
    blk_close(c.blk);
    node_unref(node);
}

static void test_options_out_of_range(void)
{
    BlockNodeFlags flags = { 0 };
    static const NullParams bad[] = {
        { .size = -1 }, { .size = INT64_MAX }, { .size = 512, .latency_ns = -1 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        BlockNode *node = node_new(&bdrv_null_co, "n", &flags, NULL);
        GError *err = NULL;

        g_assert_false(node_open_by(node, null_open, &bad[i], &err));
        g_assert_nonnull(strstr(err->message, bad[i].latency_ns ? "latency-ns" : "size"));
        g_clear_error(&err);
        node_unref(node);
    }
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/block/null/no-latency", test_no_latency);
    g_test_add_func("/block/null/read-leaves-buffer", test_read_leaves_buffer);
    g_test_add_func("/block/null/latency-sleeping", test_latency_sleeping);
    g_test_add_func("/block/null/latency-polling", test_latency_polling);
    g_test_add_func("/block/null/latencies-mixed", test_latencies_mixed);
    g_test_add_func("/block/null/options-out-of-range", test_options_out_of_range);
    g_test_add_func("/block/front-door/bounds", test_bounds);
    g_test_add_func("/block/front-door/read-only", test_read_only);
    g_test_add_func("/block/front-door/resubmit-from-completion", test_resubmit_from_completion);
    ret = g_test_run();
    fx_ctx_free();
    return ret;
}
