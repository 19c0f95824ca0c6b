/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BQL: the one process-wide lock. Held by the main thread except while its
 * loop sleeps, and taken by a vCPU thread for an exit that a device model must
 * emulate. No IOThread and no pool worker ever takes it, so that its holder may
 * wait for them. Taken before every other lock.
 */
#ifndef UTIL_BQL_H
#define UTIL_BQL_H

#include <pthread.h>
#include <stdbool.h>

/* Not recursive. */
void bql_lock(void);
void bql_unlock(void);
/* Does the calling thread hold it? */
bool bql_held(void);
/* pthread_cond_wait() with the BQL. */
void bql_wait(pthread_cond_t *cond);

#endif
