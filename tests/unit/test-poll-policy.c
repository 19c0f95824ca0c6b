/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The polling policy, without a clock.
 */
#include "util/poll-policy.h"

#include <glib.h>

#define MAX_NS 32768

static const AioPollParams defaults = { .max_ns = MAX_NS };

static void test_event_within_window_leaves_it(void)
{
    for (int64_t window = 1; window <= MAX_NS; window += 97) {
        for (int64_t wait = 0; wait <= window; wait += 89) {
            g_assert_cmpint(poll_policy_next(wait, window, &defaults), ==, window);
        }
        g_assert_cmpint(poll_policy_next(window, window, &defaults), ==, window);
    }
    g_assert_cmpint(poll_policy_next(0, 0, &defaults), ==, 0);
}

static void test_event_after_window_grows_it(void)
{
    int64_t window = 0;
    static const int64_t steps[] = { 4000, 8000, 16000, 32000, 32768 };

    for (unsigned i = 0; i < G_N_ELEMENTS(steps); i++) {
        window = poll_policy_next(window + 1, window, &defaults);
        g_assert_cmpint(window, ==, steps[i]);
    }
    /* the longest wait that still grows */
    g_assert_cmpint(poll_policy_next(MAX_NS, 0, &defaults), ==, 4000);
    g_assert_cmpint(poll_policy_next(MAX_NS, MAX_NS, &defaults), ==, MAX_NS);
}

static void test_wait_beyond_maximum_shrinks_to_zero(void)
{
    for (int64_t window = 0; window <= MAX_NS; window += 61) {
        g_assert_cmpint(poll_policy_next(MAX_NS + 1, window, &defaults), ==, 0);
        g_assert_cmpint(poll_policy_next(INT64_MAX, window, &defaults), ==, 0);
    }
}

static void test_grow_factor(void)
{
    AioPollParams p = defaults;

    for (p.grow = 0; p.grow <= 10; p.grow++) {
        int64_t factor = p.grow ? p.grow : 2;

        g_assert_cmpint(poll_policy_next(20000, 0, &p), ==, 4000);
        g_assert_cmpint(poll_policy_next(20000, 4000, &p), ==, MIN(4000 * factor, MAX_NS));
    }
    p.grow = INT64_MAX;
    g_assert_cmpint(poll_policy_next(20000, 4000, &p), ==, MAX_NS);
}

static void test_shrink_divisor(void)
{
    AioPollParams p = defaults;

    p.shrink = 1;
    g_assert_cmpint(poll_policy_next(MAX_NS + 1, 16000, &p), ==, 16000);
    p.shrink = 2;
    g_assert_cmpint(poll_policy_next(MAX_NS + 1, 16000, &p), ==, 8000);
    g_assert_cmpint(poll_policy_next(MAX_NS + 1, 8000, &p), ==, 4000);
    /* less than the first step is nothing */
    g_assert_cmpint(poll_policy_next(MAX_NS + 1, 4000, &p), ==, 0);
    p.shrink = INT64_MAX;
    g_assert_cmpint(poll_policy_next(MAX_NS + 1, MAX_NS, &p), ==, 0);
}

static void test_small_maximum(void)
{
    AioPollParams p = { .max_ns = 1000 };

    g_assert_cmpint(poll_policy_next(500, 0, &p), ==, 1000);
    g_assert_cmpint(poll_policy_next(1000, 1000, &p), ==, 1000);
    g_assert_cmpint(poll_policy_next(1001, 1000, &p), ==, 0);
    p.max_ns = 1;
    g_assert_cmpint(poll_policy_next(1, 0, &p), ==, 1);
}

static void test_maximum_zero_never_polls(void)
{
    AioPollParams p = { .max_ns = 0 };

    for (int64_t wait = 0; wait < 100000; wait += 333) {
        g_assert_cmpint(poll_policy_next(wait, 0, &p), ==, 0);
        g_assert_cmpint(poll_policy_next(wait, 5000, &p), ==, 0);
    }
}

static void test_maximum_without_limit(void)
{
    AioPollParams p = { .max_ns = INT64_MAX, .grow = 1000000 };
    int64_t window = 0;

    for (int i = 0; i < 10; i++) {
        int64_t next = poll_policy_next(INT64_MAX, window, &p);

        g_assert_cmpint(next, >=, window);
        window = next;
    }
    g_assert_cmpint(window, ==, INT64_MAX);
}

/* Every combination of a grid: the range holds, and verdict and window agree. */
static void test_invariants_hold_everywhere(void)
{
    static const int64_t v[] = { 0, 1, 2, 999, 3999, 4000, 4001, 8000, 32768, 32769, 1000000,
                                 INT64_MAX / 2, INT64_MAX - 1, INT64_MAX };
    const unsigned n = G_N_ELEMENTS(v);

    for (unsigned i = 0; i < n * n * n * n * n; i++) {
        AioPollParams p = {
            .max_ns = v[i % n],
            .grow = v[i / n % n],
            .shrink = v[i / n / n % n],
        };
        int64_t wait = v[i / n / n / n % n];
        int64_t window = MIN(v[i / n / n / n / n], p.max_ns);
        int64_t next = poll_policy_next(wait, window, &p);

        g_assert_cmpint(next, >=, 0);
        g_assert_cmpint(next, <=, p.max_ns);
        switch (poll_policy_verdict(wait, window, &p)) {
        case POLL_WINDOW_KEEP:
            g_assert_cmpint(next, ==, window);
            break;
        case POLL_WINDOW_GROW:
            g_assert_cmpint(wait, <=, p.max_ns);
            g_assert_true(next > window || p.grow == 1);
            break;
        case POLL_WINDOW_SHRINK:
            g_assert_cmpint(wait, >, p.max_ns);
            g_assert_true(next < window || p.shrink == 1);
            break;
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/poll-policy/event-within-window-leaves-it",
                    test_event_within_window_leaves_it);
    g_test_add_func("/poll-policy/event-after-window-grows-it", test_event_after_window_grows_it);
    g_test_add_func("/poll-policy/wait-beyond-maximum-shrinks-to-zero",
                    test_wait_beyond_maximum_shrinks_to_zero);
    g_test_add_func("/poll-policy/grow-factor", test_grow_factor);
    g_test_add_func("/poll-policy/shrink-divisor", test_shrink_divisor);
    g_test_add_func("/poll-policy/small-maximum", test_small_maximum);
    g_test_add_func("/poll-policy/maximum-zero-never-polls", test_maximum_zero_never_polls);
    g_test_add_func("/poll-policy/maximum-without-limit", test_maximum_without_limit);
    g_test_add_func("/poll-policy/invariants-hold-everywhere", test_invariants_hold_everywhere);
    return g_test_run();
}
