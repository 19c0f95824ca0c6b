/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of the event loop share: each case runs once for every fd monitor.
 *
 * AIO_ROUNDS multiplies the counts of the stress cases (default 1).
 */
#ifndef TESTS_UNIT_AIO_CASES_H
#define TESTS_UNIT_AIO_CASES_H

#include <stdlib.h>

#include "util/aio.h"
#include "util/event-notifier.h"

typedef struct AioCase {
    const char *name;
    void (*fn)(const void *monitor);
} AioCase;

static inline void aio_cases_add(const char *group, const AioCase *cases, unsigned count)
{
    static const char *const monitors[] = { "epoll", "ppoll" };

    for (unsigned m = 0; m < G_N_ELEMENTS(monitors); m++) {
        for (unsigned i = 0; i < count; i++) {
            g_autofree char *path = g_strdup_printf("/%s/%s/%s", group, monitors[m],
                                                    cases[i].name);

            g_test_add_data_func(path, monitors[m], cases[i].fn);
        }
    }
}

static inline unsigned rounds(unsigned n)
{
    const char *s = g_getenv("AIO_ROUNDS");

    return n * (s ? MAX(atoi(s), 1) : 1);
}

static inline AioContext *new_ctx(const void *monitor)
{
    AioContext *ctx = aio_context_new_monitor("test", monitor, NULL);

    g_assert_nonnull(ctx);
    aio_context_enter(ctx);
    return ctx;
}

/* ---- an fd with a handler --------------------------------------------- */

typedef struct Fd Fd;
struct Fd {
    AioContext *ctx;
    EventNotifier n;
    AioHandler *h;
    unsigned calls;
    bool leave_full;                    /* don't drain */
    void (*then)(Fd *fd);
    Fd *other;
};

static inline void fd_readable(void *opaque)
{
    Fd *fd = opaque;

    fd->calls++;
    if (!fd->leave_full) {
        g_assert_true(event_notifier_test_and_clear(&fd->n));
    }
    if (fd->then) {
        fd->then(fd);
    }
}

static const AioHandlerOps fd_ops = { .name = "test-fd", .readable = fd_readable };

static inline void fd_init(Fd *fd, AioContext *ctx)
{
    *fd = (Fd) { .ctx = ctx };
    g_assert_true(event_notifier_init(&fd->n, NULL));
    fd->h = aio_handler_add(ctx, fd->n.fd, &fd_ops, fd);
}

static inline void fd_drop(Fd *fd)
{
    if (fd->h) {
        aio_handler_remove(g_steal_pointer(&fd->h));
    }
}

static inline void fd_cleanup(Fd *fd)
{
    fd_drop(fd);
    event_notifier_cleanup(&fd->n);
}

/* Run until nothing is left to do. */
static inline void settle(AioContext *ctx)
{
    while (aio_poll(ctx, false)) {
    }
}

#endif
