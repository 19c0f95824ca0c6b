/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Split virtqueue, device side (VIRTIO 1.2 §2.7).
 *
 * Knows guest memory and nothing else: no transport, no event loop. Whoever
 * owns the queue calls it from one thread at a time. The driver on the other
 * side is hostile and runs meanwhile: everything is read from shared memory
 * once, into a private copy, checked, and only then used.
 *
 * A queue that the driver has corrupted is "broken": every call then finds
 * nothing to do until the queue is started again.
 */
#ifndef VIRTIO_VIRTQUEUE_H
#define VIRTIO_VIRTQUEUE_H

#include <glib.h>
#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "virtio/guest-memory.h"

#define VIRTQUEUE_SIZE_MAX 1024         /* entries; a power of two for a split queue */

/* What the driver set up, and the features that it accepted. */
typedef struct VirtQueueConfig {
    uint16_t size;                      /* entries */
    uint64_t desc_gpa;                  /* descriptor table */
    uint64_t avail_gpa;                 /* driver area */
    uint64_t used_gpa;                  /* device area */
    bool event_idx;                     /* VIRTIO_RING_F_EVENT_IDX */
    bool indirect;                      /* VIRTIO_RING_F_INDIRECT_DESC */
    uint16_t next;                      /* available index to start from, and used
                                           index: 0 after a reset */
} VirtQueueConfig;

/* One descriptor chain. The caller gives room in @iov. */
typedef struct VirtQueueElem {
    struct iovec *iov;                  /* device-readable first, then device-writable */
    uint16_t iov_max;
    uint16_t n_out;                     /* device-readable entries of @iov */
    uint16_t n_in;                      /* device-writable ones */
    uint16_t head;                      /* goes back with virtqueue_push() */
} VirtQueueElem;

typedef struct VirtQueue {
    /* The rings, in this process. Written by the driver at any time. */
    const struct vring_desc *desc;
    struct vring_avail *avail;
    struct vring_used *used;
    uint16_t *used_event;               /* in the driver area: when to interrupt */
    uint16_t *avail_event;              /* in the device area: when to kick */

    GuestMemory *mem;                   /* our reference */
    const GuestRegion *last_region;     /* where the last buffer was */

    uint16_t size;
    uint16_t avail_seen;                /* available index as last read */
    uint16_t next_avail;                /* next entry to pop */
    uint16_t next_used;                 /* next entry to push */
    uint16_t published;                 /* used index as the driver sees it */
    uint16_t parked;                    /* avail_event while notifications are off */
    uint16_t in_flight;                 /* popped, not pushed */
    bool event_idx;
    bool indirect;
    bool notify_off;
    bool notify_all;                    /* interrupt at the next publish in any case */
    const char *broken;                 /* why; NULL: the queue is sound */
    uint8_t *busy;                      /* per head: popped, not pushed */
} VirtQueue;

/*
 * Map the rings and start. Errors name the area that is misaligned or not in
 * RAM. @vq is zeroed memory or a stopped queue; it keeps a reference to @mem.
 * Kicks are on.
 */
bool virtqueue_start(VirtQueue *vq, GuestMemory *mem, const VirtQueueConfig *cfg, GError **errp);
/* Nothing may be in flight that is pushed later. */
void virtqueue_stop(VirtQueue *vq);
static inline bool virtqueue_started(const VirtQueue *vq)
{
    return vq->size != 0;
}

/* Is there anything to pop? One load of the line that the driver writes; the
 * acquire pairs with the driver's release of the available index. */
static inline bool virtqueue_pending(VirtQueue *vq)
{
    if (vq->avail_seen != vq->next_avail) {
        return true;
    }
    if (vq->broken != NULL) {
        return false;
    }
    vq->avail_seen = GUINT16_FROM_LE(__atomic_load_n(&vq->avail->idx, __ATOMIC_ACQUIRE));
    return vq->avail_seen != vq->next_avail;
}

/*
 * Take the next chain. 1: @elem is filled in; 0: the queue is empty;
 * -EINVAL: the queue is broken, see vq->broken.
 */
int virtqueue_pop(VirtQueue *vq, VirtQueueElem *elem);

/* Give chain @head back, @len bytes written to it. The driver doesn't see it
 * before virtqueue_publish(). */
void virtqueue_push(VirtQueue *vq, uint16_t head, uint32_t len);

/* Show the driver all that was pushed. True when it wants an interrupt. */
bool virtqueue_publish(VirtQueue *vq);

/*
 * Kicks off: advice to the driver (§2.7.7, §2.7.10). With event index, the
 * event is parked half a turn of the 16-bit index ahead and moved on by
 * virtqueue_pop(), so that the driver never crosses it.
 */
void virtqueue_notify_off(VirtQueue *vq);
/* Kicks on. True when something became available before the driver can have
 * seen this; it must be popped, there may be no kick for it. */
bool virtqueue_notify_on(VirtQueue *vq);

/* Mark the queue broken; the first reason stays. */
void virtqueue_break(VirtQueue *vq, const char *why);

#endif
