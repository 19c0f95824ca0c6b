/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MSI-X (PCI Local Bus 3.0 §6.8.2). Table and pending bits are kept here; each
 * vector in use has an eventfd, which is attached to the accelerator while the
 * guest lets the vector through. What is signalled meanwhile stays in the
 * eventfd: that is the pending bit, and attaching delivers it.
 */
#include <assert.h>
#include <errno.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pci-internal.h"
#include "util/err.h"

#define VECTORS_MAX 2048
#define ENTRY_SIZE PCI_MSIX_ENTRY_SIZE
#define BAR_SIZE_MIN 4096
#define PBA_OFFSET_MIN 0x800

typedef struct Vector {
    unsigned uses;
    int fd;                 /* while in use */
    int gsi;                /* of its route, -1: none yet */
    VmMsi routed;           /* what the route sends */
    bool attached;          /* the fd raises the GSI */
} Vector;

struct PciMsix {
    unsigned n;
    unsigned bar;
    unsigned pba_offset;
    uint8_t cap;            /* offset of the capability */
    bool broken;            /* the accelerator refused; said so once */
    uint8_t *table;
    Vector *vectors;
};

static uint32_t table_get(const PciMsix *x, unsigned off)
{
    const uint8_t *p = x->table + off;

    return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static void table_set(PciMsix *x, unsigned off, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        x->table[off + i] = value >> (8 * i);
    }
}

static VmMsi vector_message(const PciMsix *x, unsigned v)
{
    unsigned off = v * ENTRY_SIZE;

    return (VmMsi) {
        .addr = table_get(x, off + PCI_MSIX_ENTRY_LOWER_ADDR) |
                (uint64_t)table_get(x, off + PCI_MSIX_ENTRY_UPPER_ADDR) << 32,
        .data = table_get(x, off + PCI_MSIX_ENTRY_DATA),
    };
}

static uint16_t msix_control(const PciDevice *dev)
{
    return pci_config_get16(dev, dev->msix->cap + PCI_MSIX_FLAGS);
}

static bool vector_open(const PciDevice *dev, unsigned v)
{
    const PciMsix *x = dev->msix;
    uint16_t control = msix_control(dev);
    uint32_t entry = table_get(x, v * ENTRY_SIZE + PCI_MSIX_ENTRY_VECTOR_CTRL);

    return dev->bus != NULL && (control & PCI_MSIX_FLAGS_ENABLE) &&
           !(control & PCI_MSIX_FLAGS_MASKALL) && !(entry & PCI_MSIX_ENTRY_CTRL_MASKBIT) &&
           pci_bus_master(dev) && x->vectors[v].uses > 0;
}

/* Make the route send @msg. 0 or -errno. */
static int vector_route(PciDevice *dev, Vector *vec, const VmMsi *msg)
{
    Vm *vm = dev->bus->machine->vm;
    int ret;

    if (vec->gsi >= 0 && vec->routed.addr == msg->addr && vec->routed.data == msg->data) {
        return 0;
    }
    if (vec->gsi >= 0) {
        ret = vm->ops->msi_route_update(vm, vec->gsi, msg);
    } else {
        ret = vm->ops->msi_route_add(vm, msg);
        if (ret >= 0) {
            vec->gsi = ret;
            ret = 0;
        }
    }
    if (ret == 0) {
        vec->routed = *msg;
    }
    return ret;
}

static void vector_detach(PciDevice *dev, Vector *vec)
{
    Vm *vm = dev->bus->machine->vm;

    if (vec->attached) {
        vm->ops->irqfd_del(vm, vec->gsi, vec->fd);
        vec->attached = false;
    }
}

