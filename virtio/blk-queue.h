/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to virtio/: one virtio-blk queue and its requests. */
#ifndef VIRTIO_BLK_QUEUE_PRIV_H
#define VIRTIO_BLK_QUEUE_PRIV_H

#include "virtio/virtio-blk.h"

/* One popped chain; from the queue's pool. */
typedef struct VirtioBlkReq {
    BlkReq blk;
    VirtioBlkQueue *q;
    struct VirtioBlkReq *next;          /* pool or held list */
    struct virtio_blk_outhdr hdr;       /* private copy */
    uint8_t *status;                    /* in guest memory */
    uint32_t in_len;                    /* data bytes that a success writes */
    struct iovec *data;                 /* inside iov[] */
    int ndata;
    uint64_t data_bytes;
    VirtQueueElem elem;
    struct iovec iov[];
} VirtioBlkReq;

struct VirtioBlkQueue {
    /* Read on each request. */
    VirtioBlk *vb;
    AioContext *ctx;                    /* home while running */
    VirtioBlkReq *pool;                 /* free requests, last used first */
    bool polling;                       /* kicks are off because the loop polls */
    bool stopping;                      /* finish what is in flight, take nothing */
    bool in_service;                    /* handler installed */
    unsigned index;
    unsigned nheld;
    AioDefer publish;
    VirtQueue vq;
    uint64_t requests, batches, kicks;  /* home thread writes, relaxed atomics */

    /* Set-up, stop. */
    AioHandler *handler;
    int kick_fd;
    VirtioBlkReq *held;                 /* failed, waiting for a retry; oldest first */
    void *pool_mem;
    bool quiet;                         /* atomic: stopping, and nothing is in flight */
    bool told_broken;
};

/* Home thread. Pop and start everything queued (virtio/blk-request.c). */
unsigned virtio_blk_queue_take(VirtioBlkQueue *q);
/* Home thread. Have the loop call virtio_blk_queue_take() once more (virtio/blk-queue.c). */
void virtio_blk_queue_again(VirtioBlkQueue *q);
/* AioDefer: show the driver what completed; raise the interrupt. */
void virtio_blk_queue_publish(void *opaque);
/* Home thread. Start a popped request, for the first time or again. */
void virtio_blk_req_start(VirtioBlkReq *req);

#endif
