/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The driver's side of a split virtqueue (VIRTIO 1.2 §2.7). */
#include "console.h"
#include "mem.h"
#include "virtio.h"

/*
 * Half a turn of the 16-bit index: no completion gets there before it is moved on, which is done
 * only now and then, since the device reads that cache line for each completion.
 */
#define PARKED       0x8000
#define PARKED_MOVE  0x2000

static void queue_address(VirtioDev *d, const Vq *q)
{
    volatile struct virtio_pci_common_cfg *c = d->common;

    c->queue_desc_lo = (uintptr_t)q->desc;
    c->queue_desc_hi = (uintptr_t)q->desc >> 32;
    c->queue_avail_lo = (uintptr_t)q->avail;
    c->queue_avail_hi = (uintptr_t)q->avail >> 32;
    c->queue_used_lo = (uintptr_t)q->used;
    c->queue_used_hi = (uintptr_t)q->used >> 32;
}

Vq *virtio_setup_queue(VirtioDev *d, unsigned index, uint16_t qsize)
{
    volatile struct virtio_pci_common_cfg *c = d->common;
    Vq *q = &d->vq[index];
    volatile uint64_t *irqs = q->irqs;
    uint16_t max;

    memset(q, 0, sizeof(*q));
    c->queue_select = index;
    max = c->queue_size;
    if (max == 0 || qsize > max || (qsize & (qsize - 1))) {
        fail_num("no such queue, or its size is not possible, largest", max);
    }
    q->dev = d;
    q->irqs = irqs;
    q->index = index;
    q->size = qsize != 0 ? qsize : max;
    if (q->size != max) {
        c->queue_size = q->size;
    }
    q->desc = mem_alloc(q->size * sizeof(q->desc[0]), 4096);
    q->avail = mem_alloc(6 + 2 * q->size, 4096);
    q->used = mem_alloc(6 + 8 * q->size, 4096);
    q->used_event = &q->avail->ring[q->size];
    q->avail_event = (volatile uint16_t *)&q->used->ring[q->size];
    q->event_idx = d->accepted & F(VIRTIO_RING_F_EVENT_IDX);
    q->notify = (volatile uint16_t *)(d->notify + c->queue_notify_off * d->notify_multiplier);
    vq_irq_off(q);
    queue_address(d, q);
    c->queue_enable = 1;
    d->nvq = MAX(d->nvq, index + 1);
    return q;
}

void vq_publish(Vq *q)
{
    uint16_t old = q->published;
    bool kick;

    if (q->avail_idx == old) {
        return;
    }
    /* Release: the entries and descriptors are visible before the index that announces them. */
    __atomic_store_n(&q->avail->idx, q->avail_idx, __ATOMIC_RELEASE);
    q->published = q->avail_idx;
    /* Pairs with the device's barrier between asking for kicks and its last look at the index. */
    full_barrier();
    if (q->event_idx) {
        kick = vring_need_event(*q->avail_event, q->avail_idx, old);
    } else {
        kick = !(*(volatile uint16_t *)&q->used->flags & VRING_USED_F_NO_NOTIFY);
    }
    if (kick) {
        *q->notify = q->index;
        q->kicks++;
    }
    if (!q->irq_wanted && (uint16_t)(q->last_used - q->parked_at) > PARKED_MOVE) {
        vq_irq_off(q);
    }
}

void vq_irq_off(Vq *q)
{
    q->irq_wanted = false;
    q->parked_at = q->last_used;
    if (q->event_idx) {
        *q->used_event = q->last_used + PARKED;
    } else {
        *(volatile uint16_t *)&q->avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
    }
}

bool vq_irq_on(Vq *q)
{
    q->irq_wanted = true;
    if (q->event_idx) {
        *q->used_event = q->last_used;
    } else {
        *(volatile uint16_t *)&q->avail->flags = 0;
    }
    /* Pairs with the device's barrier between publishing the used index and this look at our
     * wish. */
    full_barrier();
    return vq_used_idx(q) == q->last_used;
}
