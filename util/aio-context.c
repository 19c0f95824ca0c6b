/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AioContext: life, the phases of one iteration, notification.
 */
#include "aio-internal.h"

#include <stdlib.h>
#include <string.h>

#include "trace/trace-util.h"
#include "util/err.h"

/* Read by aio_context_current(), which is inline. */
_Thread_local AioContext *aio_context_here;

/* ---- life ---------------------------------------------------------------- */

static void notifier_readable(void *opaque)
{
    AioContext *ctx = opaque;

    event_notifier_test_and_clear(&ctx->notifier);
}

static const AioHandlerOps notifier_ops = {
    .name = "notifier",
    .readable = notifier_readable,
};

static AioContext *context_alloc(const char *name, GError **errp)
{
    AioContext *ctx = aligned_alloc(CACHE_LINE, sizeof(*ctx));

    if (!ctx) {
        err_set(errp, "No memory for the event loop of '%s'", name);
        return NULL;
    }
    memset(ctx, 0, sizeof(*ctx));
    ctx->name = g_strdup(name);
    ctx->epoll_fd = -1;
    ctx->notifier.fd = -1;
    ctx->defer_tail = &ctx->defer_head;
    ctx->ready_tail = &ctx->ready_head;
    ctx->bh_tail = &ctx->bh_head;
    ctx->wait_over = true;
    pthread_mutex_init(&ctx->params_lock, NULL);
    fast_clock_init(&ctx->clock);
    return ctx;
}

static bool context_start(AioContext *ctx, const FdMonOps *mon, GError **errp)
{
    if (!event_notifier_init(&ctx->notifier, errp) || !mon->init(ctx, errp)) {
        return false;
    }
    ctx->mon = mon;
    ctx->notifier_handler = aio_handler_add_internal(ctx, ctx->notifier.fd, &notifier_ops, ctx);
    return true;
}

static AioContext *context_new(const char *name, const FdMonOps *mon, GError **errp)
{
    AioContext *ctx = context_alloc(name, errp);

    if (ctx && !context_start(ctx, mon, errp)) {
        aio_context_free(ctx);
        return NULL;
    }
    return ctx;
}

AioContext *aio_context_new(const char *name, GError **errp)
{
    g_autoptr(GError) err = NULL;
    AioContext *ctx = context_new(name, &fdmon_epoll, &err);

    if (!ctx) {
        report_info("%s: using ppoll: %s", name, err->message);
        ctx = context_new(name, &fdmon_ppoll, errp);
    }
    return ctx;
}

AioContext *aio_context_new_monitor(const char *name, const char *monitor, GError **errp)
{
    static const FdMonOps *const monitors[] = { &fdmon_epoll, &fdmon_ppoll };

    for (unsigned i = 0; i < G_N_ELEMENTS(monitors); i++) {
        if (strcmp(monitors[i]->name, monitor) == 0) {
            return context_new(name, monitors[i], errp);
        }
    }
    err_set(errp, "There is no fd monitor '%s': epoll and ppoll are there", monitor);
    return NULL;
}

static void destroy_slots(AioContext *ctx)
{
    for (unsigned i = 0; i < AIO_SLOT_MAX; i++) {
        aio_slot_set(ctx, i, NULL, NULL);
    }
}

void aio_context_free(AioContext *ctx)
{
    if (!ctx) {
        return;
    }
    aio_assert_home(ctx);
    g_assert(ctx->depth == 0);
    destroy_slots(ctx);
    aio_run_deferred(ctx);
    aio_free_bhs(ctx);
    g_assert(ctx->timer_count == 0 && !ctx->source);
    if (ctx->notifier_handler) {
        aio_handler_remove(ctx->notifier_handler);
    }
    g_assert(ctx->handler_count == 0);
    if (ctx->mon) {
        ctx->mon->cleanup(ctx);
    }
    event_notifier_cleanup(&ctx->notifier);
    if (aio_context_here == ctx) {
        aio_context_here = NULL;
    }
    pthread_mutex_destroy(&ctx->params_lock);
    g_free(ctx->poll_list);
    g_free(ctx->timers);
    g_free(ctx->handlers);
    g_free(ctx->name);
    free(ctx);
}

