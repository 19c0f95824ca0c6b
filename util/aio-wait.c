/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting for another thread.
 *
 * Process-wide state, because who makes a condition true knows nothing of who
 * waits for it: the number of waiters, and their list under a lock.
 */
#include "aio-internal.h"

typedef struct Waiter {
    AioContext *ctx;                    /* NULL: waits on the condition variable */
    bool kicked;
    pthread_cond_t cond;
    struct Waiter *next;
} Waiter;

static _Atomic unsigned waiter_count;
static pthread_mutex_t waiters_lock = PTHREAD_MUTEX_INITIALIZER;
static Waiter *waiters;

void aio_wait_kick(void)
{
    /*
     * A read-modify-write, so that it has a place in the order of those of
     * waiter_add(): after it, we see the waiter; before it, the waiter sees
     * what was written before this call.
     */
    if (atomic_fetch_add(&waiter_count, 0) == 0) {
        return;
    }
    pthread_mutex_lock(&waiters_lock);
    for (Waiter *w = waiters; w; w = w->next) {
        w->kicked = true;
        if (w->ctx) {
            aio_notify(w->ctx);
        } else {
            pthread_cond_signal(&w->cond);
        }
    }
    pthread_mutex_unlock(&waiters_lock);
}

static void waiter_add(Waiter *w)
{
    pthread_mutex_lock(&waiters_lock);
    w->next = waiters;
    waiters = w;
    pthread_mutex_unlock(&waiters_lock);
    atomic_fetch_add(&waiter_count, 1);
}

static void waiter_remove(Waiter *w)
{
    Waiter **p = &waiters;

    atomic_fetch_sub(&waiter_count, 1);
    pthread_mutex_lock(&waiters_lock);
    while (*p != w) {
        p = &(*p)->next;
    }
    *p = w->next;
    pthread_mutex_unlock(&waiters_lock);
}

static void wait_for_kick(Waiter *w)
{
    pthread_mutex_lock(&waiters_lock);
    while (!w->kicked) {
        pthread_cond_wait(&w->cond, &waiters_lock);
    }
    w->kicked = false;
    pthread_mutex_unlock(&waiters_lock);
}

void aio_wait_until(bool (*done)(void *opaque), void *opaque)
{
    Waiter w = { .ctx = aio_context_current() };

    if (done(opaque)) {
        return;
    }
    pthread_cond_init(&w.cond, NULL);
    waiter_add(&w);
    while (!done(opaque)) {
        if (w.ctx) {
            aio_poll(w.ctx, true);
        } else {
            wait_for_kick(&w);
        }
    }
    waiter_remove(&w);
    pthread_cond_destroy(&w.cond);
}

/* ---- a function call in another thread's loop ------------------------------ */

typedef struct SyncCall {
    void (*fn)(void *opaque);
    void *opaque;
    _Atomic bool done;
} SyncCall;

static void sync_call_bh(void *opaque)
{
    SyncCall *call = opaque;

    call->fn(call->opaque);
    atomic_store(&call->done, true);    /* the caller may be gone after this */
    aio_wait_kick();
}

static bool sync_call_done(void *opaque)
{
    SyncCall *call = opaque;

    return atomic_load(&call->done);
}

void aio_run_sync(AioContext *ctx, void (*fn)(void *opaque), void *opaque)
{
    SyncCall call = { .fn = fn, .opaque = opaque };

    if (aio_context_current() == ctx) {
        fn(opaque);
        return;
    }
    g_assert(atomic_load(&ctx->home));
    aio_bh_oneshot(ctx, "run-sync", sync_call_bh, &call);
    aio_wait_until(sync_call_done, &call);
}
