/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPUID: what KVM supports, less and more as -cpu says, with each vCPU's place
 * in the topology (Intel SDM vol. 2 CPUID, AMD APM vol. 3 appendix E, Linux'
 * Documentation/virt/kvm/x86/cpuid.rst).
 */
#include <errno.h>
#include <string.h>

#include "hw/core/cpu-model.h"
#include "kvm-internal.h"
#include "util/err.h"

#define ENTRIES_MAX 256                 /* the kernel's limit */
#define LEAF_KVM 0x40000000u
#define LEAF_TIMING 0x40000010u         /* EAX: TSC kHz, EBX: APIC bus kHz */
#define APIC_BUS_KHZ 1000000
#define MSR_ARCH_CAPABILITIES 0x10a
#define MSR_CORE_CAPABILITY 0xcf
#define MSR_PERF_CAPABILITIES 0x345

static struct kvm_cpuid_entry2 *find(struct kvm_cpuid2 *c, uint32_t leaf, uint32_t subleaf)
{
    for (unsigned i = 0; i < c->nent; i++) {
        struct kvm_cpuid_entry2 *e = &c->entries[i];

        if (e->function == leaf &&
            (!(e->flags & KVM_CPUID_FLAG_SIGNIFCANT_INDEX) || e->index == subleaf)) {
            return e;
        }
    }
    return NULL;
}

static uint32_t *reg_of(struct kvm_cpuid_entry2 *e, CpuidReg reg)
{
    uint32_t *regs[] = { &e->eax, &e->ebx, &e->ecx, &e->edx };

    return regs[reg];
}

static struct kvm_cpuid_entry2 *add(struct kvm_cpuid2 *c, uint32_t leaf, uint32_t subleaf,
                                    bool indexed)
{
    struct kvm_cpuid_entry2 *e = find(c, leaf, subleaf);

    if (e == NULL && c->nent < ENTRIES_MAX) {
        e = &c->entries[c->nent++];
        *e = (struct kvm_cpuid_entry2) {
            .function = leaf, .index = subleaf,
            .flags = indexed ? KVM_CPUID_FLAG_SIGNIFCANT_INDEX : 0,
        };
    }
    return e;
}

/* Leaves of zeroes say nothing, and there are many of them. */
static void drop_empty(struct kvm_cpuid2 *c)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < c->nent; i++) {
        const struct kvm_cpuid_entry2 *e = &c->entries[i];

        if ((e->eax | e->ebx | e->ecx | e->edx) != 0) {
            c->entries[kept++] = *e;
        }
    }
    c->nent = kept;
}

/* ---- features ---- */

static bool feature_get(struct kvm_cpuid2 *c, const CpuFeature *f)
{
    struct kvm_cpuid_entry2 *e = find(c, f->leaf, f->subleaf);

    return e != NULL && (*reg_of(e, f->reg) >> f->bit & 1);
}

static void feature_clear(struct kvm_cpuid2 *c, const CpuFeature *f)
{
    struct kvm_cpuid_entry2 *e = find(c, f->leaf, f->subleaf);

    if (e != NULL) {
        *reg_of(e, f->reg) &= ~(1u << f->bit);
    }
}

/* Features that KVM has although KVM_GET_SUPPORTED_CPUID need not say so. */
static void add_unreported(KvmVm *k)
{
    struct kvm_cpuid_entry2 *e = find(k->cpuid, 1, 0);

    if (e != NULL) {
        e->ecx |= 1u << 31;             /* hypervisor present */
        e->ecx |= 1u << 21;             /* x2APIC: the kernel's LAPIC has it */
        if (kvm_check(k, KVM_CAP_TSC_DEADLINE_TIMER)) {
            e->ecx |= 1u << 24;
        }
    }
}

/* "+feature" that is not to be had goes into @refused; "-feature" always works. */
static void apply_model(KvmVm *k, const VmCpuModel *model, GString *refused)
{
    for (unsigned i = 0; i < model->changes->len; i++) {
        const CpuFeatureChange *ch = &g_array_index(model->changes, CpuFeatureChange, i);

        if (!ch->on) {
            feature_clear(k->cpuid, &ch->feature);
        } else if (!feature_get(k->cpuid, &ch->feature)) {
            g_string_append_printf(refused, "%s%s", refused->len > 0 ? ", " : "",
                                   ch->feature.name);
        }
    }
}

