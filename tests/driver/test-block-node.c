/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names, references, permissions and windows of block nodes. */
#include <errno.h>
#include <string.h>

#include "driver/block-fixture.h"

static void assert_error(GError **err, const char *part)
{
    g_assert_nonnull(*err);
    if (!strstr((*err)->message, part)) {
        g_error("'%s' is not in: %s", part, (*err)->message);
    }
    g_clear_error(err);
}

static void test_names(void)
{
    static const char *const bad[] = {
        "", "1a", "#a", "a b", "a/b", "-a", "a,b", "0123456789",
        "abcdefghijklmnopqrstuvwxyz012345",
    };
    BlockNodeFlags flags = { 0 };
    BlockNode *node = fx_null("a.b-c_D9", 512, 0, false);
    BlockNode *longest = fx_null("abcdefghijklmnopqrstuvwxyz01234", 512, 0, false);
    BlockNode *other = fx_null(NULL, 512, 0, false);
    GError *err = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_null(node_new(&bdrv_null_co, bad[i], &flags, &err));
        assert_error(&err, "Invalid node-name");
    }
    g_assert_null(node_new(&bdrv_null_co, "a.b-c_D9", &flags, &err));
    assert_error(&err, "Duplicate nodes with node-name='a.b-c_D9'");
    g_assert_true(g_str_has_prefix(other->name, "#block"));
    g_assert_true(node_find("a.b-c_D9") == node);
    g_assert_null(node_find("nope"));
    g_assert_true(node_next(node_next(node_next(NULL))) == other);
    g_assert_null(node_next(other));
    node_unref(other);
    node_unref(longest);
    node_unref(node);
    g_assert_null(node_find("a.b-c_D9"));
}

static BlockBackend *writer(BlockNode *node, bool share_rw, GError **errp)
{
    return blk_open_node(node, "disk", BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE,
                         share_rw ? BLK_PERM_ALL : BLK_PERM_ALL & ~BLK_PERM_WRITE, errp);
}

static void test_one_writer(void)
{
    BlockNode *node = fx_null("n", 512, 0, false);
    GError *err = NULL;
    BlockBackend *first = writer(node, false, &err);
    BlockBackend *reader;

    g_assert_no_error(err);
    g_assert_null(writer(node, false, &err));
    assert_error(&err, "'n' is in use by 'disk'");
    g_assert_null(writer(node, true, &err));
    assert_error(&err, "'write'");
    reader = blk_open_node(node, "reader", BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL, &err);
    g_assert_no_error(err);
    blk_close(first);
    first = writer(node, false, &err);
    g_assert_no_error(err);
    blk_close(reader);
    blk_close(first);
    node_unref(node);
}

static void test_sharing_writers(void)
{
    BlockNode *node = fx_null("n", 512, 0, false);
    BlockBackend *a = writer(node, true, NULL), *b = writer(node, true, NULL);
    GError *err = NULL;

    g_assert_nonnull(a);
    g_assert_nonnull(b);
    g_assert_null(writer(node, false, &err));
    assert_error(&err, "does not share");
    blk_close(a);
    blk_close(b);
    node_unref(node);
}

/* What a format's user may do binds the node below it. */
static void test_permissions_reach_children(void)
{
    BlockNode *below = fx_null("below", 1024, 0, false);
    BlockNode *top = fx_raw(below, 0, -1, NULL);
    GError *err = NULL;
    BlockBackend *blk = writer(top, false, &err);

    g_assert_no_error(err);
    g_assert_null(writer(below, true, &err));
    assert_error(&err, "'below' is in use by 'file'");
    blk_close(blk);
    blk = writer(below, false, &err);
    g_assert_no_error(err);
    g_assert_null(writer(top, false, &err));
    assert_error(&err, "below");
    blk_close(blk);
    node_unref(below);
    node_unref(top);
    g_assert_null(node_next(NULL));
}

/* Its user learns that it may only read, and an edge that must write is refused. */
static void test_read_only_node_has_no_writer(void)
{
    BlockNodeFlags flags = { .read_only = true };
    BlockNode *node = node_new(&bdrv_null_co, "ro", &flags, NULL);
    GError *err = NULL;
    BlockBackend *blk;
    char buf[512];

    g_assert_true(node_open_by(node, null_open, &(NullParams) { .size = 512 }, NULL));
    blk = writer(node, false, &err);
    g_assert_no_error(err);
    g_assert_true(blk_is_read_only(blk));
    g_assert_cmpint(fx_rw(blk, BLK_WRITE, 0, buf, 512, 0), ==, -EPERM);
    blk_close(blk);
    g_assert_null(edge_new(node, NULL, "x", BLK_PERM_WRITE, BLK_PERM_ALL, &err));
    assert_error(&err, "'ro' is read-only");
    node_unref(node);
}

static void test_raw_window(void)
{
    BlockNode *below = fx_null("below", 1 << 20, 0, false);
    BlockNode *top = fx_raw(below, 4096, 8192, NULL);
    BlockBackend *blk;
    GError *err = NULL;
    char buf[512];

    g_assert_cmpint(node_length(top), ==, 8192);
    blk = fx_blk(top);
    g_assert_cmpint(fx_rw(blk, BLK_READ, 8192 - 512, buf, 512, 0), ==, 0);
    g_assert_cmpint(fx_rw(blk, BLK_READ, 8192, buf, 512, 0), ==, -EIO);
    blk_close(blk);
    node_unref(top);

    g_assert_null(fx_raw(below, 1 << 20, 512, &err));
    assert_error(&err, "beyond the end");
    g_assert_null(fx_raw(below, (1 << 20) + 1, -1, &err));
    assert_error(&err, "offset");
    g_assert_null(fx_raw(below, 0, 1000, &err));
    assert_error(&err, "multiple of 512");
    g_assert_null(fx_raw(below, INT64_MAX, INT64_MAX, &err));
    assert_error(&err, "offset");
    top = fx_raw(below, 1 << 20, -1, NULL);
    g_assert_cmpint(node_length(top), ==, 0);
    node_unref(top);
    node_unref(below);
}

static void count_resize(void *opaque)
{
    ++*(int *)opaque;
}

static void test_growth_reaches_user(void)
{
    BlockNode *below = fx_null("below", 1 << 20, 0, false);
    BlockNode *top = fx_raw(below, 4096, -1, NULL);
    BlockBackend *blk = fx_blk(top);
    int resized = 0;

    blk_set_resize_cb(blk, count_resize, &resized);
    node_set_length(below, 2 << 20);
    g_assert_cmpint(resized, ==, 1);
    g_assert_cmpint(blk_length(blk), ==, (2 << 20) - 4096);
    blk_close(blk);
    node_unref(top);
    node_unref(below);
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/block/node/names", test_names);
    g_test_add_func("/block/node/one-writer", test_one_writer);
    g_test_add_func("/block/node/sharing-writers", test_sharing_writers);
    g_test_add_func("/block/node/permissions-reach-children", test_permissions_reach_children);
    g_test_add_func("/block/node/read-only-node-has-no-writer",
                    test_read_only_node_has_no_writer);
    g_test_add_func("/block/node/raw-window", test_raw_window);
    g_test_add_func("/block/node/growth-reaches-user", test_growth_reaches_user);
    ret = g_test_run();
    fx_ctx_free();
    return ret;
}
