/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FastClock: measures the rate of the time-stamp counter while it is used.
 */
#include "aio-clock.h"

#include <glib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "util/aio.h"

#define INTERRUPTED_TICKS 3000          /* about a microsecond */
#define VALID_NS 1000000                /* interpolate this far: an error of ppm is ns */
#define BASELINE_MIN_NS 5000000         /* a rate measured over less is too coarse */
#define BASELINE_MAX_NS 4000000000      /* older than this, NTP may have changed its mind */

int64_t aio_clock_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* Same rate on every CPU and in every power state, by CPUID and in the kernel's own view. */
static bool tsc_is_trusted(void)
{
#if defined(__x86_64__)
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    static const char *const good[] = { "tsc", "kvm-clock", "hyperv_clocksource_tsc_page" };
    unsigned a, b, c, d;
    g_autofree char *name = NULL;

    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8))) {
        return false;
    }
    if (!g_file_get_contents(path, &name, NULL, NULL)) {
        return false;
    }
    g_strchomp(name);
    for (unsigned i = 0; i < G_N_ELEMENTS(good); i++) {
        if (strcmp(name, good[i]) == 0) {
            return true;
        }
    }
#endif
    return false;
}

static void baseline_start(FastClock *c)
{
    c->base_tsc = c->tsc;
    c->base_ns = c->ns;
}

void fast_clock_init(FastClock *c)
{
    *c = (FastClock) {
        .usable = tsc_is_trusted(),
        .ns = aio_clock_ns(),
        .tsc = fast_clock_ticks(),
    };
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

/* Read both clocks at one moment; again if we were interrupted between the readings. */
static void read_both(FastClock *c)
{
    for (int tries = 0; tries < 3; tries++) {
        uint64_t before = fast_clock_ticks();

        c->ns = aio_clock_ns();
        c->tsc = fast_clock_ticks();
        if (c->tsc - before < INTERRUPTED_TICKS) {
            break;
        }
    }
}

/* Read the real clock and interpolate from there. */
int64_t fast_clock_sync(FastClock *c)
{
    if (!c->usable) {
        return aio_clock_ns();
    }
    read_both(c);
    measure_rate(c);
    return c->ns;
}
