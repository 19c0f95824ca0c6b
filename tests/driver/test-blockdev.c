/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -blockdev and -drive: what is accepted, what it means, how the rest is refused. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block/blockdev.h"
#include "driver/block-fixture.h"

static char *image, *odd_image;         /* 1 MiB of zeroes; the same, with a comma in its name */

/* "%s" is the image. */
static char *with_image(const char *format)
{
    g_auto(GStrv) parts = g_strsplit(format, "%s", -1);

    return g_strjoinv(image, parts);
}

static void blockdev_ok(const char *format)
{
    g_autofree char *arg = with_image(format);
    GError *err = NULL;

    blockdev_add_arg(arg, &err);
    g_assert_no_error(err);
}

static void drive_ok(const char *format)
{
    g_autofree char *arg = with_image(format);
    GError *err = NULL;

    drive_add_arg(arg, DRIVE_IF_VIRTIO, &err);
    g_assert_no_error(err);
}

static void check_refused(bool ok, GError *err, const char *arg, const char *part)
{
    if (ok || !err || !strstr(err->message, part) || strchr(err->message, '\n')) {
        g_error("%s: '%s' is not in, or more than one line: %s", arg, part,
                err ? err->message : "(accepted)");
    }
    g_error_free(err);
}

static unsigned count_nodes(void)
{
    unsigned n = 0;

    for (BlockNode *node = node_next(NULL); node; node = node_next(node)) {
        n++;
    }
    return n;
}

/* Refused by name, and nothing is left behind. */
static void blockdev_refused(const char *format, const char *part)
{
    g_autofree char *arg = with_image(format);
    unsigned before = count_nodes();
    GError *err = NULL;
    bool ok = blockdev_add_arg(arg, &err);

    check_refused(ok, err, arg, part);
    g_assert_cmpuint(count_nodes(), ==, before);
}

static void drive_refused(const char *format, const char *part)
{
    g_autofree char *arg = with_image(format);
    unsigned before = count_nodes();
    GError *err = NULL;
    bool ok = drive_add_arg(arg, DRIVE_IF_VIRTIO, &err);

    check_refused(ok, err, arg, part);
    g_assert_cmpuint(count_nodes(), ==, before);
}

static void test_blockdev_accepted(void)
{
    BlockNode *node;

    blockdev_ok("driver=null-co,node-name=n0");
    g_assert_cmpint(node_length(node_find("n0")), ==, 1 << 30);
    blockdev_ok("null-aio,node-name=n1,size=10M,latency-ns=5,read-zeroes=on");
    g_assert_cmpint(node_length(node_find("n1")), ==, 10 << 20);
    blockdev_ok("{\"driver\":\"file\",\"node-name\":\"f0\",\"filename\":\"%s\","
                "\"discard\":\"unmap\","
                "\"cache\":{\"direct\":true},\"aio\":\"threads\",\"detect-zeroes\":\"off\"}");
    node = node_find("f0");
    g_assert_true(node->flags.direct);
    g_assert_true(node->flags.unmap);
    g_assert_false(node->flags.no_flush);
    blockdev_ok("driver=raw,node-name=r0,file=f0,offset=4096,size=1k");
    g_assert_cmpint(node_length(node_find("r0")), ==, 1024);
    blockdev_close_all();
    g_assert_cmpuint(count_nodes(), ==, 0);
}

/* What isn't said about an inline child comes from its parent. */
static void test_inline_child_inherits(void)
{
    BlockNode *child;

    blockdev_ok("driver=raw,node-name=r,read-only=on,cache.direct=on,cache.no-flush=on,"
                "file.driver=file,file.filename=%s,file.cache.no-flush=off");
    child = node_find("r")->children[0]->node;
    g_assert_true(g_str_has_prefix(child->name, "#block"));
    g_assert_true(child->flags.read_only);
    g_assert_true(child->flags.direct);
    g_assert_false(child->flags.no_flush);
    g_assert_true(child->flags.unmap);
    g_assert_false(node_find("r")->flags.unmap);
    blockdev_close_all();
}

