/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fake-vm.h"

#include <errno.h>

FakeVm *fake_vm(Machine *m)
{
    return (FakeVm *)m->vm;
}

static int failure(FakeVm *f)
{
    int ret = f->fail;

    f->fail = 0;
    return ret;
}

static Vm *f_create(const VmConfig *config, GError **errp)
{
    FakeVm *f = g_new0(FakeVm, 1);

    f->vm.ops = &fake_vm_ops;
    f->vm.config = *config;
    for (unsigned i = 0; i < FAKE_GSIS; i++) {
        f->irqfd[i] = -1;
    }
    return &f->vm;
}

/* Whoever attached something has to have taken it back. */
static void f_destroy(Vm *vm)
{
    FakeVm *f = (FakeVm *)vm;

    for (unsigned i = 0; i < FAKE_GSIS; i++) {
        g_assert_cmpint(f->irqfd[i], ==, -1);
        g_assert_false(f->route_used[i]);
    }
    g_assert_cmpuint(f->n_doorbells, ==, 0);
    g_free(f);
}

static bool f_has(const Vm *vm, VmCap cap)
{
    return cap != VM_CAP_VCPUS;
}

static bool f_ram_add(Vm *vm, const VmRam *ram, GError **errp)
{
    return true;
}

static bool same_doorbell(const VmIoEventFd *a, const VmIoEventFd *b)
{
    return a->space == b->space && a->addr == b->addr && a->len == b->len &&
           a->match == b->match && a->data == b->data && a->fd == b->fd;
}

static int f_ioeventfd_add(Vm *vm, const VmIoEventFd *ev)
{
    FakeVm *f = (FakeVm *)vm;
    int ret = failure(f);

    if (ret == 0) {
        g_assert_cmpuint(f->n_doorbells, <, G_N_ELEMENTS(f->doorbells));
        f->doorbells[f->n_doorbells++] = *ev;
    }
    return ret;
}

static void f_ioeventfd_del(Vm *vm, const VmIoEventFd *ev)
{
    FakeVm *f = (FakeVm *)vm;

    for (unsigned i = 0; i < f->n_doorbells; i++) {
        if (same_doorbell(&f->doorbells[i], ev)) {
            f->doorbells[i] = f->doorbells[--f->n_doorbells];
            return;
        }
    }
    g_assert_not_reached();
}

static void f_irq_set(Vm *vm, unsigned gsi, bool level)
{
    ((FakeVm *)vm)->level[gsi] = level;
}

static int f_msi_route_add(Vm *vm, const VmMsi *msi)
{
    FakeVm *f = (FakeVm *)vm;
    int ret = failure(f);

    for (int gsi = 24; ret == 0 && gsi < FAKE_GSIS; gsi++) {
        if (!f->route_used[gsi]) {
            f->route_used[gsi] = true;
            f->route[gsi] = *msi;
            f->changes++;
            return gsi;
        }
    }
    return ret != 0 ? ret : -ENOSPC;
}

static int f_msi_route_update(Vm *vm, unsigned gsi, const VmMsi *msi)
{
    FakeVm *f = (FakeVm *)vm;

    g_assert_true(f->route_used[gsi]);
    f->route[gsi] = *msi;
    f->changes++;
    return failure(f);
}

static void f_msi_route_del(Vm *vm, unsigned gsi)
{
    FakeVm *f = (FakeVm *)vm;

    g_assert_true(f->route_used[gsi]);
    g_assert_cmpint(f->irqfd[gsi], ==, -1);
    f->route_used[gsi] = false;
}

static int f_irqfd_add(Vm *vm, unsigned gsi, int fd, int resample_fd)
{
    FakeVm *f = (FakeVm *)vm;
    int ret = failure(f);

    if (ret == 0) {
        g_assert_cmpint(f->irqfd[gsi], ==, -1);
        f->irqfd[gsi] = fd;
    }
    return ret;
}

static void f_irqfd_del(Vm *vm, unsigned gsi, int fd)
{
    FakeVm *f = (FakeVm *)vm;

    g_assert_cmpint(f->irqfd[gsi], ==, fd);
    f->irqfd[gsi] = -1;
}

static void f_cpus_kick(Vm *vm)
{
}

const VmOps fake_vm_ops = {
    .name = "fake",
    .create = f_create,
    .destroy = f_destroy,
    .has = f_has,
    .ram_add = f_ram_add,
    .ioeventfd_add = f_ioeventfd_add,
    .ioeventfd_del = f_ioeventfd_del,
    .irq_set = f_irq_set,
    .msi_route_add = f_msi_route_add,
    .msi_route_update = f_msi_route_update,
    .msi_route_del = f_msi_route_del,
    .irqfd_add = f_irqfd_add,
    .irqfd_del = f_irqfd_del,
    .cpus_kick = f_cpus_kick,
};

void fake_machine_init(Machine *m, uint64_t ram)
{
    static const MachineType type = { .name = "fake" };
    MachineConfig config = {
        .ram_size = ram, .accel = &fake_vm_ops,
        .vm = { .cpus = 1, .sockets = 1, .cores = 1, .threads = 1 },
    };

    *m = (Machine) { 0 };
    g_assert_true(machine_init(m, &type, &config, NULL));
    g_assert_true(machine_ram_alloc(m, &config, NULL));
    g_assert_true(machine_ram_map(m, 0, 0, ram, NULL));
}

void fake_machine_cleanup(Machine *m)
{
    machine_cleanup(m);
}

int fake_gsi_of(Machine *m, int fd)
{
    for (int gsi = 0; gsi < FAKE_GSIS; gsi++) {
        if (fake_vm(m)->irqfd[gsi] == fd) {
            return gsi;
        }
    }
    return -1;
}
