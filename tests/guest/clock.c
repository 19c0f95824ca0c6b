/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frequency of the TSC. In this order, unless one is asked for by name: kvmclock (KVM's MSR
 * interface, kernel document virt/kvm/x86/msr), CPUID leaves 0x15 and 0x40000010, the PIT.
 */
#include <asm/kvm_para.h>

#include "console.h"
#include "cpu.h"

#define PIT_HZ 1193182u

/* Filled in by KVM; layout from the kernel document virt/kvm/x86/msr, MSR_KVM_SYSTEM_TIME_NEW. */
struct TimeInfo {
    uint32_t version;
    uint32_t pad0;
    uint64_t tsc_timestamp;
    uint64_t system_time;
    uint32_t tsc_to_system_mul;
    int8_t tsc_shift;
    uint8_t flags;
    uint8_t pad[2];
};

uint64_t tsc_khz;
const char *tsc_source;

static volatile struct TimeInfo time_info __attribute__((aligned(64)));

static uint32_t hypervisor_max_leaf(void)
{
    uint32_t r[4];

    cpu_cpuid(1, 0, r);
    if (!(r[2] & 1u << 31)) {
        return 0;
    }
    cpu_cpuid(KVM_CPUID_SIGNATURE, 0, r);
    return r[0];
}

/* KVM's signature is "KVMKVMKVM\0\0\0" in EBX, ECX, EDX. */
static bool is_kvm(void)
{
    uint32_t r[4];

    if (hypervisor_max_leaf() == 0) {
        return false;
    }
    cpu_cpuid(KVM_CPUID_SIGNATURE, 0, r);
    return memcmp(&r[1], "KVMKVMKVM\0\0", 12) == 0;
}

static uint64_t khz_from_kvmclock(void)
{
    uint32_t r[4];
    uint64_t khz;

    if (!is_kvm()) {
        return 0;
    }
    cpu_cpuid(KVM_CPUID_FEATURES, 0, r);
    if (!(r[0] & 1u << KVM_FEATURE_CLOCKSOURCE2)) {
        return 0;
    }
    cpu_wrmsr(MSR_KVM_SYSTEM_TIME_NEW, (uintptr_t)&time_info | 1);
    for (unsigned i = 0; i < 1000 && (time_info.version == 0 || time_info.version & 1); i++) {
        cpu_pause();
    }
    cpu_wrmsr(MSR_KVM_SYSTEM_TIME_NEW, 0);
    if (time_info.tsc_to_system_mul == 0) {
        return 0;
    }
    khz = (1000000ull << 32) / time_info.tsc_to_system_mul;
    return time_info.tsc_shift < 0 ? khz << -time_info.tsc_shift : khz >> time_info.tsc_shift;
}

static uint64_t khz_from_cpuid(void)
{
    uint32_t r[4];

    cpu_cpuid(0, 0, r);
    if (r[0] >= 0x15) {
        cpu_cpuid(0x15, 0, r);
        if (r[0] != 0 && r[1] != 0 && r[2] != 0) {
            return mul_div(r[2], r[1], r[0]) / 1000;
        }
    }
    if (hypervisor_max_leaf() >= 0x40000010) {
        cpu_cpuid(0x40000010, 0, r);
        return r[0];
    }
    return 0;
}

static uint32_t pit_read(void)
{
    uint32_t lo;

    outb(0x43, 0x80);               /* latch channel 2 */
    lo = inb(0x42);
    return inb(0x42) << 8 | lo;
}

/*
 * Channel 2 counts down from 65535 while its gate is open; the tightest of several reads on each
 * side bounds the error made by slow port accesses.
 */
static uint64_t khz_from_pit_once(void)
{
    uint64_t begin = 0, end = 0, best_begin = UINT64_MAX, best_end = UINT64_MAX;
    uint32_t first = 0, last = 0;

    outb(0x61, (inb(0x61) & ~2) | 1);
    outb(0x43, 0xb0);               /* channel 2, both bytes, mode 0 */
    outb(0x42, 0xff);
    outb(0x42, 0xff);
    for (unsigned i = 0; i < 24; i++) {
        bool early = i < 8;
        uint64_t a = rdtsc(), b;
        uint32_t count = pit_read();

        b = rdtsc();
        if (early ? b - a < best_begin : b - a < best_end) {
            *(early ? &best_begin : &best_end) = b - a;
            *(early ? &begin : &end) = a + (b - a) / 2;
            *(early ? &first : &last) = count;
        }
        while (i == 7 && pit_read() > 6000) {
            cpu_pause();
        }
    }
    if (first <= last || end <= begin) {
        return 0;
    }
    return mul_div(end - begin, PIT_HZ, first - last) / 1000;
}

/* A vCPU that is off its CPU while the counter wraps measures nonsense: two have to agree. */
static uint64_t khz_from_pit(void)
{
    uint64_t last = 0, khz;

    for (unsigned i = 0; i < 20; i++) {
        khz = khz_from_pit_once();
        if (khz != 0 && MAX(khz, last) - MIN(khz, last) < khz / 1000) {
            return khz;
        }
        last = khz;
    }
    return 0;
}

bool clock_init(const char *source)
{
    static const struct {
        const char *name;
        uint64_t (*khz)(void);
    } sources[] = {
        { "kvmclock", khz_from_kvmclock },
        { "cpuid", khz_from_cpuid },
        { "pit", khz_from_pit },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(sources); i++) {
        if (!str_eq(source, "auto") && !str_eq(source, sources[i].name)) {
            continue;
        }
        tsc_khz = sources[i].khz();
        if (tsc_khz != 0) {
            tsc_source = sources[i].name;
            return true;
        }
    }
    return false;
}

uint64_t cycles_to_ns(uint64_t cycles)
{
    return mul_div(cycles, 1000000, tsc_khz);
}

uint64_t ns_to_cycles(uint64_t ns)
{
    return mul_div(ns, tsc_khz, 1000000);
}
