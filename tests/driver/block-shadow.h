/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random requests, many in flight, against a copy in memory of what the image must hold.
 */
#ifndef TESTS_DRIVER_BLOCK_SHADOW_H
#define TESTS_DRIVER_BLOCK_SHADOW_H

#include "driver/block-fixture.h"

#define SHADOW_BYTES (1 << 20)          /* the image must be as long, and zeroes */

/*
 * @requests reads, writes, flushes, discards and zeroes through @blk, then a look at the
 * file at @path. @unaligned: memory of any size and place. Aborts on any difference.
 * BLOCK_ROUNDS in the environment multiplies @requests (default 1).
 */
void shadow_run(BlockBackend *blk, const char *path, bool unaligned, unsigned requests);

#endif
