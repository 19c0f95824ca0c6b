/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AioContext from the inside: what the files of the event loop share.
 *
 *   aio-context.c   life, the phases of an iteration in order, notification
 *   aio-poll.c      busy polling
 *   aio-handler.c   handlers: adding, removing, running those that are ready
 *   fdmon-*.c       which fds are ready: one file per way to ask the kernel
 *   aio-bh.c        bottom halves
 *   aio-timer.c     timers
 *   aio-gsource.c   the loop as a source of a GMainContext
 *   aio-wait.c      waiting for another thread
 *
 * Everything belongs to the home thread but what is marked otherwise.
 */
#ifndef UTIL_AIO_INTERNAL_H
#define UTIL_AIO_INTERNAL_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "aio-clock.h"
#include "util/aio.h"
#include "util/event-notifier.h"

#define CACHE_LINE 64
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define NO_DEADLINE INT64_MAX
#define NOT_POLLED UINT_MAX

struct AioHandler {
    const AioHandlerOps *ops;
    void *opaque;
    AioContext *ctx;
    int fd;
    uint16_t watched;                   /* POLLIN, POLLOUT: what the monitor looks for */
    uint16_t ready;                     /* POLL*: what it found, until dispatched */
    bool queued;                        /* on the ready list */
    bool removed;                       /* freed when no walk is under way */
    bool internal;                      /* the loop's own: not counted as a watched fd */
    bool begun;                         /* in polling state: poll_begin ran */
    bool looked;                        /* found work outside of it */
    bool fd_event;                      /* woken by its fd in this iteration */
    unsigned index;                     /* in ctx->handlers */
    unsigned poll_index;                /* in ctx->poll_list, or NOT_POLLED */
    AioHandler *next;                   /* on the ready list, or on that of the removed */
    int64_t window_ns;
    int64_t last_event_ns;              /* by the fast clock */
    gpointer source_tag;                /* in the GSource, for a monitor without an fd */
};

/* One per pollable handler that isn't idle, side by side: a turn reads nothing else. */
typedef struct PollEntry {
    unsigned (*poll)(void *opaque);
    void *opaque;
    AioHandler *handler;                /* NULL: removed, the entry goes when no walk is on */
} PollEntry;

/*
 * A way to learn which fds are ready. All functions run in the home thread.
 */
typedef struct FdMonOps {
    const char *name;
    bool (*init)(AioContext *ctx, GError **errp);
    void (*cleanup)(AioContext *ctx);
    /* h->watched changed from @old; 0 is "not there". Must take effect at once.
     * False: this monitor can't watch that fd. */
    bool (*update)(AioContext *ctx, AioHandler *h, unsigned old);
    /* Report each ready handler by aio_handler_ready(). @timeout_ns: 0 is a
     * look, -1 no limit. May return early with nothing. */
    void (*wait)(AioContext *ctx, int64_t timeout_ns);
    /* An fd that is readable when any handler is ready, -1 if there is none. */
    int (*pollable_fd)(AioContext *ctx);
} FdMonOps;

extern const FdMonOps fdmon_epoll;
extern const FdMonOps fdmon_ppoll;

/* Written by the home thread only, read by any: relaxed atomics. */
typedef struct AioBooks {
    _Atomic uint64_t iterations;
    _Atomic uint64_t waits;
    _Atomic uint64_t fd_checks;
    _Atomic uint64_t polled_hit_ns;
    _Atomic uint64_t polled_miss_ns;
    _Atomic uint64_t wakeups_poll;
    _Atomic uint64_t wakeups_fd;
    _Atomic uint64_t windows_grown;
    _Atomic uint64_t windows_shrunk;
    _Atomic uint64_t windows_reset;
    _Atomic uint64_t window_ns;
} AioBooks;

static inline void book_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/*
 * AioContext.wake: one word, so that the order of its changes is the proof.
 * Whoever wants the loop to look sets WAKE_NOTIFIED after it wrote what is to be
 * seen; the loop sets WAKE_SLEEPING before it sleeps. Of the two read-modify-writes
 * one comes second and sees the other: either the loop doesn't sleep, or the
 * notifier writes the eventfd. The loop clears the word with an exchange (acquire)
 * before it looks at bottom halves, which pairs with the notifier's (release).
 */
enum {
    WAKE_NOTIFIED = 1,
    WAKE_SLEEPING = 2,
    WAKE_PARAMS = 4,                    /* new_params is to be taken */
};

struct AioContext {
    void *slots[AIO_SLOT_MAX];          /* first: see aio_slot_get() */

    /* Read in every turn of the poll loop. */
    PollEntry *poll_list;
    unsigned poll_count;
    unsigned poll_size;
    unsigned poll_stride;               /* turns between two looks at the clock */
    unsigned depth;                     /* of nested aio_poll() */
    AioDefer *defer_head;
    AioDefer **defer_tail;
    AioTimer **timers;                  /* a heap, the next one first */
    unsigned timer_count;
    unsigned timer_size;
    uint64_t timer_seq;                 /* FIFO among equal deadlines */

