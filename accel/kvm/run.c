/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run loop of a vCPU. The BQL is taken only for exits that a device model
 * must emulate.
 */
#include <errno.h>
#include <string.h>

#include "kvm-internal.h"
#include "trace/trace-accel-kvm.h"
#include "util/bql.h"

static uint64_t load(const uint8_t *data, unsigned size)
{
    uint64_t value = 0;

    memcpy(&value, data, size);
    return value;
}

static void exit_io(KvmCpu *c)
{
    const VmConfig *cfg = &c->vm->vm.config;
    struct kvm_run *run = c->run;
    uint8_t *data = (uint8_t *)run + run->io.data_offset;
    unsigned size = run->io.size;

    bql_lock();
    for (uint32_t i = 0; i < run->io.count; i++, data += size) {
        if (run->io.direction == KVM_EXIT_IO_OUT) {
            cfg->exits->pio_write(cfg->machine, run->io.port, load(data, size), size);
        } else {
            uint64_t value = cfg->exits->pio_read(cfg->machine, run->io.port, size);

            memcpy(data, &value, size);
        }
    }
    bql_unlock();
}

static void exit_mmio(KvmCpu *c)
{
    const VmConfig *cfg = &c->vm->vm.config;
    struct kvm_run *run = c->run;
    unsigned size = MIN(run->mmio.len, sizeof(run->mmio.data));

    bql_lock();
    if (run->mmio.is_write) {
        cfg->exits->mmio_write(cfg->machine, run->mmio.phys_addr, load(run->mmio.data, size),
                               size);
    } else {
        uint64_t value = cfg->exits->mmio_read(cfg->machine, run->mmio.phys_addr, size);

        memcpy(run->mmio.data, &value, size);
    }
    bql_unlock();
}

static void exit_failed(KvmCpu *c, const char *text)
{
    const VmConfig *cfg = &c->vm->vm.config;
    g_autofree char *dump = kvm_state_dump(c);

    bql_lock();
    c->failed = true;
    cfg->exits->failure(cfg->machine, c->index, text, dump);
    bql_unlock();
}

static void exit_shutdown(KvmCpu *c)
{
    const VmConfig *cfg = &c->vm->vm.config;
    bool by_event = c->run->exit_reason == KVM_EXIT_SYSTEM_EVENT;

    trace_kvm_guest_shutdown(c->index, c->run->exit_reason,
                             by_event ? c->run->system_event.type : 0);

    bql_lock();
    cfg->exits->shutdown(cfg->machine);
    bql_unlock();
    /* what the hook asked for stops this CPU; until then it would shut down again */
}

static void exit_internal_error(KvmCpu *c)
{
    static const char *const names[] = {
        [KVM_INTERNAL_ERROR_EMULATION] = "it can't emulate an instruction",
        [KVM_INTERNAL_ERROR_SIMUL_EX] = "it met two exceptions at once",
        [KVM_INTERNAL_ERROR_DELIVERY_EV] = "it can't deliver an event",
    };
    uint32_t sub = c->run->internal.suberror;
    const char *name = sub < G_N_ELEMENTS(names) && names[sub] != NULL ? names[sub] :
                       "unknown reason";
    g_autofree char *text = g_strdup_printf("KVM internal error %u: %s", sub, name);

    exit_failed(c, text);
}

/* True: enter the guest again. */
static bool exit_dispatch(KvmCpu *c)
{
    g_autofree char *text = NULL;

    switch (c->run->exit_reason) {
    case KVM_EXIT_IO:
        exit_io(c);
        return true;
    case KVM_EXIT_MMIO:
        exit_mmio(c);
        return true;
    case KVM_EXIT_INTR:
    case KVM_EXIT_IRQ_WINDOW_OPEN:
        return true;
    case KVM_EXIT_SHUTDOWN:
        exit_shutdown(c);
        return true;
    case KVM_EXIT_SYSTEM_EVENT:
        exit_shutdown(c);
        return true;
    case KVM_EXIT_INTERNAL_ERROR:
        exit_internal_error(c);
        return false;
    case KVM_EXIT_FAIL_ENTRY:
        text = g_strdup_printf("the processor refuses to enter the guest, reason 0x%llx",
                               c->run->fail_entry.hardware_entry_failure_reason);
        exit_failed(c, text);
        return false;
    default:
        text = g_strdup_printf("KVM leaves the guest for an unknown reason, %u",
                               c->run->exit_reason);
        exit_failed(c, text);
        return false;
    }
}

static bool exit_handle(KvmCpu *c)
{
    uint32_t reason = c->run->exit_reason;
    bool again = exit_dispatch(c);

    trace_kvm_run_handled(c->index, reason);
    return again;
}

/* A kick that raced with a resume may have left immediate_exit behind. */
static bool must_stop(KvmCpu *c)
{
    if (!__atomic_load_n(&c->stop, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&c->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
    }
    return __atomic_load_n(&c->stop, __ATOMIC_SEQ_CST);
}

void kvm_cpu_run(KvmCpu *c)
{
    for (;;) {
        int ret;

        trace_kvm_run_enter(c->index);
        ret = kvm_cpu_ioctl(c, KVM_RUN, 0);
        trace_kvm_run_exit(c->index, c->run->exit_reason);

        if (ret == -EINTR) {
            /* Only here: the kernel has completed the last exit's access by now. */
            if (must_stop(c)) {
                return;
            }
        } else if (ret < 0 && ret != -EAGAIN) {
            g_autofree char *text = g_strdup_printf("KVM_RUN: %s", g_strerror(-ret));

            exit_failed(c, text);
            return;
        } else if (ret == 0 && !exit_handle(c)) {
            return;
        }
    }
}
