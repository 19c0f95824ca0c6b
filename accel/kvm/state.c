/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * State of a vCPU: kept as KVM made it, put back at a reset, then the
 * boot processor's entry into the kernel on top.
 */
#include <errno.h>
#include <string.h>

#include "kvm-internal.h"
#include "util/err.h"

#define MSR_IA32_TSC 0x10
#define MSRS_MAX 4096           /* more than any kernel has */

enum {
    CR0_PE = 1u << 0,
    CR0_ET = 1u << 4,
    CR4_PAE = 1u << 5,
    EFER_LME = 1u << 8,
    EFER_LMA = 1u << 10,
};
#define CR0_PG (1u << 31)
#define SELECTOR_CODE 0x10
#define SELECTOR_DATA 0x18
#define GDT_ENTRIES 4
#define RFLAGS_ALWAYS 2

struct KvmReset {
    struct kvm_regs regs;
    struct kvm_sregs sregs;
    struct kvm_fpu fpu;
    struct kvm_xcrs xcrs;
    bool have_xcrs;
    struct kvm_debugregs debug;
    struct kvm_vcpu_events events;
    struct kvm_lapic_state lapic;
    struct kvm_mp_state mp;
    struct kvm_msrs *msrs;
};

/* ---- MSRs ---- */

/* MSRs that the kernel says make up a vCPU's state; NULL when it says nothing. */
static struct kvm_msr_list *msr_list(KvmVm *k)
{
    struct kvm_msr_list *list = g_malloc0(sizeof(*list) + MSRS_MAX * sizeof(list->indices[0]));

    list->nmsrs = MSRS_MAX;
    if (kvm_dev_ioctl(k, KVM_GET_MSR_INDEX_LIST, (uintptr_t)list) < 0) {
        g_clear_pointer(&list, g_free);
    }
    return list;
}

static struct kvm_msrs *msrs_new(unsigned n)
{
    return g_malloc0(sizeof(struct kvm_msrs) + n * sizeof(struct kvm_msr_entry));
}

/*
 * KVM stops at the first MSR that it refuses. Those are left out: what can't
 * be read can't have been changed through us. The TSC goes on over a reset.
 */
static struct kvm_msrs *msrs_save(KvmCpu *c)
{
    g_autofree struct kvm_msr_list *list = msr_list(c->vm);
    struct kvm_msrs *out = msrs_new(list != NULL ? list->nmsrs : 0);
    unsigned next = 0;

    while (list != NULL && next < list->nmsrs) {
        g_autofree struct kvm_msrs *m = msrs_new(list->nmsrs - next);
        int got;

        for (unsigned i = next; i < list->nmsrs; i++) {
            m->entries[m->nmsrs++].index = list->indices[i];
        }
        got = kvm_cpu_ioctl(c, KVM_GET_MSRS, (uintptr_t)m);
        for (int i = 0; i < got; i++) {
            if (m->entries[i].index != MSR_IA32_TSC) {
                out->entries[out->nmsrs++] = m->entries[i];
            }
        }
        next += MAX(got, 0) + 1;
    }
    return out;
}

static void msrs_restore(KvmCpu *c, const struct kvm_msrs *saved)
{
    unsigned next = 0;

    while (next < saved->nmsrs) {
        g_autofree struct kvm_msrs *m = msrs_new(saved->nmsrs - next);
        int set;

        m->nmsrs = saved->nmsrs - next;
        memcpy(m->entries, &saved->entries[next], m->nmsrs * sizeof(m->entries[0]));
        set = kvm_cpu_ioctl(c, KVM_SET_MSRS, (uintptr_t)m);
        next += MAX(set, 0) + 1;        /* one that is refused keeps its value */
    }
}

/* ---- the rest ---- */

bool kvm_state_save(KvmCpu *c, GError **errp)
{
    KvmReset *r = g_new0(KvmReset, 1);
    const struct {
        unsigned long req;
        void *arg;
        const char *name;
    } gets[] = {
        { KVM_GET_REGS, &r->regs, "KVM_GET_REGS" },
        { KVM_GET_SREGS, &r->sregs, "KVM_GET_SREGS" },
        { KVM_GET_FPU, &r->fpu, "KVM_GET_FPU" },
        { KVM_GET_DEBUGREGS, &r->debug, "KVM_GET_DEBUGREGS" },
        { KVM_GET_VCPU_EVENTS, &r->events, "KVM_GET_VCPU_EVENTS" },
        { KVM_GET_LAPIC, &r->lapic, "KVM_GET_LAPIC" },
        { KVM_GET_MP_STATE, &r->mp, "KVM_GET_MP_STATE" },
    };

    c->at_reset = r;
    for (unsigned i = 0; i < G_N_ELEMENTS(gets); i++) {
        int ret = kvm_cpu_ioctl(c, gets[i].req, (uintptr_t)gets[i].arg);

        if (ret < 0) {
            err_set_errno(errp, -ret, "%s", gets[i].name);
            return false;
        }
    }
    r->have_xcrs = kvm_cpu_ioctl(c, KVM_GET_XCRS, (uintptr_t)&r->xcrs) == 0;
    r->msrs = msrs_save(c);
    return true;
}

