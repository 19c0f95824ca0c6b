/*
 * Where lines of the log go: stderr, or the file of -D.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Thread: any, without locks; a line is written by one write(2), so that lines of several
 * threads do not mix. Lines longer than LOG_SINK_LINE_MAX bytes are cut and end in "...\n".
 * Set-up (the functions that return bool or nothing and change the sink) belongs to the main
 * thread, before others run or while they may lose a line.
 */
#ifndef TRACE_LOG_SINK_H
#define TRACE_LOG_SINK_H

#include <glib.h>
#include <stdarg.h>
#include <stdbool.h>

#define LOG_SINK_LINE_MAX 4096

/*
 * Send lines to @path, created or truncated; one "%d" in it stands for the process id. NULL:
 * to stderr again. On failure the sink is what it was.
 */
bool log_sink_open(const char *path, GError **errp);

/* Did log_sink_open() name a file? */
bool log_sink_is_file(void);

/* Begin each line with "TID@SECONDS.MICROSECONDS:" (real time). Off at first. */
void log_sink_set_timestamps(bool on);
bool log_sink_timestamps(void);

/* Write one line; @fmt ends in "\n". */
void log_sink_printf(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void log_sink_vprintf(const char *fmt, va_list ap) G_GNUC_PRINTF(1, 0);

/* Do trace events write lines? Relaxed: pairs with trace_log_set() and publishes nothing. */
extern bool trace_log_active;

static inline bool trace_log_on(void)
{
    return __atomic_load_n(&trace_log_active, __ATOMIC_RELAXED);
}

void trace_log_set(bool on);

#endif
