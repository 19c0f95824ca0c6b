/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Step 1 of the request path: something changed in memory, or an eventfd fired.
 * Next: step 2, virtio/virtqueue.c, called through the handler's poll() or
 * readable(). On the way back the completion is seen here as well: the I/O engine's
 * ring is one more handler.
 *
 * The loop polls as long as that pays by util/poll-policy.c. It stays in the
 * polling state from one success to the next; only before it sleeps does it tell
 * the handlers to have themselves notified again.
 */
#include "aio-internal.h"

#include "trace/trace-util.h"

#define IDLE_NS 1000000000              /* without an event for so long, nobody polls it */
#define CALLS_PER_CLOCK 16              /* looks at handlers between two at the clock */

/* ---- the list ------------------------------------------------------------- */

static unsigned poll_nothing(void *opaque)
{
    return 0;
}

static void list_changed(AioContext *ctx)
{
    int64_t max = 0;

    for (unsigned i = 0; i < ctx->poll_count; i++) {
        AioHandler *h = ctx->poll_list[i].handler;

        if (h) {
            max = MAX(max, h->window_ns);
        }
    }
    ctx->window_max_ns = max;
    ctx->poll_stride = MAX(CALLS_PER_CLOCK / MAX(ctx->poll_count, 1), 1);
    atomic_store_explicit(&ctx->books.window_ns, max, memory_order_relaxed);
}

void poll_list_add(AioHandler *h)
{
    AioContext *ctx = h->ctx;

    if (ctx->poll_count == ctx->poll_size) {
        ctx->poll_size = MAX(8, ctx->poll_size * 2);
        ctx->poll_list = g_renew(PollEntry, ctx->poll_list, ctx->poll_size);
    }
    aio_handler_count(h, -1);
    h->poll_index = ctx->poll_count++;
    aio_handler_count(h, 1);
    h->begun = h->looked = false;
    h->last_event_ns = fast_clock_ns(&ctx->clock);
    ctx->poll_list[h->poll_index] = (PollEntry) {
        .poll = h->ops->poll,
        .opaque = h->opaque,
        .handler = h,
    };
    ctx->poll_unbegun = true;
    list_changed(ctx);
}

/* The entry stays until no turn is under way. */
void poll_list_remove(AioHandler *h)
{
    AioContext *ctx = h->ctx;

    ctx->poll_list[h->poll_index] = (PollEntry) { .poll = poll_nothing };
    ctx->poll_dirty = true;
    aio_handler_count(h, -1);
    h->poll_index = NOT_POLLED;
    aio_handler_count(h, 1);
    list_changed(ctx);
}

void poll_list_compact(AioContext *ctx)
{
    unsigned n = 0;

    if (likely(!ctx->poll_dirty)) {
        return;
    }
    for (unsigned i = 0; i < ctx->poll_count; i++) {
        PollEntry *e = &ctx->poll_list[i];

        if (e->handler) {
            e->handler->poll_index = n;
            ctx->poll_list[n++] = *e;
        }
    }
    ctx->poll_count = n;
    ctx->poll_dirty = false;
    list_changed(ctx);
}

/* ---- windows ---------------------------------------------------------------- */

static void window_set(AioHandler *h, int64_t window_ns)
{
    h->window_ns = window_ns;
    list_changed(h->ctx);
}

static void window_adjust(AioHandler *h, int64_t wait_ns)
{
    AioContext *ctx = h->ctx;
    int64_t next = poll_policy_next(wait_ns, h->window_ns, &ctx->params);

    switch (poll_policy_verdict(wait_ns, h->window_ns, &ctx->params)) {
    case POLL_WINDOW_GROW:
        book_add(&ctx->books.windows_grown, 1);
        trace_poll_grow(ctx, h->fd, h->window_ns, next);
        break;
    case POLL_WINDOW_SHRINK:
        book_add(&ctx->books.windows_shrunk, 1);
        trace_poll_shrink(ctx, h->fd, h->window_ns, next);
        break;
    default:
        return;
    }
    window_set(h, next);
}

