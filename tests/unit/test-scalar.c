/*
 * Numbers, sizes, booleans and identifiers as typed.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/scalar.h"

#include <glib.h>

static void test_u64(void)
{
    static const char *const bad[] = {
        "", " 1", "1 ", "+1", "-1", "0x", "0xg", "1k", "1.0", "18446744073709551616",
        "99999999999999999999999999", "08", "abc", "0b1", "1\n",
    };
    uint64_t v = 77;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(scalar_parse_u64(bad[i], &v));
        g_assert_cmpuint(v, ==, 77);
    }
    g_assert_true(scalar_parse_u64("18446744073709551615", &v) && v == UINT64_MAX);
    g_assert_true(scalar_parse_u64("0x10", &v) && v == 16);
    g_assert_true(scalar_parse_u64("010", &v) && v == 8);
    g_assert_true(scalar_parse_u64("0", &v) && v == 0);
}

static void test_i64(void)
{
    static const char *const bad[] = {
        "", "-", "+", "--1", "- 1", "9223372036854775808", "-9223372036854775809", "1e3",
    };
    int64_t v = 77;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(scalar_parse_i64(bad[i], &v));
        g_assert_cmpint(v, ==, 77);
    }
    g_assert_true(scalar_parse_i64("-9223372036854775808", &v) && v == INT64_MIN);
    g_assert_true(scalar_parse_i64("9223372036854775807", &v) && v == INT64_MAX);
    g_assert_true(scalar_parse_i64("-0x10", &v) && v == -16);
    g_assert_true(scalar_parse_i64("+3", &v) && v == 3);
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        char unit;
        uint64_t bytes;
    } good[] = {
        { "0", 'B', 0 }, { "512", 'B', 512 }, { "512", 'M', 512ull << 20 }, { "1k", 'B', 1024 },
        { "1K", 'M', 1024 }, { "1.5G", 'B', 3ull << 29 }, { "0.5k", 'B', 512 },
        { "010", 'B', 10 }, { "0x10", 'B', 16 }, { "0x10M", 'B', 16ull << 20 },
        { "1b", 'M', 1 }, { "8E", 'B', 8ull << 60 }, { "15.99999E", 'B', 18446732544494505547ull },
        { "1.0", 'B', 1 }, { "0.1k", 'B', 102 }, { "18446744073709551615", 'B', UINT64_MAX },
        { "1.5", 'M', 3ull << 19 },
    };
    static const char *const bad[] = {
        "", "-1", "+1", " 1", "1 ", "1x", "1kk", "1.", ".5k", "1.5", "0.1", "16E", "0x",
        "0x1.5k", "18446744073709551616", "17179869184G", "1.k", "k", "1.1234567890123456789k",
        "1e3", "inf", "nan", "99999999999999999999999999k", "1kB", "1KiB",
    };
    uint64_t v = 77;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(scalar_parse_size(bad[i], 'B', &v));
        g_assert_cmpuint(v, ==, 77);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_assert_true(scalar_parse_size(good[i].text, good[i].unit, &v));
        g_assert_cmpuint(v, ==, good[i].bytes);
    }
}

static void test_bools(void)
{
    bool v = false;

    g_assert_true(scalar_parse_bool("on", &v) && v);
    g_assert_true(scalar_parse_bool("no", &v) && !v);
    g_assert_true(scalar_parse_bool("true", &v) && v);
    g_assert_true(scalar_parse_bool("n", &v) && !v);
    g_assert_false(scalar_parse_bool("", &v));
    g_assert_false(scalar_parse_bool("ON", &v));
    g_assert_false(scalar_parse_bool("1", &v));
}

static void test_identifiers(void)
{
    g_assert_true(scalar_is_identifier("a"));
    g_assert_true(scalar_is_identifier("Io-0_x.y"));
    g_assert_false(scalar_is_identifier(""));
    g_assert_false(scalar_is_identifier("0a"));
    g_assert_false(scalar_is_identifier("#block1"));
    g_assert_false(scalar_is_identifier("a b"));
    g_assert_false(scalar_is_identifier("a/b"));
    g_assert_false(scalar_is_identifier("\xc3\xa4"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/scalar/u64", test_u64);
    g_test_add_func("/scalar/i64", test_i64);
    g_test_add_func("/scalar/sizes", test_sizes);
    g_test_add_func("/scalar/bools", test_bools);
    g_test_add_func("/scalar/identifiers", test_identifiers);
    return g_test_run();
}
