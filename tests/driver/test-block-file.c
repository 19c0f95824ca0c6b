/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file driver through each engine, buffered and direct, on tmpfs and on a
 * disk: content against a shadow, ends of files, errors of the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/block-fixture.h"
#include "driver/block-shadow.h"

typedef struct Variant {
    const char *aio, *place;
    bool direct;
    bool unaligned;                     /* memory that O_DIRECT refuses */
} Variant;

typedef struct Disk {
    char *path;
    BlockNode *file, *raw;
    BlockBackend *blk;
} Disk;

/* False: skipped by name. */
static bool disk_open(Disk *d, const Variant *v, int64_t bytes)
{
    BlockNodeFlags flags = { .direct = v->direct, .unmap = true };
    g_autoptr(GError) err = NULL;

    if (!fx_dir(v->place)) {
        g_autofree char *why = g_strdup_printf("no %s here", v->place);

        g_test_skip(why);
        return false;
    }
    d->path = fx_image(v->place, bytes);
    d->file = fx_file(d->path, v->aio, flags, &err);
    if (!d->file) {
        g_test_skip(err->message);
        unlink(d->path);
        g_free(d->path);
        return false;
    }
    d->raw = fx_raw(d->file, 0, -1, NULL);
    d->blk = fx_blk(d->raw);
    return true;
}

static void disk_close(Disk *d)
{
    blk_close(d->blk);
    node_unref(d->raw);
    node_unref(d->file);
    unlink(d->path);
    g_free(d->path);
}

/* ---- content ------------------------------------------------------------------------ */

static void test_random(const void *opaque)
{
    const Variant *v = opaque;
    Disk d;

    if (disk_open(&d, v, SHADOW_BYTES)) {
        shadow_run(d.blk, d.path, v->unaligned, 3000);
        disk_close(&d);
    }
}

/* ---- more in flight than an engine takes at once ----------------------------------- */

static void count_done(BlkReq *req, void *opaque, int ret)
{
    g_assert_cmpint(ret, ==, 0);
    ++*(unsigned *)opaque;
}

static void test_many_in_flight(const void *opaque)
{
    enum { N = 5000 };
    g_autofree BlkReq *reqs = g_new0(BlkReq, N);
    g_autofree struct iovec *iov = g_new0(struct iovec, N);
    char *memory = aligned_alloc(4096, N * 512);
    unsigned done = 0;
    Disk d;

    if (!disk_open(&d, opaque, 1 << 20)) {
        free(memory);
        return;
    }
    for (int i = 0; i < N; i++) {
        iov[i] = (struct iovec) { memory + i * 512, 512 };
        blk_req_init(&reqs[i], BLK_READ, (i % 256) * 4096, 512, &iov[i], 1, 0, count_done, &done);
        g_assert_cmpint(blk_submit(d.blk, &reqs[i]), ==, 0);
    }
    g_assert_cmpuint(done, ==, 0);
    g_assert_cmpuint(blk_in_flight(d.blk), ==, N);
    blk_drain(d.blk);
    g_assert_cmpuint(done, ==, N);
    free(memory);
    disk_close(&d);
}

/* A vector longer than a system call takes. */
static void test_long_vector(const void *opaque)
{
    enum { N = 2048 };
    g_autofree struct iovec *iov = g_new0(struct iovec, N);
    uint8_t *memory = aligned_alloc(4096, N * 512);
    unsigned done = 0;
    BlkReq req;
    Disk d;

    if (!disk_open(&d, opaque, N * 512)) {
        free(memory);
        return;
    }
    for (int i = 0; i < N; i++) {
        memset(memory + i * 512, i * 7 + 1, 512);
        iov[i] = (struct iovec) { memory + i * 512, 512 };
    }
    blk_req_init(&req, BLK_WRITE, 0, N * 512, iov, N, 0, count_done, &done);
    g_assert_cmpint(blk_submit(d.blk, &req), ==, 0);
    blk_drain(d.blk);
    memset(memory, 0, N * 512);
    blk_req_init(&req, BLK_READ, 0, N * 512, iov, N, 0, count_done, &done);
    g_assert_cmpint(blk_submit(d.blk, &req), ==, 0);
    blk_drain(d.blk);
    g_assert_cmpuint(done, ==, 2);
    for (int i = 0; i < N; i++) {
        g_assert_cmpint(memory[i * 512], ==, (uint8_t)(i * 7 + 1));
        g_assert_cmpint(memory[i * 512 + 511], ==, (uint8_t)(i * 7 + 1));
    }
    free(memory);
    disk_close(&d);
}

