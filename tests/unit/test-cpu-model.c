/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "hw/core/cpu-model.h"

static void test_features(void)
{
    g_autoptr(VmCpuModel) m = cpu_model_parse("host,+avx2,-sse4_2,x2apic=off", NULL);
    const CpuFeatureChange *c;

    g_assert_nonnull(m);
    g_assert_cmpstr(m->name, ==, "host");
    g_assert_cmpuint(m->changes->len, ==, 3);
    c = &g_array_index(m->changes, CpuFeatureChange, 0);
    g_assert_true(c->on);
    g_assert_cmphex(c->feature.leaf, ==, 7);
    g_assert_cmpint(c->feature.reg, ==, CPUID_EBX);
    g_assert_cmpuint(c->feature.bit, ==, 5);
    c = &g_array_index(m->changes, CpuFeatureChange, 1);
    g_assert_false(c->on);
    g_assert_cmpstr(c->feature.name, ==, "sse4.2");
    g_assert_cmpuint(c->feature.bit, ==, 20);
    c = &g_array_index(m->changes, CpuFeatureChange, 2);
    g_assert_false(c->on);
    g_assert_cmpuint(c->feature.bit, ==, 21);
}

/* Bits of the manuals, one of each word. */
static void test_bits(void)
{
    static const struct {
        const char *name;
        uint32_t leaf, subleaf;
        CpuidReg reg;
        unsigned bit;
    } known[] = {
        { "sse2", 1, 0, CPUID_EDX, 26 }, { "aes", 1, 0, CPUID_ECX, 25 },
        { "tsc-deadline", 1, 0, CPUID_ECX, 24 }, { "hypervisor", 1, 0, CPUID_ECX, 31 },
        { "avx512vl", 7, 0, CPUID_EBX, 31 }, { "la57", 7, 0, CPUID_ECX, 16 },
        { "rdpid", 7, 0, CPUID_ECX, 22 }, { "arch-capabilities", 7, 0, CPUID_EDX, 29 },
        { "spec-ctrl", 7, 0, CPUID_EDX, 26 }, { "ssbd", 7, 0, CPUID_EDX, 31 },
        { "avx-vnni", 7, 1, CPUID_EAX, 4 }, { "xsaves", 0xd, 1, CPUID_EAX, 3 },
        { "arat", 6, 0, CPUID_EAX, 2 }, { "lm", 0x80000001, 0, CPUID_EDX, 29 },
        { "nx", 0x80000001, 0, CPUID_EDX, 20 }, { "pdpe1gb", 0x80000001, 0, CPUID_EDX, 26 },
        { "syscall", 0x80000001, 0, CPUID_EDX, 11 }, { "svm", 0x80000001, 0, CPUID_ECX, 2 },
        { "topoext", 0x80000001, 0, CPUID_ECX, 22 }, { "invtsc", 0x80000007, 0, CPUID_EDX, 8 },
        { "ibpb", 0x80000008, 0, CPUID_EBX, 12 }, { "kvmclock", 0x40000001, 0, CPUID_EAX, 0 },
        { "kvm-pv-eoi", 0x40000001, 0, CPUID_EAX, 6 },
        { "kvmclock-stable-bit", 0x40000001, 0, CPUID_EAX, 24 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        g_assert_cmpstr(cpu_feature_name(known[i].leaf, known[i].subleaf, known[i].reg,
                                         known[i].bit), ==, known[i].name);
    }
    g_assert_null(cpu_feature_name(2, 0, CPUID_EAX, 0));
}

static void test_refused(void)
{
    static const char *const bad[] = {
        "", "hosts", "host,", "host,avx2", "host,+", "host,+nosuch", "host,avx2=1", ",+avx2",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        GError *err = NULL;

        g_assert_null(cpu_model_parse(bad[i], &err));
        g_assert_nonnull(strstr(err->message, "-cpu"));
        g_error_free(err);
    }
}

static void check_ids(unsigned sockets, unsigned cores, unsigned threads, const uint32_t *ids)
{
    VmConfig c = { .cpus = sockets * cores * threads, .sockets = sockets, .cores = cores,
                   .threads = threads };

    for (unsigned i = 0; i < c.cpus; i++) {
        g_assert_cmpuint(cpu_apic_id(&c, i), ==, ids[i]);
    }
}

/* Each level has a power of two of numbers, used or not. */
static void test_apic_ids(void)
{
    check_ids(1, 1, 1, (const uint32_t[]) { 0 });
    check_ids(1, 4, 1, (const uint32_t[]) { 0, 1, 2, 3 });
    check_ids(2, 2, 2, (const uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7 });
    check_ids(2, 3, 1, (const uint32_t[]) { 0, 1, 2, 4, 5, 6 });
    check_ids(2, 1, 3, (const uint32_t[]) { 0, 1, 2, 4, 5, 6 });
    check_ids(2, 3, 3, (const uint32_t[]) { 0, 1, 2, 4, 5, 6, 8, 9, 10,
                                            16, 17, 18, 20, 21, 22, 24, 25, 26 });
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu-model/features", test_features);
    g_test_add_func("/cpu-model/bits", test_bits);
    g_test_add_func("/cpu-model/refused", test_refused);
    g_test_add_func("/cpu-model/apic-ids", test_apic_ids);
    return g_test_run();
}