void kvm_state_free(KvmCpu *c)
{
    if (c->at_reset != NULL) {
        g_free(c->at_reset->msrs);
        g_clear_pointer(&c->at_reset, g_free);
    }
}

static struct kvm_segment flat_segment(uint16_t selector, uint8_t type, bool long_mode)
{
    return (struct kvm_segment) {
        .limit = 0xffffffff, .selector = selector, .type = type, .present = 1, .s = 1, .g = 1,
        .db = !long_mode, .l = long_mode,
    };
}

static void start_state(const VmCpuStart *start, struct kvm_regs *regs, struct kvm_sregs *sregs)
{
    bool long_mode = start->mode == VM_CPU_LONG64;
    struct kvm_segment data = flat_segment(SELECTOR_DATA, 3, false);

    sregs->cs = flat_segment(SELECTOR_CODE, 11, long_mode);
    sregs->ds = sregs->es = sregs->fs = sregs->gs = sregs->ss = data;
    sregs->tr = (struct kvm_segment) { .limit = 0x67, .type = 11, .present = 1 };
    sregs->gdt = (struct kvm_dtable) { .base = start->gdt, .limit = GDT_ENTRIES * 8 - 1 };
    sregs->idt = (struct kvm_dtable) { 0 };
    sregs->cr0 = CR0_PE | CR0_ET;
    if (long_mode) {
        sregs->cr0 |= CR0_PG;
        sregs->cr3 = start->cr3;
        sregs->cr4 = CR4_PAE;
        sregs->efer = EFER_LME | EFER_LMA;
    }
    memset(regs, 0, sizeof(*regs));
    regs->rip = start->rip;
    regs->rsp = start->rsp;
    regs->rbx = start->rbx;
    regs->rsi = start->rsi;
    regs->rflags = RFLAGS_ALWAYS;
}

int kvm_state_reset(KvmCpu *c, const VmCpuStart *start)
{
    KvmReset *r = c->at_reset;
    struct kvm_regs regs = r->regs;
    struct kvm_sregs sregs = r->sregs;
    const struct {
        unsigned long req;
        void *arg;
    } sets[] = {
        { KVM_SET_SREGS, &sregs },      /* first: the APIC's mode is in there */
        { KVM_SET_REGS, &regs },
        { KVM_SET_FPU, &r->fpu },
        { KVM_SET_DEBUGREGS, &r->debug },
        { KVM_SET_LAPIC, &r->lapic },
        { KVM_SET_VCPU_EVENTS, &r->events },
        { KVM_SET_MP_STATE, &r->mp },
    };

    if (start != NULL) {
        start_state(start, &regs, &sregs);
    }
    if (r->have_xcrs) {
        kvm_cpu_ioctl(c, KVM_SET_XCRS, (uintptr_t)&r->xcrs);
    }
    msrs_restore(c, r->msrs);
    for (unsigned i = 0; i < G_N_ELEMENTS(sets); i++) {
        int ret = kvm_cpu_ioctl(c, sets[i].req, (uintptr_t)sets[i].arg);

        if (ret < 0) {
            return ret;
        }
    }
    return 0;
}

char *kvm_state_dump(KvmCpu *c)
{
    struct kvm_regs r;
    struct kvm_sregs s;

    if (kvm_cpu_ioctl(c, KVM_GET_REGS, (uintptr_t)&r) < 0 ||
        kvm_cpu_ioctl(c, KVM_GET_SREGS, (uintptr_t)&s) < 0) {
        return NULL;
    }
    return g_strdup_printf(
        "RAX=%016llx RBX=%016llx RCX=%016llx RDX=%016llx\n"
        "RSI=%016llx RDI=%016llx RBP=%016llx RSP=%016llx\n"
        "R8 =%016llx R9 =%016llx R10=%016llx R11=%016llx\n"
        "R12=%016llx R13=%016llx R14=%016llx R15=%016llx\n"
        "RIP=%016llx RFL=%08llx CS=%04x SS=%04x DS=%04x CPL=%u\n"
        "CR0=%08llx CR2=%016llx CR3=%016llx CR4=%08llx EFER=%016llx\n",
        r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11,
        r.r12, r.r13, r.r14, r.r15, r.rip, r.rflags, s.cs.selector, s.ss.selector,
        s.ds.selector, s.ss.dpl, s.cr0, s.cr2, s.cr3, s.cr4, s.efer);
}
