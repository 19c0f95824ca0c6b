/*
 * Where lines of the log go: stderr, or the file of -D.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "trace/log-sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool trace_log_active;

/* Relaxed everywhere: a descriptor is replaced by dup2() and never closed under a writer. */
static int sink_fd = STDERR_FILENO;
static bool with_timestamps;

/* @path with its one "%d" replaced; NULL and *errp when it holds another '%'. */
static char *path_expand(const char *path, GError **errp)
{
    const char *percent = strchr(path, '%');

    if (!percent) {
        return g_strdup(path);
    }
    if (percent[1] != 'd' || strchr(percent + 2, '%')) {
        g_set_error(errp, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "Bad log file name '%s': only one '%%d' (the process id) may follow a '%%'",
                    path);
        return NULL;
    }
    return g_strdup_printf("%.*s%d%s", (int)(percent - path), path, (int)getpid(), percent + 2);
}

bool log_sink_open(const char *path, GError **errp)
{
    g_autofree char *name = NULL;
    int fd, old = __atomic_load_n(&sink_fd, __ATOMIC_RELAXED);

    if (!path) {
        __atomic_store_n(&sink_fd, STDERR_FILENO, __ATOMIC_RELAXED);
        return true;
    }
    name = path_expand(path, errp);
    if (!name) {
        return false;
    }
    fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        int err = errno;

        g_set_error(errp, G_FILE_ERROR, g_file_error_from_errno(err),
                    "Could not open log file '%s': %s", name, g_strerror(err));
        return false;
    }
    if (old == STDERR_FILENO) {
        __atomic_store_n(&sink_fd, fd, __ATOMIC_RELAXED);
    } else {
        dup3(fd, old, O_CLOEXEC);
        close(fd);
    }
    return true;
}

bool log_sink_is_file(void)
{
    return __atomic_load_n(&sink_fd, __ATOMIC_RELAXED) != STDERR_FILENO;
}

void log_sink_set_timestamps(bool on)
{
    __atomic_store_n(&with_timestamps, on, __ATOMIC_RELAXED);
}

bool log_sink_timestamps(void)
{
    return __atomic_load_n(&with_timestamps, __ATOMIC_RELAXED);
}

void trace_log_set(bool on)
{
    __atomic_store_n(&trace_log_active, on, __ATOMIC_RELAXED);
}

void log_sink_vprintf(const char *fmt, va_list ap)
{
    static const char cut[] = "...\n";
    char line[LOG_SINK_LINE_MAX];
    size_t len = 0;
    int n;

    if (log_sink_timestamps()) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        len = (size_t)snprintf(line, sizeof(line), "%d@%lld.%06ld:", (int)gettid(),
                               (long long)now.tv_sec, now.tv_nsec / 1000);
    }
    n = vsnprintf(line + len, sizeof(line) - len, fmt, ap);
    if (n < 0) {
        return;
    }
    len += (size_t)n;
    if (len >= sizeof(line)) {
        len = sizeof(line);
        memcpy(line + len - (sizeof(cut) - 1), cut, sizeof(cut) - 1);
    }
    /* A log that can't be written has nowhere to say so. */
    if (write(__atomic_load_n(&sink_fd, __ATOMIC_RELAXED), line, len) < 0) {
        return;
    }
}

void log_sink_printf(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_sink_vprintf(fmt, ap);
    va_end(ap);
}
