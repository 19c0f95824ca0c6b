/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vCPUs: their threads, pause and resume.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hw/core/cpu-model.h"
#include "kvm-internal.h"
#include "util/bql.h"
#include "util/err.h"

/* Ends a KVM_RUN that is under way; immediate_exit ends the next one. */
#define KICK_SIGNAL SIGUSR1

static void kick_handler(int sig)
{
}

/* Any thread. After it, @c parks soon. */
static void cpu_kick(KvmCpu *c)
{
    __atomic_store_n(&c->stop, true, __ATOMIC_SEQ_CST);
    __atomic_store_n(&c->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
    if (c->have_thread) {
        pthread_kill(c->thread, KICK_SIGNAL);
    }
}

void kvm_cpus_kick(Vm *vm)
{
    KvmVm *k = (KvmVm *)vm;

    for (unsigned i = 0; k->cpus != NULL && i < vm->config.cpus; i++) {
        if (!__atomic_load_n(&k->cpus[i].stop, __ATOMIC_SEQ_CST)) {
            cpu_kick(&k->cpus[i]);
        }
    }
}

static bool must_park(KvmCpu *c)
{
    return __atomic_load_n(&c->stop, __ATOMIC_SEQ_CST) || c->failed;
}

static void *cpu_thread(void *opaque)
{
    KvmCpu *c = opaque;
    sigset_t kick;

    sigemptyset(&kick);
    sigaddset(&kick, KICK_SIGNAL);
    pthread_sigmask(SIG_UNBLOCK, &kick, NULL);
    if (c->vm->vm.config.debug_threads) {
        char name[16];

        snprintf(name, sizeof(name), "CPU %u/KVM", c->index);
        pthread_setname_np(pthread_self(), name);
    }
    __atomic_store_n(&c->tid, (int)syscall(SYS_gettid), __ATOMIC_RELAXED);

    bql_lock();
    while (!c->vm->quit) {
        if (must_park(c)) {
            c->parked = true;
            pthread_cond_broadcast(&c->vm->parked_cond);
            bql_wait(&c->vm->resume_cond);
            continue;
        }
        c->parked = false;
        bql_unlock();
        kvm_cpu_run(c);
        bql_lock();
    }
    bql_unlock();
    return NULL;
}

/* ---- life ---- */

static bool cpu_open(KvmVm *k, KvmCpu *c, GError **errp)
{
    c->fd = kvm_vm_ioctl(k, KVM_CREATE_VCPU, cpu_apic_id(&k->vm.config, c->index));
    if (c->fd < 0) {
        err_set_errno(errp, -c->fd, "KVM does not make CPU %u", c->index);
        return false;
    }
    c->run = mmap(NULL, k->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    if (c->run == MAP_FAILED) {
        c->run = NULL;
        err_set_errno(errp, errno, "cannot map the state of CPU %u", c->index);
        return false;
    }
    return kvm_cpuid_set(c, errp) && kvm_state_save(c, errp);
}

static bool cpu_start_thread(KvmCpu *c, GError **errp)
{
    sigset_t all, old;
    int ret;

    sigfillset(&all);                   /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(&c->thread, NULL, cpu_thread, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0) {
        err_set_errno(errp, ret, "cannot make the thread of CPU %u", c->index);
        return false;
    }
    c->have_thread = true;
    return true;
}

bool kvm_cpus_create(Vm *vm, GError **errp)
{
    KvmVm *k = (KvmVm *)vm;
    struct sigaction sa = { .sa_handler = kick_handler };

    sigaction(KICK_SIGNAL, &sa, NULL);
    k->cpus = g_new0(KvmCpu, vm->config.cpus);
    for (unsigned i = 0; i < vm->config.cpus; i++) {
        k->cpus[i].vm = k;
        k->cpus[i].index = i;
        k->cpus[i].fd = -1;
        k->cpus[i].stop = true;         /* born parked: nobody kicks what isn't there yet */
    }
    for (unsigned i = 0; i < vm->config.cpus; i++) {
        if (!cpu_open(k, &k->cpus[i], errp)) {
            return false;
        }
    }
    for (unsigned i = 0; i < vm->config.cpus; i++) {
        if (!cpu_start_thread(&k->cpus[i], errp)) {
            return false;
        }
    }
    return true;
}

void kvm_cpus_end(KvmVm *k)
{
    unsigned n = k->cpus != NULL ? k->vm.config.cpus : 0;

    k->quit = true;
    kvm_cpus_kick(&k->vm);
    pthread_cond_broadcast(&k->resume_cond);
    if (n > 0) {
        bql_unlock();                   /* they take it on their way out */
        for (unsigned i = 0; i < n; i++) {
            if (k->cpus[i].have_thread) {
                pthread_join(k->cpus[i].thread, NULL);
            }
        }
        bql_lock();
    }
    for (unsigned i = 0; i < n; i++) {
        KvmCpu *c = &k->cpus[i];

        kvm_state_free(c);
        if (c->run != NULL) {
            munmap(c->run, k->run_size);
        }
        if (c->fd >= 0) {
            close(c->fd);
        }
    }
    g_clear_pointer(&k->cpus, g_free);
}

/* ---- pause, resume, reset ---- */

static bool all_parked(const KvmVm *k)
{
    for (unsigned i = 0; i < k->vm.config.cpus; i++) {
        if (!k->cpus[i].parked) {
            return false;
        }
    }
    return true;
}

void kvm_cpus_pause(Vm *vm)
{
    KvmVm *k = (KvmVm *)vm;

    kvm_cpus_kick(vm);
    while (!all_parked(k)) {
        bql_wait(&k->parked_cond);
    }
}

void kvm_cpus_resume(Vm *vm)
{
    KvmVm *k = (KvmVm *)vm;

    for (unsigned i = 0; i < vm->config.cpus; i++) {
        KvmCpu *c = &k->cpus[i];

        __atomic_store_n(&c->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&c->stop, false, __ATOMIC_SEQ_CST);
        c->parked = c->failed;          /* it may run before it looks again */
    }
    pthread_cond_broadcast(&k->resume_cond);
}

void kvm_cpus_reset(Vm *vm, const VmCpuStart *start)
{
    KvmVm *k = (KvmVm *)vm;

    kvm_irq_reset(k);
    for (unsigned i = 0; i < vm->config.cpus; i++) {
        KvmCpu *c = &k->cpus[i];
        int ret = kvm_state_reset(c, i == 0 ? start : NULL);

        c->failed = false;
        if (ret < 0) {
            g_autofree char *text = g_strdup_printf("CPU %u can't be reset: %s", i,
                                                    g_strerror(-ret));
            c->failed = true;
            vm->config.exits->failure(vm->config.machine, i, text, NULL);
        }
    }
}

int kvm_cpu_thread_id(const Vm *vm, unsigned cpu)
{
    const KvmVm *k = (const KvmVm *)vm;

    return k->cpus != NULL ? __atomic_load_n(&k->cpus[cpu].tid, __ATOMIC_RELAXED) : 0;
}
