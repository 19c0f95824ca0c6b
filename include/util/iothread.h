/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IOThread: a thread that runs one AioContext, as
 * -object iothread,id=,poll-max-ns=,poll-grow=,poll-shrink=
 *
 * From realize to unrealize the thread runs; it never takes the BQL. The poll
 * parameters may change while it does. Functions: main thread, of a realized
 * object.
 */
#ifndef UTIL_IOTHREAD_H
#define UTIL_IOTHREAD_H

#include <sys/types.h>

#include "util/aio.h"
#include "util/object.h"

typedef struct IOThread IOThread;

extern const ObjType type_iothread;     /* "iothread" */

/* Borrowed; lives as long as the thread. */
AioContext *iothread_context(IOThread *iothread);
/* As the kernel counts threads. */
pid_t iothread_thread_id(IOThread *iothread);

#endif
