/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals that end the process in good order.
 */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/err.h"
#include "vm.h"

/* What a signal handler needs. */
static int wake_fd = -1;
static volatile sig_atomic_t came, came_from;

static void handler(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    uint64_t one = 1;

    came_from = info->si_code == SI_KERNEL ? 0 : info->si_pid;
    came = sig;
    if (write(wake_fd, &one, sizeof(one)) < 0) {
        /* signalled already */
    }
    errno = saved;
}

bool signals_init(GError **errp)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };

    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) {
        err_set_errno(errp, errno, "cannot make an eventfd");
        return false;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
        sigaction(ends[i], &sa, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
    /* A write beyond RLIMIT_FSIZE is the request's error, not our end. */
    signal(SIGXFSZ, SIG_IGN);
    return true;
}

int signals_fd(void)
{
    return wake_fd;
}

int signals_take(int *pid)
{
    int sig = came;
    uint64_t count;

    if (read(wake_fd, &count, sizeof(count)) < 0) {
        return 0;
    }
    *pid = came_from;
    return sig;
}
