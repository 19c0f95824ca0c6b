/*
 * What -blockdev takes, through the generated types.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "config-host.h"
#include "qapi/block-types.h"
#include "util/keyval.h"

static BlockdevOptions *parse(const char *text, GError **errp)
{
    g_auto(Keyval) kv = { 0 };

    if (!keyval_parse(&kv, text, "driver", KEYVAL_JSON, errp)) {
        return NULL;
    }
    return BlockdevOptions_from_json(kv.options, kv.texts, errp);
}

static void test_key_value_form(void)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(BlockdevOptions) o =
        parse("driver=file,filename=a,,b,aio=threads,cache.direct=on,node-name=f0,"
              "read-only=yes,discard=unmap,locking=off", &err);

    g_assert_no_error(err);
    g_assert_cmpint(o->driver, ==, BLOCKDEV_DRIVER_FILE);
    g_assert_cmpstr(o->node_name, ==, "f0");
    g_assert_cmpstr(o->u.file.filename, ==, "a,b");
    g_assert_true(o->u.file.has_aio);
    g_assert_cmpint(o->u.file.aio, ==, BLOCKDEV_AIO_OPTIONS_THREADS);
    g_assert_cmpint(o->u.file.locking, ==, ON_OFF_AUTO_OFF);
    g_assert_true(o->cache->has_direct && o->cache->direct);
    g_assert_false(o->cache->has_no_flush);
    g_assert_true(o->has_read_only && o->read_only);
    g_assert_false(o->has_auto_read_only);
    g_assert_cmpint(o->discard, ==, BLOCKDEV_DISCARD_OPTIONS_UNMAP);
}

static void test_children_by_name_or_definition(void)
{
    g_autoptr(BlockdevOptions) ref = parse("raw,file=f0,offset=64k,size=1.5M", NULL);
    g_autoptr(BlockdevOptions) inl = parse("raw,file.driver=null-co,file.size=1G", NULL);
    g_autoptr(BlockdevOptions) json =
        parse("{\"driver\":\"raw\",\"file\":{\"driver\":\"raw\",\"file\":\"x\"}}", NULL);
    g_autoptr(BlockdevOptions) copy = BlockdevOptions_clone(json);
    g_autoptr(JsonValue) back = BlockdevOptions_to_json(copy);
    g_autofree char *text = json_text(back);

    g_assert_cmpint(ref->u.raw.file->kind, ==, BLOCKDEV_REF_REFERENCE);
    g_assert_cmpstr(ref->u.raw.file->u.reference, ==, "f0");
    g_assert_cmpuint(ref->u.raw.offset, ==, 65536);
    g_assert_cmpuint(ref->u.raw.size, ==, 1572864);
    g_assert_cmpint(inl->u.raw.file->kind, ==, BLOCKDEV_REF_DEFINITION);
    g_assert_cmpuint(inl->u.raw.file->u.definition->u.null_co.size, ==, 1 << 30);
    g_assert_cmpstr(text, ==,
                    "{\"driver\":\"raw\",\"file\":{\"driver\":\"raw\",\"file\":\"x\"}}");
}

static void test_bad_options_are_named(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "", "Parameter 'driver' is missing" },
        { "driver=fle", "Parameter 'driver' does not accept value 'fle' (allowed: file, "
          "host_device, raw, null-co, null-aio); did you mean 'file'?" },
        { "file", "Parameter 'filename' is missing" },
        { "file,filename=a,nosuch=1", "Parameter 'nosuch' is unexpected" },
        { "file,filename=a,lokcing=on",
          "Parameter 'lokcing' is unexpected; did you mean 'locking'?" },
        { "file,filename=a,size=1", "Parameter 'size' is unexpected" },
        { "file,filename=a,cache=1",
          "Invalid parameter type for 'cache', expected: object (got string)" },
        { "file,filename=a,cache.driect=on",
          "Parameter 'cache.driect' is unexpected; did you mean 'direct'?" },
        { "file,filename=a,cache.direct=1",
          "Parameter 'cache.direct' expects 'on' or 'off', not '1'" },
        { "file,filename.x=a",
          "Invalid parameter type for 'filename', expected: string (got object)" },
        { "file,filename=a,detect-zeroes=on",
          "Parameter 'detect-zeroes' does not accept value 'on' (allowed: off)" },
        { "null-co,size=-1", "Parameter 'size' expects a size from 0 to 18446744073709551615 "
          "bytes (suffixes k, M, G, T, P, E allowed), not '-1'" },
        { "null-co,latency-ns=1k", "Parameter 'latency-ns' expects a number from 0 to "
          "18446744073709551615, not '1k'" },
        { "null-co,latency-ns=18446744073709551616", "Parameter 'latency-ns' expects a number "
          "from 0 to 18446744073709551615, not '18446744073709551616'" },
        { "null-co,read-only=bar", "Parameter 'read-only' expects 'on' or 'off', not 'bar'" },
        { "raw", "Parameter 'file' is missing" },
        { "raw,file.0=a",
          "Invalid parameter type for 'file', expected: BlockdevRef (got array)" },
        { "raw,file.driver=raw,file.file.driver=null-co,file.file.x=1",
          "Parameter 'file.file.x' is unexpected" },
        { "raw,file.driver=raw", "Parameter 'file.file' is missing" },
        { "{\"driver\":\"raw\",\"file\":3}",
          "Invalid parameter type for 'file', expected: BlockdevRef (got integer)" },
        { "{\"driver\":\"raw\",\"file\":null}",
          "Invalid parameter type for 'file', expected: BlockdevRef (got null)" },
        { "{\"driver\":\"null-co\",\"size\":\"3\"}",
          "Invalid parameter type for 'size', expected: integer (got string)" },
        { "{\"driver\":\"null-co\",\"size\":-3}", "Parameter 'size' expects a size from 0 to "
          "18446744073709551615 bytes (suffixes k, M, G, T, P, E allowed), not '-3'" },
        { "{\"driver\":\"null-co\",\"read-only\":\"on\"}",
          "Invalid parameter type for 'read-only', expected: boolean (got string)" },
        { "{\"driver\":7}",
          "Invalid parameter type for 'driver', expected: string (got integer)" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_null(parse(bad[i].text, &err));
        g_assert_nonnull(err);
        g_assert_cmpstr(err->message, ==, bad[i].message);
    }
}

/* Which engines there are is decided when we are built. */
static void test_engines_not_built_in_are_refused(void)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(BlockdevOptions) o = parse("file,filename=a,aio=native", &err);

