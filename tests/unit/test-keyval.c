/*
 * key=value,... arguments.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/keyval.h"

#include <string.h>

static void assert_parses(const char *text, const char *implied, const char *expected)
{
    g_autoptr(GError) err = NULL;
    g_auto(Keyval) kv = { 0 };
    g_autofree char *out = NULL;

    keyval_parse(&kv, text, implied, KEYVAL_JSON, &err);
    g_assert_no_error(err);
    out = json_text(kv.options);
    g_assert_cmpstr(out, ==, expected);
    g_assert_false(kv.help);
}

static void assert_refused(const char *text, const char *implied, const char *message)
{
    g_autoptr(GError) err = NULL;
    Keyval kv;

    g_assert_false(keyval_parse(&kv, text, implied, KEYVAL_JSON, &err));
    g_assert_nonnull(err);
    g_assert_null(kv.options);
    if (message) {
        g_assert_cmpstr(err->message, ==, message);
    }
}

static void test_pairs(void)
{
    assert_parses("", NULL, "{}");
    assert_parses("a=b", NULL, "{\"a\":\"b\"}");
    assert_parses("a=b,c=d,", NULL, "{\"a\":\"b\",\"c\":\"d\"}");
    assert_parses("a=", NULL, "{\"a\":\"\"}");
    assert_parses("a=b=c", NULL, "{\"a\":\"b=c\"}");
    assert_parses("a=1,a=2", NULL, "{\"a\":\"2\"}");
    assert_parses("min_io_size=1,x-y=2,A9=3", NULL,
                  "{\"min_io_size\":\"1\",\"x-y\":\"2\",\"A9\":\"3\"}");
}

static void test_doubled_commas(void)
{
    assert_parses("a=b,,c,d=e", NULL, "{\"a\":\"b,c\",\"d\":\"e\"}");
    assert_parses("a=,,", NULL, "{\"a\":\",\"}");
    assert_parses("a=,,,,,b=1", NULL, "{\"a\":\",,\",\"b\":\"1\"}");
    assert_parses("x,,y,b=1", "k", "{\"k\":\"x,y\",\"b\":\"1\"}");
}

static void test_implied_key(void)
{
    assert_parses("raw,id=x", "driver", "{\"driver\":\"raw\",\"id\":\"x\"}");
    assert_parses("raw", "driver", "{\"driver\":\"raw\"}");
    assert_parses("driver=raw", "driver", "{\"driver\":\"raw\"}");
    assert_parses(",id=x", "driver", "{\"driver\":\"\",\"id\":\"x\"}");
    assert_refused("raw", NULL, "Expected '=' after parameter 'raw'");
    assert_refused("raw,x", "driver", "Expected '=' after parameter 'x'");
    assert_refused(",id=x", NULL, "Expected parameter before ','");
}

static void test_dots_make_objects_and_arrays(void)
{
    assert_parses("f.d=raw,f.x.y=1,z=2", NULL,
                  "{\"f\":{\"d\":\"raw\",\"x\":{\"y\":\"1\"}},\"z\":\"2\"}");
    assert_parses("l.1=b,l.0=a", NULL, "{\"l\":[\"a\",\"b\"]}");
    assert_parses("m.0.iothread=a,m.0.vqs.0=1,m.1.iothread=b", NULL,
                  "{\"m\":[{\"iothread\":\"a\",\"vqs\":[\"1\"]},{\"iothread\":\"b\"}]}");
    assert_refused("l.0=a,l.2=b", NULL, "Parameter 'l.1' missing");
    assert_refused("l.0=a,l.00=b", NULL, "Parameter 'l.1' missing");
    assert_refused("l.4294967296=a", NULL, "Parameter 'l.0' missing");
    assert_refused("l.0=a,l.x=b", NULL, "Parameters 'l.*' used inconsistently");
    assert_refused("f=a,f.x=b", NULL, "Parameters 'f.*' used inconsistently");
    assert_refused("a.f.x=a,a.f=b", NULL, "Parameters 'a.f.*' used inconsistently");
}

static void test_bad_keys(void)
{
    g_autofree char *part = g_strnfill(KEYVAL_PART_MAX + 1, 'k');
    g_autofree char *giant = g_strdup_printf("%s=1", part);
    g_autofree char *fits = g_strdup_printf("%s=1", part + 1);
    g_auto(Keyval) kv = { 0 };

    assert_refused("=a", NULL, "Invalid parameter ''");
    assert_refused("..=a", NULL, "Invalid parameter '..'");
    assert_refused("a..b=c", NULL, "Invalid parameter 'a..b'");
    assert_refused(".a=c", NULL, "Invalid parameter '.a'");
    assert_refused("a.=c", NULL, "Invalid parameter 'a.'");
    assert_refused("0=c", NULL, "Invalid parameter '0'");
    assert_refused("0.a=c", NULL, "Invalid parameter '0.a'");
    assert_refused("a.0b=c", NULL, "Invalid parameter 'a.0b'");
    assert_refused("a b=c", NULL, "Invalid parameter 'a b'");
    assert_refused("\xff=c", NULL, "Invalid parameter '\xff'");
    assert_refused(giant, NULL, NULL);
    g_assert_true(keyval_parse(&kv, fits, NULL, 0, NULL));
}

static void test_deep_keys_are_refused(void)
{
    g_autoptr(GString) key = g_string_new("a");

    for (int i = 0; i < JSON_DEPTH_MAX - 3; i++) {
        g_string_append(key, ".a");
    }
    g_string_append(key, "=1");
    {
        g_auto(Keyval) kv = { 0 };

        g_assert_true(keyval_parse(&kv, key->str, NULL, 0, NULL));
    }
    g_string_prepend(key, "a.");
    assert_refused(key->str, NULL, NULL);
    for (int i = 0; i < 100000; i++) {
        g_string_prepend(key, "a.");
    }
    assert_refused(key->str, NULL, NULL);
}

static void test_values_may_be_any_bytes(void)
{
    g_auto(Keyval) kv = { 0 };
    g_autofree char *giant = g_strnfill(1000000, 'v');
    g_autofree char *pair = g_strdup_printf("a=\xff\xfe,b=%s", giant);

    g_assert_true(keyval_parse(&kv, pair, NULL, 0, NULL));
    g_assert_cmpstr(keyval_get(&kv, "a"), ==, "\xff\xfe");
    g_assert_cmpstr(keyval_get(&kv, "b"), ==, giant);
}

static void test_help_is_noticed(void)
{
    static const char *const asks[] = { "help", "?", "x,help", "x,a=b,?", "id=a,help,b=c" };

    for (size_t i = 0; i < G_N_ELEMENTS(asks); i++) {
        g_auto(Keyval) kv = { 0 };

        g_assert_true(keyval_parse(&kv, asks[i], "driver", 0, NULL));
        g_assert_true(kv.help);
        g_assert_cmpstr(keyval_get(&kv, "driver"), ==, asks[i][0] == 'x' ? "x" : NULL);
    }
}

static void test_short_form_is_a_deprecated_switch(void)
{
    if (g_test_subprocess()) {
        g_auto(Keyval) kv = { 0 };
        g_autofree char *out = NULL;

        g_assert_true(keyval_parse(&kv, "x,server,nowait,a=b", "type", KEYVAL_SHORT_BOOL, NULL));
        out = json_text(kv.options);
        g_assert_cmpstr(out, ==, "{\"type\":\"x\",\"server\":\"on\",\"wait\":\"off\","
                        "\"a\":\"b\"}");
        exit(0);
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*short-form boolean option 'nowait' deprecated; please use "
                              "wait=off instead\n");
}

static void test_json_form(void)
{
    g_auto(Keyval) kv = { 0 };
    g_auto(Keyval) text = { 0 };
    g_autofree char *out = NULL;

    g_assert_true(keyval_parse(&kv, "{\"a\":[1,{\"b\":true}]}", "k", KEYVAL_JSON, NULL));
    g_assert_false(kv.texts);
    out = json_text(kv.options);
    g_assert_cmpstr(out, ==, "{\"a\":[1,{\"b\":true}]}");
    assert_refused("{\"a\":1,\"a\":2}", "k", "JSON parse error, duplicate key 'a'");
    assert_refused("{", "k", NULL);
    /* only where JSON is allowed */
    g_assert_true(keyval_parse(&text, "{x}", "k", 0, NULL));
    g_assert_cmpstr(keyval_get(&text, "k"), ==, "{x}");
}

