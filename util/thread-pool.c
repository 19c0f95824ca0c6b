/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One pool per AioContext. The lock guards the queue and the counters; what is
 * done comes back on a list that the workers push to without a lock.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "trace/trace-util.h"
#include "util/thread-pool.h"

#define IDLE_EXIT_S 10

typedef struct ThreadPool {
    AioContext *ctx;
    AioBh *done_bh;
    _Atomic(PoolWork *) done;           /* newest first */

    pthread_mutex_t lock;
    pthread_cond_t wake;                /* work, or stopping */
    pthread_cond_t left;                /* a worker left */
    PoolWork *head;
    PoolWork **tail;
    unsigned queued;
    unsigned workers, idle;
    unsigned min, max;
    bool stopping;
} ThreadPool;

/* ---- workers -------------------------------------------------------------- */

static void done_push(ThreadPool *pool, PoolWork *work)
{
    PoolWork *old = atomic_load_explicit(&pool->done, memory_order_relaxed);

    do {
        work->next = old;
        /* Release: done_run() sees what run() wrote. */
    } while (!atomic_compare_exchange_weak_explicit(&pool->done, &old, work, memory_order_release,
                                                    memory_order_relaxed));
    aio_bh_schedule(pool->done_bh);
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
        if (ret == ETIMEDOUT && !pool->head && pool->workers > pool->min) {
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
    pthread_attr_setstacksize(&attr, 256 * 1024);
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

static void done_run(void *opaque)
{
    ThreadPool *pool = opaque;
    /* Acquire: pairs with the release in done_push(). */
    PoolWork *work = atomic_exchange_explicit(&pool->done, NULL, memory_order_acquire);
    PoolWork *ordered = NULL;

    while (work) {
        PoolWork *next = work->next;

        work->next = ordered;
        ordered = work;
        work = next;
    }
    while (ordered) {
        PoolWork *next = ordered->next;

        trace_thread_pool_complete(pool, ordered);
        ordered->done(ordered);
        ordered = next;
    }
}

static void pool_destroy(void *opaque)
{
    ThreadPool *pool = opaque;

    pthread_mutex_lock(&pool->lock);
    g_assert(!pool->head);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->wake);
    while (pool->workers > 0) {
        pthread_cond_wait(&pool->left, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    g_assert(!atomic_load(&pool->done));
    aio_bh_delete(pool->done_bh);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->left);
    pthread_mutex_destroy(&pool->lock);
    g_free(pool);
}

static ThreadPool *pool_get(AioContext *ctx)
{
    ThreadPool *pool = aio_slot_get(ctx, AIO_SLOT_THREAD_POOL);
    pthread_condattr_t attr;

    if (pool) {
        return pool;
    }
    pool = g_new0(ThreadPool, 1);
    pool->ctx = ctx;
    pool->tail = &pool->head;
    pool->max = THREAD_POOL_MAX_DEFAULT;
    pool->done_bh = aio_bh_new(ctx, "thread-pool", done_run, pool);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->wake, &attr);
    pthread_cond_init(&pool->left, NULL);
    pthread_condattr_destroy(&attr);
    aio_slot_set(ctx, AIO_SLOT_THREAD_POOL, pool, pool_destroy);
    return pool;
}

int thread_pool_submit(AioContext *ctx, PoolWork *work)
{
    ThreadPool *pool = pool_get(ctx);
    int ret = 0;

    trace_thread_pool_submit(pool, work);
    work->next = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->idle <= pool->queued && pool->workers < pool->max) {
        ret = worker_start(pool);
        /* With fewer workers than we would like it only takes longer. */
        ret = pool->workers > 0 ? 0 : ret;
    }
    if (ret == 0) {
        *pool->tail = work;
        pool->tail = &work->next;
        pool->queued++;
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
    return ret;
}

void thread_pool_set_limits(AioContext *ctx, unsigned min, unsigned max)
{
    ThreadPool *pool = pool_get(ctx);

    pthread_mutex_lock(&pool->lock);
    pool->max = MAX(max, 1);
    pool->min = MIN(min, pool->max);
    while (pool->workers < pool->min && worker_start(pool) == 0) {
    }
    /* Those above the maximum leave when they are idle next. */
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}
