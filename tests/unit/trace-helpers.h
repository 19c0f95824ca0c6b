/*
 * What the tests of tracing share: a folder for their files, short ways to control events.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_UNIT_TRACE_HELPERS_H
#define TESTS_UNIT_TRACE_HELPERS_H

#include <glib.h>
#include <glib/gstdio.h>

#include "trace/control.h"

static char *temp_dir;

static inline char *temp_path(const char *name)
{
    return g_build_filename(temp_dir, name, NULL);
}

static inline void enable(const char *pattern)
{
    g_autoptr(GError) err = NULL;

    g_assert_true(trace_enable_pattern(pattern, &err));
    g_assert_no_error(err);
}

static inline void open_file(const char *path)
{
    g_autoptr(GError) err = NULL;

    g_assert_true(trace_set_file(path, &err));
    g_assert_no_error(err);
}

static inline void start(void)
{
    g_autoptr(GError) err = NULL;

    g_assert_true(trace_start(&err));
    g_assert_no_error(err);
}

static inline void everything_off(void)
{
    trace_stop();
    enable("-*");
}

static inline void temp_dir_make(void)
{
    temp_dir = g_dir_make_tmp("test-trace-XXXXXX", NULL);
    g_assert_nonnull(temp_dir);
}

static inline void temp_dir_remove(void)
{
    GDir *dir = g_dir_open(temp_dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = temp_path(name);

        g_unlink(path);
    }
    g_dir_close(dir);
    g_rmdir(temp_dir);
    g_free(temp_dir);
}

#endif
