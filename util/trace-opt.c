/*
 * The -trace option: [[enable=]PATTERN][,events=FILE][,file=PATH], or help.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/trace-opt.h"

#include <string.h>

#include "trace/control.h"
#include "util/err.h"
#include "util/keyval.h"

static const char *const keys[] = { "enable", "events", "file", NULL };

bool trace_opt_is_help(const char *text)
{
    return strcmp(text, "help") == 0 || strcmp(text, "?") == 0;
}

static void warn_event(const char *path, unsigned line, const char *text, void *opaque)
{
    ErrLocation loc;

    err_location_push_file(&loc, path, line);
    report_warning("%s", text);
    err_location_pop(&loc);
}

/* An empty value is a slip of a script: an unset variable, usually. */
static bool check_value(const char *key, const char *value, GError **errp)
{
    if (value && *value == '\0') {
        err_set(errp, "'%s=' of -trace wants a value", key);
        return false;
    }
    return true;
}

bool trace_opt_parse(const char *text, GError **errp)
{
    g_autofree char *enable = NULL, *events = NULL, *path = NULL;
    g_auto(Keyval) kv = { 0 };

    if (!keyval_parse(&kv, text, "enable", 0, errp)) {
        return false;
    }
    if (kv.help) {
        err_set(errp, "'help' of -trace stands alone");
        return false;
    }
    enable = keyval_take(&kv, "enable");
    events = keyval_take(&kv, "events");
    path = keyval_take(&kv, "file");
    if (!keyval_check_empty(&kv, keys, errp) || !check_value("enable", enable, errp) ||
        !check_value("events", events, errp) || !check_value("file", path, errp)) {
        return false;
    }
    return (!enable || trace_enable_pattern(enable, errp)) &&
           (!events || trace_enable_file(events, warn_event, NULL, errp)) &&
           (!path || trace_set_file(path, errp));
}
