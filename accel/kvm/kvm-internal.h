/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the files of accel/kvm.
 *
 * Locks, in the order in which they are taken: the BQL; KvmVm.route_lock.
 */
#ifndef ACCEL_KVM_KVM_INTERNAL_H
#define ACCEL_KVM_KVM_INTERNAL_H

#include <linux/kvm.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "hw/core/vm-ops.h"

#define KVM_PINS 24                     /* GSIs that are pins */
#define KVM_RAM_SLOTS 32

typedef struct KvmVm KvmVm;
typedef struct KvmReset KvmReset;

typedef struct KvmCpu {
    KvmVm *vm;
    unsigned index;
    int fd;
    struct kvm_run *run;                /* the thread's; immediate_exit: anyone's */
    pthread_t thread;
    bool have_thread;
    int tid;                            /* atomic */
    bool stop;                          /* atomic: park soon. Set by anyone, cleared by resume */
    bool parked;                        /* BQL */
    bool failed;                        /* BQL: runs no more until a reset */
    KvmReset *at_reset;                 /* state.c: how it was made */
} KvmCpu;

struct KvmVm {
    Vm vm;
    int dev_fd;                         /* /dev/kvm */
    int fd;
    size_t run_size;
    KvmCpu *cpus;                       /* vm.config.cpus of them */
    bool quit;                          /* BQL: threads end */
    pthread_cond_t parked_cond;         /* BQL: a CPU parked */
    pthread_cond_t resume_cond;         /* BQL: CPUs may run or end */
    uint32_t tsc_khz;
    struct kvm_cpuid2 *cpuid;           /* what every vCPU has in common */

    bool slot_used[KVM_RAM_SLOTS];
    uint64_t slot_gpa[KVM_RAM_SLOTS];

    pthread_mutex_t route_lock;
    struct kvm_irq_routing *routes;     /* under route_lock: pins, then MSIs */
    unsigned n_gsi;                     /* GSIs that the kernel has */
    struct kvm_irqchip pic_at_reset[2], ioapic_at_reset;
    struct kvm_pit_state2 pit_at_reset;
    uint16_t level_mask;                /* irq_set_level_triggered() */

    bool has[VM_CAP_VCPUS + 1];
};

/* The result, or -errno. */
int kvm_dev_ioctl(KvmVm *k, unsigned long req, uintptr_t arg);
int kvm_vm_ioctl(KvmVm *k, unsigned long req, uintptr_t arg);
int kvm_cpu_ioctl(KvmCpu *c, unsigned long req, uintptr_t arg);
int kvm_check(KvmVm *k, long cap);

/* irq.c */
bool kvm_irq_init(KvmVm *k, GError **errp);
void kvm_irq_reset(KvmVm *k);
void kvm_irq_free(KvmVm *k);
void kvm_irq_set(Vm *vm, unsigned gsi, bool level);
void kvm_irq_set_level_triggered(Vm *vm, uint16_t mask);
int kvm_msi_send(Vm *vm, const VmMsi *msi);
int kvm_msi_route_add(Vm *vm, const VmMsi *msi);
int kvm_msi_route_update(Vm *vm, unsigned gsi, const VmMsi *msi);
void kvm_msi_route_del(Vm *vm, unsigned gsi);
int kvm_irqfd_add(Vm *vm, unsigned gsi, int fd, int resample_fd);
void kvm_irqfd_del(Vm *vm, unsigned gsi, int fd);

/* cpuid.c */
bool kvm_cpuid_init(KvmVm *k, GError **errp);
/* Give it to @c, which nothing has run yet. */
bool kvm_cpuid_set(KvmCpu *c, GError **errp);

/* state.c */
bool kvm_state_save(KvmCpu *c, GError **errp);
void kvm_state_free(KvmCpu *c);
/* @start: the boot processor; NULL: another one. Returns 0 or -errno. */
int kvm_state_reset(KvmCpu *c, const VmCpuStart *start);
char *kvm_state_dump(KvmCpu *c);

/* vcpu.c */
bool kvm_cpus_create(Vm *vm, GError **errp);
void kvm_cpus_end(KvmVm *k);
void kvm_cpus_reset(Vm *vm, const VmCpuStart *start);
void kvm_cpus_pause(Vm *vm);
void kvm_cpus_resume(Vm *vm);
void kvm_cpus_kick(Vm *vm);
int kvm_cpu_thread_id(const Vm *vm, unsigned cpu);
/* run.c: until it is to stop or can't go on */
void kvm_cpu_run(KvmCpu *c);

#endif
