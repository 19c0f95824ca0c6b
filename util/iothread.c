/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IOThread: a thread around an AioContext.
 */
#include "util/iothread.h"

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "util/err.h"
#include "util/log.h"

#define NAME_LEN 16                     /* that the kernel keeps of a thread's name */

struct IOThread {
    Object obj;
    int64_t poll_max_ns;
    int64_t poll_grow;
    int64_t poll_shrink;

    AioContext *ctx;
    pthread_t thread;
    sem_t running;                      /* the thread has entered its context */
    pid_t tid;
    _Atomic bool stopping;
};

static IOThread *from_obj(Object *obj)
{
    return (IOThread *)obj;
}

/* ---- the thread ------------------------------------------------------------ */

static void log_stats(IOThread *t)
{
    AioStats s;

    if (!log_enabled(LOG_IOTHREAD_STATS)) {
        return;
    }
    aio_get_stats(t->ctx, &s);
    log_mask(LOG_IOTHREAD_STATS,
             "iothread %s: iterations=%" PRIu64 " waits=%" PRIu64 " fd-checks=%" PRIu64
             " polled-hit-ns=%" PRIu64 " polled-miss-ns=%" PRIu64
             " wakeups-poll=%" PRIu64 " wakeups-fd=%" PRIu64
             " windows-grown=%" PRIu64 " windows-shrunk=%" PRIu64 " windows-reset=%" PRIu64
             " window-ns=%" PRIu64 "\n",
             aio_context_name(t->ctx), s.iterations, s.waits, s.fd_checks,
             s.polled_hit_ns, s.polled_miss_ns, s.wakeups_poll, s.wakeups_fd,
             s.windows_grown, s.windows_shrunk, s.windows_reset, s.window_ns);
}

static void *iothread_run(void *opaque)
{
    IOThread *t = opaque;
    char name[NAME_LEN];

    snprintf(name, sizeof(name), "IO %s", aio_context_name(t->ctx));
    pthread_setname_np(pthread_self(), name);
    /* Wake up when the timer says, not up to 50 us later. */
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);

    aio_context_enter(t->ctx);
    t->tid = gettid();
    sem_post(&t->running);
    while (!atomic_load_explicit(&t->stopping, memory_order_relaxed)) {
        aio_poll(t->ctx, true);
    }
    log_stats(t);
    aio_context_leave(t->ctx);
    return NULL;
}

static bool thread_start(IOThread *t, GError **errp)
{
    sigset_t all, old;
    int ret;

    /* Signals are the main thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(&t->thread, NULL, iothread_run, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0) {
        err_set_errno(errp, ret, "Could not start the thread of iothread '%s'",
                      aio_context_name(t->ctx));
        return false;
    }
    /* Not aio_wait_until(): no callback may run in the middle of creating objects. */
    while (sem_wait(&t->running) != 0) {
    }
    return true;
}

/* ---- the object -------------------------------------------------------------- */

static void apply_params(IOThread *t)
{
    aio_set_poll_params(t->ctx, &(AioPollParams) {
        .max_ns = t->poll_max_ns,
        .grow = t->poll_grow,
        .shrink = t->poll_shrink,
    });
}

static void poll_param_changed(Object *obj, const ObjProp *prop)
{
    apply_params(from_obj(obj));
}

static bool iothread_realize(Object *obj, GError **errp)
{
    IOThread *t = from_obj(obj);

    atomic_store(&t->stopping, false);
    t->ctx = aio_context_new(obj->id ? obj->id : "iothread", errp);
    if (!t->ctx) {
        return false;
    }
    apply_params(t);
    sem_init(&t->running, 0, 0);
    if (!thread_start(t, errp)) {
        sem_destroy(&t->running);
        aio_context_free(g_steal_pointer(&t->ctx));
        return false;
    }
    return true;
}

static void iothread_unrealize(Object *obj)
{
    IOThread *t = from_obj(obj);

    atomic_store(&t->stopping, true);
    aio_notify(t->ctx);
    pthread_join(t->thread, NULL);
    sem_destroy(&t->running);
    aio_context_free(g_steal_pointer(&t->ctx));
}

#define POLL_PARAM(name_, member_, def_, help_) \
    { .name = name_, .type = &prop_i64, PROP_FIELD(IOThread, member_), .flags = PROP_LIVE, \
      .max = INT64_MAX, .def = def_, .changed = poll_param_changed, .help = help_ }

static const ObjProp iothread_props[] = {
    POLL_PARAM("poll-max-ns", poll_max_ns, "32768",
               "longest time to poll before sleeping, in ns; 0: don't poll"),
    POLL_PARAM("poll-grow", poll_grow, "0",
               "factor by which the polling time grows; 0 means 2"),
    POLL_PARAM("poll-shrink", poll_shrink, "0",
               "divisor by which the polling time shrinks; 0: to zero at once"),
    { .name = NULL }
};

const ObjType type_iothread = {
    .name = "iothread",
    .desc = "thread that serves the virtqueues given to it",
    .size = sizeof(IOThread),
    .flags = OBJ_USER_CREATABLE,
    .props = iothread_props,
    .realize = iothread_realize,
    .unrealize = iothread_unrealize,
};

AioContext *iothread_context(IOThread *iothread)
{
    return iothread->ctx;
}

pid_t iothread_thread_id(IOThread *iothread)
{
    return iothread->tid;
}