static void vector_sync(PciDevice *dev, unsigned v)
{
    PciMsix *x = dev->msix;
    Vector *vec = &x->vectors[v];
    VmMsi msg;
    Vm *vm;
    int ret;

    if (!vector_open(dev, v)) {
        if (vec->attached) {
            vector_detach(dev, vec);
        }
        return;
    }
    vm = dev->bus->machine->vm;
    msg = vector_message(x, v);
    ret = vector_route(dev, vec, &msg);
    if (ret == 0 && !vec->attached) {
        ret = vm->ops->irqfd_add(vm, vec->gsi, vec->fd, -1);
        vec->attached = ret == 0;
    }
    if (ret < 0 && !x->broken) {
        x->broken = true;
        report_warning("%s: MSI-X vector %u: the accelerator refused: %s",
                       device_name(&dev->dev), v, g_strerror(-ret));
    }
}

void pci_msix_update(PciDevice *dev)
{
    if (dev->msix != NULL) {
        for (unsigned v = 0; v < dev->msix->n; v++) {
            vector_sync(dev, v);
        }
    }
}

/* ---- the BAR ---- */

static bool vector_pending(const Vector *vec)
{
    struct pollfd p = { .fd = vec->fd, .events = POLLIN };

    return vec->uses > 0 && !vec->attached && poll(&p, 1, 0) == 1;
}

static uint32_t pba_read(const PciMsix *x, unsigned off)
{
    uint32_t bits = 0;

    for (unsigned i = 0; i < 32 && off * 8 + i < x->n; i++) {
        bits |= (uint32_t)vector_pending(&x->vectors[off * 8 + i]) << i;
    }
    return bits;
}

static uint32_t bar_dword(const PciMsix *x, unsigned off)
{
    if (off < x->n * ENTRY_SIZE) {
        return table_get(x, off);
    }
    if (off >= x->pba_offset && off < x->pba_offset + (x->n + 63) / 64 * 8) {
        return pba_read(x, off - x->pba_offset);
    }
    return 0;
}

static uint64_t bar_read(void *opaque, uint64_t off, unsigned size)
{
    PciDevice *dev = opaque;
    uint32_t dword = bar_dword(dev->msix, off & ~3u);

    return dword >> (8 * (off & 3));
}

/* Aligned dwords only, as the specification asks of drivers; 64-bit writes come as two. */
static void bar_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    PciDevice *dev = opaque;
    PciMsix *x = dev->msix;

    if (size != 4 || off % 4 != 0 || off >= x->n * ENTRY_SIZE) {
        return;
    }
    if (off % ENTRY_SIZE == PCI_MSIX_ENTRY_VECTOR_CTRL) {
        value &= PCI_MSIX_ENTRY_CTRL_MASKBIT;
    } else if (off % ENTRY_SIZE == PCI_MSIX_ENTRY_LOWER_ADDR) {
        value &= ~3u;
    }
    table_set(x, off, value);
    vector_sync(dev, off / ENTRY_SIZE);
}

static const IoOps bar_ops = {
    .name = "msix", .read = bar_read, .write = bar_write, .max_size = 4,
};

/* ---- life ---- */

static unsigned pow2_above(unsigned n)
{
    unsigned p = BAR_SIZE_MIN;

    while (p < n) {
        p *= 2;
    }
    return p;
}

static void table_reset(PciMsix *x)
{
    memset(x->table, 0, x->n * ENTRY_SIZE);
    for (unsigned v = 0; v < x->n; v++) {
        table_set(x, v * ENTRY_SIZE + PCI_MSIX_ENTRY_VECTOR_CTRL, PCI_MSIX_ENTRY_CTRL_MASKBIT);
    }
}

