/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtqueue set-up: the driver's addresses checked and mapped. The request
 * path is in virtqueue.c.
 */
#include <inttypes.h>
#include <string.h>

#include "util/err.h"
#include "virtio/virtqueue.h"

/* Map one area of the queue; VIRTIO 1.2 §2.7 gives sizes and alignments. */
static void *area_map(const GuestMemory *mem, const char *name, uint64_t gpa, uint64_t len,
                      unsigned align, GError **errp)
{
    void *host;

    if (gpa % align != 0) {
        err_set(errp, "virtqueue: %s at 0x%" PRIx64 " isn't aligned to %u bytes", name, gpa, align);
        return NULL;
    }
    host = guest_memory_ptr(mem, gpa, len);
    if (host == NULL) {
        err_set(errp, "virtqueue: %s at 0x%" PRIx64 " (%" PRIu64 " bytes) isn't in guest RAM",
                name, gpa, len);
    }
    return host;
}

bool virtqueue_start(VirtQueue *vq, GuestMemory *mem, const VirtQueueConfig *cfg, GError **errp)
{
    unsigned n = cfg->size;

    if (n == 0 || n > VIRTQUEUE_SIZE_MAX || (n & (n - 1)) != 0) {
        err_set(errp, "virtqueue: size %u isn't a power of two from 1 to %d", n,
                VIRTQUEUE_SIZE_MAX);
        return false;
    }
    memset(vq, 0, sizeof(*vq));
    /* Each ring ends with the event field, present whether negotiated or not. */
    vq->desc = area_map(mem, "descriptor table", cfg->desc_gpa, n * sizeof(struct vring_desc),
                        16, errp);
    if (vq->desc == NULL) {
        return false;
    }
    vq->avail = area_map(mem, "driver area", cfg->avail_gpa, 4 + n * 2 + 2, 2, errp);
    if (vq->avail == NULL) {
        return false;
    }
    vq->used = area_map(mem, "device area", cfg->used_gpa,
                        4 + n * sizeof(struct vring_used_elem) + 2, 4, errp);
    if (vq->used == NULL) {
        return false;
    }
    vq->used_event = &vq->avail->ring[n];
    vq->avail_event = (uint16_t *)&vq->used->ring[n];
    vq->mem = guest_memory_ref(mem);
    vq->last_region = &vq->mem->regions[0];
    vq->event_idx = cfg->event_idx;
    vq->indirect = cfg->indirect;
    vq->avail_seen = vq->next_avail = cfg->next;
    vq->next_used = vq->published = cfg->next;
    vq->notify_all = true;
    vq->busy = g_malloc0(n);
    vq->size = n;
    virtqueue_notify_on(vq);
    return true;
}

void virtqueue_stop(VirtQueue *vq)
{
    g_free(vq->busy);
    guest_memory_unref(vq->mem);
    memset(vq, 0, sizeof(*vq));
}
