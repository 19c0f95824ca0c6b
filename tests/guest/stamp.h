/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stamped sectors: each 512-byte sector says where it belongs, which generation it is and whose run
 * wrote it, is filled from these three, and ends in a checksum.
 */
#ifndef GUEST_STAMP_H
#define GUEST_STAMP_H

#include <stdint.h>

typedef enum StampState {
    STAMP_GOOD,
    STAMP_NONE,                 /* not a stamped sector at all */
    STAMP_MISPLACED,            /* another sector's, or another run's */
    STAMP_CORRUPT,              /* checksum wrong */
} StampState;

void stamp_write(void *sector, uint64_t lba, uint64_t generation, uint64_t seed);

/* @generation is filled in when the sector is good. */
StampState stamp_check(const void *sector, uint64_t lba, uint64_t seed, uint64_t *generation);

const char *stamp_state_name(StampState s);

#endif
