/*
 * Which known name was probably meant.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/err.h"
#include "util/suggest.h"

#include <string.h>

static const char *best(const char *word)
{
    static const char *const known[] = {
        "device", "drive", "display", "poll-max-ns", "poll-grow", "m", "smp", "virtio-blk-pci",
    };
    Suggest s;

    suggest_start(&s, word);
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        suggest_offer(&s, known[i]);
    }
    return s.best;
}

static void test_distance(void)
{
    static const struct {
        const char *a, *b;
        unsigned distance;
    } cases[] = {
        { "", "", 0 }, { "a", "a", 0 }, { "a", "", 1 }, { "", "abc", 3 }, { "ab", "ba", 1 },
        { "devcie", "device", 1 }, { "DEVICE", "device", 0 }, { "kitten", "sitting", 3 },
        { "abc", "xyz", 3 }, { "abcdef", "uvwxyz", 5 }, { "abcdefgh", "a", 5 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpuint(suggest_distance(cases[i].a, cases[i].b, 4), ==, cases[i].distance);
        g_assert_cmpuint(suggest_distance(cases[i].b, cases[i].a, 4), ==, cases[i].distance);
    }
}

/* Without a limit there is no early way out: both must agree. */
static void test_limit_agrees_with_full_distance(void)
{
    char a[9], b[9];

    for (int round = 0; round < 20000; round++) {
        unsigned full, limit;

        for (int i = 0; i < 8; i++) {
            a[i] = (char)g_test_rand_int_range('a', 'd');
            b[i] = (char)g_test_rand_int_range('a', 'd');
        }
        a[g_test_rand_int_range(0, 9)] = '\0';
        b[g_test_rand_int_range(0, 9)] = '\0';
        a[8] = b[8] = '\0';
        full = suggest_distance(a, b, 20);
        limit = (unsigned)g_test_rand_int_range(0, 6);
        g_assert_cmpuint(suggest_distance(a, b, limit), ==, MIN(full, limit + 1));
    }
}

static void test_near_miss_is_found(void)
{
    g_assert_cmpstr(best("devcie"), ==, "device");
    g_assert_cmpstr(best("poll_max_ns"), ==, "poll-max-ns");
    g_assert_cmpstr(best("virtio-blk"), ==, "virtio-blk-pci");
    g_assert_cmpstr(best("spm"), ==, "smp");
}

static void test_far_words_are_not_suggested(void)
{
    g_autofree char *giant = g_strnfill(1000000, 'd');

    g_assert_null(best("xyzzy"));
    g_assert_null(best(""));
    g_assert_null(best("x"));
    g_assert_null(best("q"));
    g_assert_null(best(giant));
}

static void test_message_names_the_best(void)
{
    g_autoptr(GError) err = NULL;
    Suggest s;

    suggest_start(&s, "devcie");
    suggest_append(&s, &err);
    g_assert_null(err);
    err_set(&err, "-devcie: invalid option");
    suggest_append(&s, &err);
    g_assert_cmpstr(err->message, ==, "-devcie: invalid option");
    suggest_offer(&s, "device");
    suggest_append(&s, &err);
    g_assert_cmpstr(err->message, ==, "-devcie: invalid option; did you mean 'device'?");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/suggest/distance", test_distance);
    g_test_add_func("/suggest/limit", test_limit_agrees_with_full_distance);
    g_test_add_func("/suggest/near", test_near_miss_is_found);
    g_test_add_func("/suggest/far", test_far_words_are_not_suggested);
    g_test_add_func("/suggest/message", test_message_names_the_best);
    return g_test_run();
}