static void test_blockdev_refused(void)
{
    static const char *const cases[][2] = {
        { "driver=null-co", "'node-name' must be specified" },
        { "driver=nope,node-name=a", "nope" },
        { "node-name=a", "driver" },
        { "driver=null-co,node-name=1a", "Invalid node-name: '1a'" },
        { "driver=null-co,node-name=taken", "Duplicate nodes with node-name='taken'" },
        { "driver=null-co,node-name=a,sise=1", "sise" },
        { "driver=null-co,node-name=a,size=-1", "size" },
        { "driver=null-co,node-name=a,size=8E", "size" },
        { "driver=null-co,node-name=a,latency-ns=-1", "latency-ns" },
        { "driver=null-co,node-name=a,latency-ns=99999999999999", "latency-ns" },
        { "driver=null-co,node-name=a,discard=maybe", "discard" },
        { "driver=null-co,node-name=a,detect-zeroes=on", "detect-zeroes" },
        { "driver=null-co,node-name=a,force-share=on", "read-only=on" },
        { "driver=file,node-name=a", "filename" },
        { "driver=file,node-name=a,filename=/nonexistent/x", "/nonexistent/x" },
        { "driver=file,node-name=a,filename=/dev/null", "regular file" },
        { "driver=host_device,node-name=a,filename=%s", "block device" },
        { "driver=file,node-name=a,filename=%s,aio=native", "cache.direct=on" },
        { "driver=file,node-name=a,filename=%s,aio=bogus", "bogus" },
        { "driver=file,node-name=a,filename=%s,locking=maybe", "locking" },
        { "driver=raw,node-name=a", "file" },
        { "driver=raw,node-name=a,file=nope", "'nope'" },
        { "driver=raw,node-name=a,file=a", "'a'" },
        { "driver=raw,node-name=a,file.driver=null-co,file.node-name=taken", "taken" },
        { "driver=raw,node-name=a,file.driver=file", "file.filename" },
        { "driver=raw,node-name=a,file.driver=null-co,file.size=1k,offset=2k", "offset" },
        { "driver=raw,node-name=a,file.driver=null-co,file.size=1k,size=2k", "size" },
        { "driver=raw,node-name=a,file.driver=null-co,size=100", "512" },
        { "driver=raw,node-name=a,file.driver=null-co,offset=16E", "offset" },
        { "{\"driver\":\"null-co\",\"node-name\":\"a\",\"size\":\"1\"}", "size" },
        { "{\"driver\":\"null-co\"", "" },
        { "", "" },
    };

    blockdev_ok("driver=null-co,node-name=taken");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        blockdev_refused(cases[i][0], cases[i][1]);
    }
    blockdev_close_all();
}

static void test_drive_accepted(void)
{
    const Drive *drive;

    drive_ok("file=%s,format=raw,if=none,id=d0");
    drive = drive_find("d0");
    g_assert_true(drive->write_cache);
    g_assert_false(drive->read_only);
    g_assert_cmpint(drive->interface, ==, DRIVE_IF_NONE);
    g_assert_cmpint(drive->werror, ==, BLOCKDEV_ON_ERROR_AUTO);
    g_assert_true(drive->node->flags.auto_read_only);
    drive_ok("%s,format=raw,readonly=on,media=disk,snapshot=off,copy-on-read=off,werror=stop,"
             "rerror=ignore,discard=unmap,aio=threads,cache=directsync,index=3");
    drive = drive_find("virtio3");
    g_assert_true(drive->read_only);
    g_assert_false(drive->write_cache);
    g_assert_cmpint(drive->werror, ==, BLOCKDEV_ON_ERROR_STOP);
    g_assert_cmpint(drive->rerror, ==, BLOCKDEV_ON_ERROR_IGNORE);
    g_assert_true(drive->node->flags.unmap);
    g_assert_true(drive->node->children[0]->node->flags.direct);
    drive_ok("if=none,format=null-co,size=1M");
    g_assert_cmpint(node_length(drive_find("none1")->node), ==, 1 << 20);
    drive_ok("file=null-aio://,format=raw");
    g_assert_cmpstr(drive_find("virtio0")->node->children[0]->node->drv->name, ==, "null-aio");
    drive_ok("driver=raw,file.driver=null-co,file.size=1M,offset=4096");
    g_assert_cmpint(node_length(drive_find("virtio1")->node), ==, (1 << 20) - 4096);
    drive_ok("file=file:%s,format=raw,file.locking=off,id=x,node-name=mine");
    g_assert_true(drive_find("x")->node == node_find("mine"));
    blockdev_close_all();
    g_assert_null(drive_next(NULL));
    g_assert_cmpuint(count_nodes(), ==, 0);
}

