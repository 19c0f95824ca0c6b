/*
 * The -trace option: [[enable=]PATTERN][,events=FILE][,file=PATH], or help.
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Thread: main, before trace_start().
 */
#ifndef UTIL_TRACE_OPT_H
#define UTIL_TRACE_OPT_H

#include <glib.h>
#include <stdbool.h>

/* Is it "help" or "?"? Then trace_list_events() is what was asked for. */
bool trace_opt_is_help(const char *text);

/*
 * Switch on what @text names. The option may be given several times: patterns add up, the last
 * file= counts. Inside a value ",," stands for one comma. What a file of events= doesn't know is
 * a warning with file and line; everything else that is wrong fails.
 */
bool trace_opt_parse(const char *text, GError **errp);

#endif
