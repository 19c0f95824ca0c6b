/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A BlockBackend whose every completion the test decides: the block layer as
 * the floors above see it, without the block layer.
 */
#ifndef TESTS_FAKE_BLK_H
#define TESTS_FAKE_BLK_H

#include "block/block-backend.h"

struct BlockBackend {
    int64_t length;
    bool read_only;
    bool write_cache;
    bool hold;                  /* keep requests until fake_blk_release() */
    int submit_error;           /* the next submits fail with this */
    int complete_error;         /* completions carry this */
    BlkReq *held;
    unsigned submitted[BLK_OP_MAX];
    uint8_t *data;              /* content, or NULL: reads fill 0xa5 */
    uint32_t last_flags;
};

/* Complete what is held; the context is the caller's. Newest first. */
void fake_blk_release(BlockBackend *blk, AioContext *ctx);

#endif
