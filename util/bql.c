/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/bql.h"

#include <assert.h>

static pthread_mutex_t bql = PTHREAD_MUTEX_INITIALIZER;
static __thread bool held;

void bql_lock(void)
{
    assert(!held);
    pthread_mutex_lock(&bql);
    held = true;
}

void bql_unlock(void)
{
    assert(held);
    held = false;
    pthread_mutex_unlock(&bql);
}

bool bql_held(void)
{
    return held;
}

void bql_wait(pthread_cond_t *cond)
{
    assert(held);
    held = false;
    pthread_cond_wait(cond, &bql);
    held = true;
}
