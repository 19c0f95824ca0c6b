/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FastClock: measures the rate of the time-stamp counter while it is used.
 */
#include "aio-clock.h"

#include <sys/prctl.h>
#include <time.h>

#include "aio-internal.h"

#define VALID_NS 1000000                /* interpolate this far: an error of ppm is ns */
#define WAKE_COST_MAX_NS 30000          /* more than that is noise */
#define BASELINE_MIN_NS 5000000         /* a rate measured over less is too coarse */
#define BASELINE_MAX_NS 4000000000      /* older than this, NTP may have changed its mind */

int64_t aio_clock_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void baseline_start(FastClock *c)
{
    c->base_tsc = c->tsc;
    c->base_ns = c->ns;
}

static void read_both(FastClock *c)
{
    TraceClockPair pair;

    trace_clock_pair(&pair);
    c->tsc = pair.raw;
    c->ns = (int64_t)pair.ns;
}

void fast_clock_init(FastClock *c)
{
    *c = (FastClock) { 0 };
    trace_clock_init();
    read_both(c);
    baseline_start(c);
}

static void measure_rate(FastClock *c)
{
    uint64_t ticks = c->tsc - c->base_tsc;
    int64_t ns = c->ns - c->base_ns;
    uint64_t mult;

    if (c->tsc <= c->base_tsc || ns <= 0) {     /* the counter was reset: suspend, migration */
        c->valid_ticks = 0;
        baseline_start(c);
        return;
    }
    if (ns < BASELINE_MIN_NS) {
        return;
    }
    mult = (uint64_t)(((unsigned __int128)ns << 32) / ticks);
    if (mult == 0) {
        c->valid_ticks = 0;
    } else {
        c->mult = mult;
        c->valid_ticks = ((uint64_t)VALID_NS << 32) / mult;
    }
    if (ns > BASELINE_MAX_NS) {
        baseline_start(c);
    }
}

/* Read the real clock and interpolate from there. */
int64_t fast_clock_sync(FastClock *c)
{
    read_both(c);
    measure_rate(c);
    return c->ns;
}

/*
 * How long it takes to get a sleeping thread onto the CPU, at best: the event that
 * ends a sleep happened that much earlier than we can see. Sleeps a few times for
 * about 20 us.
 */
int64_t wake_cost_measure(void)
{
    int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    int64_t best = INT64_MAX;

    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (int i = 0; i < 5; i++) {
        int64_t until = aio_clock_ns() + 2000;
        struct timespec ts = {
            .tv_sec = until / 1000000000,
            .tv_nsec = until % 1000000000,
        };

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
        best = MIN(best, aio_clock_ns() - until);
    }
    if (slack > 0) {
        prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
    }
    return CLAMP(best, 0, WAKE_COST_MAX_NS);
}
