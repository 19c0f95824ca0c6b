/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An AioContext as a source of a GMainContext: the main loop's.
 *
 * GLib counts milliseconds, so timers wake it by a timerfd. A monitor that has an
 * fd of its own (epoll) is watched by that one; for ppoll, every handler's fd is.
 */
#include "aio-internal.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/err.h"

typedef struct AioSource {
    GSource source;
    AioContext *ctx;
    gpointer monitor_tag;               /* NULL: each handler has its own */
    int timer_fd;
    gpointer timer_tag;
    int64_t armed_ns;                   /* what timer_fd is set to, or NO_DEADLINE */
} AioSource;

static void timer_arm(AioSource *s, int64_t deadline_ns)
{
    struct itimerspec its = { 0 };

    if (deadline_ns == s->armed_ns) {
        return;
    }
    if (deadline_ns != NO_DEADLINE) {
        its.it_value.tv_sec = deadline_ns / 1000000000;
        its.it_value.tv_nsec = deadline_ns % 1000000000;
    }
    timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
    s->armed_ns = deadline_ns;
}

static bool has_work(AioContext *ctx)
{
    return ctx->defer_head || ctx->ready_head || aio_has_bhs(ctx) ||
           aio_next_deadline(ctx) <= aio_clock_ns();
}

static gboolean source_prepare(GSource *source, gint *timeout)
{
    AioSource *s = (AioSource *)source;

    *timeout = -1;
    if (!aio_sleep_prepare(s->ctx) || has_work(s->ctx)) {
        return TRUE;
    }
    timer_arm(s, aio_next_deadline(s->ctx));
    return FALSE;
}

static bool handlers_ready(AioSource *s)
{
    AioContext *ctx = s->ctx;

    if (s->monitor_tag) {
        return g_source_query_unix_fd(&s->source, s->monitor_tag);
    }
    for (unsigned i = 0; i < ctx->handler_count; i++) {
        gpointer tag = ctx->handlers[i]->source_tag;

        if (tag && g_source_query_unix_fd(&s->source, tag)) {
            return true;
        }
    }
    return false;
}

static gboolean source_check(GSource *source)
{
    AioSource *s = (AioSource *)source;

    return aio_is_notified(s->ctx) || has_work(s->ctx) || handlers_ready(s);
}

static gboolean source_dispatch(GSource *source, GSourceFunc fn, gpointer data)
{
    AioSource *s = (AioSource *)source;

    if (g_source_query_unix_fd(source, s->timer_tag)) {
        s->armed_ns = -1;               /* setting it again makes it unreadable */
        timer_arm(s, NO_DEADLINE);
    }
    aio_poll(s->ctx, false);
    return G_SOURCE_CONTINUE;
}

static void source_finalize(GSource *source)
{
    AioSource *s = (AioSource *)source;

    for (unsigned i = 0; i < s->ctx->handler_count; i++) {
        s->ctx->handlers[i]->source_tag = NULL;
    }
    s->ctx->source = NULL;
    if (s->timer_fd >= 0) {
        close(s->timer_fd);
    }
}

static GSourceFuncs source_funcs = {
    .prepare = source_prepare,
    .check = source_check,
    .dispatch = source_dispatch,
    .finalize = source_finalize,
};

static void watch_handler(AioSource *s, AioHandler *h)
{
    GIOCondition events = h->watched;

    if (h->source_tag && events) {
        g_source_modify_unix_fd(&s->source, h->source_tag, events);
    } else if (h->source_tag) {
        g_source_remove_unix_fd(&s->source, g_steal_pointer(&h->source_tag));
    } else if (events) {
        h->source_tag = g_source_add_unix_fd(&s->source, h->fd, events);
    }
}

/* A handler changed what it watches, or the monitor did. */
void aio_gsource_update(AioContext *ctx, AioHandler *h)
{
    AioSource *s = ctx->source;

    if (!s) {
        return;
    }
    if (s->monitor_tag && ctx->mon->pollable_fd(ctx) < 0) {
        g_source_remove_unix_fd(&s->source, g_steal_pointer(&s->monitor_tag));
    }
    if (!s->monitor_tag) {
        watch_handler(s, h);
    }
}

GSource *aio_context_gsource(AioContext *ctx, GError **errp)
{
    int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    int fd = ctx->mon->pollable_fd(ctx);
    AioSource *s;

    g_assert(!ctx->source);
    if (timer_fd < 0) {
        err_set_errno(errp, errno, "Could not create a timerfd");
        return NULL;
    }
    s = (AioSource *)g_source_new(&source_funcs, sizeof(AioSource));
    s->ctx = ctx;
    s->armed_ns = NO_DEADLINE;
    s->timer_fd = timer_fd;
    s->timer_tag = g_source_add_unix_fd(&s->source, timer_fd, G_IO_IN);
    ctx->source = s;
    if (fd >= 0) {
        s->monitor_tag = g_source_add_unix_fd(&s->source, fd, G_IO_IN);
    } else {
        for (unsigned i = 0; i < ctx->handler_count; i++) {
            watch_handler(s, ctx->handlers[i]);
        }
    }
    g_source_set_name(&s->source, ctx->name);
    /* A callback may run the loop again while it waits. */
    g_source_set_can_recurse(&s->source, TRUE);
    return &s->source;
}
