/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VmOps without vCPUs: memory, eventfds and interrupts as tables.
 */
#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <unistd.h>

#include "qtest-internal.h"

#define ROUTES_MAX 4096

typedef struct QtestRoute {
    bool used;
    VmMsi msi;
} QtestRoute;

static QtestVm *from(const Vm *vm)
{
    return (QtestVm *)vm;
}

/* ---- memory ---- */

static bool q_ram_add(Vm *vm, const VmRam *ram, GError **errp)
{
    g_array_append_val(from(vm)->ram, *ram);
    return true;
}

static void q_ram_del(Vm *vm, uint64_t gpa)
{
    GArray *ram = from(vm)->ram;

    for (unsigned i = 0; i < ram->len; i++) {
        if (g_array_index(ram, VmRam, i).gpa == gpa) {
            g_array_remove_index(ram, i);
            return;
        }
    }
}

void *qtest_ram(const QtestVm *q, uint64_t gpa, uint64_t size)
{
    for (unsigned i = 0; i < q->ram->len; i++) {
        const VmRam *r = &g_array_index(q->ram, VmRam, i);

        if (gpa >= r->gpa && gpa - r->gpa < r->size && size <= r->size - (gpa - r->gpa)) {
            return (char *)r->host + (gpa - r->gpa);
        }
    }
    return NULL;
}

/* ---- guest accesses ---- */

static int q_ioeventfd_add(Vm *vm, const VmIoEventFd *ev)
{
    GArray *list = from(vm)->ioeventfds;

    for (unsigned i = 0; i < list->len; i++) {
        const VmIoEventFd *e = &g_array_index(list, VmIoEventFd, i);

        /* as KVM refuses two that one write would signal */
        if (e->space == ev->space && e->addr == ev->addr &&
            (e->len == 0 || ev->len == 0 ||
             (e->len == ev->len && (!e->match || !ev->match || e->data == ev->data)))) {
            return -EEXIST;
        }
    }
    g_array_append_val(list, *ev);
    return 0;
}

static void q_ioeventfd_del(Vm *vm, const VmIoEventFd *ev)
{
    GArray *list = from(vm)->ioeventfds;

    for (unsigned i = 0; i < list->len; i++) {
        const VmIoEventFd *e = &g_array_index(list, VmIoEventFd, i);

        if (e->fd == ev->fd && e->space == ev->space && e->addr == ev->addr &&
            e->len == ev->len && e->match == ev->match && e->data == ev->data) {
            g_array_remove_index(list, i);
            return;
        }
    }
}

static bool ioeventfd_hit(const VmIoEventFd *e, VmSpace space, uint64_t addr, uint64_t value,
                          unsigned size)
{
    return e->space == space && e->addr == addr && (e->len == 0 || e->len == size) &&
           (!e->match || e->data == value);
}

/*
 * As a CPU: whole where it is aligned, stores released and loads acquired (x86), since
 * devices watch this memory in other threads.
 */
static void ram_store(void *ram, uint64_t value, unsigned size)
{
    bool whole = (uintptr_t)ram % size == 0;

    if (whole && size == 8) {
        __atomic_store_n((uint64_t *)ram, value, __ATOMIC_RELEASE);
    } else if (whole && size == 4) {
        __atomic_store_n((uint32_t *)ram, value, __ATOMIC_RELEASE);
    } else if (whole && size == 2) {
        __atomic_store_n((uint16_t *)ram, value, __ATOMIC_RELEASE);
    } else {
        for (unsigned i = 0; i < size; i++) {
            __atomic_store_n((uint8_t *)ram + i, value >> (8 * i), __ATOMIC_RELEASE);
        }
    }
}

static uint64_t ram_load(const void *ram, unsigned size)
{
    bool whole = (uintptr_t)ram % size == 0;
    uint64_t value = 0;

    if (whole && size == 8) {
        return __atomic_load_n((const uint64_t *)ram, __ATOMIC_ACQUIRE);
    }
    if (whole && size == 4) {
        return __atomic_load_n((const uint32_t *)ram, __ATOMIC_ACQUIRE);
    }
    if (whole && size == 2) {
        return __atomic_load_n((const uint16_t *)ram, __ATOMIC_ACQUIRE);
    }
    for (unsigned i = 0; i < size; i++) {
        value |= (uint64_t)__atomic_load_n((const uint8_t *)ram + i, __ATOMIC_ACQUIRE) << (8 * i);
    }
    return value;
}

