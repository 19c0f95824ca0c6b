/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AioContext: the event loop of one thread.
 *
 * An AioContext belongs to one thread at a time, its home thread. Functions
 * are for the home thread unless their comment says "any thread". The main
 * loop's context is driven by GLib through aio_context_gsource(); an
 * IOThread drives its own with aio_poll().
 *
 * One iteration, in this order: poll, wait, take notifications, run bottom
 * halves, run ready handlers, adjust windows, run timers. Deferred work runs
 * after a poll that found something and at the end.
 */
#ifndef UTIL_AIO_H
#define UTIL_AIO_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/poll-policy.h"

typedef struct AioContext AioContext;
typedef struct AioHandler AioHandler;
typedef struct AioBh AioBh;

/* ---- life ---------------------------------------------------------- */

/* Takes no thread yet: the first thread to call aio_context_enter() or
 * aio_poll() becomes the home thread. @name is copied; for logs and stats. */
AioContext *aio_context_new(const char *name, GError **errp);
/* The same with the fd monitor "epoll" or "ppoll" instead of the best one. */
AioContext *aio_context_new_monitor(const char *name, const char *monitor, GError **errp);
/* Home thread, or any when it has none. Destroys what the slots hold. No other
 * handler, bottom half or timer may be left. NULL is fine. */
void aio_context_free(AioContext *ctx);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AioContext, aio_context_free)

/* The context whose home is the calling thread, NULL if there is none. */
extern _Thread_local AioContext *aio_context_here;      /* of the next function alone */
static inline AioContext *aio_context_current(void)
{
    return aio_context_here;
}
/* Make the calling thread @ctx's home. */
void aio_context_enter(AioContext *ctx);
/* The opposite: destroys what the slots hold, because that must happen here. A
 * thread that ends leaves its context to be freed by whoever could still notify it. */
void aio_context_leave(AioContext *ctx);
const char *aio_context_name(const AioContext *ctx);

/* One iteration. @blocking: wait until something happened. Returns true when
 * anything ran. May be nested from a handler, bottom half or timer. */
bool aio_poll(AioContext *ctx, bool blocking);

/* For the main loop: attach it to a GMainContext. The GSource keeps no
 * reference; destroy and unreference it before aio_context_free(). One per
 * context. */
GSource *aio_context_gsource(AioContext *ctx, GError **errp);

/* Any thread. Make a blocking aio_poll() return. One atomic and, only when
 * the home thread sleeps, one eventfd write. */
void aio_notify(AioContext *ctx);

/* ---- fd and memory handlers ---------------------------------------- */

typedef struct AioHandlerOps {
    const char *name;                   /* for logs, stats and trace */
    void (*readable)(void *opaque);     /* NULL: not watched for input */
    void (*writable)(void *opaque);     /* NULL: not watched for output */
    /*
     * Look at memory (never a system call when there is nothing) and handle
     * what is there. Returns the units of work done, 0 when there was none.
     * NULL: this fd cannot be polled. May add and remove handlers.
     */
    unsigned (*poll)(void *opaque);
    /* The loop starts to poll this handler: the other side may stop
     * notifying. NULL: nothing to do. */
    void (*poll_begin)(void *opaque);
    /*
     * The loop stops and is about to sleep: notifications are on again when
     * this returns. True when work arrived meanwhile; the loop then runs @poll
     * again and doesn't sleep. Also called when @poll found something without
     * @poll_begin before it, in the look at memory that precedes every sleep: a
     * chance to clear an fd that is stale now. NULL: nothing to do.
     */
    bool (*poll_end)(void *opaque);
} AioHandlerOps;

/* @ops and @opaque live until aio_handler_remove(). @fd stays the caller's, who
 * closes it after that; one handler per fd. Level-triggered: called again until
 * the fd is drained. An error or hang-up of the fd calls both directions that are
 * watched. Cannot fail (memory aside); a bad fd is a programming error. */
AioHandler *aio_handler_add(AioContext *ctx, int fd, const AioHandlerOps *ops, void *opaque);
/* No callback of @h starts after this returns, also when called from inside
 * one; if it was in polling state, @poll_end isn't called. */
void aio_handler_remove(AioHandler *h);
/* Watch for output only while there is something to send. */
void aio_handler_set_writable(AioHandler *h, bool on);

/* ---- deferred work: the end of this round -------------------------- */

/*
 * Work that is done once per round however often it is asked for: enter the
 * kernel with all that was queued, publish a used ring. Runs in the home
 * thread, FIFO, after the handlers of this round and before the loop polls or
 * waits again; work deferred meanwhile runs in the same round. No system call,
 * no allocation. Embedded in its owner.
 */
