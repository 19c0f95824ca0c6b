/*
 * Control of trace events: which are on, and where they go.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "trace/control.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "trace/log-sink.h"
#include "trace/simple.h"

#define NEAR_MAX 3              /* names to suggest */
#define LINE_MAX_BYTES 1024     /* of a file of patterns, with its end */

static bool log_wanted;

static void route_to_log(void)
{
    bool elsewhere = trace_simple_is_open() && !log_sink_is_file() && !log_wanted;

    trace_log_set((trace_backends & TRACE_BACKEND_LOG) && !elsewhere);
}

void trace_event_iter_init(TraceEventIter *iter, const char *pattern)
{
    *iter = (TraceEventIter) { .pattern = pattern };
}

const TraceEvent *trace_event_iter_next(TraceEventIter *iter)
{
    const TraceGroup *group;

    while ((group = trace_groups[iter->group]) != NULL) {
        while (iter->index < group->count) {
            const TraceEvent *ev = &group->events[iter->index++];

            if (!iter->pattern || g_pattern_match_simple(iter->pattern, ev->name)) {
                return ev;
            }
        }
        iter->group++;
        iter->index = 0;
    }
    return NULL;
}

const TraceEvent *trace_event_find(const char *name)
{
    TraceEventIter iter;
    const TraceEvent *ev;

    trace_event_iter_init(&iter, NULL);
    while ((ev = trace_event_iter_next(&iter)) != NULL) {
        if (strcmp(ev->name, name) == 0) {
            return ev;
        }
    }
    return NULL;
}

bool trace_event_is_available(const TraceEvent *ev)
{
    return ev->state != NULL;
}

bool trace_event_is_enabled(const TraceEvent *ev)
{
    return ev->state && trace_state_on(ev->state);
}

void trace_event_set_enabled(const TraceEvent *ev, bool on)
{
    g_assert(ev->state);
    /* Relaxed: pairs with trace_state_on(). Only our bit: the others may have other owners. */
    if (on) {
        __atomic_fetch_or(ev->state, TRACE_STATE_ENABLED, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_and(ev->state, (uint16_t)~TRACE_STATE_ENABLED, __ATOMIC_RELAXED);
    }
}

/* Single edits that turn the @alen bytes of @a into the @blen bytes of @b. */
static unsigned edit_distance(const char *a, size_t alen, const char *b, size_t blen)
{
    g_autofree unsigned *row = g_new(unsigned, blen + 1);

    for (size_t j = 0; j <= blen; j++) {
        row[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= alen; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= blen; j++) {
            unsigned replaced = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            row[j] = MIN(MIN(row[j], row[j - 1]) + 1, replaced);
        }
    }
    return row[blen];
}

/* How far is @name from @wanted? With a '*', only what stands before the first one counts. */
static unsigned name_distance(const char *wanted, const char *name)
{
    size_t wlen = strcspn(wanted, "*"), nlen = strlen(name);

    if (strstr(name, wanted)) {
        return 0;
    }
    if (wanted[wlen] == '*') {
        nlen = MIN(nlen, wlen);
    }
    return edit_distance(wanted, wlen, name, nlen);
}

/* "; did you mean 'a', 'b'?", or "" if nothing is near. */
static char *near_names(const char *wanted)
{
    const TraceEvent *best[NEAR_MAX];
    unsigned distance[NEAR_MAX], found = 0;
    size_t len = strcspn(wanted, "*");
    GString *text = g_string_new("");
    TraceEventIter iter;
    const TraceEvent *ev;

    trace_event_iter_init(&iter, NULL);
    while (len > 0 && len < 100 && (ev = trace_event_iter_next(&iter)) != NULL) {
        unsigned d = trace_event_is_available(ev) ? name_distance(wanted, ev->name) : UINT_MAX;
        unsigned at = found;

        if (d > MAX(2, len / 3)) {
            continue;
        }
        while (at > 0 && distance[at - 1] > d) {
            at--;
        }
        if (at < NEAR_MAX) {
            found = MIN(found + 1, NEAR_MAX);
            memmove(&best[at + 1], &best[at], (found - at - 1) * sizeof(best[0]));
            memmove(&distance[at + 1], &distance[at], (found - at - 1) * sizeof(distance[0]));
            best[at] = ev;
            distance[at] = d;
        }
    }
    for (unsigned i = 0; i < found; i++) {
        g_string_append_printf(text, "%s'%s'", i > 0 ? ", " : "; did you mean ", best[i]->name);
    }
    if (found > 0) {
        g_string_append_c(text, '?');
    }
    return g_string_free(text, FALSE);
}

bool trace_enable_pattern(const char *pattern, GError **errp)
{
    bool on = pattern[0] != '-';
    const char *name = on ? pattern : pattern + 1;
    bool is_glob = strpbrk(name, "*?") != NULL;
    unsigned switched = 0, matched = 0;
    TraceEventIter iter;
    const TraceEvent *ev;
    g_autofree char *near = NULL;

    trace_event_iter_init(&iter, name);
    while ((ev = trace_event_iter_next(&iter)) != NULL) {
        matched++;
        if (trace_event_is_available(ev)) {
            trace_event_set_enabled(ev, on);
            switched++;
        }
    }
    if (switched > 0) {
        route_to_log();
        return true;
    }
    if (matched > 0) {
        g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "trace event '%s' is compiled out", name);
        return false;
    }
    near = near_names(name);
    g_set_error(errp, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, is_glob ?
                "no trace event matches '%s'%s" : "trace event '%s' does not exist%s", name, near);
    return false;
}

