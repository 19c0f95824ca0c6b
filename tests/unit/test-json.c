/*
 * JSON text from outside: what is sound comes through, all else is refused.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/err.h"
#include "util/json.h"

#include <string.h>

static void assert_round_trip(const char *in, const char *expected)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(JsonValue) value = json_parse(in, strlen(in), &err);
    g_autofree char *out = json_text(value);

    g_assert_no_error(err);
    g_assert_cmpstr(out, ==, expected);
}

static void assert_refused(const char *in, size_t len, const char *part)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(json_parse(in, len, &err));
    g_assert_nonnull(err);
    if (!strstr(err->message, part)) {
        g_error("'%.60s' gives '%s', not '%s'", in, err->message, part);
    }
}

static void test_sound_text_comes_through(void)
{
    assert_round_trip(" {\"a\" : [1, -2 , true,null,\"x\"]} \n",
                      "{\"a\":[1,-2,true,null,\"x\"]}");
    assert_round_trip("18446744073709551615", "18446744073709551615");
    assert_round_trip("-9223372036854775808", "-9223372036854775808");
    assert_round_trip("null", "null");
    assert_round_trip("1.5e3", "1.5e3");
    assert_round_trip("{\"a\":{\"a\":1},\"b\":{\"a\":1}}", "{\"a\":{\"a\":1},\"b\":{\"a\":1}}");
    assert_round_trip("[{\"a\":1},{\"a\":1}]", "[{\"a\":1},{\"a\":1}]");
    assert_round_trip("[\"a:b\",\"a:b\",\"\\\":\",\"\\\\\"]",
                      "[\"a:b\",\"a:b\",\"\\\":\",\"\\\\\"]");
    assert_round_trip("{\"\":1}", "{\"\":1}");
    assert_round_trip("\"\xc3\xa4\"", "\"\xc3\xa4\"");
}

static void test_malformed_text_is_refused(void)
{
    static const char *const bad[] = {
        "", " ", "{", "[1,", "{\"a\"", "{\"a\":1}x", "1 2", "{\"a\":1,}", "[1,]", "{a:1}",
        "// c\n1", "TRUE", "nul", "\"abc", "\"\\x\"", ",", ":", "}", "]", "[1}", "{\"a\":1]",
        "{1:2}", "+1", ".5", "1e", "0x10", "--1", "-", "\"\xff\"", "\"\xc0\x80\"",
        "\"\xed\xa0\x80x", "{'a':1}", "{\"a\":'b'}", "[\"a\":1]",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        assert_refused(bad[i], strlen(bad[i]), "JSON parse error, ");
    }
    assert_refused("1\0", 2, "NUL character");
}

static void test_what_json_c_lets_pass_is_refused(void)
{
    static const char *const numbers[] = {
        "NaN", "Infinity", "-Infinity", "-01", "1.", "18446744073709551616",
        "-9223372036854775809", "1e400", "-1e999", "[1,-00]",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        assert_refused(numbers[i], strlen(numbers[i]), "invalid or too large word");
    }
    assert_refused("\"\\u0000\"", 8, "NUL character");
    assert_refused("{\"a\\u0000b\":1}", 14, "NUL character");
    assert_refused("\"a\tb\"", 5, "control character");
    assert_refused("\"a\nb\"", 5, "control character");
}

static void test_duplicate_keys_are_refused(void)
{
    static const char *const bad[] = {
        "{\"a\":1,\"a\":2}", "{\"a\":1,\"b\":{\"c\":1 , \"c\" :2}}", "[{\"a\":[],\"a\":{}}]",
        "{\"a\":1,\"\\u0061\":2}", "{\"a\":1,\"\\u0061\":2}", "{\"\":1,\"\":2}",
        "{\"\\\"x\\\"\":1,\"\\u0022x\\u0022\":1}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        assert_refused(bad[i], strlen(bad[i]), "duplicate key '");
    }
    assert_round_trip("{\"\\\"x\\\"\":1,\"x\":1}", "{\"\\\"x\\\"\":1,\"x\":1}");
}

static void test_depth_is_limited(void)
{
    g_autoptr(GString) deep = g_string_new(NULL);

    for (int i = 0; i < 1000000; i++) {
        g_string_append(deep, "[");
    }
    assert_refused(deep->str, deep->len, "nested deeper than 128");
    g_string_truncate(deep, 0);
    for (int i = 0; i < 500000; i++) {
        g_string_append(deep, "{\"a\":");
    }
    assert_refused(deep->str, deep->len, "nested deeper than 128");
    g_string_truncate(deep, 0);
    for (int i = 0; i < JSON_DEPTH_MAX - 1; i++) {
        g_string_append(deep, "[");
    }
    for (int i = 0; i < JSON_DEPTH_MAX - 1; i++) {
        g_string_append(deep, "]");
    }
    assert_round_trip(deep->str, deep->str);
}

static void test_length_is_limited(void)
{
    g_autofree char *giant = g_strnfill(JSON_TEXT_MAX + 1, ' ');
    g_autofree char *string = g_strnfill(1000000, 'x');

    assert_refused(giant, JSON_TEXT_MAX + 1, "longer than");
    string[0] = string[999999] = '"';
    assert_round_trip(string, string);
}

/* Random damage to a sound text must never crash, whatever comes of it. */
static void test_damaged_text_does_no_harm(void)
{
    static const char sound[] = "{\"driver\":\"raw\",\"n\":[1,-2.5e3,null,true],"
                                "\"q\":{\"\\u00e4\\n\":\"\\\\\"}}";
    static const char noise[] = "{}[]\",:'\\0123456789.eE-+ntfu \xff\xc3";

    for (int round = 0; round < 50000; round++) {
        g_autofree char *text = g_strdup(sound);
        g_autoptr(JsonValue) value = NULL;

        for (int n = g_test_rand_int_range(1, 5); n > 0; n--) {
            text[g_test_rand_int_range(0, sizeof(sound) - 1)] =
                noise[g_test_rand_int_range(0, sizeof(noise) - 1)];
        }
        value = json_parse(text, strlen(text), NULL);
    }
}

static void test_integers_are_exact(void)
{
    g_autoptr(JsonValue) big = json_parse("18446744073709551615", 20, NULL);
    g_autoptr(JsonValue) negative = json_parse("-1", 2, NULL);
    g_autoptr(JsonValue) real = json_parse("1.0", 3, NULL);
    uint64_t u = 0;
    int64_t i = 0;

    g_assert_true(json_get_u64(big, &u) && u == UINT64_MAX);
    g_assert_false(json_get_i64(big, &i));
    g_assert_true(json_get_i64(negative, &i) && i == -1);
    g_assert_false(json_get_u64(negative, &u));
    g_assert_false(json_get_u64(real, &u) || json_get_i64(real, &i));
    g_assert_false(json_get_u64(NULL, &u) || json_get_i64(NULL, &i));
    g_assert_null(json_get_str(real));
    g_assert_cmpstr(json_type_name(NULL), ==, "null");
    g_assert_cmpstr(json_type_name(real), ==, "number");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json/sound", test_sound_text_comes_through);
    g_test_add_func("/json/malformed", test_malformed_text_is_refused);
    g_test_add_func("/json/stricter", test_what_json_c_lets_pass_is_refused);
    g_test_add_func("/json/duplicate-keys", test_duplicate_keys_are_refused);
    g_test_add_func("/json/depth", test_depth_is_limited);
    g_test_add_func("/json/length", test_length_is_limited);
    g_test_add_func("/json/damaged", test_damaged_text_does_no_harm);
    g_test_add_func("/json/integers", test_integers_are_exact);
    return g_test_run();
}