    /* Polling. */
    FastClock clock;
    AioPollParams params;
    int64_t wait_start_ns;              /* when the loop ran out of work */
    bool wait_over;                     /* something ran since: start anew */
    bool poll_dirty;                    /* entries without a handler in poll_list */
    bool poll_unbegun;                  /* entries whose handler isn't in polling state */
    bool poll_begun;                    /* entries whose handler is, or found work */
    int64_t window_max_ns;              /* the largest on poll_list */
    int64_t event_ns;                   /* when what the monitor reported happened, as we guess */
    int64_t wake_cost_ns;               /* from an event to a sleeper on the CPU, at least */
    bool wake_cost_known;
    int64_t fd_checked_ns;
    int64_t idle_swept_ns;
    unsigned fd_events;                 /* handlers with fd_event */
    unsigned unpollable;                /* handlers watched that have no poll function */
    unsigned unpolled;                  /* handlers watched that are not on poll_list */

    /* Handlers. */
    AioHandler **handlers;
    unsigned handler_count;
    unsigned handler_size;
    AioHandler *ready_head;
    AioHandler **ready_tail;
    AioHandler *removed;

    /* The monitor and its state. */
    const FdMonOps *mon;
    int epoll_fd;
    bool epoll_no_pwait2;               /* the kernel or its guard doesn't have it */
    struct pollfd *pollfds;
    AioHandler **pollfd_handlers;
    unsigned pollfd_count;
    unsigned pollfd_size;
    bool pollfds_stale;

    AioBh *bh_head;                     /* taken, to be run */
    AioBh **bh_tail;
    struct AioSource *source;
    void (*slot_destroy[AIO_SLOT_MAX])(void *value);

    EventNotifier notifier;
    AioHandler *notifier_handler;
    char *name;
    AioBooks books;

    /* Any thread, under the lock. */
    pthread_mutex_t params_lock;
    AioPollParams new_params;

    /* Any thread. Rarely written, so the poll loop's reads stay in its cache. */
    _Alignas(CACHE_LINE) _Atomic unsigned wake;
    _Atomic(AioBh *) bh_incoming;       /* newest first */
    _Atomic(GThread *) home;
    char pad[CACHE_LINE];
};

/* aio-context.c */
void aio_assert_home(AioContext *ctx);
bool aio_defer_drain(AioContext *ctx);
static inline bool aio_is_notified(AioContext *ctx)
{
    return atomic_load_explicit(&ctx->wake, memory_order_relaxed) & WAKE_NOTIFIED;
}
/* False: don't sleep. */
bool aio_sleep_prepare(AioContext *ctx);
void aio_look_at_fds(AioContext *ctx);
/* A ready fd outside the poll list waits no longer than 100 us while polling succeeds. */
#define AIO_FD_CHECK_NS 80000

/* aio-handler.c */
AioHandler *aio_handler_add_internal(AioContext *ctx, int fd, const AioHandlerOps *ops,
                                     void *opaque);
/* Take @h out of the counts of the context (-1) before a change, and put it back (1). */
void aio_handler_count(AioHandler *h, int sign);
void aio_handler_ready(AioHandler *h, unsigned revents);
bool aio_ready_drain(AioContext *ctx);
void aio_sweep_removed(AioContext *ctx);
bool aio_use_monitor(AioContext *ctx, const FdMonOps *mon, GError **errp);

/* aio-poll.c */
void poll_list_add(AioHandler *h);
void poll_list_remove(AioHandler *h);
void poll_list_compact(AioContext *ctx);
bool aio_poll_phase(AioContext *ctx, bool may_wait);
/* Leave the polling state. True: work arrived meanwhile and was done. */
bool aio_poll_stop(AioContext *ctx);
void aio_judge_fd_events(AioContext *ctx);
void aio_apply_params(AioContext *ctx, const AioPollParams *params);

/* aio-clock.c */
int64_t wake_cost_measure(void);

/* aio-bh.c */
bool aio_bh_drain(AioContext *ctx);
void aio_free_bhs(AioContext *ctx);

/* aio-timer.c */
bool aio_timers_expire(AioContext *ctx);
static inline int64_t aio_next_deadline(const AioContext *ctx)
{
    return ctx->timer_count > 0 ? ctx->timers[0]->deadline_ns : NO_DEADLINE;
}

/*
 * The phases of an iteration as aio_poll() lists them: a comparison each when there
 * is nothing to do. They return true when something ran.
 */
static inline bool aio_has_bhs(AioContext *ctx)
{
    return ctx->bh_head || atomic_load_explicit(&ctx->bh_incoming, memory_order_relaxed);
}

static inline bool aio_run_bhs(AioContext *ctx)
{
    return unlikely(aio_has_bhs(ctx)) && aio_bh_drain(ctx);
}

static inline bool aio_run_ready(AioContext *ctx)
{
    return ctx->ready_head && aio_ready_drain(ctx);
}

static inline void aio_adjust_windows(AioContext *ctx)
{
    if (ctx->fd_events > 0) {
        aio_judge_fd_events(ctx);
    }
}

static inline bool aio_run_timers(AioContext *ctx)
{
    return ctx->timer_count > 0 && aio_timers_expire(ctx);
}

static inline bool aio_run_deferred(AioContext *ctx)
{
    return ctx->defer_head && aio_defer_drain(ctx);
}

static inline void aio_free_removed(AioContext *ctx)
{
    if (unlikely(ctx->removed || ctx->poll_dirty)) {
        aio_sweep_removed(ctx);
    }
}

/* aio-gsource.c */
void aio_gsource_update(AioContext *ctx, AioHandler *h);

#endif
