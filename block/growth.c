/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images that grow while they are in use are noticed by looking at their size
 * once a second. inotify would wake us for every write of the guest's own.
 *
 * Only growth counts: a file cut off behind our back keeps its length here; what
 * is missing reads as zeroes and is there again once it is written.
 */
#include <glib.h>

#include "block/block-int.h"
#include "growth.h"

#define PERIOD_S 1

static int watchers;
static guint timer_id;

static void node_look(BlockNode *node)
{
    int64_t length = node->drv->refresh_length(node);

    if (length > node_length(node)) {
        node_set_length(node, length);
    }
}

static gboolean look(void *opaque)
{
    for (BlockNode *node = node_next(NULL); node; node = node_next(node)) {
        if (node->drv->is_protocol && node->drv->refresh_length &&
            !g_queue_is_empty(&node->users)) {
            node_look(node);
        }
    }
    return G_SOURCE_CONTINUE;
}

void growth_watch(int users)
{
    watchers += users;
    g_assert(watchers >= 0);
    if (watchers > 0 && timer_id == 0) {
        timer_id = g_timeout_add_seconds(PERIOD_S, look, NULL);
    } else if (watchers == 0 && timer_id != 0) {
        g_source_remove(timer_id);
        timer_id = 0;
    }
}
