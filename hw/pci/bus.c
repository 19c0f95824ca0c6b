/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bus: places, configuration mechanism #1 (PCI Local Bus 3.0 §3.2.2.3.2),
 * and what firmware would do to it at power-on.
 */
#include <assert.h>
#include <linux/pci_regs.h>

#include "pci-internal.h"
#include "util/err.h"

enum {
    PORT_ADDRESS = 0xcf8,
    PORT_DATA = 0xcfc,
};

#define ADDRESS_ENABLE (1u << 31)

/* ---- 0xCF8, 0xCFC ---- */

static uint64_t address_read(void *opaque, uint64_t off, unsigned size)
{
    PciBus *bus = opaque;

    if (off == 1 && size == 1) {
        return 0;               /* 0xCF9 */
    }
    return size == 4 ? bus->config_address : UINT64_MAX;
}

/* Only whole dwords reach the register; 0xCF9 belongs to another device. */
static void address_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    PciBus *bus = opaque;

    if (size == 4) {
        bus->config_address = value & 0x80fffffc;
    } else if (off <= 1 && off + size > 1 && bus->config.port_cf9 != NULL) {
        bus->config.port_cf9(bus->machine, value >> (8 * (1 - off)));
    }
}

/* The function that the address register selects, or NULL. */
static PciDevice *selected(const PciBus *bus)
{
    uint32_t a = bus->config_address;

    if ((a & ADDRESS_ENABLE) == 0 || (a >> 16 & 0xff) != 0) {
        return NULL;
    }
    return bus->devices[a >> 8 & 0xff];
}

static uint64_t data_read(void *opaque, uint64_t off, unsigned size)
{
    PciBus *bus = opaque;
    PciDevice *dev = selected(bus);

    if (dev == NULL || off + size > 4) {
        return UINT64_MAX;
    }
    return pci_config_read(dev, (bus->config_address & 0xfc) + off, size);
}

static void data_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    PciBus *bus = opaque;
    PciDevice *dev = selected(bus);

    if (dev != NULL && off + size <= 4) {
        pci_config_write(dev, (bus->config_address & 0xfc) + off, value, size);
    }
}

static const IoOps address_ops = {
    .name = "pci-conf-idx", .read = address_read, .write = address_write, .max_size = 4,
};
static const IoOps data_ops = {
    .name = "pci-conf-data", .read = data_read, .write = data_write, .max_size = 4,
};

/* ---- life ---- */

PciBus *pci_bus_new(Machine *m, const PciBusConfig *config, GError **errp)
{
    PciBus *bus = g_new0(PciBus, 1);

    bus->machine = m;
    bus->config = *config;
    if (!io_bus_add(m->pio, PORT_ADDRESS, 4, &address_ops, bus, errp)) {
        g_free(bus);
        return NULL;
    }
    if (!io_bus_add(m->pio, PORT_DATA, 4, &data_ops, bus, errp)) {
        io_bus_remove(m->pio, PORT_ADDRESS);
        g_free(bus);
        return NULL;
    }
    m->pci = bus;
    return bus;
}

void pci_bus_free(PciBus *bus)
{
    if (bus == NULL) {
        return;
    }
    io_bus_remove(bus->machine->pio, PORT_ADDRESS);
    io_bus_remove(bus->machine->pio, PORT_DATA);
    bus->machine->pci = NULL;
    g_free(bus);
}

Machine *pci_bus_machine(const PciBus *bus)
{
    return bus->machine;
}

const PciBusConfig *pci_bus_config(const PciBus *bus)
{
    return &bus->config;
}

PciDevice *pci_bus_device(const PciBus *bus, uint8_t devfn)
{
    return bus->devices[devfn];
}

void pci_bus_remap(PciBus *bus)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(bus->devices); i++) {
        if (bus->devices[i] != NULL) {
            pci_bars_update(bus->devices[i]);
        }
    }
}

static bool slot_empty(const PciBus *bus, unsigned slot)
{
    for (unsigned fn = 0; fn < PCI_FUNCTIONS; fn++) {
        if (bus->devices[PCI_DEVFN_OF(slot, fn)] != NULL) {
            return false;
        }
    }
    return true;
}

static int first_free(const PciBus *bus)
{
    for (unsigned slot = bus->config.first_auto_slot; slot < PCI_SLOTS; slot++) {
        if (slot_empty(bus, slot)) {
            return PCI_DEVFN_OF(slot, 0);
        }
    }
    return -1;
}

/*
 * Functions above 0 are looked for only when function 0 says that there are
 * several (PCI Local Bus 3.0 §6.2.1). A function 0 that comes later has to say so.
 */
static bool functions_agree(const PciBus *bus, const PciDevice *dev, int devfn, GError **errp)
{
    unsigned slot = devfn >> 3;
    const PciDevice *first = bus->devices[PCI_DEVFN_OF(slot, 0)];

    if ((devfn & 7) != 0 && first != NULL && !first->multifunction) {
        err_set(errp, "'%s' at %02x.%x: '%s' at %02x.0 is there without multifunction=on",
                device_name(&dev->dev), slot, devfn & 7, device_name(&first->dev), slot);
        return false;
    }
    if ((devfn & 7) == 0 && !dev->multifunction && !slot_empty(bus, slot)) {
        err_set(errp, "'%s' at %02x.0 needs multifunction=on: other functions of slot %02x are "
                "taken", device_name(&dev->dev), slot, slot);
        return false;
    }
    return true;
}

