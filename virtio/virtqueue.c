/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request path, steps 2 and 6 of 6: take descriptor chains from the available
 * ring straight into an I/O vector; give them back through the used ring.
 * Before: util/aio-poll.c or the ioeventfd. After: virtio/blk-request.c.
 *
 * Set-up lives in virtqueue-setup.c.
 */
#include "virtio/virtqueue.h"

#include <errno.h>

/* The parked event is moved on when the driver is closer to it than this. */
#define PARK_AHEAD 0x8000u
#define PARK_MIN 0x4000u

void virtqueue_break(VirtQueue *vq, const char *why)
{
    if (vq->broken == NULL) {
        vq->broken = why;
        vq->avail_seen = vq->next_avail;    /* nothing is pending any more */
    }
}

/* ---- notifications: kicks from the driver --------------------------- */

static void event_park(VirtQueue *vq)
{
    vq->parked = vq->next_avail + PARK_AHEAD;
    /* Advice only: no order with other accesses is needed. */
    __atomic_store_n(vq->avail_event, GUINT16_TO_LE(vq->parked), __ATOMIC_RELAXED);
}

void virtqueue_notify_off(VirtQueue *vq)
{
    if (vq->notify_off) {
        return;
    }
    vq->notify_off = true;
    if (vq->event_idx) {
        event_park(vq);
    } else {
        __atomic_store_n(&vq->used->flags, GUINT16_TO_LE(VRING_USED_F_NO_NOTIFY),
                         __ATOMIC_RELAXED);
    }
}

bool virtqueue_notify_on(VirtQueue *vq)
{
    vq->notify_off = false;
    /*
     * The store is sequentially consistent with the load of the available
     * index that follows; the driver does the mirror image (publish the index,
     * full barrier, read the event), so one of the two sees the other.
     */
    if (vq->event_idx) {
        __atomic_store_n(vq->avail_event, GUINT16_TO_LE(vq->next_avail), __ATOMIC_SEQ_CST);
    } else {
        __atomic_store_n(&vq->used->flags, 0, __ATOMIC_SEQ_CST);
    }
    if (vq->broken != NULL) {
        return false;
    }
    vq->avail_seen = GUINT16_FROM_LE(__atomic_load_n(&vq->avail->idx, __ATOMIC_SEQ_CST));
    return vq->avail_seen != vq->next_avail;
}

/* ---- step 2: pop ------------------------------------------------------ */

/* A private copy of one descriptor: two loads, each field seen once. */
static inline struct vring_desc desc_read(const struct vring_desc *table, unsigned i)
{
    const uint64_t *w = (const uint64_t *)&table[i];
    uint64_t addr = GUINT64_FROM_LE(__atomic_load_n(&w[0], __ATOMIC_RELAXED));
    uint64_t rest = GUINT64_FROM_LE(__atomic_load_n(&w[1], __ATOMIC_RELAXED));

    return (struct vring_desc) {
        .addr = addr,
        .len = (uint32_t)rest,
        .flags = (uint16_t)(rest >> 32),
        .next = (uint16_t)(rest >> 48),
    };
}

/* The slow part of buffer_map(): another region, or more than one. */
static __attribute__((noinline)) const char *buffer_map_regions(VirtQueue *vq,
                                                                const VirtQueueElem *elem,
                                                                unsigned *n, uint64_t gpa,
                                                                uint32_t len)
{
    while (len > 0) {
        const GuestRegion *r = guest_memory_region(vq->mem, gpa);
        uint64_t part;

        if (r == NULL) {
            return "buffer outside guest RAM";
        }
        if (*n == elem->iov_max) {
            return "chain of more segments than seg_max allows";
        }
        vq->last_region = r;
        part = MIN((uint64_t)len, r->size - (gpa - r->gpa));
        elem->iov[(*n)++] = (struct iovec) { r->host + (gpa - r->gpa), part };
        gpa += part;
        len -= part;
    }
    return NULL;
}

/* Append guest bytes [@gpa, @gpa + @len) to the I/O vector, one entry a region. */
static inline const char *buffer_map(VirtQueue *vq, const VirtQueueElem *elem, unsigned *n,
                                     uint64_t gpa, uint32_t len)
{
    const GuestRegion *r = vq->last_region;
    uint64_t off = gpa - r->gpa;

    /* len - 1 wraps for 0, so one comparison refuses that too. */
    if (G_UNLIKELY(off >= r->size || len - 1 >= r->size - off || *n == elem->iov_max)) {
        return len == 0 ? "descriptor of length zero"
                        : buffer_map_regions(vq, elem, n, gpa, len);
    }
    elem->iov[(*n)++] = (struct iovec) { r->host + off, len };
    return NULL;
}

