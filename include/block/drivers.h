/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The drivers' own options as plain structs: what -blockdev's generated types
 * are turned into, and what tests use directly with node_open_by(). Strings
 * are borrowed for the call.
 *
 * Each NAME_open() fills node->state (zeroed, the driver's state_size), limits
 * and length, or fails with nothing left over.
 */
#ifndef BLOCK_DRIVERS_H
#define BLOCK_DRIVERS_H

#include "block/block-int.h"
#include "util/enum.h"

/* Main thread, all of it. */

typedef struct FileParams {
    const char *filename;
    const char *aio;                    /* threads, native, io_uring; NULL: threads */
    OnOffAuto locking;
} FileParams;

/* @params: FileParams */
bool file_open(BlockNode *node, const void *params, GError **errp);

typedef struct NullParams {
    int64_t size;                       /* bytes */
    int64_t latency_ns;
    bool read_zeroes;
} NullParams;

#define NULL_SIZE_DEFAULT ((int64_t)1 << 30)
/* An hour: a deadline stays far from overflow, and a drain ends some day. */
#define NULL_LATENCY_MAX_NS INT64_C(3600000000000)

/* @params: NullParams */
bool null_open(BlockNode *node, const void *params, GError **errp);

typedef struct RawParams {
    BlockNode *file;
    int64_t offset;
    int64_t size;                       /* -1: up to the end of @file */
} RawParams;

/* @params: RawParams. Takes its own edge to @file. */
bool raw_open(BlockNode *node, const void *params, GError **errp);

#endif
