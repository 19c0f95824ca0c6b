/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PCI devices and the bus that they sit on (PCI Local Bus 3.0): configuration
 * space, BARs, INTx, MSI-X.
 *
 * A device type has type_pci_device as its parent and a PciDeviceOps as its
 * class_data. Its realize hook registers BARs and capabilities; afterwards
 * the base puts it on the machine's bus. It never talks to the accelerator about
 * interrupts or doorbells: it writes the eventfd of an MSI-X vector and hands
 * over the eventfds of its doorbells; that these follow masks, messages and
 * moved BARs is done here.
 *
 * Thread: BQL, unless a comment says "any thread".
 */
#ifndef HW_PCI_PCI_H
#define HW_PCI_PCI_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "hw/core/device.h"
#include "hw/core/io-bus.h"
#include "hw/core/machine.h"

typedef struct PciDevice PciDevice;
typedef struct PciMsix PciMsix;

#define PCI_DEVFN_OF(slot, fn) ((uint8_t)((slot) << 3 | (fn)))
#define PCI_DEVFN_AUTO (-1)
#define PCI_CONFIG_SIZE 256
#define PCI_BARS 6

typedef enum PciBarKind {
    PCI_BAR_PIO,
    PCI_BAR_MEM32,
    PCI_BAR_MEM64,              /* takes two BARs */
    PCI_BAR_MEM64_PREFETCH,
} PciBarKind;

typedef struct PciBar {
    PciBarKind kind;
    uint64_t size;              /* power of two; 0: there is none */
    const IoOps *ops;           /* @off counts from the start of the BAR */
    void *opaque;
    uint64_t addr;              /* where it answers; PCI_BAR_UNMAPPED */
    GArray *ioeventfds;         /* the core's */
} PciBar;

#define PCI_BAR_UNMAPPED UINT64_MAX

typedef struct PciDeviceOps {
    uint16_t vendor_id, device_id;
    uint16_t subsystem_vendor_id, subsystem_id;
    uint8_t revision;
    uint32_t class_code;        /* 24 bits: class, subclass, programming interface */

    /* The rest may be NULL. */

    /* Before a read of and after a write to configuration space (the bytes are
     * in dev->config, masks applied). For capabilities that are windows. */
    void (*config_read)(PciDevice *dev, unsigned off, unsigned size);
    void (*config_written)(PciDevice *dev, unsigned off, unsigned size);
    /* The guest switched MSI-X on or off, or bus mastering: look at
     * pci_msix_enabled() and pci_bus_master(). */
    void (*mode_changed)(PciDevice *dev);
    /* System reset. Configuration space is already back to power-on and no BAR
     * is mapped; nothing of the device may be in flight when this returns. */
    void (*reset)(PciDevice *dev);
} PciDeviceOps;

struct PciDevice {
    Device dev;
    int devfn_wanted;           /* property addr=; PCI_DEVFN_AUTO */
    bool multifunction;         /* property */

    /* The core's; owners read. */
    const PciDeviceOps *ops;
    PciBus *bus;                /* NULL: not plugged */
    uint8_t devfn;
    uint8_t config[PCI_CONFIG_SIZE];
    uint8_t config_at_reset[PCI_CONFIG_SIZE];   /* as realize left it */
    uint8_t wmask[PCI_CONFIG_SIZE];     /* bits that the guest may change */
    uint8_t w1c[PCI_CONFIG_SIZE];       /* bits that it clears by writing 1 */
    uint16_t cap_next;                  /* where the next capability may begin */
    PciBar bars[PCI_BARS];
    PciMsix *msix;
    bool irq_level;             /* what the device wants of its INTx pin */
    bool irq_shown;             /* what the bus sees of it */
};

/* Abstract. Properties addr=, multifunction=. */
extern const ObjType type_pci_device;
extern const PropType prop_pci_addr;

/* ---- the device's side, from its realize hook on ---- */

/* In realize. @size: a power of two, 4 to 256 (pio), 16 to 2^47 (memory). */
void pci_bar_add(PciDevice *dev, unsigned bar, PciBarKind kind, uint64_t size,
                 const IoOps *ops, void *opaque);
/* Where @bar answers now, PCI_BAR_UNMAPPED if it doesn't. */
uint64_t pci_bar_addr(const PciDevice *dev, unsigned bar);

