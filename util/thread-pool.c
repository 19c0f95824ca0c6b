/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One pool per AioContext. The lock guards the queue and the counters. Work is
 * handed over once per round, however much was submitted in it. What is done
 * comes back on a list that the workers push to without a lock: the loop sees it
 * by looking, or by an eventfd while it sleeps.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "trace/trace-util.h"
#include "util/err.h"
#include "util/event-notifier.h"
#include "util/thread-pool.h"

#define IDLE_EXIT_S 10
#define STACK_BYTES (256 * 1024)

typedef struct ThreadPool {
    /* Home thread. */
    AioContext *ctx;
    AioHandler *handler;
    AioDefer hand_over;
    PoolWork *batch;                    /* submitted in this round */
    PoolWork **batch_tail;
    unsigned outstanding;               /* submitted, and done() not yet called */
    bool stale;                         /* the eventfd tells of what was taken by looking */

    EventNotifier notifier;             /* done is no longer empty */
    _Atomic bool want_signal;           /* false while the loop polls */
    _Atomic(PoolWork *) done;           /* newest first */

    pthread_mutex_t lock;
    pthread_cond_t wake;                /* work, or stopping */
    pthread_cond_t left;                /* a worker left */
    PoolWork *head;
    PoolWork **tail;
    unsigned queued;
    unsigned workers, idle;
    unsigned min, max;
    bool expecting;                     /* work was accepted: the last worker must stay */
    bool stopping;
} ThreadPool;

/* ---- workers -------------------------------------------------------------- */

static void done_push(ThreadPool *pool, PoolWork *work)
{
    PoolWork *old = atomic_load_explicit(&pool->done, memory_order_relaxed);

    do {
        work->next = old;
        /* Pairs with the exchange in done_run(), which sees what run() wrote. */
    } while (!atomic_compare_exchange_weak(&pool->done, &old, work));
    /*
     * The list is taken as a whole, so only who finds it empty need signal. After
     * the push; pairs with pool_poll_end(), which switches signals on and then looks.
     */
    if (!old && atomic_load(&pool->want_signal)) {
        event_notifier_set(&pool->notifier);
    }
}

