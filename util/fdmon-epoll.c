/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fd monitor by epoll: the cost of a wait doesn't depend on the number of fds.
 */
#include "aio-internal.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util/err.h"

#define BATCH 64                        /* the rest stays ready for the next look */

_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR &&
               EPOLLHUP == POLLHUP, "poll and epoll name events alike");

static bool epoll_init(AioContext *ctx, GError **errp)
{
    ctx->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (ctx->epoll_fd < 0) {
        err_set_errno(errp, errno, "Could not create an epoll instance");
        return false;
    }
    return true;
}

static void epoll_cleanup(AioContext *ctx)
{
    close(ctx->epoll_fd);
    ctx->epoll_fd = -1;
}

static bool epoll_update(AioContext *ctx, AioHandler *h, unsigned old)
{
    struct epoll_event event = { .events = h->watched, .data.ptr = h };
    int op = old == 0 ? EPOLL_CTL_ADD : h->watched == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

    /* Deleting fails only when the fd was closed before, and then it is gone anyway. */
    return epoll_ctl(ctx->epoll_fd, op, h->fd, &event) == 0 || op == EPOLL_CTL_DEL;
}

/* Where the kernel has no wait that counts nanoseconds. */
static int wait_by_ppoll(AioContext *ctx, struct epoll_event *events, const struct timespec *ts)
{
    struct pollfd pfd = { .fd = ctx->epoll_fd, .events = POLLIN };
    int n = ppoll(&pfd, 1, ts, NULL);

    return n <= 0 ? n : epoll_wait(ctx->epoll_fd, events, BATCH, 0);
}

static int wait_ns(AioContext *ctx, struct epoll_event *events, int64_t timeout_ns)
{
    struct timespec ts = {
        .tv_sec = timeout_ns / 1000000000,
        .tv_nsec = timeout_ns % 1000000000,
    };

    if (!ctx->epoll_no_pwait2) {
        int n = epoll_pwait2(ctx->epoll_fd, events, BATCH, &ts, NULL);

        if (n >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return n;
        }
        ctx->epoll_no_pwait2 = true;
    }
    return wait_by_ppoll(ctx, events, &ts);
}

static void epoll_wait_ready(AioContext *ctx, int64_t timeout_ns)
{
    struct epoll_event events[BATCH];
    int n;

    if (timeout_ns <= 0) {
        n = epoll_wait(ctx->epoll_fd, events, BATCH, timeout_ns < 0 ? -1 : 0);
    } else {
        n = wait_ns(ctx, events, timeout_ns);
    }
    for (int i = 0; i < n; i++) {
        aio_handler_ready(events[i].data.ptr, events[i].events);
    }
}

static int epoll_pollable_fd(AioContext *ctx)
{
    return ctx->epoll_fd;
}

const FdMonOps fdmon_epoll = {
    .name = "epoll",
    .init = epoll_init,
    .cleanup = epoll_cleanup,
    .update = epoll_update,
    .wait = epoll_wait_ready,
    .pollable_fd = epoll_pollable_fd,
};
