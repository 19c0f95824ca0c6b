/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fd monitor by ppoll(): watches anything, at a cost that grows with the number of fds.
 */
#include "aio-internal.h"

static bool ppoll_init(AioContext *ctx, GError **errp)
{
    ctx->pollfds_stale = true;
    return true;
}

static void ppoll_cleanup(AioContext *ctx)
{
    g_clear_pointer(&ctx->pollfds, g_free);
    g_clear_pointer(&ctx->pollfd_handlers, g_free);
    ctx->pollfd_count = ctx->pollfd_size = 0;
}

static bool ppoll_update(AioContext *ctx, AioHandler *h, unsigned old)
{
    ctx->pollfds_stale = true;
    return true;
}

static void rebuild(AioContext *ctx)
{
    unsigned n = 0;

    if (ctx->pollfd_size < ctx->handler_count) {
        ctx->pollfd_size = ctx->handler_size;
        ctx->pollfds = g_renew(struct pollfd, ctx->pollfds, ctx->pollfd_size);
        ctx->pollfd_handlers = g_renew(AioHandler *, ctx->pollfd_handlers, ctx->pollfd_size);
    }
    for (unsigned i = 0; i < ctx->handler_count; i++) {
        AioHandler *h = ctx->handlers[i];

        if (h->watched) {
            ctx->pollfds[n] = (struct pollfd) { .fd = h->fd, .events = h->watched };
            ctx->pollfd_handlers[n++] = h;
        }
    }
    ctx->pollfd_count = n;
    ctx->pollfds_stale = false;
}

static void ppoll_wait(AioContext *ctx, int64_t timeout_ns)
{
    struct timespec ts = {
        .tv_sec = timeout_ns / 1000000000,
        .tv_nsec = timeout_ns % 1000000000,
    };
    int n;

    if (ctx->pollfds_stale) {
        rebuild(ctx);
    }
    n = ppoll(ctx->pollfds, ctx->pollfd_count, timeout_ns < 0 ? NULL : &ts, NULL);
    for (unsigned i = 0; n > 0 && i < ctx->pollfd_count; i++) {
        if (ctx->pollfds[i].revents) {
            aio_handler_ready(ctx->pollfd_handlers[i], ctx->pollfds[i].revents);
            n--;
        }
    }
}

static int ppoll_pollable_fd(AioContext *ctx)
{
    return -1;
}

const FdMonOps fdmon_ppoll = {
    .name = "ppoll",
    .init = ppoll_init,
    .cleanup = ppoll_cleanup,
    .update = ppoll_update,
    .wait = ppoll_wait,
    .pollable_fd = ppoll_pollable_fd,
};
