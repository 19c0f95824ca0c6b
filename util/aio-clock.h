/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FastClock: CLOCK_MONOTONIC by the time-stamp counter.
 *
 * Follows CLOCK_MONOTONIC within a few tens of ns: it interpolates from a
 * reading of the real clock that is at most a millisecond old, with a rate that
 * is measured on the way, so there is no calibration to wait for. Consecutive
 * readings may step back by that much. Good for measuring waits; a deadline is
 * kept by aio_clock_ns(). One thread.
 */
#ifndef UTIL_AIO_CLOCK_H
#define UTIL_AIO_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/clock.h"

typedef struct FastClock {
    uint64_t tsc;                       /* at the last reading of the real clock */
    int64_t ns;                         /* and that reading */
    uint64_t valid_ticks;               /* how long to interpolate from it; 0: not at all */
    uint64_t mult;                      /* ns per tick, times 2^32 */
    uint64_t base_tsc;                  /* start of the measurement of the rate */
    int64_t base_ns;
} FastClock;

void fast_clock_init(FastClock *c);
int64_t fast_clock_sync(FastClock *c);

static inline int64_t fast_clock_ns(FastClock *c)
{
    uint64_t ticks = trace_clock_read() - c->tsc;

    if (__builtin_expect(ticks < c->valid_ticks, 1)) {
        return c->ns + (int64_t)(ticks * c->mult >> 32);
    }
    return fast_clock_sync(c);
}

#endif
