/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest and device in one thread, one turn each, so that callgrind can count the
 * device's instructions per request, the same every time:
 *
 *   valgrind --tool=callgrind --toggle-collect=device --toggle-collect=guest_turn
 *       build/tests/bench/dataplane-steps
 *       [REQUESTS [DEPTH [null|FILE [native|io_uring]]]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "driver/block-fixture.h"
#include "driver/ring-load.h"

static BlockNode *node_open_arg(int argc, char **argv)
{
    BlockNodeFlags flags = { .direct = true };
    GError *err = NULL;
    BlockNode *node;

    if (argc < 4 || strcmp(argv[3], "null") == 0) {
        return fx_null("n", 1 << 30, 0, false);
    }
    node = fx_file(argv[3], argc > 4 ? argv[4] : "native", flags, &err);
    if (node == NULL) {
        fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
    return node;
}

/*
 * The guest is one more thing that the loop polls: it finds nothing for the loop,
 * but makes the next requests available, so that the device finds them while it
 * polls, as it does under load. When all is done it has the loop return, which
 * would sleep for ever.
 */
typedef struct Guest {
    RingLoad *l;
    uint64_t want;
    bool waiting;                       /* for the requests that are out */
} Guest;

static __attribute__((noipa)) unsigned guest_turn(void *opaque)
{
    Guest *g = opaque;

    if (g->waiting) {
        g->waiting = ring_load_reap_all(g->l) > 0;
        return g->l->done >= g->want;
    } else if (g->l->done < g->want) {
        ring_load_fill(g->l, UINT64_MAX);
        g->waiting = true;
    }
    return 0;
}

static const AioHandlerOps guest_ops = { .name = "guest", .poll = guest_turn };

/* Only what is below this function, less guest_turn(), is to be counted. */
static __attribute__((noipa)) void device(RingLoad *l, uint64_t until)
{
    while (l->done < until) {
        aio_poll(l->ctx, true);
    }
}

static void warm_up(RingLoad *l, uint64_t until)
{
    while (l->done < until) {
        aio_poll(l->ctx, true);
    }
}

int main(int argc, char **argv)
{
    uint64_t requests = argc > 1 ? strtoull(argv[1], NULL, 0) : 10000;
    unsigned depth = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
    BlockNode *node = node_open_arg(argc, argv);
    BlockBackend *blk = fx_blk(node);
    AioContext *ctx = fx_ctx();
    AioPollParams polling = { .max_ns = 1000000000 };
    RingLoadConfig cfg = {
        .blk = blk, .ctx = ctx, .depth = CLAMP(depth, 1, 128), .event_idx = true, .seed = 1,
    };
    RingLoad l;
    Guest g = { .l = &l };
    AioHandler *h;
    int fd;

    aio_set_poll_params(ctx, &polling);
    ring_load_start(&l, &cfg);
    fd = eventfd(0, EFD_CLOEXEC);
    h = aio_handler_add(ctx, fd, &guest_ops, &g);
    g.want = 1000;
    warm_up(&l, g.want);
    l.done = l.kicks = 0;
    g.want = requests;
    device(&l, requests);
    printf("%" PRIu64 " requests, %" PRIu64 " kicks\n", l.done, l.kicks);
    aio_handler_remove(h);
    close(fd);
    ring_load_stop(&l);
    blk_close(blk);
    node_unref(node);
    fx_ctx_free();
    return 0;
}