/* Can a vCPU read @msr? */
static bool msr_readable(KvmCpu *c, uint32_t msr)
{
    struct {
        struct kvm_msrs head;
        struct kvm_msr_entry entry;
    } m = { .head.nmsrs = 1, .entry.index = msr };

    return kvm_cpu_ioctl(c, KVM_GET_MSRS, (uintptr_t)&m) == 1;
}

/* Features that announce an MSR, which some KVMs then refuse. */
static void drop_refused_msrs(KvmCpu *c, GString *refused)
{
    static const struct {
        CpuFeature feature;
        uint32_t msr;
    } announced[] = {
        { { "arch-capabilities", 7, 0, CPUID_EDX, 29 }, MSR_ARCH_CAPABILITIES },
        { { "core-capability", 7, 0, CPUID_EDX, 30 }, MSR_CORE_CAPABILITY },
        { { "pdcm", 1, 0, CPUID_ECX, 15 }, MSR_PERF_CAPABILITIES },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(announced); i++) {
        const CpuFeature *f = &announced[i].feature;

        if (feature_get(c->vm->cpuid, f) && !msr_readable(c, announced[i].msr)) {
            feature_clear(c->vm->cpuid, f);
            g_string_append_printf(refused, "%s%s", refused->len > 0 ? ", " : "", f->name);
        }
    }
}

/* ---- topology ---- */

static void topology_basic(const KvmCpu *c, struct kvm_cpuid2 *cpuid, uint32_t apic_id)
{
    const VmConfig *cfg = &c->vm->vm.config;
    unsigned per_socket = cfg->cores * cfg->threads;
    struct kvm_cpuid_entry2 *e = find(cpuid, 1, 0);

    if (e != NULL) {
        e->ebx = (e->ebx & 0x0000ffff) | apic_id << 24 | MIN(per_socket, 255) << 16;
        e->edx = (e->edx & ~(1u << 28)) | (per_socket > 1) << 28;
    }
    e = find(cpuid, 0x80000001, 0);
    if (e != NULL) {
        /* core multi-processing legacy mode: AMD's way to say that these are cores */
        e->ecx = (e->ecx & ~2u) | (e->ecx & 2 && per_socket > 1 ? 2 : 0);
    }
    e = find(cpuid, 0x80000008, 0);
    if (e != NULL) {
        e->ecx = (e->ecx & ~0xf0ffu) | cpu_socket_bits(cfg) << 12 | MIN(per_socket - 1, 255);
    }
}

/* Leaf 4 and, with another layout of the same fields, 0x8000001D: who shares a cache. */
static void topology_caches(const KvmCpu *c, struct kvm_cpuid2 *cpuid)
{
    const VmConfig *cfg = &c->vm->vm.config;
    unsigned per_socket = cfg->cores * cfg->threads;

    for (unsigned i = 0; i < cpuid->nent; i++) {
        struct kvm_cpuid_entry2 *e = &cpuid->entries[i];
        unsigned level = e->eax >> 5 & 7;
        unsigned sharing = level >= 3 ? per_socket : cfg->threads;

        if ((e->function != 4 && e->function != 0x8000001d) || (e->eax & 0x1f) == 0) {
            continue;
        }
        e->eax = (e->eax & 0x3fff) | (sharing - 1) << 14;
        if (e->function == 4) {
            e->eax |= (MIN(cfg->cores, 64) - 1) << 26;
        }
    }
}

