/*
 * Time stamps that cost one instruction where the TSC allows it.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "trace/clock.h"

#include <glib.h>
#include <pthread.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#define PAIR_TRIES 5

bool trace_clock_is_tsc;

#ifdef __x86_64__
/* CPUID 0x80000007 EDX bit 8: the TSC runs at one rate in all power states (AMD64 APM vol. 3,
 * Intel SDM vol. 3 "Invariant TSC"). Hypervisors may hide it. */
static bool tsc_is_invariant(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}

/* The kernel uses the TSC only while it is in step on all CPUs. */
static bool kernel_trusts_tsc(void)
{
    g_autofree char *text = NULL;

    return g_file_get_contents("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                               &text, NULL, NULL) && strcmp(g_strstrip(text), "tsc") == 0;
}
#endif

static void clock_choose(void)
{
#ifdef __x86_64__
    trace_clock_is_tsc = kernel_trusts_tsc() && tsc_is_invariant();
#endif
}

void trace_clock_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, clock_choose);
}

void trace_clock_pair(TraceClockPair *pair)
{
    uint64_t best = UINT64_MAX;

    if (!trace_clock_is_tsc) {
        pair->raw = pair->ns = trace_clock_monotonic_ns();
        return;
    }
    /* The try that was disturbed least is the one that took the least time. */
    for (int i = 0; i < PAIR_TRIES; i++) {
        uint64_t before = trace_clock_read();
        uint64_t ns = trace_clock_monotonic_ns();
        uint64_t gap = trace_clock_read() - before;

        if (gap < best) {
            best = gap;
            pair->raw = before + gap / 2;
            pair->ns = ns;
        }
    }
}

void trace_clock_line(TraceClockLine *line, const TraceClockPair *from, const TraceClockPair *to)
{
    line->from = *from;
    line->slope = (int64_t)1 << 32;
    if (trace_clock_is_tsc && to->raw > from->raw && to->ns > from->ns) {
        line->slope = (int64_t)(((unsigned __int128)(to->ns - from->ns) << 32) /
                                (to->raw - from->raw));
    }
}
