/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest in this process: keeps a virtio-blk queue busy with 4 KiB requests
 * and checks that each is answered once. The device side is the real one, in
 * an AioContext of the caller's choice.
 */
#ifndef TESTS_RING_LOAD_H
#define TESTS_RING_LOAD_H

#include "driver/vq-driver.h"
#include "virtio/virtio-blk.h"

#define RING_LOAD_BYTES 4096u

typedef struct RingLoadReq {
    struct virtio_blk_outhdr *hdr;
    uint8_t *data;
    uint8_t *status;
    struct vring_desc *table;
    int64_t start_ns;
} RingLoadReq;

typedef struct RingLoad {
    TestRam ram;
    VqDriver d;
    VirtioBlk vb;
    VirtioBlkQueue *q;
    AioContext *ctx;
    int kick_fd;
    unsigned depth;
    uint32_t type;              /* VIRTIO_BLK_T_IN or _OUT */
    bool indirect;
    RingLoadReq *reqs;
    uint64_t sectors;           /* of the disk */
    unsigned out;               /* in flight */
    uint64_t random;            /* state of the generator */
    /* Counted: */
    uint64_t done, errors, kicks;
    unsigned interrupts;        /* atomic */
    int64_t latency_ns;         /* sum */
} RingLoad;

typedef struct RingLoadConfig {
    BlockBackend *blk;
    AioContext *ctx;            /* serves the queue */
    unsigned depth;             /* 1 to 128 */
    bool event_idx, indirect, write;
    uint64_t seed;
} RingLoadConfig;

void ring_load_start(RingLoad *l, const RingLoadConfig *c);
void ring_load_stop(RingLoad *l);

/* Publish as many as fit the depth, kick if asked to. */
void ring_load_fill(RingLoad *l, uint64_t limit);
/* Take what has completed. */
unsigned ring_load_reap(RingLoad *l);
/* The same; returns how many are still out. */
unsigned ring_load_reap_all(RingLoad *l);
/* Both, spinning on the used ring as a polling guest does, until @count are done
 * or (@count 0) @seconds are over. The device is served by another thread. */
void ring_load_run(RingLoad *l, uint64_t count, double seconds);

#endif
