/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI configuration through ports 0xcf8 and 0xcfc. */
#ifndef GUEST_PCI_H
#define GUEST_PCI_H

#include <stdint.h>

typedef struct PciFunc {
    uint8_t bus, slot, fn;
    uint16_t vendor, device;
} PciFunc;

uint8_t pci_read8(const PciFunc *f, unsigned off);
uint16_t pci_read16(const PciFunc *f, unsigned off);
uint32_t pci_read32(const PciFunc *f, unsigned off);
void pci_write16(const PciFunc *f, unsigned off, uint16_t v);
void pci_write32(const PciFunc *f, unsigned off, uint32_t v);

/* Call @found for every function, bridges' secondary buses included, in bus, slot, function
 * order. */
void pci_scan(void (*found)(const PciFunc *f));

/* Address in a memory BAR, mapped for @len bytes; NULL if the BAR is I/O, unset or not there. */
volatile void *pci_map_bar(const PciFunc *f, unsigned bar, uint64_t offset, uint64_t len);

/* Offset of the next capability @id after @after (0: the first); 0 if there is none. */
unsigned pci_next_cap(const PciFunc *f, unsigned after, uint8_t id);

#endif