static void test_taking_leaves_what_is_unknown(void)
{
    static const char *const known[] = { "size", "slots", NULL };
    g_auto(Keyval) kv = { 0 };
    g_autoptr(GError) err = NULL;
    g_autofree char *size = NULL;

    g_assert_true(keyval_parse(&kv, "1G,szie=2,slots=3", "size", 0, NULL));
    size = keyval_take(&kv, "size");
    g_assert_cmpstr(size, ==, "1G");
    g_assert_null(keyval_take(&kv, "size"));
    g_assert_false(keyval_check_empty(&kv, known, &err));
    g_assert_cmpstr(err->message, ==, "Invalid parameter 'szie'; did you mean 'size'?");
    g_free(keyval_take(&kv, "szie"));
    g_free(keyval_take(&kv, "slots"));
    g_assert_true(keyval_check_empty(&kv, known, NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/keyval/pairs", test_pairs);
    g_test_add_func("/keyval/doubled-commas", test_doubled_commas);
    g_test_add_func("/keyval/implied-key", test_implied_key);
    g_test_add_func("/keyval/dots", test_dots_make_objects_and_arrays);
    g_test_add_func("/keyval/bad-keys", test_bad_keys);
    g_test_add_func("/keyval/deep-keys", test_deep_keys_are_refused);
    g_test_add_func("/keyval/any-bytes", test_values_may_be_any_bytes);
    g_test_add_func("/keyval/help", test_help_is_noticed);
    g_test_add_func("/keyval/short-form", test_short_form_is_a_deprecated_switch);
    g_test_add_func("/keyval/json", test_json_form);
    g_test_add_func("/keyval/take", test_taking_leaves_what_is_unknown);
    return g_test_run();
}
