/*
 * What the generated trace headers rest on: events, their states, their groups.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Code that traces includes "trace/trace-FOLDER.h" (a '/' in FOLDER becomes '-') and calls
 * trace_NAME(args); nobody else needs this header directly.
 */
#ifndef TRACE_EVENT_H
#define TRACE_EVENT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The state of an event. Zero: off. One 16-bit word holds every reason to be on, so that one
 * load decides: bit 14 is ours; the bits below it are left to the kernel, which counts attached
 * uprobes in a word of this size (a negative one would look like an overflow to it, hence not
 * bit 15).
 */
#define TRACE_STATE_ENABLED 0x4000

typedef struct TraceEvent {
    const char *name;
    uint16_t *state;                /* NULL: compiled out ("disable" in trace-events) */
    uint32_t id;                    /* group number << 16 | place in the group */
} TraceEvent;

/* The events of one folder. */
typedef struct TraceGroup {
    const char *folder;
    const TraceEvent *events;
    unsigned count;
} TraceGroup;

enum {
    TRACE_BACKEND_LOG = 1 << 0,
    TRACE_BACKEND_SIMPLE = 1 << 1,
};

/* Generated: the backends compiled in, and all groups up to a NULL. */
extern const unsigned trace_backends;
extern const TraceGroup *const trace_groups[];

/*
 * Relaxed: a state change takes effect "soon", and nothing is published with it. Pairs with the
 * atomic updates in trace/control.c.
 */
static inline bool trace_state_on(const uint16_t *state)
{
    return __builtin_expect(__atomic_load_n(state, __ATOMIC_RELAXED) != 0, 0);
}

/* Is it worth preparing arguments for trace_NAME()? */
#define trace_event_on(NAME) trace_on__##NAME()

#endif
