/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BARs: where a device's registers answer, and the doorbells that move along.
 */
#include <assert.h>
#include <linux/pci_regs.h>

#include "pci-internal.h"
#include "util/err.h"

static unsigned bar_reg(unsigned bar)
{
    return PCI_BASE_ADDRESS_0 + bar * 4;
}

static bool bar_is_64(const PciBar *b)
{
    return b->kind == PCI_BAR_MEM64 || b->kind == PCI_BAR_MEM64_PREFETCH;
}

static uint32_t bar_type_bits(const PciBar *b)
{
    switch (b->kind) {
    case PCI_BAR_PIO:
        return PCI_BASE_ADDRESS_SPACE_IO;
    case PCI_BAR_MEM32:
        return PCI_BASE_ADDRESS_MEM_TYPE_32;
    case PCI_BAR_MEM64:
        return PCI_BASE_ADDRESS_MEM_TYPE_64;
    case PCI_BAR_MEM64_PREFETCH:
        return PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
    }
    return 0;
}

static bool bar_size_ok(PciBarKind kind, uint64_t size)
{
    if ((size & (size - 1)) != 0) {
        return false;
    }
    return kind == PCI_BAR_PIO ? size >= 4 && size <= 256 :
           kind == PCI_BAR_MEM32 ? size >= 16 && size <= 1ULL << 31 :
           size >= 16 && size <= 1ULL << 47;
}

void pci_bar_add(PciDevice *dev, unsigned bar, PciBarKind kind, uint64_t size,
                 const IoOps *ops, void *opaque)
{
    PciBar *b = &dev->bars[bar];
    uint64_t mask = ~(size - 1);

    assert(bar < PCI_BARS && b->size == 0 && bar_size_ok(kind, size));
    *b = (PciBar) {
        .kind = kind, .size = size, .ops = ops, .opaque = opaque, .addr = PCI_BAR_UNMAPPED,
        .ioeventfds = g_array_new(false, false, sizeof(PciIoEventFd)),
    };
    pci_config_set32(dev, bar_reg(bar), bar_type_bits(b));
    for (unsigned i = 0; i < 4; i++) {
        dev->wmask[bar_reg(bar) + i] = mask >> (8 * i);
    }
    if (bar_is_64(b)) {
        assert(bar + 1 < PCI_BARS && dev->bars[bar + 1].size == 0);
        for (unsigned i = 0; i < 4; i++) {
            dev->wmask[bar_reg(bar + 1) + i] = mask >> (32 + 8 * i);
        }
    }
}

uint64_t pci_bar_addr(const PciDevice *dev, unsigned bar)
{
    return dev->bars[bar].addr;
}

void pci_bar_set_addr(PciDevice *dev, unsigned bar, uint64_t addr)
{
    const PciBar *b = &dev->bars[bar];

    pci_config_set32(dev, bar_reg(bar), (uint32_t)addr | bar_type_bits(b));
    if (bar_is_64(b)) {
        pci_config_set32(dev, bar_reg(bar + 1), addr >> 32);
    }
}

/* Where the registers say that it answers. */
static uint64_t bar_wanted(const PciDevice *dev, unsigned bar)
{
    const PciBar *b = &dev->bars[bar];
    uint16_t cmd = pci_config_get16(dev, PCI_COMMAND);
    uint64_t addr = pci_config_get32(dev, bar_reg(bar)) & ~(uint64_t)(b->size - 1);

    if (b->kind == PCI_BAR_PIO) {
        addr &= 0xffffffff;
        return (cmd & PCI_COMMAND_IO) && addr != 0 && addr + b->size <= 0x10000 ?
               addr : PCI_BAR_UNMAPPED;
    }
    if (bar_is_64(b)) {
        addr |= (uint64_t)pci_config_get32(dev, bar_reg(bar + 1)) << 32;
    }
    addr &= ~(b->size - 1);
    /* all ones is what sizing leaves behind, not a place */
    return (cmd & PCI_COMMAND_MEMORY) && addr != 0 && addr + b->size - 1 > addr &&
           addr + b->size <= (bar_is_64(b) ? 1ULL << 52 : 0xffffffffULL) ?
           addr : PCI_BAR_UNMAPPED;
}

static IoBus *bar_bus(const PciDevice *dev, const PciBar *b)
{
    Machine *m = dev->bus->machine;

    return b->kind == PCI_BAR_PIO ? m->pio : m->mmio;
}

