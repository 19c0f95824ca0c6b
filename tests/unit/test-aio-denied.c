/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop where the kernel, or a container's filter, refuses system calls.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "aio-cases.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

static void deny(unsigned syscall_nr, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, syscall_nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = { .len = G_N_ELEMENTS(code), .filter = code };

    g_assert_cmpint(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
    g_assert_cmpint(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), ==, 0);
}

static void timer_fired(void *opaque)
{
    *(int64_t *)opaque = aio_clock_ns();
}

/* An fd, a bottom half and a timer all get through, and the timer isn't early or far too late. */
static void use_context(void)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(AioContext) ctx = aio_context_new("denied", &err);
    int64_t fired = 0, deadline;
    AioTimer timer;
    Fd fd;

    g_assert_no_error(err);
    aio_context_enter(ctx);
    fd_init(&fd, ctx);
    event_notifier_set(&fd.n);
    settle(ctx);
    g_assert_cmpuint(fd.calls, ==, 1);
    aio_timer_init(&timer, ctx, timer_fired, &fired);
    deadline = aio_clock_ns() + 1300000;
    aio_timer_set(&timer, deadline);
    while (!fired) {
        aio_poll(ctx, true);
    }
    g_assert_cmpint(fired, >=, deadline);
    fd_cleanup(&fd);
}

typedef struct Denial {
    const char *path;
    unsigned syscall_nr;
    unsigned error;
    const char *says;
} Denial;

static const Denial denials[] = {
    { "/aio-denied/no-epoll-pwait2", SYS_epoll_pwait2, ENOSYS, "" },
    { "/aio-denied/epoll-pwait2-not-permitted", SYS_epoll_pwait2, EPERM, "" },
    { "/aio-denied/no-epoll", SYS_epoll_create1, ENOSYS, "*info: denied: using ppoll*" },
    { "/aio-denied/epoll-not-permitted", SYS_epoll_create1, EPERM, "*info: denied: using ppoll*" },
};

static void test_denied(const void *data)
{
    const Denial *d = data;

    if (g_test_subprocess()) {
        deny(d->syscall_nr, d->error);
        use_context();
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr(d->says);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(denials); i++) {
        g_test_add_data_func(denials[i].path, &denials[i], test_denied);
    }
    return g_test_run();
}
