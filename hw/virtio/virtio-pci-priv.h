/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to hw/virtio: what registers, control and interrupts share. */
#ifndef HW_VIRTIO_VIRTIO_PCI_PRIV_H
#define HW_VIRTIO_VIRTIO_PCI_PRIV_H

#include "hw/virtio/virtio-pci.h"

/* The layout of BAR 4, as stock's, so that people find what they know. */
#define VIRTIO_PCI_BAR_MSIX 1
#define VIRTIO_PCI_BAR 4
#define VIRTIO_PCI_BAR_SIZE 0x4000
#define COMMON_OFF 0x0000
#define ISR_OFF 0x1000
#define DEVICE_OFF 0x2000
#define NOTIFY_OFF 0x3000
#define AREA_SIZE 0x1000
#define NOTIFY_MULT 4                   /* bytes from one doorbell to the next */

#define VIRTIO_MSI_NO_VECTOR 0xffff

/* virtio-pci-regs.c */
extern const IoOps virtio_pci_bar_ops;
void virtio_pci_caps_add(VirtioPci *v);
uint64_t virtio_pci_offered(VirtioPci *v);

/* virtio-pci-irq.c */
void virtio_pci_irq_queue_update(VirtioPci *v, unsigned i);
void virtio_pci_irq_config_update(VirtioPci *v);
void virtio_pci_irq_queue_release(VirtioPci *v, unsigned i);
void virtio_pci_intx_update(void *opaque);

/* virtio-pci.c: have the main thread look at what the driver asked for. */
void virtio_pci_control(VirtioPci *v);
/* The driver wrote 0 to the status: now if no queue is in service, else soon. */
void virtio_pci_reset_request(VirtioPci *v);

#endif
