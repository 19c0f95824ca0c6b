/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The drivers' own options, checked in type and range by the schema's
 * generated code before they get here. Strings are borrowed for the call.
 *
 * Each NAME_open() fills node->state (zeroed, driver's state_size), limits and
 * length, or fails with nothing left over.
 */
#ifndef BLOCK_DRIVERS_H
#define BLOCK_DRIVERS_H

#include "block/block-int.h"
#include "util/enum.h"

struct BlkEngine;

typedef struct FileParams {
    const char *filename;
    const struct BlkEngine *engine;     /* NULL: threads */
    OnOffAuto locking;
} FileParams;

bool file_open(BlockNode *node, const FileParams *p, GError **errp);

typedef struct NullParams {
    int64_t size;                       /* bytes */
    int64_t latency_ns;
    bool read_zeroes;
} NullParams;

#define NULL_SIZE_DEFAULT ((int64_t)1 << 30)

bool null_open(BlockNode *node, const NullParams *p, GError **errp);

typedef struct RawParams {
    BlockNode *file;
    int64_t offset;
    int64_t size;                       /* -1: up to the end of @file */
} RawParams;

bool raw_open(BlockNode *node, const RawParams *p, GError **errp);

#endif
