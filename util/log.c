/*
 * The log: what -d asked for, on stderr or in the file of -D.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/log.h"

#include <string.h>

#include "trace/control.h"
#include "util/err.h"
#include "util/suggest.h"

#define TRACE_PREFIX "trace:"

unsigned log_items_on;

static const struct {
    const char *name;
    const char *help;
    unsigned mask;
} items[] = {
    { "guest_errors", "things that no guest driver should do", LOG_GUEST_ERROR },
    { "iothread-stats", "counters of an IOThread's loop when it ends", LOG_IOTHREAD_STATS },
};

static unsigned item_mask(const char *name, GError **errp)
{
    Suggest near;

    suggest_start(&near, name);
    for (unsigned i = 0; i < G_N_ELEMENTS(items); i++) {
        if (strcmp(items[i].name, name) == 0) {
            return items[i].mask;
        }
        suggest_offer(&near, items[i].name);
    }
    err_set(errp, "log item '%s' does not exist", name);
    suggest_append(&near, errp);
    return 0;
}

bool log_parse_items(const char *list, GError **errp)
{
    g_auto(GStrv) names = g_strsplit(list, ",", -1);
    unsigned mask = 0;

    for (unsigned i = 0; names[i]; i++) {
        if (!g_str_has_prefix(names[i], TRACE_PREFIX)) {
            unsigned item = item_mask(names[i], errp);

            if (item == 0) {
                return false;
            }
            mask |= item;
        }
    }
    for (unsigned i = 0; names[i]; i++) {
        if (g_str_has_prefix(names[i], TRACE_PREFIX)) {
            if (!trace_enable_pattern(names[i] + strlen(TRACE_PREFIX), errp)) {
                return false;
            }
            trace_want_log();
        }
    }
    __atomic_fetch_or(&log_items_on, mask, __ATOMIC_RELAXED);
    return true;
}

void log_print_help(FILE *out)
{
    fputs("Log items (comma separated):\n", out);
    for (unsigned i = 0; i < G_N_ELEMENTS(items); i++) {
        fprintf(out, "%-15s %s\n", items[i].name, items[i].help);
    }
    fprintf(out, "%-15s %s\n", TRACE_PREFIX "PATTERN", "trace events (-trace help lists them)");
}

bool log_open(const char *path, GError **errp)
{
    return log_sink_open(path, errp);
}
