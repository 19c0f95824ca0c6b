/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What blockdev.c, drive.c and probe.c share, and drivers with children. Main thread. */
#ifndef BLOCK_BLOCKDEV_INT_H
#define BLOCK_BLOCKDEV_INT_H

#include "block/block-int.h"
#include "block/blockdev.h"

/* A child for @parent, which opens: with a reference for the caller. */
BlockNode *node_open_ref(const BlockdevRef *ref, const BlockNode *parent, GError **errp);

/* A node that lives until blockdev_close_all(). node-name may be missing. */
BlockNode *blockdev_open(const BlockdevOptions *opts, GError **errp);

void drive_forget_all(void);

/* raw.c: the format of @node, a raw one, was guessed. Before its first request. */
void raw_set_guessed(BlockNode *node);

/* Enough of an image's beginning to know its format by. */
#define PROBE_BYTES 512

/* The name of the format that @buf is the beginning of, "raw" when it is none that
 * we know of. */
const char *probe_format(const uint8_t *buf, size_t bytes);

/*
 * The format of @path. Files that can't be read are "raw": opening them will say
 * what is wrong.
 */
const char *probe_file(const char *path);

#endif