static void test_drives_in_order(void)
{
    const Drive *drive;

    drive_ok("format=null-co,index=2,id=b");
    drive_ok("format=null-co,id=a");
    drive_ok("format=null-co,if=none,id=n");
    drive = drive_next(NULL);
    g_assert_cmpstr(drive->id, ==, "n");
    drive = drive_next(drive);
    g_assert_cmpstr(drive->id, ==, "a");
    drive = drive_next(drive);
    g_assert_cmpstr(drive->id, ==, "b");
    g_assert_null(drive_next(drive));
    blockdev_close_all();
}

static void test_cache_modes(void)
{
    static const struct {
        const char *options;
        bool direct, no_flush, write_cache;
    } cases[] = {
        { "cache=none", true, false, true },
        { "cache=off", true, false, true },
        { "cache=writeback", false, false, true },
        { "cache=writethrough", false, false, false },
        { "cache=directsync", true, false, false },
        { "cache=unsafe", false, true, true },
        { "cache.direct=on", true, false, true },
        { "cache.direct=on,cache.writeback=off", true, false, false },
        { "cache.no-flush=on", false, true, true },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *arg = g_strdup_printf("file=%%s,format=raw,id=d,%s", cases[i].options);
        const BlockNode *node;
        BlockBackend *blk;

        drive_ok(arg);
        node = drive_find("d")->node->children[0]->node;
        g_assert_cmpint(node->flags.direct, ==, cases[i].direct);
        g_assert_cmpint(node->flags.no_flush, ==, cases[i].no_flush);
        blk = blk_open("d", "test", BLK_PERM_WRITE, BLK_PERM_ALL, NULL);
        g_assert_cmpint(blk_default_write_cache(blk), ==, cases[i].write_cache);
        blk_close(blk);
        blockdev_close_all();
    }
}

static void test_drive_refused(void)
{
    static const char *const cases[][2] = {
        { "if=virtio", "file" },
        { "file=%s,if=ide", "ide" },
        { "file=%s,format=nope", "nope" },
        { "file=%s,format=raw,driver=raw", "driver=raw" },
        { "file=/nonexistent/x,format=raw", "/nonexistent/x" },
        { "file=/nonexistent/x", "/nonexistent/x" },
        { "file=ssh:x,format=raw", "Unknown protocol 'ssh'" },
        { "file=null-co://8,format=raw", "null-co" },
        { "file=%s,format=raw,cache=bad", "writethrough" },
        { "file=%s,format=raw,cache.bad=on", "bad" },
        { "file=%s,format=raw,cache.direct=2", "direct" },
        { "file=%s,format=raw,aio=bad", "aio" },
        { "file=%s,format=raw,aio=native", "cache.direct=on" },
        { "file=%s,format=raw,snapshot=on", "snapshot" },
        { "file=%s,format=raw,copy-on-read=on", "copy-on-read" },
        { "file=%s,format=raw,media=cdrom", "media" },
        { "file=%s,format=raw,werror=bad", "werror" },
        { "file=%s,format=raw,rerror=enospc", "rerror" },
        { "file=%s,format=raw,discard=bad", "discard" },
        { "file=%s,format=raw,readonly=maybe", "readonly" },
        { "file=%s,format=raw,index=-1", "index" },
        { "file=%s,format=raw,index=0", "index=0" },
        { "file=%s,format=raw,id=taken", "Duplicate ID 'taken'" },
        { "file=%s,format=raw,id=node", "'node'" },
        { "file=%s,format=raw,id=1", "'id'" },
        { "file=%s,format=raw,node-name=taken", "taken" },
        { "file=%s,format=raw,throttling.iops-total=5", "throttling" },
        { "file=%s,format=raw,bogus=5", "bogus" },
        { "file=%s,format=raw,file.bogus=5", "bogus" },
    };

    drive_ok("format=null-co,index=0,id=taken");
    blockdev_ok("null-co,node-name=node");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        drive_refused(cases[i][0], cases[i][1]);
    }
    blockdev_refused("null-co,node-name=taken", "taken");
    blockdev_close_all();
}

