/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts: the kernel's PIC, IOAPIC and PIT, the table of GSIs, irqfds.
 */
#include <errno.h>
#include <string.h>

#include "kvm-internal.h"
#include "trace/trace-accel-kvm.h"
#include "util/err.h"

/* ---- the GSI table ---- */

static void route_pin(KvmVm *k, unsigned gsi, unsigned chip, unsigned pin)
{
    k->routes->entries[k->routes->nr++] = (struct kvm_irq_routing_entry) {
        .gsi = gsi, .type = KVM_IRQ_ROUTING_IRQCHIP, .u.irqchip = { chip, pin },
    };
}

/* The PIT, ISA interrupt 0, is on pin 2 of the IOAPIC; the MADT says so too. */
static void route_pins(KvmVm *k)
{
    for (unsigned gsi = 0; gsi < KVM_PINS; gsi++) {
        if (gsi < 16 && gsi != 2) {
            route_pin(k, gsi, gsi < 8 ? KVM_IRQCHIP_PIC_MASTER : KVM_IRQCHIP_PIC_SLAVE, gsi % 8);
        }
        if (gsi != 2) {
            route_pin(k, gsi, KVM_IRQCHIP_IOAPIC, gsi == 0 ? 2 : gsi);
        }
    }
}

static int routes_commit(KvmVm *k)
{
    return kvm_vm_ioctl(k, KVM_SET_GSI_ROUTING, (uintptr_t)k->routes);
}

static struct kvm_irq_routing_entry *route_find(KvmVm *k, unsigned gsi)
{
    for (unsigned i = 0; i < k->routes->nr; i++) {
        struct kvm_irq_routing_entry *e = &k->routes->entries[i];

        if (e->gsi == gsi && e->type == KVM_IRQ_ROUTING_MSI) {
            return e;
        }
    }
    return NULL;
}

static void route_set_msi(struct kvm_irq_routing_entry *e, const VmMsi *msi)
{
    e->u.msi = (struct kvm_irq_routing_msi) {
        .address_lo = msi->addr,
        .address_hi = msi->addr >> 32,
        .data = msi->data,
    };
}

/* Room for one more entry; false when the kernel takes no more. */
static bool routes_grow(KvmVm *k)
{
    unsigned n = k->routes->nr;

    if (n >= k->n_gsi) {
        return false;
    }
    if (n % 64 == 0) {
        k->routes = g_realloc(k->routes, sizeof(*k->routes) +
                              (n + 64) * sizeof(k->routes->entries[0]));
    }
    return true;
}

static int route_add_locked(KvmVm *k, const VmMsi *msi)
{
    struct kvm_irq_routing_entry *e;
    unsigned gsi = KVM_PINS;
    int ret;

    while (gsi < k->n_gsi && route_find(k, gsi) != NULL) {
        gsi++;
    }
    if (gsi == k->n_gsi || !routes_grow(k)) {
        return -ENOSPC;
    }
    e = &k->routes->entries[k->routes->nr++];
    *e = (struct kvm_irq_routing_entry) { .gsi = gsi, .type = KVM_IRQ_ROUTING_MSI };
    route_set_msi(e, msi);
    ret = routes_commit(k);
    if (ret < 0) {
        k->routes->nr--;
        return ret;
    }
    return gsi;
}

int kvm_msi_route_add(Vm *vm, const VmMsi *msi)
{
    KvmVm *k = (KvmVm *)vm;
    int ret;

    pthread_mutex_lock(&k->route_lock);
    ret = route_add_locked(k, msi);
    pthread_mutex_unlock(&k->route_lock);
    return ret;
}

int kvm_msi_route_update(Vm *vm, unsigned gsi, const VmMsi *msi)
{
    KvmVm *k = (KvmVm *)vm;
    struct kvm_irq_routing_entry *e;
    int ret = -ENOENT;

    pthread_mutex_lock(&k->route_lock);
    e = route_find(k, gsi);
    if (e != NULL) {
        struct kvm_irq_routing_entry before = *e;

        route_set_msi(e, msi);
        ret = routes_commit(k);
        if (ret < 0) {
            *e = before;
        }
    }
    pthread_mutex_unlock(&k->route_lock);
    return ret;
}

/* The kernel learns it with the next change: nothing raises this GSI any more. */
void kvm_msi_route_del(Vm *vm, unsigned gsi)
{
    KvmVm *k = (KvmVm *)vm;
    struct kvm_irq_routing_entry *e;

    pthread_mutex_lock(&k->route_lock);
    e = route_find(k, gsi);
    if (e != NULL) {
        *e = k->routes->entries[--k->routes->nr];
    }
    pthread_mutex_unlock(&k->route_lock);
}

/* ---- raising ---- */

void kvm_irq_set(Vm *vm, unsigned gsi, bool level)
{
    struct kvm_irq_level l = { .irq = gsi, .level = level };

    trace_kvm_set_irq(gsi, level);
    kvm_vm_ioctl((KvmVm *)vm, KVM_IRQ_LINE, (uintptr_t)&l);
}