#ifdef CONFIG_LINUX_AIO
    g_assert_no_error(err);
    g_assert_cmpint(o->u.file.aio, ==, BLOCKDEV_AIO_OPTIONS_NATIVE);
#else
    g_assert_null(o);
    g_assert_nonnull(err);
#endif
}

/* Children within children, as deep as the parsers let them through. */
static void test_deep_definitions(void)
{
    for (int depth = 1; depth < 200; depth++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autoptr(GError) err = NULL;
        g_autoptr(BlockdevOptions) o = NULL;

        for (int i = 0; i < depth; i++) {
            g_string_append(text, "{\"driver\":\"raw\",\"file\":");
        }
        g_string_append(text, "\"x\"");
        for (int i = 0; i < depth; i++) {
            g_string_append(text, "}");
        }
        o = parse(text->str, &err);
        g_assert_true((o != NULL) == (err == NULL));
        g_assert_true(depth > 60 || o);
        g_assert_true(depth < JSON_DEPTH_MAX || !o);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qapi-block/key-value", test_key_value_form);
    g_test_add_func("/qapi-block/children", test_children_by_name_or_definition);
    g_test_add_func("/qapi-block/bad-options", test_bad_options_are_named);
    g_test_add_func("/qapi-block/engines", test_engines_not_built_in_are_refused);
    g_test_add_func("/qapi-block/deep", test_deep_definitions);
    return g_test_run();
}