/* ---- the end of the file -------------------------------------------------------------- */

/* 1000 bytes are two sectors; what is missing reads as zeroes and can be written. */
static void test_partial_sector(const void *opaque)
{
    uint8_t *buf = aligned_alloc(4096, 4096);
    struct stat st;
    Disk d;

    if (!disk_open(&d, opaque, 1000)) {
        free(buf);
        return;
    }
    g_assert_cmpint(blk_length(d.blk), ==, 1024);
    memset(buf, 0xff, 4096);
    g_assert_cmpint(fx_rw(d.blk, BLK_READ, 0, buf, 1024, 0), ==, 0);
    for (int i = 0; i < 1024; i++) {
        g_assert_cmpint(buf[i], ==, 0);
    }
    g_assert_cmpint(buf[1024], ==, 0xff);
    memset(buf, 0xee, 1024);
    g_assert_cmpint(fx_rw(d.blk, BLK_WRITE, 512, buf, 512, 0), ==, 0);
    memset(buf, 0, 1024);
    g_assert_cmpint(fx_rw(d.blk, BLK_READ, 512, buf, 512, 0), ==, 0);
    g_assert_cmpint(buf[0], ==, 0xee);
    g_assert_cmpint(buf[511], ==, 0xee);
    g_assert_cmpint(stat(d.path, &st), ==, 0);
    g_assert_cmpint(st.st_size, ==, 1024);
    free(buf);
    disk_close(&d);
}

/* The file was cut off behind our back: reads find zeroes, not an error or old bytes. */
static void test_cut_off(const void *opaque)
{
    uint8_t *buf = aligned_alloc(4096, 65536);
    Disk d;

    if (!disk_open(&d, opaque, 65536)) {
        free(buf);
        return;
    }
    memset(buf, 0x11, 65536);
    g_assert_cmpint(fx_rw(d.blk, BLK_WRITE, 0, buf, 65536, 0), ==, 0);
    g_assert_cmpint(truncate(d.path, 10000), ==, 0);
    memset(buf, 0x22, 65536);
    g_assert_cmpint(fx_rw(d.blk, BLK_READ, 0, buf, 65536, 0), ==, 0);
    for (int i = 0; i < 65536; i++) {
        g_assert_cmpint(buf[i], ==, i < 10000 ? 0x11 : 0);
    }
    free(buf);
    disk_close(&d);
}

static void test_growth_is_noticed(const void *opaque)
{
    Disk d;

    if (!disk_open(&d, opaque, 4096)) {
        return;
    }
    g_assert_cmpint(truncate(d.path, 8000), ==, 0);
    g_assert_cmpint(blk_length(d.blk), ==, 4096);
    g_assert_cmpint(node_refresh_length(d.file), ==, 8192);
    g_assert_cmpint(blk_length(d.blk), ==, 8192);
    disk_close(&d);
}

/* ---- errors of the host ------------------------------------------------------------------ */

