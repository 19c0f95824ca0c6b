/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/pci_regs.h>

#include "cpu.h"
#include "mem.h"
#include "pci.h"

#define CONFIG_ADDRESS 0xcf8
#define CONFIG_DATA    0xcfc
#define MAX_CAPS       48 /* as many as fit: a chain that is longer is a loop */

static uint16_t config_select(const PciFunc *f, unsigned off)
{
    outl(CONFIG_ADDRESS, 1u << 31 | f->bus << 16 | f->slot << 11 | f->fn << 8 | (off & 0xfc));
    return CONFIG_DATA + (off & 3);
}

uint8_t pci_read8(const PciFunc *f, unsigned off)
{
    return inb(config_select(f, off));
}

uint16_t pci_read16(const PciFunc *f, unsigned off)
{
    return inw(config_select(f, off));
}

uint32_t pci_read32(const PciFunc *f, unsigned off)
{
    return inl(config_select(f, off));
}

void pci_write16(const PciFunc *f, unsigned off, uint16_t v)
{
    outw(config_select(f, off), v);
}

void pci_write32(const PciFunc *f, unsigned off, uint32_t v)
{
    outl(config_select(f, off), v);
}

static void scan_bus(unsigned bus, unsigned depth, void (*found)(const PciFunc *f))
{
    for (unsigned devfn = 0; devfn < 256; devfn++) {
        PciFunc f = { .bus = bus, .slot = devfn >> 3, .fn = devfn & 7 };
        uint32_t id = pci_read32(&f, PCI_VENDOR_ID);
        uint8_t type, secondary;

        if ((id & 0xffff) == 0xffff) {
            devfn |= f.fn == 0 ? 7 : 0;     /* no function 0: nothing in this slot */
            continue;
        }
        f.vendor = id;
        f.device = id >> 16;
        type = pci_read8(&f, PCI_HEADER_TYPE);
        found(&f);
        if ((type & 0x7f) == PCI_HEADER_TYPE_BRIDGE && depth < 8) {
            secondary = pci_read8(&f, PCI_SECONDARY_BUS);
            if (secondary > bus) {
                scan_bus(secondary, depth + 1, found);
            }
        }
        if (f.fn == 0 && !(type & 0x80)) {
            devfn |= 7;
        }
    }
}

void pci_scan(void (*found)(const PciFunc *f))
{
    scan_bus(0, 0, found);
}

volatile void *pci_map_bar(const PciFunc *f, unsigned bar, uint64_t offset, uint64_t len)
{
    unsigned reg = PCI_BASE_ADDRESS_0 + 4 * bar;
    uint32_t low;
    uint64_t addr;

    if (bar > 5) {
        return NULL;
    }
    low = pci_read32(f, reg);
    if (low & PCI_BASE_ADDRESS_SPACE_IO) {
        return NULL;
    }
    addr = low & ~15u;
    if ((low & PCI_BASE_ADDRESS_MEM_TYPE_MASK) == PCI_BASE_ADDRESS_MEM_TYPE_64 && bar < 5) {
        addr |= (uint64_t)pci_read32(f, reg + 4) << 32;
    }
    if (addr == 0) {
        return NULL;
    }
    map_phys(addr + offset, len);
    return (volatile void *)(addr + offset);
}

unsigned pci_next_cap(const PciFunc *f, unsigned after, uint8_t id)
{
    unsigned at;

    if (after == 0 && !(pci_read16(f, PCI_STATUS) & PCI_STATUS_CAP_LIST)) {
        return 0;
    }
    at = pci_read8(f, after == 0 ? PCI_CAPABILITY_LIST : after + 1);
    for (unsigned n = 0; at >= 0x40 && n < MAX_CAPS; n++) {
        if (pci_read8(f, at) == id) {
            return at;
        }
        at = pci_read8(f, at + 1);
    }
    return 0;
}