/* ---- guessing the format ---------------------------------------------------------------- */

static void image_begin(const void *bytes, size_t n, off_t at)
{
    FILE *file = fopen(image, "r+");

    g_assert_cmpint(fseeko(file, at, SEEK_SET), ==, 0);
    g_assert_cmpuint(fwrite(bytes, 1, n, file), ==, n);
    fclose(file);
}

static void test_other_formats_are_not_raw(void)
{
    static const struct {
        const char *format, *magic;
        int offset;
    } cases[] = {
        { "qcow2", "QFI\xfb\0\0\0\3", 0 }, { "qed", "QED\0\0\0\1\0", 0 },
        { "vmdk", "KDMV\1\0\0\0", 0 }, { "vdi", "\x7f\x10\xda\xbe\1\0\1\0", 64 },
        { "vhdx", "vhdxfile", 0 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        image_begin(cases[i].magic, 8, cases[i].offset);
        drive_refused("file=%s", cases[i].format);
        drive_ok("file=%s,format=raw");
        blockdev_close_all();
        image_begin("\0\0\0\0\0\0\0\0", 8, cases[i].offset);
    }
}

static int write_first(BlockBackend *blk, const char *magic, size_t at, int64_t bytes)
{
    char *buf = g_aligned_alloc0(1, 8192, 4096);
    int ret;

    memcpy(buf + at, magic, 4);
    ret = fx_rw(blk, BLK_WRITE, 0, buf, bytes, 0);
    g_aligned_free(buf);
    return ret;
}

static void test_guessed_raw_stays_raw(void)
{
    char buf[1024] = "QFI\xfb";
    BlockBackend *blk;

    drive_ok("file=%s,id=d");
    blk = blk_open("d", "test", BLK_PERM_WRITE, BLK_PERM_ALL, NULL);
    g_assert_cmpint(write_first(blk, "QFI\xfb", 0, 512), ==, -EPERM);
    g_assert_cmpint(write_first(blk, "QED\0", 0, 8192), ==, -EPERM);
    g_assert_cmpint(write_first(blk, "\x7f\x10\xda\xbe", 64, 4096), ==, -EPERM);
    g_assert_cmpint(write_first(blk, "BOOT", 0, 100), ==, -EPERM);
    g_assert_cmpint(write_first(blk, "BOOT", 0, 8192), ==, 0);
    g_assert_cmpint(fx_rw(blk, BLK_READ, 0, buf, 1024, 0), ==, 0);
    g_assert_cmpint(memcmp(buf, "BOOT", 4), ==, 0);
    memcpy(buf, "QFI\xfb", 4);
    g_assert_cmpint(fx_rw(blk, BLK_WRITE, 512, buf, 1024, 0), ==, 0);
    g_assert_cmpint(fx_rw(blk, BLK_WRITE_ZEROES, 0, NULL, 512, 0), ==, 0);
    blk_close(blk);
    blockdev_close_all();
}

/* ---- growth ------------------------------------------------------------------------------- */

static void growth_seen(void *opaque)
{
    g_main_loop_quit(opaque);
}

static gboolean give_up(void *opaque)
{
    g_error("nobody noticed that the image grew");
    return G_SOURCE_REMOVE;
}

static void test_growth_is_noticed(void)
{
    GMainLoop *loop = g_main_loop_new(NULL, FALSE);
    guint timer = g_timeout_add_seconds(20, give_up, NULL);
    BlockBackend *blk;

    drive_ok("file=%s,format=raw,id=d");
    blk = blk_open("d", "test", BLK_PERM_WRITE, BLK_PERM_ALL, NULL);
    blk_set_resize_cb(blk, growth_seen, loop);
    g_assert_cmpint(truncate(image, 2 << 20), ==, 0);
    g_main_loop_run(loop);
    g_assert_cmpint(blk_length(blk), ==, 2 << 20);
    g_source_remove(timer);
    blk_close(blk);
    blockdev_close_all();
    g_assert_cmpint(truncate(image, 1 << 20), ==, 0);
    g_main_loop_unref(loop);
}

/* A device needs a sector at least; what is longer is rounded up. */
static void test_short_images(void)
{
    static const struct {
        int64_t bytes, length;
    } cases[] = { { 0, -1 }, { 1, -1 }, { 511, -1 }, { 512, 512 }, { 513, 1024 } };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *err = NULL;
        BlockBackend *blk;

        g_assert_cmpint(truncate(image, cases[i].bytes), ==, 0);
        drive_ok("file=%s,format=raw,id=d");
        blk = blk_open("d", "test", BLK_PERM_WRITE, BLK_PERM_ALL, &err);
        if (cases[i].length < 0) {
            check_refused(blk != NULL, err, "id=d", "'d' is shorter than a sector");
        } else {
            g_assert_no_error(err);
            g_assert_cmpint(blk_length(blk), ==, cases[i].length);
            blk_close(blk);
        }
        blockdev_close_all();
    }
    g_assert_cmpint(truncate(image, 1 << 20), ==, 0);
}