bool pci_msix_init(PciDevice *dev, unsigned vectors, unsigned bar, GError **errp)
{
    unsigned pba_len = (vectors + 63) / 64 * 8;
    PciMsix *x;

    if (vectors < 1 || vectors > VECTORS_MAX) {
        err_set(errp, "%u MSI-X vectors; 1 to %u are possible", vectors, VECTORS_MAX);
        return false;
    }
    x = g_new0(PciMsix, 1);
    x->n = vectors;
    x->bar = bar;
    x->pba_offset = MAX(PBA_OFFSET_MIN, vectors * ENTRY_SIZE);
    x->table = g_malloc0(vectors * ENTRY_SIZE);
    x->vectors = g_new0(Vector, vectors);
    for (unsigned v = 0; v < vectors; v++) {
        x->vectors[v].fd = -1;
        x->vectors[v].gsi = -1;
    }
    table_reset(x);
    dev->msix = x;
    pci_bar_add(dev, bar, PCI_BAR_MEM32, pow2_above(x->pba_offset + pba_len), &bar_ops, dev);

    x->cap = pci_cap_add(dev, PCI_CAP_ID_MSIX, PCI_CAP_MSIX_SIZEOF);
    pci_config_set16(dev, x->cap + PCI_MSIX_FLAGS, vectors - 1);
    pci_config_set32(dev, x->cap + PCI_MSIX_TABLE, bar);
    pci_config_set32(dev, x->cap + PCI_MSIX_PBA, x->pba_offset | bar);
    dev->wmask[x->cap + PCI_MSIX_FLAGS + 1] =
        (PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL) >> 8;
    return true;
}

static void fd_drain(int fd)
{
    uint64_t count;

    if (read(fd, &count, sizeof(count)) < 0) {
        /* EAGAIN: nothing was pending */
    }
}

/* @dev is on the bus; its control register is back to 0, or it leaves. */
void pci_msix_reset(PciDevice *dev)
{
    PciMsix *x = dev->msix;
    Vm *vm = dev->bus->machine->vm;

    if (x == NULL) {
        return;
    }
    for (unsigned v = 0; v < x->n; v++) {
        Vector *vec = &x->vectors[v];

        vector_detach(dev, vec);
        if (vec->uses > 0) {
            fd_drain(vec->fd);
        }
        if (vec->gsi >= 0) {
            vm->ops->msi_route_del(vm, vec->gsi);
            vec->gsi = -1;
        }
    }
    table_reset(x);
    x->broken = false;
}

void pci_msix_free(PciDevice *dev)
{
    PciMsix *x = dev->msix;

    if (x == NULL) {
        return;
    }
    for (unsigned v = 0; v < x->n; v++) {
        assert(x->vectors[v].uses == 0);
    }
    g_free(x->table);
    g_free(x->vectors);
    g_clear_pointer(&dev->msix, g_free);
}

bool pci_msix_control_hit(const PciDevice *dev, unsigned off, unsigned size)
{
    unsigned reg = dev->msix != NULL ? dev->msix->cap + PCI_MSIX_FLAGS : PCI_CONFIG_SIZE;

    return off < reg + 2 && reg < off + size;
}

bool pci_msix_enabled(const PciDevice *dev)
{
    return dev->msix != NULL && (msix_control(dev) & PCI_MSIX_FLAGS_ENABLE);
}

unsigned pci_msix_vectors(const PciDevice *dev)
{
    return dev->msix != NULL ? dev->msix->n : 0;
}

/* ---- use ---- */

int pci_msix_use(PciDevice *dev, unsigned vector)
{
    Vector *vec;

    if (dev->msix == NULL || vector >= dev->msix->n) {
        return -EINVAL;
    }
    vec = &dev->msix->vectors[vector];
    if (vec->uses == 0) {
        vec->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (vec->fd < 0) {
            return -errno;
        }
    }
    vec->uses++;
    vector_sync(dev, vector);
    return vec->fd;
}

void pci_msix_unuse(PciDevice *dev, unsigned vector)
{
    Vector *vec = &dev->msix->vectors[vector];

    assert(vec->uses > 0);
    if (--vec->uses > 0) {
        return;
    }
    vector_sync(dev, vector);
    close(vec->fd);
    vec->fd = -1;
}

void pci_msix_raise(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof(one)) < 0) {
        /* EAGAIN: as pending as it can be */
    }
}
