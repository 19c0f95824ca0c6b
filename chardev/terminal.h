/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal on stdin. Main thread. */
#ifndef CHARDEV_TERMINAL_H
#define CHARDEV_TERMINAL_H

#include <stdbool.h>

/*
 * If stdin is a terminal: bytes as they are typed, no echo. @signals: Ctrl-C
 * and the like remain signals. Undone by chardev_terminal_restore(), which also
 * runs at exit and when a fatal signal ends the process; after a stop the
 * mode comes back.
 */
void terminal_raw(bool signals);

#endif
