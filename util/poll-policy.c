/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The polling policy, without mechanism and without a clock.
 */
#include "util/poll-policy.h"

#include <glib.h>

static int64_t window_first(const AioPollParams *p)
{
    return MIN(POLL_WINDOW_FIRST_NS, p->max_ns);
}

static int64_t window_grow(int64_t window_ns, const AioPollParams *p)
{
    int64_t factor = p->grow ? p->grow : POLL_GROW_DEFAULT;
    int64_t grown;

    if (__builtin_mul_overflow(window_ns, factor, &grown)) {
        return p->max_ns;
    }
    return CLAMP(grown, window_first(p), p->max_ns);
}

/* A window too small to catch anything is none. */
static int64_t window_shrink(int64_t window_ns, const AioPollParams *p)
{
    int64_t shrunk = p->shrink ? window_ns / p->shrink : 0;

    return shrunk < window_first(p) ? 0 : MIN(shrunk, p->max_ns);
}

PollVerdict poll_policy_verdict(int64_t wait_ns, int64_t window_ns, const AioPollParams *p)
{
    if (wait_ns > p->max_ns) {
        return window_ns > 0 ? POLL_WINDOW_SHRINK : POLL_WINDOW_KEEP;
    }
    if (wait_ns > window_ns && window_ns < p->max_ns) {
        return POLL_WINDOW_GROW;
    }
    return POLL_WINDOW_KEEP;
}

int64_t poll_policy_next(int64_t wait_ns, int64_t window_ns, const AioPollParams *p)
{
    switch (poll_policy_verdict(wait_ns, window_ns, p)) {
    case POLL_WINDOW_GROW:
        return window_grow(window_ns, p);
    case POLL_WINDOW_SHRINK:
        return window_shrink(window_ns, p);
    default:
        return MIN(window_ns, p->max_ns);
    }
}