void aio_context_enter(AioContext *ctx)
{
    GThread *nobody = NULL;
    bool taken = atomic_compare_exchange_strong(&ctx->home, &nobody, g_thread_self());

    g_assert(taken || nobody == g_thread_self());
    g_assert(aio_context_here == NULL || aio_context_here == ctx);
    aio_context_here = ctx;
}

void aio_context_leave(AioContext *ctx)
{
    g_assert(aio_context_here == ctx && ctx->depth == 0);
    destroy_slots(ctx);
    aio_context_here = NULL;
    atomic_store(&ctx->home, NULL);
}

/* The home thread, or any thread while there is none. */
void aio_assert_home(AioContext *ctx)
{
    if (unlikely(aio_context_here != ctx)) {
        g_assert(atomic_load(&ctx->home) == NULL);
    }
}

const char *aio_context_name(const AioContext *ctx)
{
    return ctx->name;
}

void aio_slot_set(AioContext *ctx, AioSlot slot, void *value, void (*destroy)(void *value))
{
    void *old = ctx->slots[slot];
    void (*old_destroy)(void *) = ctx->slot_destroy[slot];

    ctx->slots[slot] = value;
    ctx->slot_destroy[slot] = destroy;
    if (old && old_destroy) {
        old_destroy(old);
    }
}

/* ---- deferred work --------------------------------------------------------- */

void aio_defer(AioContext *ctx, AioDefer *d)
{
    if (d->queued) {
        return;
    }
    d->queued = true;
    d->next = NULL;
    *ctx->defer_tail = d;
    ctx->defer_tail = &d->next;
}

void aio_defer_cancel(AioContext *ctx, AioDefer *d)
{
    AioDefer **p = &ctx->defer_head;

    if (!d->queued) {
        return;
    }
    while (*p != d) {
        p = &(*p)->next;
    }
    *p = d->next;
    if (!*p) {
        ctx->defer_tail = p;
    }
    d->queued = false;
}

bool aio_defer_drain(AioContext *ctx)
{
    AioDefer *d = ctx->defer_head;
    unsigned ran = 0;

    do {
        ctx->defer_head = d->next;
        if (!d->next) {
            ctx->defer_tail = &ctx->defer_head;
        }
        d->queued = false;
        d->fn(d->opaque);
        ran++;
        d = ctx->defer_head;
    } while (d);
    trace_aio_defer_done(ctx, ran);
    return true;
}

/* ---- notification ------------------------------------------------------------ */

void aio_notify(AioContext *ctx)
{
    /* Pairs with aio_sleep_prepare() and take_notifications(); see WAKE_NOTIFIED. */
    unsigned old = atomic_fetch_or(&ctx->wake, WAKE_NOTIFIED);

    trace_aio_notify(ctx, old & WAKE_SLEEPING);
    if ((old & (WAKE_SLEEPING | WAKE_NOTIFIED)) == WAKE_SLEEPING) {
        event_notifier_set(&ctx->notifier);
    }
}

bool aio_sleep_prepare(AioContext *ctx)
{
    /* Pairs with aio_notify(). */
    return !(atomic_fetch_or(&ctx->wake, WAKE_SLEEPING) & WAKE_NOTIFIED);
}

static void take_params(AioContext *ctx)
{
    AioPollParams params;

    pthread_mutex_lock(&ctx->params_lock);
    params = ctx->new_params;
    pthread_mutex_unlock(&ctx->params_lock);
    aio_apply_params(ctx, &params);
}

static void take_notifications(AioContext *ctx)
{
    if (atomic_load_explicit(&ctx->wake, memory_order_relaxed) == 0) {
        return;
    }
    /* Acquire: what was written before aio_notify() is seen from here on. */
    if (atomic_exchange(&ctx->wake, 0) & WAKE_PARAMS) {
        take_params(ctx);
    }
}

void aio_set_poll_params(AioContext *ctx, const AioPollParams *params)
{
    pthread_mutex_lock(&ctx->params_lock);
    ctx->new_params = *params;
    pthread_mutex_unlock(&ctx->params_lock);
    atomic_fetch_or(&ctx->wake, WAKE_PARAMS);
    aio_notify(ctx);
}