/* Locked. NULL: leave. */
static PoolWork *work_take(ThreadPool *pool)
{
    while (!pool->head && !pool->stopping) {
        struct timespec until;
        int ret;

        if (pool->workers > pool->max) {
            return NULL;
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += IDLE_EXIT_S;
        pool->idle++;
        ret = pthread_cond_timedwait(&pool->wake, &pool->lock, &until);
        pool->idle--;
        if (ret == ETIMEDOUT && !pool->head && !pool->expecting && pool->workers > pool->min) {
            return NULL;
        }
    }

    PoolWork *work = pool->head;

    if (work) {
        pool->head = work->next;
        pool->queued--;
        if (!pool->head) {
            pool->tail = &pool->head;
        }
    }
    return work;
}

static void *worker(void *opaque)
{
    ThreadPool *pool = opaque;
    PoolWork *work;

    pthread_setname_np(pthread_self(), "worker");
    pthread_mutex_lock(&pool->lock);
    while ((work = work_take(pool)) != NULL) {
        pthread_mutex_unlock(&pool->lock);
        trace_thread_pool_run(pool, work);
        work->run(work);
        done_push(pool, work);
        pthread_mutex_lock(&pool->lock);
    }
    pool->workers--;
    pthread_cond_signal(&pool->left);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Locked. */
static int worker_start(ThreadPool *pool)
{
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t thread;
    int ret;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    /* Signals are the main thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(&thread, &attr, worker, pool);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (ret == 0) {
        pool->workers++;
    }
    return -ret;
}

/* ---- home thread ------------------------------------------------------------ */

static unsigned done_run(ThreadPool *pool)
{
    PoolWork *work, *ordered = NULL;
    unsigned n = 0;

    if (!atomic_load_explicit(&pool->done, memory_order_relaxed)) {
        return 0;
    }
    work = atomic_exchange(&pool->done, NULL);
    while (work) {
        PoolWork *next = work->next;

        work->next = ordered;
        ordered = work;
        work = next;
        n++;
    }
    while (ordered) {
        PoolWork *next = ordered->next;

        trace_thread_pool_complete(pool, ordered);
        pool->outstanding--;
        ordered->done(ordered);
        ordered = next;
    }
    return n;
}

static void pool_readable(void *opaque)
{
    ThreadPool *pool = opaque;

    event_notifier_test_and_clear(&pool->notifier);
    pool->stale = false;
    done_run(pool);
}

static unsigned pool_poll(void *opaque)
{
    ThreadPool *pool = opaque;
    unsigned n = done_run(pool);

    if (n > 0 && atomic_load_explicit(&pool->want_signal, memory_order_relaxed)) {
        pool->stale = true;
    }
    return n;
}

static void pool_poll_begin(void *opaque)
{
    ThreadPool *pool = opaque;

    atomic_store_explicit(&pool->want_signal, false, memory_order_relaxed);
}

static bool pool_poll_end(void *opaque)
{
    ThreadPool *pool = opaque;

    if (pool->stale) {
        pool->stale = false;
        event_notifier_test_and_clear(&pool->notifier);
    }
    /* On, then look: pairs with done_push(). */
    atomic_store(&pool->want_signal, true);
    return atomic_load(&pool->done) != NULL;
}

static const AioHandlerOps pool_ops = {
    .name = "thread-pool",
    .readable = pool_readable,
    .poll = pool_poll,
    .poll_begin = pool_poll_begin,
    .poll_end = pool_poll_end,
};

static void pool_destroy(void *opaque)
{
    ThreadPool *pool = opaque;

    pthread_mutex_lock(&pool->lock);
    g_assert(!pool->head && !pool->batch);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->wake);
    while (pool->workers > 0) {
        pthread_cond_wait(&pool->left, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    g_assert(!atomic_load(&pool->done));
    aio_defer_cancel(pool->ctx, &pool->hand_over);
    aio_handler_remove(pool->handler);
    event_notifier_cleanup(&pool->notifier);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->left);
    pthread_mutex_destroy(&pool->lock);
    g_free(pool);
}

/* Start or wake a worker for everything that was submitted in this round. */
static void hand_over(void *opaque)
{
    ThreadPool *pool = opaque;

    pthread_mutex_lock(&pool->lock);
    while (pool->batch) {
        PoolWork *work = pool->batch;

        pool->batch = work->next;
        work->next = NULL;
        *pool->tail = work;
        pool->tail = &work->next;
        pool->queued++;
        if (pool->queued <= pool->idle) {
            pthread_cond_signal(&pool->wake);
        } else if (pool->workers < MIN(pool->max, pool->outstanding)) {
            /*
             * No more than there is work for: who has just finished its own comes for
             * this one. With fewer workers than we would like it only takes longer.
             */
            worker_start(pool);
        }
    }
    pool->batch_tail = &pool->batch;
    pool->expecting = false;
    pthread_mutex_unlock(&pool->lock);
}

static void pool_init_sync(ThreadPool *pool)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->wake, &attr);
    pthread_cond_init(&pool->left, NULL);
    pthread_condattr_destroy(&attr);
}

/* NULL: errno says why. */
static ThreadPool *pool_get(AioContext *ctx)
{
    ThreadPool *pool = aio_slot_get(ctx, AIO_SLOT_THREAD_POOL);
    EventNotifier notifier;

    if (pool) {
        return pool;
    }
    if (!event_notifier_init(&notifier, NULL)) {
        return NULL;
    }
    pool = g_new0(ThreadPool, 1);
    pool->ctx = ctx;
    pool->notifier = notifier;
    pool->tail = &pool->head;
    pool->batch_tail = &pool->batch;
    pool->max = THREAD_POOL_MAX_DEFAULT;
    atomic_init(&pool->want_signal, true);
    pool_init_sync(pool);
    aio_defer_init(&pool->hand_over, hand_over, pool);
    pool->handler = aio_handler_add(ctx, notifier.fd, &pool_ops, pool);
    aio_slot_set(ctx, AIO_SLOT_THREAD_POOL, pool, pool_destroy);
    return pool;
}

/* What is accepted in this round must find a worker. */
static int expect_work(ThreadPool *pool)
{
    int ret = 0;

    pthread_mutex_lock(&pool->lock);
    if (pool->workers == 0) {
        ret = worker_start(pool);
    }
    pool->expecting = ret == 0;
    pthread_mutex_unlock(&pool->lock);
    return ret;
}

int thread_pool_submit(AioContext *ctx, PoolWork *work)
{
    ThreadPool *pool = pool_get(ctx);
    int ret = pool ? 0 : -errno;

    if (pool && !pool->batch) {
        ret = expect_work(pool);
    }
    if (ret < 0) {
        return ret;
    }
    trace_thread_pool_submit(pool, work);
    pool->outstanding++;
    work->next = NULL;
    *pool->batch_tail = work;
    pool->batch_tail = &work->next;
    aio_defer(ctx, &pool->hand_over);
    return 0;
}

int thread_pool_set_limits(AioContext *ctx, unsigned min, unsigned max)
{
    ThreadPool *pool = pool_get(ctx);
    int ret = 0;

    if (!pool) {
        return -errno;
    }
    pthread_mutex_lock(&pool->lock);
    pool->max = MAX(max, 1);
    pool->min = MIN(min, pool->max);
    while (pool->workers < pool->min && ret == 0) {
        ret = worker_start(pool);
    }
    /* Those above the maximum leave when they are idle next. */
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    return ret;
}
