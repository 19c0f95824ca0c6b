/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver side of a split virtqueue, in this process: plays the guest for
 * unit tests, fuzzers and benchmarks. It may break the rules: the rings are
 * open to whoever wants to scribble in them.
 *
 * Thread: one, not necessarily the device's.
 */
#ifndef TESTS_VQ_DRIVER_H
#define TESTS_VQ_DRIVER_H

#include <linux/virtio_blk.h>
#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "virtio/virtqueue.h"

/* Guest RAM: one or two regions of a single mapping. */
typedef struct TestRam {
    uint8_t *host;
    size_t size;
    uint64_t gpa;               /* of host[0] */
    size_t next;                /* bump allocator */
    GuestMemory *mem;
} TestRam;

/* @split: a second region begins in the middle, adjacent to the first. */
void test_ram_init(TestRam *ram, size_t size, bool split);
void test_ram_cleanup(TestRam *ram);
/* Zeroed; aligned to 64 bytes. Aborts the test when RAM is used up. */
void *test_ram_alloc(TestRam *ram, size_t size);
uint64_t test_ram_gpa(const TestRam *ram, const void *host);

typedef struct VqDriver {
    TestRam *ram;
    uint16_t size;
    bool event_idx;
    struct vring_desc *desc;
    struct vring_avail *avail;
    struct vring_used *used;
    uint16_t *used_event, *avail_event;
    uint16_t next_avail;        /* published with vq_driver_publish() */
    uint16_t published;
    uint16_t last_used;
    uint16_t *free;             /* stack of free descriptors */
    unsigned nfree;
    void **cookies;             /* per head */
    uint16_t *chain_len;        /* per head: descriptors to give back, 0: not in flight */
} VqDriver;

typedef struct VqBuf {
    void *host;
    uint32_t len;
    bool writable;              /* by the device */
} VqBuf;

void vq_driver_init(VqDriver *d, TestRam *ram, uint16_t size, bool event_idx);
void vq_driver_cleanup(VqDriver *d);
/* What a device needs to start on this queue. */
VirtQueueConfig vq_driver_config(const VqDriver *d, bool indirect);

/* Make a chain available. @indirect_table: NULL, or room for @n descriptors in
 * guest RAM. False: not enough descriptors. Not seen before publish. */
bool vq_driver_add(VqDriver *d, const VqBuf *bufs, unsigned n, struct vring_desc *indirect_table,
                   void *cookie);
/* Show it to the device. True when the device wants a kick. */
bool vq_driver_publish(VqDriver *d);
/* The next completed chain's cookie, NULL if there is none. Checks that the
 * device answers what is in flight, once. */
void *vq_driver_get(VqDriver *d, uint32_t *len);
static inline bool vq_driver_has_used(const VqDriver *d)
{
    return __atomic_load_n(&d->used->idx, __ATOMIC_ACQUIRE) != d->last_used;
}
/* Interrupt when the next chain completes, or never. True: some did already. */
bool vq_driver_want_interrupt(VqDriver *d, bool on);

#endif