AioPollParams aio_get_poll_params(AioContext *ctx)
{
    AioPollParams params;

    pthread_mutex_lock(&ctx->params_lock);
    params = ctx->new_params;
    pthread_mutex_unlock(&ctx->params_lock);
    return params;
}

/* ---- one iteration ------------------------------------------------------------- */

void aio_look_at_fds(AioContext *ctx)
{
    ctx->fd_checked_ns = fast_clock_ns(&ctx->clock);
    ctx->event_ns = ctx->fd_checked_ns;
    book_add(&ctx->books.fd_checks, 1);
    ctx->mon->wait(ctx, 0);
    trace_aio_fd_check(ctx, ctx->ready_head != NULL);
}

/* The loop isn't going to sleep. Handlers on the poll list need no system call. */
static bool fds_are_due(AioContext *ctx)
{
    return ctx->unpolled > 0 && fast_clock_ns(&ctx->clock) - ctx->fd_checked_ns >= AIO_FD_CHECK_NS;
}

/* -1: for ever. */
static int64_t time_left_ns(AioContext *ctx)
{
    int64_t deadline = aio_next_deadline(ctx);

    return deadline == NO_DEADLINE ? -1 : MAX(deadline - aio_clock_ns(), 0);
}

static void sleep_until_woken(AioContext *ctx)
{
    int64_t timeout_ns = time_left_ns(ctx);
    int64_t slept_ns;

    if (timeout_ns == 0 || !aio_sleep_prepare(ctx)) {
        if (fds_are_due(ctx)) {
            aio_look_at_fds(ctx);
        }
        return;
    }
    book_add(&ctx->books.waits, 1);
    slept_ns = fast_clock_ns(&ctx->clock);
    trace_aio_wait_begin(ctx, timeout_ns);
    ctx->mon->wait(ctx, timeout_ns);
    trace_aio_wait_end(ctx, ctx->ready_head != NULL);
    ctx->fd_checked_ns = fast_clock_ns(&ctx->clock);
    /* Not the time of waking: to wake up takes longer than a fast device. */
    ctx->event_ns = MAX(ctx->fd_checked_ns - ctx->wake_cost_ns, slept_ns);
}

/* Returns @progress, or true when polling was left with work done. */
static bool wait_phase(AioContext *ctx, bool blocking, bool progress)
{
    if (!blocking) {
        aio_look_at_fds(ctx);
    } else if (progress || aio_is_notified(ctx)) {
        if (fds_are_due(ctx)) {
            aio_look_at_fds(ctx);
        }
    } else if (aio_poll_stop(ctx)) {
        return true;
    } else {
        sleep_until_woken(ctx);
    }
    return progress;
}

bool aio_poll(AioContext *ctx, bool blocking)
{
    bool progress;

    if (unlikely(aio_context_here != ctx)) {
        aio_context_enter(ctx);
    }
    ctx->depth++;
    trace_aio_loop_begin(ctx, blocking);
    book_add(&ctx->books.iterations, 1);
    progress = aio_run_deferred(ctx);

    progress |= aio_poll_phase(ctx, blocking && !progress);
    progress |= wait_phase(ctx, blocking, progress);
    take_notifications(ctx);
    progress |= aio_run_bhs(ctx);
    progress |= aio_run_ready(ctx);
    aio_adjust_windows(ctx);
    progress |= aio_run_timers(ctx);
    progress |= aio_run_deferred(ctx);

    ctx->wait_over |= progress;
    if (--ctx->depth == 0) {
        aio_free_removed(ctx);
    }
    return progress;
}

/* ---- books ------------------------------------------------------------------------ */

void aio_get_stats(AioContext *ctx, AioStats *stats)
{
    AioBooks *b = &ctx->books;

    *stats = (AioStats) {
#define BOOK(field) .field = atomic_load_explicit(&b->field, memory_order_relaxed)
        BOOK(iterations), BOOK(waits), BOOK(fd_checks),
        BOOK(polled_hit_ns), BOOK(polled_miss_ns), BOOK(wakeups_poll), BOOK(wakeups_fd),
        BOOK(windows_grown), BOOK(windows_shrunk), BOOK(windows_reset), BOOK(window_ns),
#undef BOOK
    };
}
