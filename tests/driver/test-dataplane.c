/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole dataplane but the transport, at full speed: a guest in the main
 * thread, an IOThread that polls, and each kind of node.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver/block-fixture.h"
#include "driver/ring-load.h"
#include "util/iothread.h"

/* ---- allocations, counted while armed ------------------------------------------- */

static unsigned long allocations;
static bool armed;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTING 1
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

static void count(void)
{
    if (__atomic_load_n(&armed, __ATOMIC_RELAXED)) {
        __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    }
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    count();
    return __libc_realloc(p, size);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    count();
    return (void *)syscall(9 /* mmap of x86-64 */, addr, len, prot, flags, fd, off);
}
#else
#define COUNTING 0
#endif

/* ---- an IOThread ------------------------------------------------------------------ */

static const ObjType *const types[] = { &type_iothread };

static ObjectTree *tree;

static IOThread *thread_new(const char *poll_max_ns)
{
    GError *err = NULL;
    Object *obj = object_new(tree, &type_iothread, "io0", &err);

    g_assert_no_error(err);
    g_assert_true(object_set_text(obj, "poll-max-ns", poll_max_ns, &err));
    g_assert_true(object_realize(obj, &err));
    return (IOThread *)obj;
}

static void thread_free(IOThread *t)
{
    object_unrealize((Object *)t);
    object_unref((Object *)t);
}

typedef struct Case {
    const char *name;
    const char *aio;                    /* NULL: null-co */
    int64_t latency_ns;
    unsigned depth;
    bool event_idx, indirect, write;
    const char *poll_max_ns;
} Case;

static BlockNode *case_node(const Case *c, char **path)
{
    BlockNodeFlags flags = { 0 };
    GError *err = NULL;
    BlockNode *node;

    *path = NULL;
    if (c->aio == NULL) {
        return fx_null("n", 1 << 30, c->latency_ns, false);
    }
    *path = fx_image("tmpfs", 16 << 20);
    flags.direct = fx_direct_works(*path);
    if (!flags.direct && strcmp(c->aio, "native") == 0) {
        return NULL;
    }
    node = fx_file(*path, c->aio, flags, &err);
    g_assert_no_error(err);
    return node;
}

static uint64_t rounds(const Case *c)
{
    uint64_t n = c->aio != NULL || c->latency_ns > 0 ? 20000 : 200000;

    if (!COUNTING) {
        n /= 10;
    }
    return g_test_thorough() ? MAX(1000000, 10 * n) : n;
}

static void case_run(const Case *c, BlockNode *node)
{
    BlockBackend *blk = fx_blk(node);
    IOThread *t = thread_new(c->poll_max_ns);
    RingLoadConfig cfg = {
        .blk = blk, .ctx = iothread_context(t), .depth = c->depth, .seed = 1,
        .event_idx = c->event_idx, .indirect = c->indirect, .write = c->write,
    };
    uint64_t n = rounds(c);
    RingLoad l;

    ring_load_start(&l, &cfg);
    ring_load_run(&l, 10000, 0);        /* engines, workers and windows settle */
    l.done = l.kicks = 0;
    allocations = 0;
    __atomic_store_n(&armed, true, __ATOMIC_RELAXED);
    ring_load_run(&l, n, 0);
    __atomic_store_n(&armed, false, __ATOMIC_RELAXED);
    g_assert_cmpuint(l.done, ==, n);
    g_assert_cmpuint(l.errors, ==, 0);
    if (COUNTING) {
        g_assert_cmpuint(allocations, ==, 0);
    }
    g_test_message("%" PRIu64 " requests, %" PRIu64 " kicks, mean %.2f us", n, l.kicks,
                   (double)l.latency_ns / (n + 10000) / 1000);
    ring_load_stop(&l);
    thread_free(t);
    blk_close(blk);
}

static void test_case(gconstpointer opaque)
{
    const Case *c = opaque;
    char *path;
    BlockNode *node = case_node(c, &path);

    if (node == NULL) {
        g_test_skip("no O_DIRECT on tmpfs here");
    } else {
        case_run(c, node);
        node_unref(node);
    }
    if (path != NULL) {
        unlink(path);
        g_free(path);
    }
}

static const Case cases[] = {
    { "null/polled/event-idx", NULL, 0, 1, true, false, false, "32768" },
    { "null/polled/flag", NULL, 0, 1, false, false, false, "32768" },
    { "null/polled/indirect-depth-32", NULL, 0, 32, true, true, false, "32768" },
    { "null/not-polled", NULL, 0, 1, true, false, false, "0" },
    { "null/not-polled-depth-128", NULL, 0, 128, true, false, true, "0" },
    { "null/latency-10us", NULL, 10000, 4, true, false, false, "32768" },
    { "threads/polled", "threads", 0, 4, true, false, true, "32768" },
    { "native/polled", "native", 0, 1, true, false, false, "32768" },
    { "native/polled-depth-32", "native", 0, 32, true, true, true, "32768" },
    { "native/not-polled", "native", 0, 4, true, false, false, "0" },
    { "io_uring/polled", "io_uring", 0, 1, true, false, false, "32768" },
    { "io_uring/polled-depth-32", "io_uring", 0, 32, true, true, true, "32768" },
};

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    tree = object_tree_new(types, G_N_ELEMENTS(types));
    fx_ctx();
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/dataplane/%s", cases[i].name);

        g_test_add_data_func(path, &cases[i], test_case);
    }
    ret = g_test_run();
    fx_ctx_free();
    object_tree_free(tree);
    return ret;
}
