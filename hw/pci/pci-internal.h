/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the files of hw/pci. BQL.
 */
#ifndef HW_PCI_PCI_INTERNAL_H
#define HW_PCI_PCI_INTERNAL_H

#include <pthread.h>

#include "hw/pci/pci.h"

#define PCI_SLOTS 32
#define PCI_FUNCTIONS 8
#define PCI_LINES 4

struct PciBus {
    Machine *machine;
    PciBusConfig config;
    PciDevice *devices[PCI_SLOTS * PCI_FUNCTIONS];
    uint32_t config_address;            /* port 0xCF8 */
    unsigned line_count[PCI_LINES];     /* devices that hold it up */
};

/* A doorbell: see pci_ioeventfd_add(). */
typedef struct PciIoEventFd {
    VmIoEventFd ev;                     /* addr: offset in the BAR */
    bool active;                        /* the accelerator has it */
} PciIoEventFd;

/* bus.c: look at all BARs again, after one moved */
void pci_bus_remap(PciBus *bus);

/* device.c: what the guest sees and does in configuration space */
uint32_t pci_config_read(PciDevice *dev, unsigned off, unsigned size);
void pci_config_write(PciDevice *dev, unsigned off, uint32_t value, unsigned size);
void pci_device_reset(PciDevice *dev);

/* bar.c */
void pci_bars_update(PciDevice *dev);   /* follow the command and BAR registers */
void pci_bars_free(PciDevice *dev);
/* Value of a BAR register for @addr, and the reverse. */
void pci_bar_set_addr(PciDevice *dev, unsigned bar, uint64_t addr);

/* irq.c */
void pci_irq_update(PciDevice *dev);
/* Its GSI, or -1 without a pin. */
int pci_irq_gsi(const PciDevice *dev);

/* msix.c: after a write to the command register or the capability */
void pci_msix_update(PciDevice *dev);
void pci_msix_reset(PciDevice *dev);
void pci_msix_free(PciDevice *dev);
/* Is [off, off + size) the message control register? */
bool pci_msix_control_hit(const PciDevice *dev, unsigned off, unsigned size);

#endif
