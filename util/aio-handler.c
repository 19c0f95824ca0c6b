/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handlers: adding and removing them, also from inside callbacks, and running
 * those whose fd is ready.
 */
#include "aio-internal.h"

#include <string.h>

#include "trace/trace-util.h"
#include "util/err.h"

static bool is_unpollable(const AioHandler *h)
{
    return h->watched && !h->internal && !h->ops->poll;
}

/* Its fd needs a look of its own while the loop polls memory. */
static bool is_unpolled(const AioHandler *h)
{
    return h->watched && !h->internal && (h->poll_index == NOT_POLLED || (h->watched & POLLOUT));
}

void aio_handler_count(AioHandler *h, int sign)
{
    h->ctx->unpollable += sign * is_unpollable(h);
    h->ctx->unpolled += sign * is_unpolled(h);
}

/* Move every handler to another monitor. */
bool aio_use_monitor(AioContext *ctx, const FdMonOps *mon, GError **errp)
{
    if (!mon->init(ctx, errp)) {
        return false;
    }
    ctx->mon->cleanup(ctx);
    ctx->mon = mon;
    for (unsigned i = 0; i < ctx->handler_count; i++) {
        AioHandler *h = ctx->handlers[i];

        if (h->watched) {
            mon->update(ctx, h, 0);
            aio_gsource_update(ctx, h);
        }
    }
    return true;
}

static void watch(AioHandler *h, unsigned events)
{
    AioContext *ctx = h->ctx;
    unsigned old = h->watched;

    if (events == old) {
        return;
    }
    aio_handler_count(h, -1);
    h->watched = events;
    aio_handler_count(h, 1);
    if (ctx->mon->update(ctx, h, old)) {
        aio_gsource_update(ctx, h);
        return;
    }
    /* ppoll watches anything: a plain file on standard input, say. */
    if (!aio_use_monitor(ctx, &fdmon_ppoll, NULL)) {
        g_assert_not_reached();
    }
}

static AioHandler *handler_new(AioContext *ctx, int fd, const AioHandlerOps *ops, void *opaque,
                               bool internal)
{
    AioHandler *h = g_new(AioHandler, 1);

    aio_assert_home(ctx);
    *h = (AioHandler) {
        .ctx = ctx,
        .fd = fd,
        .ops = ops,
        .opaque = opaque,
        .internal = internal,
        .index = ctx->handler_count,
        .poll_index = NOT_POLLED,
    };
    if (ctx->handler_count == ctx->handler_size) {
        ctx->handler_size = MAX(8, ctx->handler_size * 2);
        ctx->handlers = g_renew(AioHandler *, ctx->handlers, ctx->handler_size);
    }
    ctx->handlers[ctx->handler_count++] = h;
    if (ops->poll) {
        poll_list_add(h);
    }
    watch(h, ops->readable ? POLLIN : 0);
    return h;
}

AioHandler *aio_handler_add(AioContext *ctx, int fd, const AioHandlerOps *ops, void *opaque)
{
    return handler_new(ctx, fd, ops, opaque, false);
}

AioHandler *aio_handler_add_internal(AioContext *ctx, int fd, const AioHandlerOps *ops,
                                     void *opaque)
{
    return handler_new(ctx, fd, ops, opaque, true);
}

void aio_handler_set_writable(AioHandler *h, bool on)
{
    g_assert(!on || h->ops->writable);
    watch(h, on ? h->watched | POLLOUT : h->watched & ~POLLOUT);
}

void aio_handler_remove(AioHandler *h)
{
    AioContext *ctx = h->ctx;
    AioHandler *last;

    aio_assert_home(ctx);
    watch(h, 0);
    if (h->poll_index != NOT_POLLED) {
        poll_list_remove(h);
    }
    last = ctx->handlers[--ctx->handler_count];
    ctx->handlers[h->index] = last;
    last->index = h->index;
    h->removed = true;
    ctx->fd_events -= h->fd_event;
    if (!h->queued) {
        h->next = ctx->removed;
        ctx->removed = h;
    }
    if (ctx->depth == 0) {
        aio_free_removed(ctx);
    }
}

/* No walk is under way: nobody holds a pointer to what was removed. */
void aio_sweep_removed(AioContext *ctx)
{
    AioHandler *h;

    while ((h = ctx->removed) != NULL) {
        ctx->removed = h->next;
        g_free(h);
    }
    poll_list_compact(ctx);
}

/* For monitors. */
void aio_handler_ready(AioHandler *h, unsigned revents)
{
    AioContext *ctx = h->ctx;

    h->ready |= revents;
    if (h->queued) {
        return;
    }
    h->queued = true;
    h->next = NULL;
    *ctx->ready_tail = h;
    ctx->ready_tail = &h->next;
}

static AioHandler *ready_pop(AioContext *ctx)
{
    AioHandler *h = ctx->ready_head;

    if (h) {
        ctx->ready_head = h->next;
        if (!h->next) {
            ctx->ready_tail = &ctx->ready_head;
        }
        h->queued = false;
    }
    return h;
}

/* An fd event is an event for the polling policy and brings a handler back to the poll list. */
static void note_fd_event(AioHandler *h)
{
    AioContext *ctx = h->ctx;

    if (!h->ops->poll || h->fd_event) {
        return;
    }
    h->fd_event = true;
    ctx->fd_events++;
    book_add(&ctx->books.wakeups_fd, 1);
    if (h->poll_index == NOT_POLLED) {
        poll_list_add(h);
    }
    h->last_event_ns = ctx->event_ns;   /* not idle, should its callback run the loop */
}

static bool run_one(AioHandler *h)
{
    unsigned revents = h->ready;
    const unsigned failed = POLLERR | POLLHUP | POLLNVAL;
    bool ran = false;

    h->ready = 0;
    trace_aio_handler_ready(h->ctx, h->ops->name, h->fd, revents);
    if ((h->watched & POLLIN) && (revents & (POLLIN | failed))) {
        note_fd_event(h);
        h->ops->readable(h->opaque);
        ran = true;
    }
    /* readable() may have removed it or stopped watching. */
    if ((h->watched & POLLOUT) && (revents & (POLLOUT | failed))) {
        h->ops->writable(h->opaque);
        ran = true;
    }
    return ran && !h->internal;
}

/* A nested aio_poll() takes from the same list, so nothing here is stale. */
bool aio_ready_drain(AioContext *ctx)
{
    bool progress = false;
    AioHandler *h;

    while ((h = ready_pop(ctx)) != NULL) {
        if (h->removed) {
            h->next = ctx->removed;
            ctx->removed = h;
        } else {
            progress |= run_one(h);
        }
    }
    return progress;
}
