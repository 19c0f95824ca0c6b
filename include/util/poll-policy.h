/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long is it worth to poll before sleeping? The policy alone: pure
 * functions, no clock, no state, any thread. The algorithm is the one that KVM
 * uses for halt_poll_ns (Documentation/virt/kvm/halt-polling.rst).
 *
 * All times are in nanoseconds and not negative.
 */
#ifndef UTIL_POLL_POLICY_H
#define UTIL_POLL_POLICY_H

#include <stdint.h>

#define POLL_WINDOW_FIRST_NS 4000       /* the smallest window worth having */
#define POLL_GROW_DEFAULT 2

typedef struct AioPollParams {
    int64_t max_ns;                     /* 0: no busy polling */
    int64_t grow;                       /* factor; 0 means POLL_GROW_DEFAULT */
    int64_t shrink;                     /* divisor; 0: to zero at once */
} AioPollParams;

typedef enum PollVerdict {
    POLL_WINDOW_KEEP,
    POLL_WINDOW_GROW,
    POLL_WINDOW_SHRINK,
} PollVerdict;

/* What an event that came after @wait_ns says about a window. */
PollVerdict poll_policy_verdict(int64_t wait_ns, int64_t window_ns, const AioPollParams *p);

/* The window after that event. Stays within [0, max_ns]. */
int64_t poll_policy_next(int64_t wait_ns, int64_t window_ns, const AioPollParams *p);

#endif
