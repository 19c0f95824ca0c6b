/*
 * Time stamps that cost one instruction where the TSC allows it.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TRACE_CLOCK_H
#define TRACE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * Raw stamps are TSC ticks if the TSC is invariant and the kernel itself keeps time by it, else
 * already nanoseconds of CLOCK_MONOTONIC. Decided by the first trace_clock_init(), which whoever
 * reads the clock calls before (any thread).
 */
extern bool trace_clock_is_tsc;

void trace_clock_init(void);

static inline uint64_t trace_clock_monotonic_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t trace_clock_read(void)
{
#ifdef __x86_64__
    if (trace_clock_is_tsc) {
        return __builtin_ia32_rdtsc();
    }
#endif
    return trace_clock_monotonic_ns();
}

/* One instant on both clocks. */
typedef struct TraceClockPair {
    uint64_t raw;
    uint64_t ns;
} TraceClockPair;

void trace_clock_pair(TraceClockPair *pair);

/* From raw stamps to nanoseconds of CLOCK_MONOTONIC: a line through two instants. */
typedef struct TraceClockLine {
    TraceClockPair from;
    int64_t slope;                      /* ns per raw unit, times 2^32 */
} TraceClockLine;

/* @to is later than @from. */
void trace_clock_line(TraceClockLine *line, const TraceClockPair *from, const TraceClockPair *to);

/* Good for stamps between the two instants, and a little way beyond them. */
static inline uint64_t trace_clock_convert(const TraceClockLine *line, uint64_t raw)
{
    int64_t ticks = (int64_t)(raw - line->from.raw);

    return line->from.ns + (uint64_t)(int64_t)(((__int128)ticks * line->slope) >> 32);
}

#endif
