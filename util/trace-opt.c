/*
 * The -trace option: [[enable=]PATTERN][,events=FILE][,file=PATH], or help.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "util/trace-opt.h"

#include <string.h>

#include "trace/control.h"
#include "util/err.h"
#include "util/suggest.h"

enum { KEY_ENABLE, KEY_EVENTS, KEY_FILE, KEY_MAX };

static const char *const key_names[KEY_MAX] = { "enable", "events", "file" };

typedef struct TraceOpt {
    char *values[KEY_MAX];
} TraceOpt;

static void trace_opt_clear(TraceOpt *opt)
{
    for (int i = 0; i < KEY_MAX; i++) {
        g_clear_pointer(&opt->values[i], g_free);
    }
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TraceOpt, trace_opt_clear)

bool trace_opt_is_help(const char *text)
{
    return strcmp(text, "help") == 0 || strcmp(text, "?") == 0;
}

/* The next item, up to a single comma; *text moves behind it. */
static char *take_item(const char **text)
{
    GString *item = g_string_new(NULL);
    const char *p = *text;

    while (*p && (*p != ',' || p[1] == ',')) {
        g_string_append_c(item, *p);
        p += *p == ',' ? 2 : 1;
    }
    *text = *p ? p + 1 : p;
    return g_string_free(item, FALSE);
}

static int find_key(const char *name, GError **errp)
{
    Suggest near;

    suggest_start(&near, name);
    for (int i = 0; i < KEY_MAX; i++) {
        if (strcmp(key_names[i], name) == 0) {
            return i;
        }
        suggest_offer(&near, key_names[i]);
    }
    err_set(errp, "Invalid parameter '%s' of -trace, there are enable, events and file", name);
    suggest_append(&near, errp);
    return -1;
}

static bool split(TraceOpt *opt, const char *text, GError **errp)
{
    bool first = true;

    do {
        g_autofree char *item = take_item(&text);
        char *equals = strchr(item, '=');
        const char *value = equals ? equals + 1 : item;
        int key = KEY_ENABLE;

        if (equals) {
            *equals = '\0';
            key = find_key(item, errp);
            if (key < 0) {
                return false;
            }
        } else if (!first) {
            err_set(errp, "'%s' in -trace is not KEY=VALUE; only the first item may be a pattern "
                    "alone", item);
            return false;
        }
        if (*value == '\0') {
            err_set(errp, "-trace %s= wants a value", key_names[key]);
            return false;
        }
        if (opt->values[key]) {
            err_set(errp, "-trace %s= is given twice; repeat the option instead", key_names[key]);
            return false;
        }
        opt->values[key] = g_strdup(value);
        first = false;
    } while (*text);
    return true;
}

static void warn_event(const char *path, unsigned line, const char *text, void *opaque)
{
    ErrLocation loc;

    err_location_push_file(&loc, path, line);
    report_warning("%s", text);
    err_location_pop(&loc);
}

bool trace_opt_parse(const char *text, GError **errp)
{
    g_auto(TraceOpt) opt = { { NULL } };
    const char *enable, *events, *path;

    if (!split(&opt, text, errp)) {
        return false;
    }
    enable = opt.values[KEY_ENABLE];
    events = opt.values[KEY_EVENTS];
    path = opt.values[KEY_FILE];
    return (!enable || trace_enable_pattern(enable, errp)) &&
           (!events || trace_enable_file(events, warn_event, NULL, errp)) &&
           (!path || trace_set_file(path, errp));
}