static VmIoEventFd doorbell_at(const PciBar *b, const PciIoEventFd *d)
{
    VmIoEventFd ev = d->ev;

    ev.space = b->kind == PCI_BAR_PIO ? VM_PIO : VM_MMIO;
    ev.addr += b->addr;
    return ev;
}

static int doorbell_on(PciDevice *dev, const PciBar *b, PciIoEventFd *d)
{
    Vm *vm = dev->bus->machine->vm;
    VmIoEventFd ev = doorbell_at(b, d);
    int ret = vm->ops->ioeventfd_add(vm, &ev);

    d->active = ret == 0;
    return ret;
}

static void doorbell_off(PciDevice *dev, const PciBar *b, PciIoEventFd *d)
{
    Vm *vm = dev->bus->machine->vm;
    VmIoEventFd ev = doorbell_at(b, d);

    if (d->active) {
        vm->ops->ioeventfd_del(vm, &ev);
        d->active = false;
    }
}

static void bar_unmap(PciDevice *dev, PciBar *b)
{
    for (unsigned i = 0; i < b->ioeventfds->len; i++) {
        doorbell_off(dev, b, &g_array_index(b->ioeventfds, PciIoEventFd, i));
    }
    io_bus_remove(bar_bus(dev, b), b->addr);
    b->addr = PCI_BAR_UNMAPPED;
}

static bool ram_overlaps(const Machine *m, uint64_t addr, uint64_t size)
{
    for (unsigned i = 0; i < m->n_ram; i++) {
        if (addr < m->ram[i].gpa + m->ram[i].size && m->ram[i].gpa < addr + size) {
            return true;
        }
    }
    return false;
}

/* Over RAM or another device the guest gets what was there before. */
static void bar_map(PciDevice *dev, PciBar *b, uint64_t addr)
{
    if ((b->kind != PCI_BAR_PIO && ram_overlaps(dev->bus->machine, addr, b->size)) ||
        !io_bus_add(bar_bus(dev, b), addr, b->size, b->ops, b->opaque, NULL)) {
        return;
    }
    b->addr = addr;
    for (unsigned i = 0; i < b->ioeventfds->len; i++) {
        /* refused: the write reaches the handler instead */
        doorbell_on(dev, b, &g_array_index(b->ioeventfds, PciIoEventFd, i));
    }
}

void pci_bars_update(PciDevice *dev)
{
    for (unsigned i = 0; i < PCI_BARS; i++) {
        PciBar *b = &dev->bars[i];
        uint64_t wanted;

        if (b->size == 0) {
            continue;
        }
        wanted = dev->bus != NULL ? bar_wanted(dev, i) : PCI_BAR_UNMAPPED;
        if (b->addr != wanted && b->addr != PCI_BAR_UNMAPPED) {
            bar_unmap(dev, b);
        }
        if (b->addr != wanted) {
            bar_map(dev, b, wanted);
        }
    }
}

void pci_bars_free(PciDevice *dev)
{
    for (unsigned i = 0; i < PCI_BARS; i++) {
        PciBar *b = &dev->bars[i];

        if (b->size != 0) {
            assert(b->addr == PCI_BAR_UNMAPPED);
            g_array_unref(b->ioeventfds);
            b->size = 0;
        }
    }
}

int pci_ioeventfd_add(PciDevice *dev, unsigned bar, uint64_t off, unsigned len,
                      bool match, uint64_t data, int fd)
{
    PciBar *b = &dev->bars[bar];
    PciIoEventFd d = {
        .ev = { .addr = off, .len = len, .match = match, .data = data, .fd = fd },
    };
    int ret = 0;

    assert(b->size != 0 && off + len <= b->size);
    if (b->addr != PCI_BAR_UNMAPPED) {
        ret = doorbell_on(dev, b, &d);
    }
    if (ret == 0) {
        g_array_append_val(b->ioeventfds, d);
    }
    return ret;
}

void pci_ioeventfd_del(PciDevice *dev, unsigned bar, uint64_t off, int fd)
{
    PciBar *b = &dev->bars[bar];

    for (unsigned i = 0; i < b->ioeventfds->len; i++) {
        PciIoEventFd *d = &g_array_index(b->ioeventfds, PciIoEventFd, i);

        if (d->ev.addr == off && d->ev.fd == fd) {
            doorbell_off(dev, b, d);
            g_array_remove_index(b->ioeventfds, i);
            return;
        }
    }
    g_assert_not_reached();
}