bool pci_device_plug(PciDevice *dev, PciBus *bus, GError **errp)
{
    int devfn = dev->devfn_wanted;

    if (devfn == PCI_DEVFN_AUTO) {
        devfn = first_free(bus);
        if (devfn < 0) {
            err_set(errp, "no free slot on the PCI bus for '%s'", device_name(&dev->dev));
            return false;
        }
    }
    if (bus->devices[devfn] != NULL) {
        err_set(errp, "PCI address %02x.%x of '%s' is taken by '%s'", devfn >> 3, devfn & 7,
                device_name(&dev->dev), device_name(&bus->devices[devfn]->dev));
        return false;
    }
    if (!functions_agree(bus, dev, devfn, errp)) {
        return false;
    }
    dev->devfn = devfn;
    dev->devfn_wanted = devfn;
    dev->bus = bus;
    bus->devices[devfn] = dev;
    return true;
}

void pci_device_unplug(PciDevice *dev)
{
    if (dev->bus == NULL) {
        return;
    }
    dev->irq_level = false;
    pci_irq_update(dev);
    pci_config_set16(dev, PCI_COMMAND, 0);
    pci_bars_update(dev);
    pci_msix_reset(dev);
    dev->bus->devices[dev->devfn] = NULL;
    dev->bus = NULL;
}

/* ---- firmware's part ---- */

typedef struct BarWant {
    PciDevice *dev;
    unsigned bar;
} BarWant;


/* Large ones first, so that alignment wastes nothing. */
static gint bar_want_cmp(gconstpointer a, gconstpointer b)
{
    const BarWant *x = a;
    const BarWant *y = b;
    uint64_t sx = x->dev->bars[x->bar].size;
    uint64_t sy = y->dev->bars[y->bar].size;

    if (sx != sy) {
        return sx > sy ? -1 : 1;
    }
    return (int)(x->dev->devfn * PCI_BARS + x->bar) - (int)(y->dev->devfn * PCI_BARS + y->bar);
}

/* Take an aligned piece of @win; false: it has no such piece. */
static bool window_take(PciWindow *win, uint64_t size, uint64_t *addr)
{
    *addr = (win->base + size - 1) & ~(size - 1);
    if (*addr < win->base || *addr >= win->limit || size > win->limit - *addr) {
        return false;
    }
    win->base = *addr + size;
    return true;
}

/* Below 4 GiB as long as there is room, for software that doesn't look higher. */
static bool bar_assign(BarWant *w, PciBusConfig *room, GError **errp)
{
    const PciBar *b = &w->dev->bars[w->bar];
    bool is_64 = b->kind == PCI_BAR_MEM64 || b->kind == PCI_BAR_MEM64_PREFETCH;
    uint64_t addr;

    if (!window_take(b->kind == PCI_BAR_PIO ? &room->pio : &room->mem32, b->size, &addr) &&
        !(is_64 && window_take(&room->mem64, b->size, &addr))) {
        err_set(errp, "no room for BAR %u of '%s' (0x%" G_GINT64_MODIFIER "x bytes)", w->bar,
                device_name(&w->dev->dev), b->size);
        return false;
    }
    pci_bar_set_addr(w->dev, w->bar, addr);
    return true;
}

bool pci_bus_assign(PciBus *bus, GError **errp)
{
    g_autoptr(GArray) wants = g_array_new(false, false, sizeof(BarWant));
    PciBusConfig room = bus->config;

    for (unsigned i = 0; i < G_N_ELEMENTS(bus->devices); i++) {
        PciDevice *dev = bus->devices[i];

        for (unsigned bar = 0; dev != NULL && bar < PCI_BARS; bar++) {
            BarWant w = { dev, bar };

            if (dev->bars[bar].size != 0) {
                g_array_append_val(wants, w);
            }
        }
    }
    g_array_sort(wants, bar_want_cmp);
    for (unsigned i = 0; i < wants->len; i++) {
        if (!bar_assign(&g_array_index(wants, BarWant, i), &room, errp)) {
            return false;
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(bus->devices); i++) {
        PciDevice *dev = bus->devices[i];
        int gsi;

        if (dev == NULL) {
            continue;
        }
        gsi = pci_irq_gsi(dev);
        if (gsi >= 0) {
            pci_config_write(dev, PCI_INTERRUPT_LINE, gsi, 1);
        }
        pci_config_write(dev, PCI_COMMAND, PCI_COMMAND_IO | PCI_COMMAND_MEMORY, 2);
    }
    return true;
}

void pci_bus_reset(PciBus *bus)
{
    bus->config_address = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(bus->devices); i++) {
        if (bus->devices[i] != NULL) {
            pci_device_reset(bus->devices[i]);
        }
    }
}