typedef struct AioDefer AioDefer;
struct AioDefer {
    void (*fn)(void *opaque);
    void *opaque;
    AioDefer *next;                     /* the loop's */
    bool queued;                        /* the loop's */
};

static inline void aio_defer_init(AioDefer *d, void (*fn)(void *opaque), void *opaque)
{
    *d = (AioDefer) { .fn = fn, .opaque = opaque };
}
/* No effect while already queued. */
void aio_defer(AioContext *ctx, AioDefer *d);
/* Forget it if it is queued. */
void aio_defer_cancel(AioContext *ctx, AioDefer *d);

/* ---- bottom halves -------------------------------------------------- */

/* Any thread may create. @name is not copied. */
AioBh *aio_bh_new(AioContext *ctx, const char *name, void (*fn)(void *opaque), void *opaque);
/* Any thread. @fn runs once in the home thread however often it is scheduled
 * before it starts; memory written before is seen by @fn. */
void aio_bh_schedule(AioBh *bh);
/* Home thread: it won't run again; freed by the loop. */
void aio_bh_delete(AioBh *bh);
/* Any thread. Allocates, so not for the request path. */
void aio_bh_oneshot(AioContext *ctx, const char *name, void (*fn)(void *opaque), void *opaque);

/* Any thread but @ctx's own waits until @fn has run in @ctx's home thread; in
 * the home thread, calls @fn. A caller that is home of another context keeps
 * that context running meanwhile. */
void aio_run_sync(AioContext *ctx, void (*fn)(void *opaque), void *opaque);

/*
 * Wait in the calling thread until @done(@opaque) is true, running the
 * caller's own context meanwhile (if it has one). Whoever makes @done true in
 * another thread calls aio_wait_kick() after it.
 */
void aio_wait_until(bool (*done)(void *opaque), void *opaque);
void aio_wait_kick(void);               /* any thread */

/* ---- timers ---------------------------------------------------------- */

/* Embedded in its owner. Deadlines are ns of CLOCK_MONOTONIC. */
typedef struct AioTimer {
    AioContext *ctx;
    void (*fn)(void *opaque);
    void *opaque;
    int64_t deadline_ns;                /* -1: not armed */
    unsigned heap_index;                /* the loop's */
    uint64_t seq;                       /* the loop's */
} AioTimer;

void aio_timer_init(AioTimer *t, AioContext *ctx, void (*fn)(void *opaque), void *opaque);
void aio_timer_set(AioTimer *t, int64_t deadline_ns);
void aio_timer_cancel(AioTimer *t);
int64_t aio_clock_ns(void);             /* any thread; CLOCK_MONOTONIC */

/* ---- per-context state of higher floors ------------------------------ */

/* An I/O engine keeps its per-context part here. Slots are fixed. */
typedef enum AioSlot {
    AIO_SLOT_LINUX_AIO,
    AIO_SLOT_IO_URING,
    AIO_SLOT_THREAD_POOL,
    AIO_SLOT_BLOCK,
    AIO_SLOT_MAX,
} AioSlot;

static inline void *aio_slot_get(const AioContext *ctx, AioSlot slot)
{
    /* An AioContext begins with its slots; the rest is nobody's business. */
    return ((void *const *)ctx)[slot];
}
/* @destroy runs in the home thread when the context ends. */
void aio_slot_set(AioContext *ctx, AioSlot slot, void *value, void (*destroy)(void *value));

/* ---- polling parameters ----------------------------------------------- */

/* Any thread; in effect at once, resets what was learned. */
void aio_set_poll_params(AioContext *ctx, const AioPollParams *params);
/* Any thread: what was set last. A new context doesn't poll (max_ns is 0). */
AioPollParams aio_get_poll_params(AioContext *ctx);

/* ---- books -------------------------------------------------------------- */

/* Counted since the context was made; times are ns. */
typedef struct AioStats {
    uint64_t iterations;                /* of aio_poll() */
    uint64_t waits;                     /* times the loop went to sleep */
    uint64_t fd_checks;                 /* looks at the fds without sleeping */
    uint64_t polled_hit_ns;             /* polling that ended with something to do */
    uint64_t polled_miss_ns;            /* polling that ended with the window */
    uint64_t wakeups_poll;              /* handlers that found work by polling */
    uint64_t wakeups_fd;                /* pollable handlers that were woken by their fd */
    uint64_t windows_grown;
    uint64_t windows_shrunk;
    uint64_t windows_reset;             /* by parameters, or idle and off the poll list */
    uint64_t window_ns;                 /* the largest window now */
} AioStats;

/* Any thread. Each field is true; the fields are not of one moment. */
void aio_get_stats(AioContext *ctx, AioStats *stats);

#endif