static void window_reset(AioHandler *h)
{
    if (h->window_ns > 0) {
        book_add(&h->ctx->books.windows_reset, 1);
        trace_poll_shrink(h->ctx, h->fd, h->window_ns, 0);
        window_set(h, 0);
    }
}

void aio_apply_params(AioContext *ctx, const AioPollParams *params)
{
    ctx->params = *params;
    if (params->max_ns > 0 && !ctx->wake_cost_known) {
        ctx->wake_cost_ns = wake_cost_measure();
        ctx->wake_cost_known = true;
    }
    for (unsigned i = 0; i < ctx->handler_count; i++) {
        window_reset(ctx->handlers[i]);
    }
}

/* For handlers that were woken by their fds; those that were polled are done already. */
void aio_judge_fd_events(AioContext *ctx)
{
    for (unsigned i = 0; ctx->fd_events > 0 && i < ctx->poll_count; i++) {
        AioHandler *h = ctx->poll_list[i].handler;

        if (h && h->fd_event) {
            h->fd_event = false;
            ctx->fd_events--;
            window_adjust(h, MAX(ctx->event_ns - ctx->wait_start_ns, 0));
        }
    }
}

/* ---- polling ------------------------------------------------------------------- */

static void poll_begin_all(AioContext *ctx)
{
    ctx->poll_unbegun = false;
    ctx->poll_begun = true;
    for (unsigned i = 0; i < ctx->poll_count; i++) {
        AioHandler *h = ctx->poll_list[i].handler;

        if (h && !h->begun) {
            h->begun = true;
            if (h->ops->poll_begin) {
                h->ops->poll_begin(h->opaque);
            }
        }
    }
}

static __attribute__((noinline)) void poll_hit(AioContext *ctx, unsigned i, unsigned work,
                                               int64_t now)
{
    AioHandler *h = ctx->poll_list[i].handler;

    book_add(&ctx->books.wakeups_poll, 1);
    if (!h) {                           /* removed meanwhile */
        return;
    }
    trace_poll_ready(ctx, h->ops->name, h->fd, work);
    h->looked = ctx->poll_begun = true;
    h->last_event_ns = now;
    if (now - ctx->wait_start_ns > h->window_ns) {
        window_adjust(h, now - ctx->wait_start_ns);
    }
}

/* Look at every handler once. The list may grow and entries may die meanwhile. */
static inline unsigned poll_turn(AioContext *ctx, int64_t now)
{
    unsigned work = 0;

    for (unsigned i = 0; i < ctx->poll_count; i++) {
        PollEntry *e = &ctx->poll_list[i];
        unsigned n = e->poll(e->opaque);

        if (unlikely(n > 0)) {
            work += n;
            poll_hit(ctx, i, n, now);
        }
    }
    return work;
}

static bool poll_once(AioContext *ctx, int64_t now)
{
    if (poll_turn(ctx, now) == 0) {
        return false;
    }
    aio_run_deferred(ctx);
    return true;
}

/* Some turns, until it is time to look at the clock. True when there was work. */
static bool poll_stride(AioContext *ctx, int64_t now)
{
    for (unsigned turn = 0; turn < ctx->poll_stride && !aio_is_notified(ctx); turn++) {
        if (poll_once(ctx, now)) {
            return true;
        }
    }
    return false;
}

/* Polling that ended for anything but the end of the window was worth it. */
static void book_polling(AioContext *ctx, int64_t elapsed_ns, bool worth)
{
    book_add(worth ? &ctx->books.polled_hit_ns : &ctx->books.polled_miss_ns, MAX(elapsed_ns, 0));
    trace_run_poll_handlers_end(ctx, worth, elapsed_ns);
}

