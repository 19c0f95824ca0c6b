/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "chardev/chardev.h"

/* What signal handlers need. */
static struct termios before, raw;
static volatile sig_atomic_t is_raw;

void chardev_terminal_restore(void)
{
    if (is_raw) {
        is_raw = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    }
}

/* Fatal: restore, then die of the same signal. */
static void fatal_handler(int sig)
{
    chardev_terminal_restore();
    raise(sig);                 /* SA_RESETHAND: the default action */
}

/* The shell had the terminal meanwhile. */
static void cont_handler(int sig)
{
    if (is_raw) {
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
}

static void handlers_install(void)
{
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT, SIGSYS };
    struct sigaction sa = { .sa_handler = fatal_handler, .sa_flags = SA_RESETHAND };
    struct sigaction old;

    for (unsigned i = 0; i < G_N_ELEMENTS(fatal); i++) {
        /* a sanitizer's own handler stays */
        if (sigaction(fatal[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) {
            sigaction(fatal[i], &sa, NULL);
        }
    }
    sa.sa_handler = cont_handler;
    sa.sa_flags = SA_RESTART;
    sigaction(SIGCONT, &sa, NULL);
}

void terminal_raw(bool signals)
{
    static bool installed;

    if (tcgetattr(STDIN_FILENO, &before) < 0) {
        return;                 /* no terminal */
    }
    raw = before;
    raw.c_iflag &= ~(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
    raw.c_lflag &= ~(ECHO | ECHONL | ICANON | IEXTEN);
    if (!signals) {
        raw.c_lflag &= ~ISIG;
    }
    raw.c_cflag = (raw.c_cflag & ~(CSIZE | PARENB)) | CS8;
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (!installed) {
        installed = true;
        handlers_install();
        atexit(chardev_terminal_restore);
    }
    is_raw = 1;                 /* first, so that no signal finds it raw and not known */
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}
