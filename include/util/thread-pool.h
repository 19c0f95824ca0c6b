/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workers for system calls that block. Each AioContext has its own pool; it
 * starts empty, grows while work waits, and idle workers leave after a while.
 */
#ifndef UTIL_THREAD_POOL_H
#define UTIL_THREAD_POOL_H

#include "util/aio.h"

/* Embedded in its owner, the pool's from submission until @done. */
typedef struct PoolWork PoolWork;
struct PoolWork {
    void (*run)(PoolWork *work);        /* in a worker, any number at a time */
    void (*done)(PoolWork *work);       /* in the home thread, once, after run() */
    PoolWork *next;                     /* the pool's */
};

#define THREAD_POOL_MAX_DEFAULT 64

/*
 * Home thread. 0, or -errno when there is no worker and none can be started:
 * then nothing of @work runs. Starts in the order of submission, at the end of
 * this round (see aio_defer()). No allocation but for a new worker.
 */
int thread_pool_submit(AioContext *ctx, PoolWork *work);

/* Home thread. Keep at least @min workers, run at most @max (1 or more). 0, or
 * -errno when not as many as wanted could be started; the limits hold all the same. */
int thread_pool_set_limits(AioContext *ctx, unsigned min, unsigned max);

#endif
