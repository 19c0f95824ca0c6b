/*
 * The rings of the simple backend, as its writer sees them.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Thread: the writer; the main thread while there is no writer. Nobody else takes from a ring.
 */
#ifndef TRACE_SIMPLE_RING_H
#define TRACE_SIMPLE_RING_H

#include "trace/simple.h"

#define TRACE_SIMPLE_RINGS_MAX 1024     /* threads that trace at one time */

/* The list of all rings ever made; rings are reused, never freed. Follow ring->next. */
TraceRing *trace_simple_rings(void);

/* Events lost since this was last called, in all rings and for want of one. */
uint64_t trace_simple_take_lost(void);

/* Forget what the rings hold and what they lost. */
void trace_simple_discard(void);

/* Called by a thread whose ring is half full or more, seldom. In simple-file.c. */
void trace_simple_wake_writer(void);

#endif
