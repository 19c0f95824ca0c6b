/*
 * Control of trace events: which are on, and where they go.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Thread: states may be looked at and set in any thread and take effect soon after; all other
 * functions belong to the main thread.
 */
#ifndef TRACE_CONTROL_H
#define TRACE_CONTROL_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "trace/event.h"

/*
 * Walk over the events whose name matches @pattern ('*' and '?' as in a shell), or all if it is
 * NULL, in the order of their declaration. @pattern is borrowed while the walk goes on.
 */
typedef struct TraceEventIter {
    const char *pattern;
    unsigned group;
    unsigned index;
} TraceEventIter;

void trace_event_iter_init(TraceEventIter *iter, const char *pattern);
const TraceEvent *trace_event_iter_next(TraceEventIter *iter);

/* The event of this very name, or NULL. */
const TraceEvent *trace_event_find(const char *name);

/* Compiled in? An event that isn't can't be switched on. */
bool trace_event_is_available(const TraceEvent *ev);
bool trace_event_is_enabled(const TraceEvent *ev);
/* @ev must be available. */
void trace_event_set_enabled(const TraceEvent *ev, bool on);

/*
 * Switch the events that match @pattern on, or off if it begins with '-'. An event that is
 * compiled out is passed over when others match. Fails, with the nearest names in *errp and
 * nothing changed, if none can be switched.
 */
bool trace_enable_pattern(const char *pattern, GError **errp);

/*
 * The same for every line of the file @path; empty lines and lines that begin with '#' are
 * passed over. A line that matches nothing doesn't stop the others: @warn gets the place and
 * the reason (the list may have been written for another program). Fails when the file can't be
 * read to its end.
 */
typedef void TraceWarn(const char *path, unsigned line, const char *text, void *opaque);
bool trace_enable_file(const char *path, TraceWarn *warn, void *opaque, GError **errp);

/* Print the names of all available events, sorted, one a line. */
void trace_list_events(FILE *out);

/*
 * Name the file that events go to. Nothing is written to it before trace_start(). With the
 * simple backend compiled in this is its binary file, and events are no longer lines of the log
 * unless the log has a file of its own or trace_want_log() was called; without, the log's file.
 */
bool trace_set_file(const char *path, GError **errp);

/* Events are to be lines of the log, whatever other place they have. */
void trace_want_log(void);

/*
 * Call once, when no fork will follow and every option has been seen (-D too): starts what a
 * backend needs. Events before it are kept, as far as buffers reach. If events are on and only
 * the simple backend is there to take them, a file "trace-PID" is made.
 * trace_stop() flushes and ends it; exit() does so too. A parent that leaves its work to a
 * forked child must end by _exit().
 */
bool trace_start(GError **errp);
void trace_stop(void);

#endif
