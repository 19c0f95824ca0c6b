/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * EventNotifier: a non-blocking eventfd.
 */
#include "util/event-notifier.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/err.h"

bool event_notifier_init(EventNotifier *n, GError **errp)
{
    n->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (n->fd < 0) {
        err_set_errno(errp, errno, "Could not create an eventfd");
        return false;
    }
    return true;
}

void event_notifier_init_fd(EventNotifier *n, int fd)
{
    n->fd = fd;
}

void event_notifier_cleanup(EventNotifier *n)
{
    if (n->fd >= 0) {
        close(n->fd);
        n->fd = -1;
    }
}

void event_notifier_set(EventNotifier *n)
{
    static const uint64_t one = 1;
    ssize_t ret;

    do {
        ret = write(n->fd, &one, sizeof(one));
    } while (ret < 0 && errno == EINTR);
    /* EAGAIN: the counter is full, so it is set. */
}

bool event_notifier_test_and_clear(EventNotifier *n)
{
    uint64_t count;
    ssize_t ret;

    do {
        ret = read(n->fd, &count, sizeof(count));
    } while (ret < 0 && errno == EINTR);
    return ret == sizeof(count);
}
