/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What tests of the block layer share: nodes, a context, and requests that wait. */
#ifndef TESTS_DRIVER_BLOCK_FIXTURE_H
#define TESTS_DRIVER_BLOCK_FIXTURE_H

#include "block/block-int.h"
#include "block/drivers.h"

/* The calling thread's context, made at the first call. */
AioContext *fx_ctx(void);
/* Free it; at the end of a program, for the leak checkers. */
void fx_ctx_free(void);

/* Nodes. They abort when they fail, except with @errp. */
BlockNode *fx_null(const char *name, int64_t size, int64_t latency_ns, bool read_zeroes);
BlockNode *fx_file(const char *path, const char *aio, BlockNodeFlags flags, GError **errp);
BlockNode *fx_raw(BlockNode *file, int64_t offset, int64_t size, GError **errp);

/* Opened for writing (unless the node is read-only) and not shared with writers. */
BlockBackend *fx_blk(BlockNode *node);

/* One request, waited for. 0 or -errno. */
int fx_rw(BlockBackend *blk, BlkOp op, int64_t offset, void *buf, int64_t bytes, uint32_t flags);
int fx_flush(BlockBackend *blk);

/* Where tests put their images: "tmpfs" or "disk"; NULL when there is no such place. */
const char *fx_dir(const char *kind);
/* A new sparse file of @bytes. Free it; unlink it. */
char *fx_image(const char *kind, int64_t bytes);
/* Does the file take O_DIRECT? */
bool fx_direct_works(const char *path);

/* xorshift64*, seeded from the environment's TEST_SEED or the clock; printed once. */
uint64_t fx_random(void);

#endif
