/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The VM as a whole: what KVM can do, memory slots, eventfds on guest writes.
 * Interface: Linux' Documentation/virt/kvm/api.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "accel/kvm.h"
#include "kvm-internal.h"
#include "util/err.h"

/* Pages that KVM wants below 4 GiB on processors that can't run real mode. */
#define IDENTITY_MAP_ADDR 0xfffbc000ULL
#define TSS_ADDR 0xfffbd000ULL

int kvm_dev_ioctl(KvmVm *k, unsigned long req, uintptr_t arg)
{
    int ret = ioctl(k->dev_fd, req, arg);

    return ret < 0 ? -errno : ret;
}

int kvm_vm_ioctl(KvmVm *k, unsigned long req, uintptr_t arg)
{
    int ret = ioctl(k->fd, req, arg);

    return ret < 0 ? -errno : ret;
}

int kvm_cpu_ioctl(KvmCpu *c, unsigned long req, uintptr_t arg)
{
    int ret = ioctl(c->fd, req, arg);

    return ret < 0 ? -errno : ret;
}

int kvm_check(KvmVm *k, long cap)
{
    int ret = kvm_vm_ioctl(k, KVM_CHECK_EXTENSION, cap);

    return MAX(ret, 0);
}

/* ---- life ---- */

static bool kvm_open(KvmVm *k, GError **errp)
{
    int version;

    k->dev_fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (k->dev_fd < 0) {
        err_set_errno(errp, errno, "cannot open /dev/kvm");
        if (errno == ENOENT) {
            err_append(errp, " (this machine has no KVM)");
        } else if (errno == EACCES) {
            err_append(errp, " (is the user in group kvm?)");
        }
        return false;
    }
    version = kvm_dev_ioctl(k, KVM_GET_API_VERSION, 0);
    if (version != KVM_API_VERSION) {
        err_set(errp, "/dev/kvm speaks version %d of its interface, not %d", version,
                KVM_API_VERSION);
        return false;
    }
    do {
        k->fd = kvm_dev_ioctl(k, KVM_CREATE_VM, 0);
    } while (k->fd == -EINTR);
    if (k->fd < 0) {
        err_set_errno(errp, -k->fd, "KVM does not make a virtual machine");
        return false;
    }
    return true;
}