/*
 * Add a capability of @len bytes (head of two bytes included), dword-aligned.
 * Returns its offset; there is always room for what our devices have. The
 * first added is the last of the chain.
 */
uint8_t pci_cap_add(PciDevice *dev, uint8_t cap_id, unsigned len);

void pci_config_set16(PciDevice *dev, unsigned off, uint16_t value);
void pci_config_set32(PciDevice *dev, unsigned off, uint32_t value);
uint16_t pci_config_get16(const PciDevice *dev, unsigned off);
uint32_t pci_config_get32(const PciDevice *dev, unsigned off);

/*
 * Guest writes to @bar signal @fd from now on, wherever the BAR is or goes,
 * until pci_ioeventfd_del(). While the accelerator could not take it (or the
 * BAR is at an address where it can't) the write reaches the BAR's handler.
 * @len 0: any length. Returns 0, or -errno if it is mapped and was refused.
 */
int pci_ioeventfd_add(PciDevice *dev, unsigned bar, uint64_t off, unsigned len,
                      bool match, uint64_t data, int fd);
void pci_ioeventfd_del(PciDevice *dev, unsigned bar, uint64_t off, int fd);

/* May it read and write guest memory? Any thread. */
bool pci_bus_master(const PciDevice *dev);

/* ---- INTx ---- */

/* Give it a pin (1: INTA). In realize. */
void pci_irq_pin(PciDevice *dev, uint8_t pin);
/* Level of the pin; the guest's interrupt-disable bit is obeyed. */
void pci_irq_set(PciDevice *dev, bool level);

/* ---- MSI-X (pci/msix.c) ---- */

/* @vectors 1 to 2048; table at 0 of memory BAR @bar, which must be free; the
 * pending bits follow. In realize. */
bool pci_msix_init(PciDevice *dev, unsigned vectors, unsigned bar, GError **errp);
bool pci_msix_enabled(const PciDevice *dev);
unsigned pci_msix_vectors(const PciDevice *dev);    /* 0: has no MSI-X */
/*
 * Somebody is going to raise @vector. Returns an eventfd: writing 1 to it (any
 * thread) raises the vector once it is not masked; the kernel injects without
 * us where it can. -EINVAL: no such vector; -errno. Counted: each use needs
 * one pci_msix_unuse(), after which the fd is not written any more.
 */
int pci_msix_use(PciDevice *dev, unsigned vector);
void pci_msix_unuse(PciDevice *dev, unsigned vector);
/* Write 1 to such an fd. Any thread. */
void pci_msix_raise(int fd);

/* ---- the bus ---- */

/* Addresses that the board leaves to BARs; limit is exclusive. */
typedef struct PciWindow {
    uint64_t base, limit;
} PciWindow;

typedef struct PciBusConfig {
    PciWindow pio, mem32, mem64;
    unsigned first_auto_slot;           /* where addr= isn't given */
    /* Legacy routing: GSI of line (slot + pin - 1) & 3. */
    uint8_t irq_gsi[4];
    /* Byte writes to port 0xCF9, amid the address register; may be NULL. */
    void (*port_cf9)(Machine *m, uint8_t value);
} PciBusConfig;

/* Answers at ports 0xCF8..0xCFF. Sets m->pci. */
PciBus *pci_bus_new(Machine *m, const PciBusConfig *config, GError **errp);
void pci_bus_free(PciBus *bus);
Machine *pci_bus_machine(const PciBus *bus);
const PciBusConfig *pci_bus_config(const PciBus *bus);
PciDevice *pci_bus_device(const PciBus *bus, uint8_t devfn);

/*
 * Take a place on the bus: addr=, or the first free slot. Refused: place
 * taken, or a function beside a function 0 that isn't multifunction=on. What
 * realized devices do by themselves; a board does it for its own.
 */
bool pci_device_plug(PciDevice *dev, PciBus *bus, GError **errp);
void pci_device_unplug(PciDevice *dev);

/* As firmware would: give every BAR an address, switch decoding on, fill in the
 * interrupt lines. After reset, with all devices in place. */
bool pci_bus_assign(PciBus *bus, GError **errp);
/* Power-on state of every function. */
void pci_bus_reset(PciBus *bus);

/* "SLOT" or "SLOT.FN", hexadecimal with or without 0x. */
bool pci_addr_parse(const char *text, int *devfn, GError **errp);
char *pci_addr_format(uint8_t devfn);

#endif