void qtest_guest_write(QtestVm *q, VmSpace space, uint64_t addr, uint64_t value, unsigned size)
{
    const VmConfig *cfg = &q->vm.config;
    void *ram = space == VM_MMIO ? qtest_ram(q, addr, size) : NULL;
    uint64_t one = 1;

    if (ram != NULL) {
        ram_store(ram, value, size);
        return;
    }
    for (unsigned i = 0; i < q->ioeventfds->len; i++) {
        const VmIoEventFd *e = &g_array_index(q->ioeventfds, VmIoEventFd, i);

        if (ioeventfd_hit(e, space, addr, value, size)) {
            if (write(e->fd, &one, sizeof(one)) < 0) {
                /* signalled already */
            }
            return;
        }
    }
    if (space == VM_PIO) {
        cfg->exits->pio_write(cfg->machine, addr, value, size);
    } else {
        cfg->exits->mmio_write(cfg->machine, addr, value, size);
    }
}

uint64_t qtest_guest_read(QtestVm *q, VmSpace space, uint64_t addr, unsigned size)
{
    const VmConfig *cfg = &q->vm.config;
    const void *ram = space == VM_MMIO ? qtest_ram(q, addr, size) : NULL;

    if (ram != NULL) {
        return ram_load(ram, size);
    }
    return space == VM_PIO ? cfg->exits->pio_read(cfg->machine, addr, size) :
           cfg->exits->mmio_read(cfg->machine, addr, size);
}

/* ---- interrupts ---- */

static void q_irq_set(Vm *vm, unsigned gsi, bool level)
{
    QtestVm *q = from(vm);

    if (gsi < QTEST_PINS && q->level[gsi] != level) {
        q->level[gsi] = level;
        if (q->intercept && q->server != NULL) {
            qtest_server_tell(q->server, "IRQ %s %u", level ? "raise" : "lower", gsi);
        }
    }
}

static void q_irq_set_level_triggered(Vm *vm, uint16_t mask)
{
}

static int q_msi_send(Vm *vm, const VmMsi *msi)
{
    QtestVm *q = from(vm);
    void *ram = qtest_ram(q, msi->addr, sizeof(msi->data));

    if (ram != NULL) {
        __atomic_store_n((uint32_t *)ram, msi->data, __ATOMIC_RELEASE);
    } else if (q->intercept && q->server != NULL) {
        qtest_server_tell(q->server, "MSI 0x%" G_GINT64_MODIFIER "x 0x%x", msi->addr, msi->data);
    }
    return 0;
}

static int q_msi_route_add(Vm *vm, const VmMsi *msi)
{
    GArray *routes = from(vm)->routes;
    QtestRoute route = { true, *msi };
    unsigned i = 0;

    while (i < routes->len && g_array_index(routes, QtestRoute, i).used) {
        i++;
    }
    if (i == ROUTES_MAX) {
        return -ENOSPC;
    }
    if (i == routes->len) {
        g_array_append_val(routes, route);
    } else {
        g_array_index(routes, QtestRoute, i) = route;
    }
    return QTEST_PINS + i;
}

static QtestRoute *route_of(QtestVm *q, unsigned gsi)
{
    unsigned i = gsi - QTEST_PINS;

    return gsi >= QTEST_PINS && i < q->routes->len ? &g_array_index(q->routes, QtestRoute, i) :
           NULL;
}

static int q_msi_route_update(Vm *vm, unsigned gsi, const VmMsi *msi)
{
    QtestRoute *r = route_of(from(vm), gsi);

    if (r == NULL || !r->used) {
        return -ENOENT;
    }
    r->msi = *msi;
    return 0;
}

static void q_msi_route_del(Vm *vm, unsigned gsi)
{
    QtestRoute *r = route_of(from(vm), gsi);

    if (r != NULL) {
        r->used = false;
    }
}

static gboolean irqfd_cb(gint fd, GIOCondition cond, gpointer opaque)
{
    QtestIrqFd *i = opaque;
    QtestRoute *r = route_of(i->q, i->gsi);
    uint64_t count;

    if (read(fd, &count, sizeof(count)) < 0) {
        return G_SOURCE_CONTINUE;
    }
    if (r != NULL && r->used) {
        q_msi_send(&i->q->vm, &r->msi);
    } else if (r == NULL) {
        q_irq_set(&i->q->vm, i->gsi, true);     /* an edge */
        q_irq_set(&i->q->vm, i->gsi, false);
    }
    return G_SOURCE_CONTINUE;
}

