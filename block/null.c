/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * null-co and null-aio: a disk that keeps nothing, to measure everything else.
 *
 * Without latency-ns a request completes at the end of the round. With it, it
 * waits on its context's list, ordered by deadline, which behaves like a real
 * device's completion ring: seen by looking at it while the loop polls, and by
 * an fd (a timerfd) while the loop sleeps. It never completes early.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "block-ctx.h"
#include "block/drivers.h"
#include "qapi/block-types.h"
#include "trace/trace-block.h"
#include "util/err.h"

typedef struct NullState {
    int64_t latency_ns;
    bool read_zeroes;
} NullState;

/* Of one context, for all null nodes. */
typedef struct NullCtx {
    BlockCtx *bc;
    BlkReq *head, *tail;                /* by deadline, first come first */
    bool polling;                       /* the loop looks, the timer needn't be set */
    int64_t armed_ns;                   /* what the timer is set to, 0: not set */
    AioDefer arm;
    int timer_fd;
    AioHandler *handler;
} NullCtx;

static inline int64_t deadline(const BlkReq *req)
{
    return req->engine.words[0];
}

static void list_insert(NullCtx *nc, BlkReq *req)
{
    BlkReq **p = &nc->head;

    if (nc->tail && deadline(nc->tail) <= deadline(req)) {
        p = &nc->tail->next;
    } else {
        while (*p && deadline(*p) <= deadline(req)) {
            p = &(*p)->next;
        }
    }
    req->next = *p;
    *p = req;
    if (!req->next) {
        nc->tail = req;
    }
}

static unsigned list_reap(NullCtx *nc, bool polled)
{
    unsigned n = 0;

    if (!nc->head || deadline(nc->head) > aio_clock_ns()) {
        return 0;
    }
    block_ctx_batch_begin(nc->bc);
    do {
        BlkReq *req = nc->head;

        nc->head = req->next;
        if (!nc->head) {
            nc->tail = NULL;
        }
        n++;
        trace_null_process_completion(req, polled);
        blk_req_complete(req, 0);
    } while (nc->head && deadline(nc->head) <= aio_clock_ns());
    block_ctx_batch_end(nc->bc);
    return n;
}

/* Set the timer for the first deadline. */
static void timer_arm(NullCtx *nc)
{
    int64_t first = nc->head ? deadline(nc->head) : 0;
    struct itimerspec spec = {
        .it_value = { .tv_sec = first / 1000000000, .tv_nsec = first % 1000000000 },
    };

    /* A timer that fires early only costs a look. */
    if (nc->polling || first == 0 || (nc->armed_ns != 0 && nc->armed_ns <= first)) {
        return;
    }
    timerfd_settime(nc->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
    nc->armed_ns = first;
}

static void submissions_end(void *opaque)
{
    NullCtx *nc = opaque;

    block_ctx_round_end(nc->bc);
    timer_arm(nc);
}

static void null_readable(void *opaque)
{
    NullCtx *nc = opaque;
    uint64_t expirations;

    (void)!read(nc->timer_fd, &expirations, sizeof(expirations));
    nc->armed_ns = 0;
    list_reap(nc, false);
    timer_arm(nc);
}

static unsigned null_poll(void *opaque)
{
    return list_reap(opaque, true);
}

static void null_poll_begin(void *opaque)
{
    NullCtx *nc = opaque;

    nc->polling = true;
}

static bool null_poll_end(void *opaque)
{
    NullCtx *nc = opaque;

    nc->polling = false;
    nc->armed_ns = 0;                   /* it may have fired meanwhile: set it anew */
    timer_arm(nc);
    return nc->head && deadline(nc->head) <= aio_clock_ns();
}

static const AioHandlerOps null_ops = {
    .name = "null",
    .readable = null_readable,
    .poll = null_poll,
    .poll_begin = null_poll_begin,
    .poll_end = null_poll_end,
};

void null_ctx_destroy(NullCtx *nc)
{
    g_assert(!nc->head);
    aio_defer_cancel(nc->bc->ctx, &nc->arm);
    aio_handler_remove(nc->handler);
    close(nc->timer_fd);
    g_free(nc);
}

static NullCtx *null_ctx_create(BlockCtx *bc)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    NullCtx *nc;

    if (fd < 0) {
        return NULL;
    }
    nc = g_new0(NullCtx, 1);
    nc->bc = bc;
    nc->timer_fd = fd;
    aio_defer_init(&nc->arm, submissions_end, nc);
    nc->handler = aio_handler_add(bc->ctx, fd, &null_ops, nc);
    bc->null = nc;
    return nc;
}

static int submit_later(NullState *s, BlkReq *req)
{
    BlockCtx *bc = block_ctx(req->ctx);
    NullCtx *nc = bc->null ? bc->null : null_ctx_create(bc);

    if (!nc) {
        return -errno;
    }
    req->engine.words[0] = aio_clock_ns() + s->latency_ns;
    list_insert(nc, req);
    aio_defer(req->ctx, &nc->arm);
    return 0;
}

static int null_submit(BlockNode *node, BlkReq *req)
{
    NullState *s = node->state;

    if (s->read_zeroes && req->op == BLK_READ) {
        for (int i = 0; i < req->niov; i++) {
            memset(req->iov[i].iov_base, 0, req->iov[i].iov_len);
        }
    }
    if (s->latency_ns > 0) {
        return submit_later(s, req);
    }
    blk_req_complete_deferred(req->ctx, req, 0);
    return 0;
}

bool null_open(BlockNode *node, const void *params, GError **errp)
{
    const NullParams *p = params;
    NullState *s = node->state;

    if (p->latency_ns < 0 || p->latency_ns > NULL_LATENCY_MAX_NS) {
        err_set(errp, "Parameter 'latency-ns' is %" PRId64 ", but the range is 0 to %" PRId64,
                p->latency_ns, NULL_LATENCY_MAX_NS);
        return false;
    }
    if (p->size < 0 || p->size > BLOCK_LENGTH_MAX) {
        err_set(errp, "Parameter 'size' is %" PRId64 ", but the range is 0 to %" PRId64, p->size,
                BLOCK_LENGTH_MAX);
        return false;
    }
    s->latency_ns = p->latency_ns;
    s->read_zeroes = p->read_zeroes;
    node->limits = (BlkLimits) {
        .request_align = 1,
        .mem_align = 1,
        .max_iov = IOV_MAX,
        .discard_align = 512,
    };
    atomic_store(&node->length, (p->size + 511) & ~INT64_C(511));
    return true;
}

/* Both branches of the union are of one type. */
static bool null_open_opts(BlockNode *node, const BlockdevOptions *opts, GError **errp)
{
    const BlockdevOptionsNull *o = opts->driver == BLOCKDEV_DRIVER_NULL_CO ? &opts->u.null_co
                                                                           : &opts->u.null_aio;
    NullParams p = {
        .size = o->has_size ? (int64_t)MIN(o->size, INT64_MAX) : NULL_SIZE_DEFAULT,
        .latency_ns = MIN(o->latency_ns, INT64_MAX),
        .read_zeroes = o->read_zeroes,
    };

    return null_open(node, &p, errp);
}

const BlockDriver bdrv_null_co = {
    .name = "null-co",
    .state_size = sizeof(NullState),
    .is_protocol = true,
    .open = null_open_opts,
    .submit = null_submit,
};

const BlockDriver bdrv_null_aio = {
    .name = "null-aio",
    .state_size = sizeof(NullState),
    .is_protocol = true,
    .open = null_open_opts,
    .submit = null_submit,
};