/* Poll from @start to @end. The time of a success is that of the last look at the clock. */
static bool poll_busy(AioContext *ctx, int64_t start, int64_t end)
{
    int64_t now = start;
    bool worth;

    trace_run_poll_handlers_begin(ctx, end - start);
    if (ctx->poll_unbegun) {
        poll_begin_all(ctx);
    }
    while (now < end && !ctx->ready_head && !aio_is_notified(ctx)) {
        if (poll_stride(ctx, now)) {
            book_polling(ctx, now - start, true);
            return true;
        }
        now = fast_clock_ns(&ctx->clock);
        if (ctx->unpolled > 0 && now - ctx->fd_checked_ns >= AIO_FD_CHECK_NS) {
            aio_look_at_fds(ctx);
        }
    }
    worth = ctx->ready_head || aio_is_notified(ctx) || aio_next_deadline(ctx) <= now;
    book_polling(ctx, now - start, worth);
    return false;
}

/* Handlers that nothing happens to leave the list. */
static void sweep_idle(AioContext *ctx, int64_t now)
{
    ctx->idle_swept_ns = now;
    for (unsigned i = 0; i < ctx->poll_count; i++) {
        AioHandler *h = ctx->poll_list[i].handler;

        if (!h || now - h->last_event_ns < IDLE_NS) {
            continue;
        }
        if (h->begun && h->ops->poll_end && h->ops->poll_end(h->opaque)) {
            h->begun = false;
            h->last_event_ns = now;     /* not idle after all: this turn will see it */
            ctx->poll_unbegun = true;
        } else if (!h->removed) {
            trace_poll_remove(ctx, h->ops->name, h->fd);
            poll_list_remove(h);
            window_reset(h);
        }
    }
}

/*
 * Until when it is worth to poll: for the largest window, and to the next timer if
 * that is a wait that the policy would learn to poll through. Never past a timer.
 */
static int64_t poll_end_ns(AioContext *ctx)
{
    int64_t deadline = aio_next_deadline(ctx);
    int64_t end;

    if (ctx->params.max_ns == 0 || ctx->unpollable > 0) {
        return 0;
    }
    if (deadline != NO_DEADLINE && deadline - ctx->wait_start_ns <= ctx->params.max_ns) {
        return deadline;
    }
    if (__builtin_add_overflow(ctx->wait_start_ns, ctx->window_max_ns, &end)) {
        return deadline;
    }
    return MIN(end, deadline);
}

bool aio_poll_phase(AioContext *ctx, bool may_wait)
{
    int64_t now, end;

    if (ctx->poll_count == 0) {
        return false;
    }
    now = fast_clock_ns(&ctx->clock);
    if (unlikely(now - ctx->idle_swept_ns >= IDLE_NS)) {
        sweep_idle(ctx, now);
    }
    if (ctx->wait_over) {
        ctx->wait_over = false;
        ctx->wait_start_ns = now;
    }
    end = may_wait ? poll_end_ns(ctx) : 0;
    if (end > now) {
        return poll_busy(ctx, now, end);
    }
    return poll_once(ctx, now);
}

static bool poll_end_one(AioContext *ctx, unsigned i)
{
    AioHandler *h = ctx->poll_list[i].handler;
    PollEntry *e;
    unsigned n;

    if (!h || !(h->begun || h->looked)) {
        return false;
    }
    h->begun = h->looked = false;
    if (!h->ops->poll_end || !h->ops->poll_end(h->opaque)) {
        return false;
    }
    e = &ctx->poll_list[i];
    n = e->poll(e->opaque);
    if (n > 0) {
        poll_hit(ctx, i, n, fast_clock_ns(&ctx->clock));
    }
    return true;
}

bool aio_poll_stop(AioContext *ctx)
{
    bool found = false;

    if (!ctx->poll_begun) {
        return false;
    }
    ctx->poll_begun = false;
    ctx->poll_unbegun = true;
    for (unsigned i = 0; i < ctx->poll_count; i++) {
        found |= poll_end_one(ctx, i);
    }
    if (found) {
        aio_run_deferred(ctx);
    }
    return found;
}
