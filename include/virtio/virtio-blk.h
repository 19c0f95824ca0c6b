/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-blk without a transport (VIRTIO 1.2 §5.2): the request module, the
 * queues and the configuration space. A PCI device and a vhost-user export
 * both stand on it and add only how they are told of kicks, how they raise
 * interrupts and how the driver reaches the configuration.
 *
 * VirtioBlk is the disk: shared by its queues, changed by its owner's control
 * thread only while the queues are stopped, except where said otherwise.
 * VirtioBlkQueue is one virtqueue in the hands of one AioContext.
 */
#ifndef VIRTIO_VIRTIO_BLK_H
#define VIRTIO_VIRTIO_BLK_H

#include <linux/virtio_blk.h>

#include "block/block-backend.h"
#include "virtio/virtqueue.h"

#define VIRTIO_BLK_SECTOR 512           /* bytes; unit of the protocol */

typedef struct VirtioBlk VirtioBlk;
typedef struct VirtioBlkQueue VirtioBlkQueue;

/* What to do with a request that failed. */
typedef enum VirtioBlkOnError {
    VIRTIO_BLK_REPORT,                  /* status to the guest */
    VIRTIO_BLK_IGNORE,                  /* success to the guest */
    VIRTIO_BLK_HOLD,                    /* kept until virtio_blk_queue_retry() */
} VirtioBlkOnError;

/* The owner's part. Thread: the queue's AioContext. */
typedef struct VirtioBlkOps {
    /* Raise the queue's interrupt; called once per batch, when wanted. */
    void (*interrupt)(void *opaque, unsigned queue);
    /* The driver corrupted the queue; it is stopped taking requests. Once per start. */
    void (*broken)(void *opaque, unsigned queue, const char *why);
    /* NULL: always report. @err is a positive errno. */
    VirtioBlkOnError (*error)(void *opaque, unsigned queue, BlkOp op, int err);
} VirtioBlkOps;

struct VirtioBlk {
    BlockBackend *blk;
    const VirtioBlkOps *ops;
    void *opaque;
    const char *name;                   /* for messages */
    uint64_t capacity;                  /* 512-byte sectors; atomic, may grow while in use */
    uint32_t logical_block;             /* bytes, power of two, >= 512 */
    uint32_t physical_block;            /* bytes, power of two, >= logical_block */
    uint32_t min_io;                    /* bytes, 0: unknown */
    uint32_t opt_io;                    /* bytes, 0: unknown */
    uint32_t seg_max;                   /* data segments of one request */
    uint32_t max_discard_sectors;
    uint32_t discard_align_sectors;     /* 512-byte sectors */
    uint32_t max_write_zeroes_sectors;
    uint16_t num_queues;
    bool read_only;
    bool discard;                       /* offered */
    bool write_zeroes;                  /* offered */
    bool config_wce;                    /* offered */
    bool write_cache_default;           /* after a reset */
    char serial[VIRTIO_BLK_ID_BYTES];   /* padded with zeroes, no terminator if full */
};

/* ---- configuration space and features (virtio/blk-config.c) ------------ */

/* Device-specific feature bits that this disk offers (§5.2.3). */
uint64_t virtio_blk_features(const VirtioBlk *vb);
/* The space as the driver reads it; the write-cache byte is current. */
void virtio_blk_get_config(const VirtioBlk *vb, struct virtio_blk_config *cfg);
/*
 * The driver wrote byte @offset. Only the write-cache byte may be written, and
 * only with CONFIG_WCE accepted (@features). False: not writable, ignored.
 */
bool virtio_blk_set_config_byte(VirtioBlk *vb, uint64_t features, unsigned offset, uint8_t value);
/* DRIVER_OK with these features: settles the write cache (§5.2.5.2). */
void virtio_blk_driver_ok(VirtioBlk *vb, uint64_t features);
/* A reset: the write cache is as it was configured. */
void virtio_blk_reset(VirtioBlk *vb);
/* After a change of the node's length. True when the capacity changed. */
bool virtio_blk_update_capacity(VirtioBlk *vb);

/* ---- one queue (virtio/blk-queue.c) ------------------------------------- */

/* Control thread. @index is the queue's number in @vb. */
VirtioBlkQueue *virtio_blk_queue_new(VirtioBlk *vb, unsigned index);
/* It must be stopped. */
void virtio_blk_queue_free(VirtioBlkQueue *q);

/*
 * Take the queue into service in @ctx: memory for all its requests, then the
 * handler on @kick_fd, an eventfd that stays the caller's until the queue is
 * stopped. Looks at the ring once, so no kick is needed for what is there.
 * Control thread; on return the queue runs.
 */
bool virtio_blk_queue_start(VirtioBlkQueue *q, AioContext *ctx, int kick_fd, GuestMemory *mem,
                            const VirtQueueConfig *cfg, GError **errp);

/*
 * Control thread. No new request starts, those in flight finish and are
 * published, then the queue is out of service. Held requests are forgotten
 * (the guest sees them neither done nor failed). Returns the available index
 * to continue from.
 */
uint16_t virtio_blk_queue_stop(VirtioBlkQueue *q);
bool virtio_blk_queue_running(const VirtioBlkQueue *q);

/* Control thread. As stop, but held requests are kept and the rings stay
 * mapped; the guest's vCPUs are paused. */
void virtio_blk_queue_pause(VirtioBlkQueue *q);
/* Control thread. Held requests start again, then new ones are taken. */
void virtio_blk_queue_resume(VirtioBlkQueue *q);

typedef struct VirtioBlkQueueInfo {
    uint16_t size, next_avail, next_used, in_flight, held;
    bool running, broken;
    uint64_t requests, batches, kicks;  /* since start */
} VirtioBlkQueueInfo;
/* Control thread; the figures are a snapshot. */
void virtio_blk_queue_info(VirtioBlkQueue *q, VirtioBlkQueueInfo *info);

#endif