static void test_comma_in_a_name(void)
{
    g_auto(GStrv) parts = g_strsplit(odd_image, ",", -1);
    g_autofree char *doubled = g_strjoinv(",,", parts);
    g_autofree char *arg = g_strdup_printf("file=%s,format=raw", doubled);
    GError *err = NULL;

    g_assert_true(drive_add_arg(arg, DRIVE_IF_NONE, &err));
    blockdev_close_all();
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    image = fx_image("disk", 1 << 20);
    odd_image = g_strdup_printf("%s,comma", image);
    g_assert_cmpint(link(image, odd_image), ==, 0);
    g_test_add_func("/block/blockdev/accepted", test_blockdev_accepted);
    g_test_add_func("/block/blockdev/inline-child-inherits", test_inline_child_inherits);
    g_test_add_func("/block/blockdev/refused", test_blockdev_refused);
    g_test_add_func("/block/drive/accepted", test_drive_accepted);
    g_test_add_func("/block/drive/in-order", test_drives_in_order);
    g_test_add_func("/block/drive/cache-modes", test_cache_modes);
    g_test_add_func("/block/drive/refused", test_drive_refused);
    g_test_add_func("/block/drive/other-formats-are-not-raw", test_other_formats_are_not_raw);
    g_test_add_func("/block/drive/guessed-raw-stays-raw", test_guessed_raw_stays_raw);
    g_test_add_func("/block/drive/growth-is-noticed", test_growth_is_noticed);
    g_test_add_func("/block/drive/short-images", test_short_images);
    g_test_add_func("/block/drive/comma-in-a-name", test_comma_in_a_name);
    ret = g_test_run();
    fx_ctx_free();
    unlink(image);
    unlink(odd_image);
    g_free(image);
    g_free(odd_image);
    return ret;
}
