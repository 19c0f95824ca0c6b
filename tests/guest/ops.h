/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operations. Each prints at least one JSON line with an "errors" member and returns that
 * number.
 */
#ifndef GUEST_OPS_H
#define GUEST_OPS_H

#include <stdint.h>

#include "params.h"
#include "virtio.h"

uint64_t op_bench(const Params *p);         /* read, write, rw, flush */
uint64_t op_integrity(const Params *p);
uint64_t op_stamp(const Params *p);
uint64_t op_verify(const Params *p);
uint64_t op_reset(const Params *p);
uint64_t op_zeroes(const Params *p);        /* discard, write_zeroes */
uint64_t op_hostile(const Params *p);
uint64_t op_fuzz(const Params *p);
uint64_t op_info(const Params *p);
uint64_t op_getid(const Params *p);
uint64_t op_wce(const Params *p);
uint64_t op_watch(const Params *p);
uint64_t op_idle(const Params *p);
uint64_t op_clock(const Params *p);
uint64_t op_fault(const Params *p);

/* The device that an operation on one device is about. */
VirtioDev *op_device(const Params *p);

/* splitmix64: every seed gives a sequence of full period. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Below @n, without division. */
static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
    return (unsigned __int128)next_random(state) * n >> 64;
}

#endif