/* Enter an indirect table (§2.7.5.3): checked and mapped as a whole. */
static const char *indirect_map(const VirtQueue *vq, const struct vring_desc *d,
                                const struct vring_desc **table, unsigned *entries)
{
    if (!vq->indirect) {
        return "indirect descriptor, but the feature wasn't negotiated";
    }
    if (d->flags & VRING_DESC_F_NEXT) {
        return "indirect descriptor with a next descriptor";
    }
    if (d->len == 0 || d->len % sizeof(**table) != 0) {
        return "indirect table whose size isn't a multiple of 16";
    }
    if (d->len / sizeof(**table) > VIRTQUEUE_SIZE_MAX) {
        return "indirect table of too many entries";
    }
    *entries = d->len / sizeof(**table);
    *table = guest_memory_ptr(vq->mem, d->addr, d->len);
    return *table != NULL ? NULL : "indirect table outside guest RAM";
}

/* Follow the chain from @i. NULL, or what is wrong with it. */
static const char *chain_walk(VirtQueue *vq, VirtQueueElem *elem, unsigned i)
{
    const struct vring_desc *table = vq->desc;
    unsigned entries = vq->size;
    unsigned left = entries;            /* more steps than entries: a loop */
    unsigned n = 0, n_out = 0;
    const char *err;

    for (;;) {
        struct vring_desc d = desc_read(table, i);

        if (G_UNLIKELY(d.flags & VRING_DESC_F_INDIRECT)) {
            if (table != vq->desc) {
                return "indirect descriptor inside an indirect table";
            }
            err = indirect_map(vq, &d, &table, &entries);
            if (err != NULL) {
                return err;
            }
            i = 0;
            left = entries;
            continue;
        }
        if (G_UNLIKELY(!(d.flags & VRING_DESC_F_WRITE) && n > n_out)) {
            return "device-readable descriptor after a device-writable one";
        }
        err = buffer_map(vq, elem, &n, d.addr, d.len);
        if (G_UNLIKELY(err != NULL)) {
            return err;
        }
        if (!(d.flags & VRING_DESC_F_WRITE)) {
            n_out = n;
        }
        if (!(d.flags & VRING_DESC_F_NEXT)) {
            break;
        }
        i = d.next;
        if (G_UNLIKELY(i >= entries)) {
            return "next descriptor out of range";
        }
        if (G_UNLIKELY(--left == 0)) {
            return "descriptor loop";
        }
    }
    elem->n_out = n_out;
    elem->n_in = n - n_out;
    return NULL;
}

int virtqueue_pop(VirtQueue *vq, VirtQueueElem *elem)
{
    const char *err = NULL;
    unsigned head;

    if (vq->broken != NULL) {
        return -EINVAL;
    }
    if (!virtqueue_pending(vq)) {
        return 0;
    }
    if ((uint16_t)(vq->avail_seen - vq->next_avail) > vq->size) {
        virtqueue_break(vq, "available index moved by more than the queue's size");
        return -EINVAL;
    }
    head = GUINT16_FROM_LE(__atomic_load_n(&vq->avail->ring[vq->next_avail & (vq->size - 1)],
                                           __ATOMIC_RELAXED));
    if (head >= vq->size) {
        virtqueue_break(vq, "head of a chain out of range");
        return -EINVAL;
    }
    if (vq->busy[head]) {
        virtqueue_break(vq, "chain made available again while in flight");
        return -EINVAL;
    }
    elem->head = head;
    err = chain_walk(vq, elem, head);
    if (err != NULL) {
        virtqueue_break(vq, err);
        return -EINVAL;
    }
    vq->busy[head] = 1;
    vq->in_flight++;
    vq->next_avail++;
    if (vq->notify_off && vq->event_idx
        && (uint16_t)(vq->parked - vq->next_avail) < PARK_MIN) {
        event_park(vq);
    }
    return 1;
}

/* ---- step 6: push, publish --------------------------------------------- */

void virtqueue_push(VirtQueue *vq, uint16_t head, uint32_t len)
{
    struct vring_used_elem *e = &vq->used->ring[vq->next_used & (vq->size - 1)];

    /* Plain stores: published by the index, below. */
    __atomic_store_n(&e->id, GUINT32_TO_LE(head), __ATOMIC_RELAXED);
    __atomic_store_n(&e->len, GUINT32_TO_LE(len), __ATOMIC_RELAXED);
    vq->busy[head] = 0;
    vq->in_flight--;
    vq->next_used++;
}

bool virtqueue_publish(VirtQueue *vq)
{
    uint16_t old = vq->published;
    uint16_t new = vq->next_used;
    bool all = vq->notify_all;

    if (old == new || vq->broken != NULL) {
        return false;
    }
    /*
     * Sequentially consistent: releases the elements and the data to the
     * driver's acquire of the index, and orders the store before the load of
     * what the driver asks for (§2.7.7.2, §2.7.8); the driver's enabling of
     * interrupts is the mirror image.
     */
    __atomic_store_n(&vq->used->idx, GUINT16_TO_LE(new), __ATOMIC_SEQ_CST);
    vq->published = new;
    vq->notify_all = false;
    if (vq->event_idx) {
        uint16_t event = GUINT16_FROM_LE(__atomic_load_n(vq->used_event, __ATOMIC_SEQ_CST));

        return all || vring_need_event(event, new, old);
    }
    return !(GUINT16_FROM_LE(__atomic_load_n(&vq->avail->flags, __ATOMIC_SEQ_CST))
             & VRING_AVAIL_F_NO_INTERRUPT);
}