static int q_irqfd_add(Vm *vm, unsigned gsi, int fd, int resample_fd)
{
    QtestVm *q = from(vm);
    QtestIrqFd *i;

    if (resample_fd >= 0) {
        return -ENOTSUP;        /* see q_has(): nobody acknowledges here */
    }
    for (unsigned n = 0; n < q->irqfds->len; n++) {
        if (((QtestIrqFd *)g_ptr_array_index(q->irqfds, n))->fd == fd) {
            return -EBUSY;
        }
    }
    i = g_new0(QtestIrqFd, 1);
    *i = (QtestIrqFd) { .q = q, .gsi = gsi, .fd = fd };
    i->watch = g_unix_fd_add(fd, G_IO_IN, irqfd_cb, i);
    g_ptr_array_add(q->irqfds, i);
    return 0;
}

static void irqfd_free(gpointer opaque)
{
    QtestIrqFd *i = opaque;

    g_source_remove(i->watch);
    g_free(i);
}

static void q_irqfd_del(Vm *vm, unsigned gsi, int fd)
{
    QtestVm *q = from(vm);

    for (unsigned n = 0; n < q->irqfds->len; n++) {
        QtestIrqFd *i = g_ptr_array_index(q->irqfds, n);

        if (i->fd == fd && i->gsi == gsi) {
            g_ptr_array_remove_index(q->irqfds, n);
            return;
        }
    }
}

/* ---- there are no vCPUs ---- */

static bool q_cpus_create(Vm *vm, GError **errp)
{
    return true;
}

static void q_cpus_reset(Vm *vm, const VmCpuStart *start)
{
}

static void q_cpus_nothing(Vm *vm)
{
}

static int q_cpu_thread_id(const Vm *vm, unsigned cpu)
{
    return 0;
}

static uint32_t q_tsc_khz(const Vm *vm)
{
    return 0;
}

/* ---- life ---- */

static bool q_has(const Vm *vm, VmCap cap)
{
    return cap == VM_CAP_IOEVENTFD || cap == VM_CAP_IOEVENTFD_ANY_LENGTH ||
           cap == VM_CAP_IRQFD || cap == VM_CAP_MSI_ROUTES;
}

static Vm *q_create(const VmConfig *config, GError **errp)
{
    QtestVm *q = g_new0(QtestVm, 1);

    q->vm.ops = &qtest_vm_ops;
    q->vm.config = *config;
    q->vm.config.cpu_model = NULL;
    q->ram = g_array_new(false, false, sizeof(VmRam));
    q->ioeventfds = g_array_new(false, false, sizeof(VmIoEventFd));
    q->irqfds = g_ptr_array_new_with_free_func(irqfd_free);
    q->routes = g_array_new(false, false, sizeof(QtestRoute));
    return &q->vm;
}

static void q_destroy(Vm *vm)
{
    QtestVm *q = from(vm);

    qtest_server_free(q->server);
    g_array_unref(q->ram);
    g_array_unref(q->ioeventfds);
    g_ptr_array_unref(q->irqfds);
    g_array_unref(q->routes);
    g_free(q);
}

const VmOps qtest_vm_ops = {
    .name = "qtest",
    .create = q_create,
    .destroy = q_destroy,
    .has = q_has,
    .ram_add = q_ram_add,
    .ram_del = q_ram_del,
    .ioeventfd_add = q_ioeventfd_add,
    .ioeventfd_del = q_ioeventfd_del,
    .irq_set = q_irq_set,
    .irq_set_level_triggered = q_irq_set_level_triggered,
    .msi_send = q_msi_send,
    .msi_route_add = q_msi_route_add,
    .msi_route_update = q_msi_route_update,
    .msi_route_del = q_msi_route_del,
    .irqfd_add = q_irqfd_add,
    .irqfd_del = q_irqfd_del,
    .cpus_create = q_cpus_create,
    .cpus_reset = q_cpus_reset,
    .cpus_pause = q_cpus_nothing,
    .cpus_resume = q_cpus_nothing,
    .cpus_kick = q_cpus_nothing,
    .cpu_thread_id = q_cpu_thread_id,
    .tsc_khz = q_tsc_khz,
};
