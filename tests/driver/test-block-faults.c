/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Engines whose kernel misbehaves: calls that take a part of a batch or nothing,
 * transfers that end early, system calls that are forbidden.
 *
 * syscall() and io_uring_submit() are this file's: what is linked into the
 * program is found before what the libraries have.
 */
#include "config-host.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef CONFIG_LINUX_IO_URING
#include <liburing.h>
#endif

#include "driver/block-fixture.h"
#include "driver/block-shadow.h"

static struct {
    bool partial;                       /* take only some of a batch */
    bool busy, interrupted;             /* refuse now and then */
    bool short_transfers;               /* leave out the last piece of a vector */
    int refuse_first;                   /* the first request is always bad, with this error */
    unsigned hits;
} faults;

static bool strike(bool on)
{
    bool hit = on && fx_random() % 3 == 0;

    faults.hits += hit;
    return hit;
}

/* -errno in the way of the kernel. */
static long raw_syscall(long number, const long arg[6])
{
    register long r10 __asm__("r10") = arg[3];
    register long r8 __asm__("r8") = arg[4];
    register long r9 __asm__("r9") = arg[5];
    long ret;

    __asm__ volatile("syscall" : "=a"(ret)
                     : "a"(number), "D"(arg[0]), "S"(arg[1]), "d"(arg[2]), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}

#ifdef CONFIG_LINUX_AIO
static long faulty_io_submit(long arg[6])
{
    struct iocb **list = (struct iocb **)arg[2];

    if (faults.refuse_first) {
        faults.hits++;
        return faults.refuse_first;
    }
    if (strike(faults.busy)) {
        return -EAGAIN;
    }
    if (strike(faults.interrupted)) {
        return -EINTR;
    }
    if (arg[1] > 1 && strike(faults.partial)) {
        arg[1] = fx_random() % arg[1];
    }
    for (long i = 0; i < arg[1]; i++) {
        if (list[i]->u.c.nbytes > 1 && list[i]->aio_lio_opcode != IO_CMD_FDSYNC &&
            strike(faults.short_transfers)) {
            list[i]->u.c.nbytes--;      /* pieces */
        }
    }
    return raw_syscall(SYS_io_submit, arg);
}
#endif

long syscall(long number, ...)
{
    long arg[6], ret;
    va_list ap;

    va_start(ap, number);
    for (size_t i = 0; i < G_N_ELEMENTS(arg); i++) {
        arg[i] = va_arg(ap, long);
    }
    va_end(ap);
#ifdef CONFIG_LINUX_AIO
    ret = number == SYS_io_submit ? faulty_io_submit(arg) : raw_syscall(number, arg);
#else
    ret = raw_syscall(number, arg);
#endif
    if (ret < 0 && ret > -4096) {
        errno = -ret;
        return -1;
    }
    return ret;
}

#ifdef CONFIG_LINUX_IO_URING
static void shorten(struct io_uring *ring)
{
    for (unsigned i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++) {
        struct io_uring_sqe *sqe = &ring->sq.sqes[i & ring->sq.ring_mask];

        if ((sqe->opcode == IORING_OP_READV || sqe->opcode == IORING_OP_WRITEV) &&
            sqe->len > 1 && strike(faults.short_transfers)) {
            sqe->len--;
        }
    }
}

int io_uring_submit(struct io_uring *ring)
{
    static int (*real)(struct io_uring *ring);

    if (!real) {
        real = (int (*)(struct io_uring *))dlsym(RTLD_NEXT, "io_uring_submit");
    }
    if (strike(faults.busy)) {
        return fx_random() % 2 ? -EAGAIN : -EBUSY;
    }
    if (strike(faults.interrupted)) {
        return -EINTR;
    }
    shorten(ring);
    return real(ring);
}
#endif

/* ---- an engine under faults --------------------------------------------------------- */

typedef struct Disk {
    char *path;
    BlockNode *node;
    BlockBackend *blk;
} Disk;

static bool disk_open(Disk *d, const char *aio)
{
    BlockNodeFlags flags = { .direct = true, .unmap = true };
    g_autoptr(GError) err = NULL;

    d->path = fx_image("disk", SHADOW_BYTES);
    d->node = fx_file(d->path, aio, flags, &err);
    if (!d->node) {
        g_test_skip(err->message);
        unlink(d->path);
        g_free(d->path);
        return false;
    }
    d->blk = fx_blk(d->node);
    return true;
}

static void disk_close(Disk *d)
{
    blk_close(d->blk);
    node_unref(d->node);
    unlink(d->path);
    g_free(d->path);
}

/* Nothing is lost and nothing is answered twice. */
static void run_with_faults(const char *aio)
{
    Disk d;

    faults.hits = 0;
    if (disk_open(&d, aio)) {
        shadow_run(d.blk, d.path, false, 1000);
        disk_close(&d);
        g_assert_cmpuint(faults.hits, >, 0);
    }
    memset(&faults, 0, sizeof(faults));
}

static void test_partial_batches(const void *aio)
{
    faults.partial = true;
    run_with_faults(aio);
}

static void test_busy(const void *aio)
{
    faults.busy = faults.interrupted = true;
    run_with_faults(aio);
}

static void test_short_transfers(const void *aio)
{
    faults.short_transfers = true;
    run_with_faults(aio);
}

static void test_all_at_once(const void *aio)
{
    faults.partial = faults.busy = faults.interrupted = faults.short_transfers = true;
    run_with_faults(aio);
}

#ifdef CONFIG_LINUX_AIO
/* A worker does what the kernel won't take; an error that is one is reported. */
static void test_refused_requests(void)
{
    char *buf = aligned_alloc(4096, 4096);
    Disk d;

    if (disk_open(&d, "native")) {
        memset(buf, 0x77, 4096);
        faults.refuse_first = -EINVAL;
        g_assert_cmpint(fx_rw(d.blk, BLK_WRITE, 4096, buf, 4096, 0), ==, 0);
        g_assert_cmpint(fx_flush(d.blk), ==, 0);
        memset(buf, 0, 4096);
        g_assert_cmpint(fx_rw(d.blk, BLK_READ, 4096, buf, 4096, 0), ==, 0);
        g_assert_cmpint(buf[0], ==, 0x77);
        faults.refuse_first = -EBADF;
        g_assert_cmpint(fx_rw(d.blk, BLK_READ, 0, buf, 4096, 0), ==, -EBADF);
        g_assert_cmpint(fx_rw(d.blk, BLK_WRITE, 0, buf, 4096, 0), ==, -EBADF);
        memset(&faults, 0, sizeof(faults));
        g_assert_cmpint(fx_rw(d.blk, BLK_READ, 0, buf, 4096, 0), ==, 0);
        disk_close(&d);
    }
    free(buf);
}
#endif

/* ---- system calls that are forbidden, as in a container --------------------------------- */

/* Make @number fail with @error from here on in this thread. */
static void forbid(int number, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { G_N_ELEMENTS(code), code };

    g_assert_cmpint(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
    g_assert_cmpint(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), ==, 0);
}

typedef struct Forbidden {
    const char *aio;
    int number, error;
} Forbidden;

static void *open_when_forbidden(void *opaque)
{
    const Forbidden *f = opaque;
    g_autofree char *path = fx_image("disk", 4096);
    BlockNodeFlags flags = { .direct = true };
    g_autofree char *option = g_strdup_printf("aio=%s", f->aio);
    g_autoptr(GError) err = NULL;

    forbid(f->number, f->error);
    g_assert_null(fx_file(path, f->aio, flags, &err));
    if (!strstr(err->message, option) || !strstr(err->message, g_strerror(f->error))) {
        g_error("%s", err->message);
    }
    unlink(path);
    return NULL;
}

/* The filter dies with its thread. */
static void in_thread(void *(*fn)(void *opaque), void *opaque)
{
    pthread_t thread;

    g_assert_cmpint(pthread_create(&thread, NULL, fn, opaque), ==, 0);
    pthread_join(thread, NULL);
}

static void test_refused_at_open(void)
{
    static Forbidden cases[] = {
#ifdef CONFIG_LINUX_IO_URING
        { "io_uring", SYS_io_uring_setup, EPERM }, { "io_uring", SYS_io_uring_setup, ENOSYS },
#endif
#ifdef CONFIG_LINUX_AIO
        { "native", SYS_io_setup, ENOSYS }, { "native", SYS_io_setup, EAGAIN },
#endif
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        in_thread(open_when_forbidden, &cases[i]);
    }
}

typedef struct LateCase {
    Disk *disk;
    int number;
} LateCase;

static void *use_when_forbidden(void *opaque)
{
    const LateCase *late = opaque;
    char *buf = aligned_alloc(4096, 4096);

    forbid(late->number, EPERM);
    fx_ctx();
    memset(buf, 0x66, 4096);
    g_assert_cmpint(fx_rw(late->disk->blk, BLK_WRITE, 0, buf, 4096, 0), ==, 0);
    memset(buf, 0, 4096);
    g_assert_cmpint(fx_rw(late->disk->blk, BLK_READ, 0, buf, 4096, 0), ==, 0);
    g_assert_cmpint(buf[4095], ==, 0x66);
    g_assert_cmpint(fx_flush(late->disk->blk), ==, 0);
    free(buf);
    fx_ctx_free();
    return NULL;
}

/* A node that was opened is served all the same in a context that has no engine. */
static void test_worker_stands_in(const void *aio)
{
    LateCase late = {
        .number = strcmp(aio, "native") == 0 ? SYS_io_setup : SYS_io_uring_setup,
    };
    Disk d;

    if (disk_open(&d, aio)) {
        late.disk = &d;
        in_thread(use_when_forbidden, &late);
        disk_close(&d);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*fn)(const void *aio);
    } cases[] = {
        { "partial-batches", test_partial_batches }, { "busy", test_busy },
        { "short-transfers", test_short_transfers }, { "all-at-once", test_all_at_once },
        { "worker-stands-in", test_worker_stands_in },
    };
    static const char *const aios[] = { "native", "io_uring" };
    int ret;

    g_test_init(&argc, &argv, NULL);
    for (size_t a = 0; a < G_N_ELEMENTS(aios); a++) {
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
            g_autofree char *path = g_strdup_printf("/block/faults/%s/%s", aios[a],
                                                    cases[i].name);

            /* The ring takes all of a batch or says why. */
            if (a == 0 || i > 0) {
                g_test_add_data_func(path, aios[a], cases[i].fn);
            }
        }
    }
#ifdef CONFIG_LINUX_AIO
    g_test_add_func("/block/faults/native/refused-requests", test_refused_requests);
#endif
    g_test_add_func("/block/faults/refused-at-open", test_refused_at_open);
    ret = g_test_run();
    fx_ctx_free();
    return ret;
}