int kvm_msi_send(Vm *vm, const VmMsi *msi)
{
    struct kvm_msi m = {
        .address_lo = msi->addr,
        .address_hi = msi->addr >> 32,
        .data = msi->data,
    };
    int ret = kvm_vm_ioctl((KvmVm *)vm, KVM_SIGNAL_MSI, (uintptr_t)&m);

    return MIN(ret, 0);         /* positive: delivered to so many; 0: the guest blocked it */
}

int kvm_irqfd_add(Vm *vm, unsigned gsi, int fd, int resample_fd)
{
    struct kvm_irqfd i = { .fd = fd, .gsi = gsi };

    if (resample_fd >= 0) {
        i.flags = KVM_IRQFD_FLAG_RESAMPLE;
        i.resamplefd = resample_fd;
    }
    return kvm_vm_ioctl((KvmVm *)vm, KVM_IRQFD, (uintptr_t)&i);
}

void kvm_irqfd_del(Vm *vm, unsigned gsi, int fd)
{
    struct kvm_irqfd i = { .fd = fd, .gsi = gsi, .flags = KVM_IRQFD_FLAG_DEASSIGN };

    kvm_vm_ioctl((KvmVm *)vm, KVM_IRQFD, (uintptr_t)&i);
}

/* ---- life ---- */

/* The edge/level control registers, which firmware sets for PCI's interrupts. */
static void pic_set_elcr(KvmVm *k)
{
    for (unsigned i = 0; i < 2; i++) {
        struct kvm_irqchip chip = { .chip_id = i };

        if (kvm_vm_ioctl(k, KVM_GET_IRQCHIP, (uintptr_t)&chip) == 0) {
            chip.chip.pic.elcr = k->level_mask >> (8 * i) & chip.chip.pic.elcr_mask;
            kvm_vm_ioctl(k, KVM_SET_IRQCHIP, (uintptr_t)&chip);
        }
    }
}

void kvm_irq_set_level_triggered(Vm *vm, uint16_t mask)
{
    KvmVm *k = (KvmVm *)vm;

    k->level_mask = mask;
    pic_set_elcr(k);
}

void kvm_irq_reset(KvmVm *k)
{
    kvm_vm_ioctl(k, KVM_SET_IRQCHIP, (uintptr_t)&k->pic_at_reset[0]);
    kvm_vm_ioctl(k, KVM_SET_IRQCHIP, (uintptr_t)&k->pic_at_reset[1]);
    kvm_vm_ioctl(k, KVM_SET_IRQCHIP, (uintptr_t)&k->ioapic_at_reset);
    kvm_vm_ioctl(k, KVM_SET_PIT2, (uintptr_t)&k->pit_at_reset);
    pic_set_elcr(k);
}

static int irqchip_save(KvmVm *k)
{
    int ret;

    k->pic_at_reset[0].chip_id = KVM_IRQCHIP_PIC_MASTER;
    k->pic_at_reset[1].chip_id = KVM_IRQCHIP_PIC_SLAVE;
    k->ioapic_at_reset.chip_id = KVM_IRQCHIP_IOAPIC;
    ret = kvm_vm_ioctl(k, KVM_GET_IRQCHIP, (uintptr_t)&k->pic_at_reset[0]);
    if (ret == 0) {
        ret = kvm_vm_ioctl(k, KVM_GET_IRQCHIP, (uintptr_t)&k->pic_at_reset[1]);
    }
    if (ret == 0) {
        ret = kvm_vm_ioctl(k, KVM_GET_IRQCHIP, (uintptr_t)&k->ioapic_at_reset);
    }
    if (ret == 0) {
        ret = kvm_vm_ioctl(k, KVM_GET_PIT2, (uintptr_t)&k->pit_at_reset);
    }
    return ret;
}

bool kvm_irq_init(KvmVm *k, GError **errp)
{
    /* the kernel answers port 0x61, too */
    struct kvm_pit_config pit = { .flags = KVM_PIT_SPEAKER_DUMMY };
    const char *what = "KVM_CREATE_IRQCHIP";
    int ret = kvm_vm_ioctl(k, KVM_CREATE_IRQCHIP, 0);

    if (ret == 0) {
        what = "KVM_CREATE_PIT2";
        ret = kvm_vm_ioctl(k, KVM_CREATE_PIT2, (uintptr_t)&pit);
    }
    if (ret == 0) {
        what = "KVM_SET_GSI_ROUTING";
        k->n_gsi = kvm_check(k, KVM_CAP_IRQ_ROUTING);
        k->routes = g_malloc0(sizeof(*k->routes) + 64 * sizeof(k->routes->entries[0]));
        route_pins(k);
        ret = routes_commit(k);
    }
    if (ret == 0) {
        what = "KVM_GET_IRQCHIP";
        ret = irqchip_save(k);
    }
    if (ret < 0) {
        err_set_errno(errp, -ret, "%s", what);
        return false;
    }
    return true;
}

void kvm_irq_free(KvmVm *k)
{
    g_clear_pointer(&k->routes, g_free);
}