/* In a child, since the limit can't be raised again everywhere. */
static void test_file_size_limit(const void *opaque)
{
    if (!g_test_subprocess()) {
        g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
        g_test_trap_assert_passed();
        return;
    }

    uint8_t *buf = aligned_alloc(4096, 8192);
    Disk d;

    signal(SIGXFSZ, SIG_IGN);
    memset(buf, 1, 8192);
    if (disk_open(&d, opaque, 4096)) {
        struct rlimit limit = { 16384, 16384 };

        /* The file has 4096 bytes, the image is a larger one. */
        node_set_length(d.file, 1 << 20);
        g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        g_assert_cmpint(fx_rw(d.blk, BLK_WRITE, 0, buf, 8192, 0), ==, 0);
        g_assert_cmpint(fx_rw(d.blk, BLK_WRITE, 32768, buf, 8192, 0), ==, -EFBIG);
        /* Half of it fits: the rest is an error all the same. */
        g_assert_cmpint(fx_rw(d.blk, BLK_WRITE, 12288, buf, 8192, 0), ==, -EFBIG);
        g_assert_cmpint(fx_rw(d.blk, BLK_READ, 0, buf, 8192, 0), ==, 0);
        disk_close(&d);
    }
    free(buf);
}

static void test_full_filesystem(const void *opaque)
{
    g_autofree char *dir = g_dir_make_tmp("blk-full-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "img", NULL);
    const Variant *v = opaque;
    BlockNodeFlags flags = { .direct = v->direct };
    g_autoptr(GError) err = NULL;
    uint8_t *buf = aligned_alloc(4096, 65536);
    BlockNode *node;
    BlockBackend *blk;

    if (mount("none", dir, "tmpfs", 0, "size=1m") < 0) {
        g_test_skip("mounting a tmpfs is not permitted");
        rmdir(dir);
        free(buf);
        return;
    }
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_assert_cmpint(truncate(path, 4 << 20), ==, 0);
    node = fx_file(path, v->aio, flags, &err);
    if (node) {
        int ret = 0;

        blk = fx_blk(node);
        memset(buf, 1, 65536);
        for (int64_t at = 0; at < 4 << 20 && ret == 0; at += 65536) {
            ret = fx_rw(blk, BLK_WRITE, at, buf, 65536, 0);
        }
        g_assert_cmpint(ret, ==, -ENOSPC);
        g_assert_cmpint(fx_rw(blk, BLK_READ, 0, buf, 65536, 0), ==, 0);
        g_assert_cmpint(buf[65535], ==, 1);
        blk_close(blk);
        node_unref(node);
    } else {
        g_test_skip(err->message);
    }
    unlink(path);
    umount(dir);
    rmdir(dir);
    free(buf);
}

/* ---- opening ------------------------------------------------------------------------------- */

static void open_fails(const char *path, const char *aio, BlockNodeFlags flags, const char *part)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(fx_file(path, aio, flags, &err));
    g_assert_nonnull(err);
    if (!strstr(err->message, part) || strchr(err->message, '\n')) {
        g_error("'%s' is not in, or more than one line: %s", part, err->message);
    }
}

static void test_open_errors(void)
{
    g_autofree char *path = fx_image("disk", 4096);

    open_fails("/nonexistent/image", NULL, (BlockNodeFlags) { 0 }, "No such file or directory");
    open_fails("/tmp", NULL, (BlockNodeFlags) { 0 }, "directory");
    open_fails("/dev/null", NULL, (BlockNodeFlags) { 0 }, "regular file");
    unlink(path);
    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    open_fails(path, NULL, (BlockNodeFlags) { .read_only = true }, "regular file");
    unlink(path);
    g_assert_true(g_file_set_contents(path, "x", 1, NULL));
    open_fails("", NULL, (BlockNodeFlags) { 0 }, "''");
    open_fails(path, "native", (BlockNodeFlags) { 0 }, "requires cache.direct=on");
    open_fails(path, "posix", (BlockNodeFlags) { 0 }, "aio=posix");
    unlink(path);
}

static void test_auto_read_only(void)
{
    g_autofree char *path = fx_image("disk", 4096);
    uid_t user = geteuid();
    BlockNode *node;

    chmod(path, 0444);
    if (user == 0) {
        g_assert_cmpint(seteuid(65534), ==, 0); /* root may write everything */
    }
    open_fails(path, NULL, (BlockNodeFlags) { 0 }, "Permission denied");
    node = fx_file(path, NULL, (BlockNodeFlags) { .auto_read_only = true }, NULL);
    g_assert_true(node->flags.read_only);
    node_unref(node);
    if (user == 0) {
        g_assert_cmpint(seteuid(0), ==, 0);
    }
    unlink(path);
}