/* Without these nothing works; all kernels since 4.13 have them. */
static bool kvm_check_needs(KvmVm *k, GError **errp)
{
    static const struct {
        long cap;
        const char *name;
    } needs[] = {
        { KVM_CAP_IRQCHIP, "KVM_CAP_IRQCHIP" },
        { KVM_CAP_PIT2, "KVM_CAP_PIT2" },
        { KVM_CAP_PIT_STATE2, "KVM_CAP_PIT_STATE2" },
        { KVM_CAP_USER_MEMORY, "KVM_CAP_USER_MEMORY" },
        { KVM_CAP_SET_TSS_ADDR, "KVM_CAP_SET_TSS_ADDR" },
        { KVM_CAP_EXT_CPUID, "KVM_CAP_EXT_CPUID" },
        { KVM_CAP_MP_STATE, "KVM_CAP_MP_STATE" },
        { KVM_CAP_IMMEDIATE_EXIT, "KVM_CAP_IMMEDIATE_EXIT" },
        { KVM_CAP_IOEVENTFD, "KVM_CAP_IOEVENTFD" },
        { KVM_CAP_IRQFD, "KVM_CAP_IRQFD" },
        { KVM_CAP_IRQ_ROUTING, "KVM_CAP_IRQ_ROUTING" },
        { KVM_CAP_SIGNAL_MSI, "KVM_CAP_SIGNAL_MSI" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(needs); i++) {
        if (kvm_check(k, needs[i].cap) == 0) {
            err_set(errp, "this kernel's KVM lacks %s", needs[i].name);
            return false;
        }
    }
    k->has[VM_CAP_IOEVENTFD] = true;
    k->has[VM_CAP_IOEVENTFD_ANY_LENGTH] = kvm_check(k, KVM_CAP_IOEVENTFD_ANY_LENGTH);
    k->has[VM_CAP_IRQFD] = true;
    k->has[VM_CAP_IRQFD_RESAMPLE] = kvm_check(k, KVM_CAP_IRQFD_RESAMPLE);
    k->has[VM_CAP_MSI_ROUTES] = true;
    k->has[VM_CAP_RAM_READ_ONLY] = kvm_check(k, KVM_CAP_READONLY_MEM);
    k->has[VM_CAP_VCPUS] = true;
    return true;
}

static bool kvm_check_cpus(KvmVm *k, GError **errp)
{
    int max = kvm_check(k, KVM_CAP_MAX_VCPUS);

    if (max == 0) {
        max = 4;                /* what the interface promises without the capability */
    }
    if (k->vm.config.cpus > (unsigned)max) {
        err_set(errp, "%u CPUs; KVM here runs at most %d", k->vm.config.cpus, max);
        return false;
    }
    return true;
}

static bool kvm_set_up(KvmVm *k, GError **errp)
{
    uint64_t identity = IDENTITY_MAP_ADDR;
    int ret;

    if (!kvm_open(k, errp) || !kvm_check_needs(k, errp) || !kvm_check_cpus(k, errp)) {
        return false;
    }
    ret = kvm_dev_ioctl(k, KVM_GET_VCPU_MMAP_SIZE, 0);
    if (ret < (int)sizeof(struct kvm_run)) {
        err_set_errno(errp, ret < 0 ? -ret : EINVAL, "KVM_GET_VCPU_MMAP_SIZE");
        return false;
    }
    k->run_size = ret;
    if (kvm_check(k, KVM_CAP_SET_IDENTITY_MAP_ADDR)) {
        ret = kvm_vm_ioctl(k, KVM_SET_IDENTITY_MAP_ADDR, (uintptr_t)&identity);
        if (ret < 0) {
            err_set_errno(errp, -ret, "KVM_SET_IDENTITY_MAP_ADDR");
            return false;
        }
    }
    ret = kvm_vm_ioctl(k, KVM_SET_TSS_ADDR, TSS_ADDR);
    if (ret < 0) {
        err_set_errno(errp, -ret, "KVM_SET_TSS_ADDR");
        return false;
    }
    return kvm_irq_init(k, errp) && kvm_cpuid_init(k, errp);
}

static void kvm_destroy(Vm *vm)
{
    KvmVm *k = (KvmVm *)vm;

    kvm_cpus_end(k);
    kvm_irq_free(k);
    g_free(k->cpuid);
    if (k->fd >= 0) {
        close(k->fd);
    }
    if (k->dev_fd >= 0) {
        close(k->dev_fd);
    }
    pthread_cond_destroy(&k->parked_cond);
    pthread_cond_destroy(&k->resume_cond);
    pthread_mutex_destroy(&k->route_lock);
    g_free(k);
}

static Vm *kvm_create(const VmConfig *config, GError **errp)
{
    KvmVm *k = g_new0(KvmVm, 1);

    k->vm.ops = &kvm_vm_ops;
    k->vm.config = *config;
    k->fd = -1;
    pthread_cond_init(&k->parked_cond, NULL);
    pthread_cond_init(&k->resume_cond, NULL);
    pthread_mutex_init(&k->route_lock, NULL);
    if (!kvm_set_up(k, errp)) {
        kvm_destroy(&k->vm);
        return NULL;
    }
    k->vm.config.cpu_model = NULL;      /* only lent */
    return &k->vm;
}

static bool kvm_has(const Vm *vm, VmCap cap)
{
    return ((const KvmVm *)vm)->has[cap];
}

static uint32_t kvm_tsc_khz(const Vm *vm)
{
    return ((const KvmVm *)vm)->tsc_khz;
}

/* ---- memory ---- */

static int slot_set(KvmVm *k, unsigned slot, const VmRam *ram, uint64_t size)
{
    struct kvm_userspace_memory_region r = {
        .slot = slot,
        .flags = ram->read_only ? KVM_MEM_READONLY : 0,
        .guest_phys_addr = ram->gpa,
        .memory_size = size,
        .userspace_addr = (uintptr_t)ram->host,
    };

    return kvm_vm_ioctl(k, KVM_SET_USER_MEMORY_REGION, (uintptr_t)&r);
}

static bool kvm_ram_add(Vm *vm, const VmRam *ram, GError **errp)
{
    KvmVm *k = (KvmVm *)vm;
    unsigned slot = 0;
    int ret;

    while (slot < KVM_RAM_SLOTS && k->slot_used[slot]) {
        slot++;
    }
    ret = slot < KVM_RAM_SLOTS ? slot_set(k, slot, ram, ram->size) : -ENOSPC;
    if (ret < 0) {
        err_set_errno(errp, -ret, "KVM refuses %" G_GUINT64_FORMAT " MiB of RAM at 0x%"
                      G_GINT64_MODIFIER "x", ram->size >> 20, ram->gpa);
        return false;
    }
    k->slot_used[slot] = true;
    k->slot_gpa[slot] = ram->gpa;
    return true;
}

static void kvm_ram_del(Vm *vm, uint64_t gpa)
{
    KvmVm *k = (KvmVm *)vm;

    for (unsigned i = 0; i < KVM_RAM_SLOTS; i++) {
        if (k->slot_used[i] && k->slot_gpa[i] == gpa) {
            slot_set(k, i, &(VmRam) { .gpa = gpa }, 0);
            k->slot_used[i] = false;
        }
    }
}

/* ---- eventfds on guest writes ---- */

static int ioeventfd(Vm *vm, const VmIoEventFd *ev, uint32_t flags)
{
    struct kvm_ioeventfd e = {
        .datamatch = ev->data,
        .addr = ev->addr,
        .len = ev->len,
        .fd = ev->fd,
        .flags = flags | (ev->match ? KVM_IOEVENTFD_FLAG_DATAMATCH : 0) |
                 (ev->space == VM_PIO ? KVM_IOEVENTFD_FLAG_PIO : 0),
    };

    return kvm_vm_ioctl((KvmVm *)vm, KVM_IOEVENTFD, (uintptr_t)&e);
}

static int kvm_ioeventfd_add(Vm *vm, const VmIoEventFd *ev)
{
    if (ev->len == 0 && !kvm_has(vm, VM_CAP_IOEVENTFD_ANY_LENGTH)) {
        return -ENOTSUP;
    }
    return ioeventfd(vm, ev, 0);
}

static void kvm_ioeventfd_del(Vm *vm, const VmIoEventFd *ev)
{
    ioeventfd(vm, ev, KVM_IOEVENTFD_FLAG_DEASSIGN);
}

const VmOps kvm_vm_ops = {
    .name = "kvm",
    .create = kvm_create,
    .destroy = kvm_destroy,
    .has = kvm_has,
    .ram_add = kvm_ram_add,
    .ram_del = kvm_ram_del,
    .ioeventfd_add = kvm_ioeventfd_add,
    .ioeventfd_del = kvm_ioeventfd_del,
    .irq_set = kvm_irq_set,
    .irq_set_level_triggered = kvm_irq_set_level_triggered,
    .msi_send = kvm_msi_send,
    .msi_route_add = kvm_msi_route_add,
    .msi_route_update = kvm_msi_route_update,
    .msi_route_del = kvm_msi_route_del,
    .irqfd_add = kvm_irqfd_add,
    .irqfd_del = kvm_irqfd_del,
    .cpus_create = kvm_cpus_create,
    .cpus_reset = kvm_cpus_reset,
    .cpus_pause = kvm_cpus_pause,
    .cpus_resume = kvm_cpus_resume,
    .cpus_kick = kvm_cpus_kick,
    .cpu_thread_id = kvm_cpu_thread_id,
    .tsc_khz = kvm_tsc_khz,
};
