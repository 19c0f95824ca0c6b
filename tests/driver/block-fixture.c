/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "driver/block-fixture.h"

static __thread AioContext *ctx_here;

AioContext *fx_ctx(void)
{
    if (!ctx_here) {
        GError *err = NULL;

        ctx_here = aio_context_new("test", &err);
        g_assert_no_error(err);
        aio_context_enter(ctx_here);
    }
    return ctx_here;
}

void fx_ctx_free(void)
{
    aio_context_free(ctx_here);
    ctx_here = NULL;
}

static BlockNode *open_node(const BlockDriver *drv, const char *name, BlockNodeFlags flags,
                            BlockOpenFn *open_fn, const void *params, GError **errp)
{
    GError *err = NULL;
    BlockNode *node = node_new(drv, name, &flags, &err);

    if (node && node_open_by(node, open_fn, params, &err)) {
        return node;
    }
    if (node) {
        node_unref(node);
    }
    if (!errp) {
        g_assert_no_error(err);
    }
    g_propagate_error(errp, err);
    return NULL;
}

BlockNode *fx_null(const char *name, int64_t size, int64_t latency_ns, bool read_zeroes)
{
    NullParams p = { .size = size, .latency_ns = latency_ns, .read_zeroes = read_zeroes };

    return open_node(&bdrv_null_co, name, (BlockNodeFlags) { 0 }, null_open, &p, NULL);
}

BlockNode *fx_file(const char *path, const char *aio, BlockNodeFlags flags, GError **errp)
{
    FileParams p = { .filename = path, .aio = aio };

    return open_node(&bdrv_file, NULL, flags, file_open, &p, errp);
}

BlockNode *fx_raw(BlockNode *file, int64_t offset, int64_t size, GError **errp)
{
    RawParams p = { .file = file, .offset = offset, .size = size };

    return open_node(&bdrv_raw, NULL, file->flags, raw_open, &p, errp);
}

BlockBackend *fx_blk(BlockNode *node)
{
    unsigned perm = BLK_PERM_CONSISTENT_READ | (node->flags.read_only ? 0 : BLK_PERM_WRITE);
    GError *err = NULL;
    BlockBackend *blk = blk_open_node(node, "test", perm, BLK_PERM_ALL & ~BLK_PERM_WRITE, &err);

    g_assert_no_error(err);
    return blk;
}

typedef struct Wait {
    bool done;
    int ret;
} Wait;

static void wait_done(BlkReq *req, void *opaque, int ret)
{
    Wait *w = opaque;

    g_assert_false(w->done);
    w->done = true;
    w->ret = ret;
}

static int submit_and_wait(BlockBackend *blk, BlkReq *req, Wait *w)
{
    AioContext *ctx = fx_ctx();
    int ret = blk_submit(blk, req);

    g_assert_false(w->done);            /* never before the call returns */
    if (ret < 0) {
        return ret;
    }
    while (!w->done) {
        aio_poll(ctx, true);
    }
    return w->ret;
}

int fx_rw(BlockBackend *blk, BlkOp op, int64_t offset, void *buf, int64_t bytes, uint32_t flags)
{
    struct iovec iov = { buf, bytes };
    Wait w = { 0 };
    BlkReq req;

    blk_req_init(&req, op, offset, bytes, &iov, 1, flags, wait_done, &w);
    return submit_and_wait(blk, &req, &w);
}

int fx_flush(BlockBackend *blk)
{
    return fx_rw(blk, BLK_FLUSH, 0, NULL, 0, 0);
}

/* ---- images --------------------------------------------------------------------- */

const char *fx_dir(const char *kind)
{
    bool tmpfs = strcmp(kind, "tmpfs") == 0;
    const char *dir = tmpfs ? "/dev/shm" : g_getenv("TEST_DISK_DIR");
    struct statfs st;

    if (!dir) {
        dir = "/var/tmp";
    }
    if (statfs(dir, &st) < 0 || access(dir, W_OK) < 0) {
        return NULL;
    }
    return (st.f_type == TMPFS_MAGIC) == tmpfs ? dir : NULL;
}

char *fx_image(const char *kind, int64_t bytes)
{
    const char *dir = fx_dir(kind);
    char *path = g_strdup_printf("%s/blk-test-XXXXXX", dir);
    int fd = mkstemp(path);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, bytes), ==, 0);
    close(fd);
    return path;
}

bool fx_direct_works(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);

    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

/* ---- chance ----------------------------------------------------------------------- */

uint64_t fx_random(void)
{
    static uint64_t x;

    if (x == 0) {
        const char *seed = g_getenv("TEST_SEED");

        x = seed ? g_ascii_strtoull(seed, NULL, 0) : (uint64_t)g_get_real_time();
        g_test_message("TEST_SEED=%" PRIu64, x);
        x = x ? x : 1;
    }
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    return x * 0x2545f4914f6cdd1dULL;
}
