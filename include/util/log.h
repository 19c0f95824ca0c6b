/*
 * The log: what -d asked for, on stderr or in the file of -D.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 *     log_mask(LOG_GUEST_ERROR, "virtio-blk: request type %u is unknown\n", type);
 *
 * Thread: log_mask() and log_enabled() any; the others main. Lines are written whole (see
 * trace/log-sink.h, which also holds the time stamps of "-msg timestamp=on").
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "trace/log-sink.h"

enum {
    LOG_GUEST_ERROR = 1 << 0,           /* guest_errors: the guest did what no driver should */
    LOG_IOTHREAD_STATS = 1 << 1,        /* iothread-stats: counters when an IOThread ends */
};

/* Relaxed: a change takes effect soon, and nothing is published with it. */
extern unsigned log_items_on;

static inline bool log_enabled(unsigned items)
{
    return (__atomic_load_n(&log_items_on, __ATOMIC_RELAXED) & items) != 0;
}

/* A macro, so that arguments cost nothing while off. The format ends in "\n". */
#define log_mask(ITEMS, ...) \
    do { if (log_enabled(ITEMS)) { log_sink_printf(__VA_ARGS__); } } while (0)

/*
 * -d: a list of items separated by commas, each added to those that are on. "trace:PATTERN"
 * switches trace events on and makes them lines of the log. Fails with nothing changed when a
 * name is unknown; the near miss is in *errp.
 */
bool log_parse_items(const char *list, GError **errp);

/* -d help */
void log_print_help(FILE *out);

/* -D: see log_sink_open(). */
bool log_open(const char *path, GError **errp);

#endif