bool trace_enable_file(const char *path, TraceWarn *warn, void *opaque, GError **errp)
{
    char text[LINE_MAX_BYTES];
    FILE *file = fopen(path, "re");
    bool ok = file != NULL;

    for (unsigned number = 1; ok && fgets(text, sizeof(text), file); number++) {
        g_autoptr(GError) err = NULL;
        char *line;

        if (!strchr(text, '\n') && !feof(file)) {
            g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                        "%s:%u: the line is longer than %d bytes", path, number,
                        LINE_MAX_BYTES - 2);
            fclose(file);
            return false;
        }
        line = g_strstrip(text);
        if (line[0] != '\0' && line[0] != '#' && !trace_enable_pattern(line, &err)) {
            warn(path, number, err->message, opaque);
        }
    }
    if (!file || ferror(file)) {
        g_set_error(errp, G_FILE_ERROR, g_file_error_from_errno(errno),
                    "Could not read '%s': %s", path, g_strerror(errno));
        ok = false;
    }
    if (file) {
        fclose(file);
    }
    return ok;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void trace_list_events(FILE *out)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    TraceEventIter iter;
    const TraceEvent *ev;

    trace_event_iter_init(&iter, NULL);
    while ((ev = trace_event_iter_next(&iter)) != NULL) {
        if (trace_event_is_available(ev)) {
            g_ptr_array_add(names, (void *)ev->name);
        }
    }
    g_ptr_array_sort(names, name_compare);
    for (unsigned i = 0; i < names->len; i++) {
        fprintf(out, "%s\n", (const char *)names->pdata[i]);
    }
}

static bool any_event_enabled(void)
{
    TraceEventIter iter;
    const TraceEvent *ev;

    trace_event_iter_init(&iter, NULL);
    while ((ev = trace_event_iter_next(&iter)) != NULL) {
        if (trace_event_is_enabled(ev)) {
            return true;
        }
    }
    return false;
}

bool trace_set_file(const char *path, GError **errp)
{
    bool ok;

    if (trace_backends & TRACE_BACKEND_SIMPLE) {
        ok = trace_simple_open(path, errp);
    } else {
        ok = log_sink_open(path, errp);
    }
    route_to_log();
    return ok;
}

void trace_want_log(void)
{
    log_wanted = true;
    route_to_log();
}

bool trace_start(GError **errp)
{
    if (trace_backends == TRACE_BACKEND_SIMPLE && !trace_simple_is_open() &&
        any_event_enabled()) {
        g_autofree char *path = g_strdup_printf("trace-%d", (int)getpid());

        if (!trace_simple_open(path, errp)) {
            return false;
        }
    }
    route_to_log();
    return !trace_simple_is_open() || trace_simple_start(errp);
}

void trace_stop(void)
{
    trace_simple_stop();
}
