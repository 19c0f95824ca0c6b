/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * EventNotifier: an eventfd, as KVM's ioeventfd and irqfd want it.
 *
 * Set any number of times, it is seen once. Any thread may set; one thread
 * tests and clears. Both ends are non-blocking.
 */
#ifndef UTIL_EVENT_NOTIFIER_H
#define UTIL_EVENT_NOTIFIER_H

#include <glib.h>
#include <stdbool.h>

typedef struct EventNotifier {
    int fd;                             /* -1: not initialized */
} EventNotifier;

#define EVENT_NOTIFIER_NONE { .fd = -1 }

bool event_notifier_init(EventNotifier *n, GError **errp);
/* Take over an eventfd that somebody else made (a peer's call or kick fd). */
void event_notifier_init_fd(EventNotifier *n, int fd);
/* Closes the fd; no effect when there is none. */
void event_notifier_cleanup(EventNotifier *n);

static inline int event_notifier_fd(const EventNotifier *n)
{
    return n->fd;
}

/* One system call. */
void event_notifier_set(EventNotifier *n);
/* One system call. True if it was set since the last time. */
bool event_notifier_test_and_clear(EventNotifier *n);

#endif
