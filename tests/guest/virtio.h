/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Driver of virtio-blk PCI devices: VIRTIO 1.2 §3.1 (initialization), §4.1 (PCI), §2.7 (split
 * virtqueue), §5.2 (block device).
 */
#ifndef GUEST_VIRTIO_H
#define GUEST_VIRTIO_H

#include <stdbool.h>
#include <stdint.h>
/* The descriptors' wire layout and constants are the kernel's own. */
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>

#include "cpu.h"
#include "params.h"
#include "pci.h"

#define MAX_QUEUES      64
#define NO_VECTOR       0xffff
#define F(bit)          (1ull << (bit))

typedef struct VirtioDev VirtioDev;

typedef struct Vq {
    VirtioDev *dev;
    struct vring_desc *desc;
    struct vring_avail *avail;
    struct vring_used *used;
    volatile uint16_t *used_event;  /* ours to write, for the device to interrupt at */
    volatile uint16_t *avail_event; /* the device's, for us to kick at */
    volatile uint16_t *notify;
    uint16_t index;
    uint16_t size;                  /* a power of two */
    uint16_t avail_idx;             /* next entry to fill */
    uint16_t published;             /* what the device can see */
    uint16_t last_used;             /* next entry to take */
    uint16_t parked_at;             /* last_used when used_event was last moved out of the way */
    bool event_idx;
    bool irq_wanted;
    uint64_t kicks;
    volatile uint64_t *irqs;        /* interrupts taken for this queue's vector */
} Vq;

struct VirtioDev {
    PciFunc pci;
    unsigned index;
    bool transitional;
    volatile struct virtio_pci_common_cfg *common;
    volatile uint8_t *isr;
    volatile uint8_t *config;
    uint32_t config_len;
    volatile uint8_t *notify;
    uint32_t notify_len;
    uint32_t notify_multiplier;
    unsigned msix_cap;              /* 0: no MSI-X capability */
    unsigned msix_vectors;          /* table size */
    volatile uint32_t *msix_table;
    uint64_t offered, accepted;     /* feature bits */
    uint16_t num_queues;
    bool started;
    volatile uint64_t *config_irqs; /* configuration interrupts taken */
    Vq vq[MAX_QUEUES];
    unsigned nvq;                   /* queues set up */
};

/* Find the devices. virtio_dev(i) for i below virtio_count(). */
void virtio_probe(void);
unsigned virtio_count(void);
VirtioDev *virtio_dev(unsigned i);

/* Interrupt vectors are handed out anew for each run. */
void virtio_run_begin(void);

/*
 * Device status register; virtio_reset() waits until the device says that it is reset, and returns
 * false if that takes longer than @timeout_ms.
 */
uint8_t virtio_status(VirtioDev *d);
void virtio_add_status(VirtioDev *d, uint8_t bits);
bool virtio_reset(VirtioDev *d, uint64_t timeout_ms);

/* Reset, acknowledge, read the offered features. */
void virtio_begin(VirtioDev *d, const Params *p);
/* Accept @features & offered; ends the guest if the device does not agree. */
void virtio_negotiate(VirtioDev *d, uint64_t features);
/* The feature bits that @p asks for. */
uint64_t virtio_wanted(const Params *p);
/* Route configuration and queue interrupts (MSI-X or INTx). Before the queues are set up. */
void virtio_setup_irqs(VirtioDev *d, const Params *p, unsigned nqueues);
/* Allocate and enable queue @index. @qsize 0: as large as the device allows. */
Vq *virtio_setup_queue(VirtioDev *d, unsigned index, uint16_t qsize);
void virtio_driver_ok(VirtioDev *d);

/* All of the above: a device ready for requests on @nqueues queues. */
void virtio_start(VirtioDev *d, const Params *p, unsigned nqueues);

/*
 * Device configuration space, read consistently (VIRTIO 1.2 §4.1.4.3, config_generation). Fields
 * whose feature is not offered are 0.
 */
void virtio_read_config(VirtioDev *d, struct virtio_blk_config *c);
uint64_t virtio_capacity(VirtioDev *d);     /* bytes */

/* -- virtqueue -- */

static inline uint16_t vq_used_idx(const Vq *q)
{
    return __atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE);
}

/* Put chain @head in the available ring; the device sees it after vq_publish(). */
static inline void vq_add(Vq *q, uint16_t head)
{
    q->avail->ring[q->avail_idx++ & (q->size - 1)] = head;
}

/* Show the device what was added since the last time, and kick it if it wants that. */
void vq_publish(Vq *q);

/* Tell the device not to interrupt / to interrupt at the next completion. */
void vq_irq_off(Vq *q);
/* True: nothing is waiting in the used ring and the next completion will interrupt. */
bool vq_irq_on(Vq *q);

#endif