static void test_second_user_is_refused(void)
{
    g_autofree char *path = fx_image("disk", 4096);
    BlockNode *a = fx_file(path, NULL, (BlockNodeFlags) { 0 }, NULL);
    BlockNode *b = fx_file(path, NULL, (BlockNodeFlags) { 0 }, NULL);
    BlockBackend *blk = fx_blk(a), *reader;
    GError *err = NULL;

    g_assert_null(blk_open_node(b, "other", BLK_PERM_WRITE, BLK_PERM_ALL, &err));
    g_assert_nonnull(strstr(err->message, "Failed to get \"write\" lock"));
    g_assert_nonnull(strstr(err->message, path));
    g_assert_nonnull(strstr(err->message, "twice"));
    g_clear_error(&err);
    /* A reader that doesn't mind writers is welcome, one that does isn't. */
    reader = blk_open_node(b, "reader", BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL, &err);
    g_assert_no_error(err);
    blk_close(reader);
    g_assert_null(blk_open_node(b, "strict", BLK_PERM_CONSISTENT_READ,
                                BLK_PERM_ALL & ~BLK_PERM_WRITE, &err));
    g_assert_nonnull(strstr(err->message, "shared \"write\" lock"));
    g_clear_error(&err);
    blk_close(blk);
    blk = fx_blk(b);
    blk_close(blk);
    node_unref(a);
    node_unref(b);
    unlink(path);
}

/* ---- the matrix ------------------------------------------------------------------ */

static void add_variant(const Variant *v)
{
    static const struct {
        const char *name;
        void (*fn)(const void *opaque);
        bool once;                      /* not for odd memory */
    } cases[] = {
        { "random-against-shadow", test_random, false },
        { "many-in-flight", test_many_in_flight, true },
        { "long-vector", test_long_vector, true },
        { "partial-sector", test_partial_sector, true },
        { "cut-off", test_cut_off, true },
        { "growth-is-noticed", test_growth_is_noticed, true },
        { "file-size-limit", test_file_size_limit, true },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/block/file/%s/%s/%s%s/%s", v->aio, v->place,
                                                v->direct ? "direct" : "buffered",
                                                v->unaligned ? "-odd-memory" : "",
                                                cases[i].name);

        if (!v->unaligned || !cases[i].once) {
            g_test_add_data_func(path, v, cases[i].fn);
        }
    }
}

static void add_all_variants(void)
{
    static const char *const aios[] = { "threads", "native", "io_uring" };
    static const char *const places[] = { "tmpfs", "disk" };
    static Variant variants[G_N_ELEMENTS(aios) * G_N_ELEMENTS(places) * 4];
    int n = 0;

    for (size_t a = 0; a < G_N_ELEMENTS(aios); a++) {
        for (size_t p = 0; p < G_N_ELEMENTS(places); p++) {
            for (int kind = 0; kind < 4; kind++) {
                Variant *v = &variants[n++];

                *v = (Variant) { aios[a], places[p], kind & 1, kind & 2 };
                if (v->direct || strcmp(aios[a], "native") != 0) {
                    add_variant(v);
                }
            }
        }
        static Variant full[G_N_ELEMENTS(aios)];
        g_autofree char *path = g_strdup_printf("/block/file/%s/full-filesystem", aios[a]);

        full[a] = (Variant) { .aio = aios[a], .direct = strcmp(aios[a], "native") == 0 };
        g_test_add_data_func(path, &full[a], test_full_filesystem);
    }
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/block/file/open-errors", test_open_errors);
    g_test_add_func("/block/file/auto-read-only", test_auto_read_only);
    g_test_add_func("/block/file/second-user-is-refused", test_second_user_is_refused);
    add_all_variants();
    ret = g_test_run();
    fx_ctx_free();
    return ret;
}