/* Leaves 0xB and 0x1F: the levels of the APIC ID. */
static void topology_levels(const KvmCpu *c, struct kvm_cpuid2 *cpuid, uint32_t leaf,
                            uint32_t apic_id)
{
    const VmConfig *cfg = &c->vm->vm.config;
    const struct {
        unsigned shift, count, type;
    } levels[] = {
        { cpu_thread_bits(cfg), cfg->threads, 1 },
        { cpu_socket_bits(cfg), cfg->cores * cfg->threads, 2 },
        { 0, 0, 0 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(levels); i++) {
        struct kvm_cpuid_entry2 *e = add(cpuid, leaf, i, true);

        if (e != NULL) {
            e->eax = levels[i].shift;
            e->ebx = levels[i].count;
            e->ecx = levels[i].type << 8 | i;
            e->edx = apic_id;
        }
    }
}

static void topology_set(const KvmCpu *c, struct kvm_cpuid2 *cpuid)
{
    const VmConfig *cfg = &c->vm->vm.config;
    uint32_t apic_id = cpu_apic_id(cfg, c->index);
    struct kvm_cpuid_entry2 *base = find(cpuid, 0, 0);
    struct kvm_cpuid_entry2 *amd_topology = find(cpuid, 0x80000001, 0);

    topology_basic(c, cpuid, apic_id);
    topology_caches(c, cpuid);
    if (base != NULL && base->eax >= 0xb) {
        topology_levels(c, cpuid, 0xb, apic_id);
    }
    if (find(cpuid, 0x1f, 0) != NULL) {
        topology_levels(c, cpuid, 0x1f, apic_id);
    }
    if (amd_topology != NULL && (amd_topology->ecx & 1u << 22)) {
        struct kvm_cpuid_entry2 *e = add(cpuid, 0x8000001e, 0, false);

        if (e != NULL) {
            e->eax = apic_id;
            e->ebx = (cfg->threads - 1) << 8 | c->index / cfg->threads % cfg->cores;
            e->ecx = c->index / (cfg->cores * cfg->threads);
            e->edx = 0;
        }
    }
}

/* Spares guests the calibration of TSC and APIC timer. */
static void timing_set(KvmVm *k)
{
    struct kvm_cpuid_entry2 *base = find(k->cpuid, LEAF_KVM, 0);
    struct kvm_cpuid_entry2 *e;

    if (base == NULL || k->tsc_khz == 0) {
        return;
    }
    base->eax = LEAF_TIMING;
    e = add(k->cpuid, LEAF_TIMING, 0, false);
    if (e != NULL) {
        e->eax = k->tsc_khz;
        e->ebx = APIC_BUS_KHZ;
    }
}

/* ---- for the other files ---- */

bool kvm_cpuid_init(KvmVm *k, GError **errp)
{
    g_autoptr(GString) refused = g_string_new(NULL);
    int ret;

    k->cpuid = g_malloc0(sizeof(*k->cpuid) + ENTRIES_MAX * sizeof(k->cpuid->entries[0]));
    k->cpuid->nent = ENTRIES_MAX;
    ret = kvm_dev_ioctl(k, KVM_GET_SUPPORTED_CPUID, (uintptr_t)k->cpuid);
    if (ret < 0) {
        err_set_errno(errp, -ret, "KVM_GET_SUPPORTED_CPUID");
        return false;
    }
    drop_empty(k->cpuid);
    add_unreported(k);
    apply_model(k, k->vm.config.cpu_model, refused);
    if (refused->len > 0) {
        report_warning("-cpu: KVM here does not support %s", refused->str);
    }
    return true;
}

bool kvm_cpuid_set(KvmCpu *c, GError **errp)
{
    KvmVm *k = c->vm;
    size_t size = sizeof(*k->cpuid) + ENTRIES_MAX * sizeof(k->cpuid->entries[0]);
    g_autofree struct kvm_cpuid2 *own = NULL;
    int ret;

    if (c->index == 0) {
        g_autoptr(GString) refused = g_string_new(NULL);

        ret = kvm_cpu_ioctl(c, KVM_GET_TSC_KHZ, 0);
        k->tsc_khz = MAX(ret, 0);
        timing_set(k);
        drop_refused_msrs(c, refused);
        if (refused->len > 0) {
            report_warning("-cpu: without %s: KVM here announces what it then refuses",
                           refused->str);
        }
    }
    own = g_memdup2(k->cpuid, size);
    topology_set(c, own);
    ret = kvm_cpu_ioctl(c, KVM_SET_CPUID2, (uintptr_t)own);
    if (ret < 0) {
        err_set_errno(errp, -ret, "KVM_SET_CPUID2 for CPU %u", c->index);
        return false;
    }
    return true;
}
