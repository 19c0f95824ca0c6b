/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU models: names of CPUID bits (Intel SDM vol. 2, AMD APM vol. 3), -cpu,
 * APIC IDs.
 */
#include "hw/core/cpu-model.h"

#include <string.h>

#include "util/err.h"
#include "util/scalar.h"
#include "util/suggest.h"

/* The bits of one register, from 0 on; NULL: no name, nothing to switch. */
typedef struct FeatureWord {
    uint32_t leaf, subleaf;
    CpuidReg reg;
    const char *names[32];
} FeatureWord;

static const FeatureWord words[] = {
    { 1, 0, CPUID_EDX, {
        "fpu", "vme", "de", "pse", "tsc", "msr", "pae", "mce",
        "cx8", "apic", NULL, "sep", "mtrr", "pge", "mca", "cmov",
        "pat", "pse36", "pn", "clflush", NULL, "ds", "acpi", "mmx",
        "fxsr", "sse", "sse2", "ss", NULL, "tm", "ia64", "pbe" } },
    { 1, 0, CPUID_ECX, {
        "pni", "pclmulqdq", "dtes64", "monitor", "ds-cpl", "vmx", "smx", "est",
        "tm2", "ssse3", "cid", NULL, "fma", "cx16", "xtpr", "pdcm",
        NULL, "pcid", "dca", "sse4.1", "sse4.2", "x2apic", "movbe", "popcnt",
        "tsc-deadline", "aes", "xsave", NULL, "avx", "f16c", "rdrand", "hypervisor" } },
    { 7, 0, CPUID_EBX, {
        "fsgsbase", "tsc-adjust", "sgx", "bmi1", "hle", "avx2", NULL, "smep",
        "bmi2", "erms", "invpcid", "rtm", NULL, NULL, "mpx", NULL,
        "avx512f", "avx512dq", "rdseed", "adx", "smap", "avx512ifma", "pcommit", "clflushopt",
        "clwb", "intel-pt", "avx512pf", "avx512er", "avx512cd", "sha-ni", "avx512bw",
        "avx512vl" } },
    { 7, 0, CPUID_ECX, {
        NULL, "avx512vbmi", "umip", "pku", NULL, "waitpkg", "avx512vbmi2", NULL,
        "gfni", "vaes", "vpclmulqdq", "avx512vnni", "avx512bitalg", NULL, "avx512-vpopcntdq", NULL,
        "la57", NULL, NULL, NULL, NULL, NULL, "rdpid", NULL,
        "bus-lock-detect", "cldemote", NULL, "movdiri", "movdir64b", NULL, "sgxlc", "pks" } },
    { 7, 0, CPUID_EDX, {
        NULL, NULL, "avx512-4vnniw", "avx512-4fmaps", "fsrm", NULL, NULL, NULL,
        "avx512-vp2intersect", NULL, "md-clear", NULL, NULL, NULL, "serialize", NULL,
        "tsx-ldtrk", NULL, NULL, "arch-lbr", NULL, NULL, "amx-bf16", "avx512-fp16",
        "amx-tile", "amx-int8", "spec-ctrl", "stibp", NULL, "arch-capabilities",
        "core-capability", "ssbd" } },
    { 7, 1, CPUID_EAX, {
        NULL, NULL, NULL, NULL, "avx-vnni", "avx512-bf16", NULL, "cmpccxadd",
        NULL, NULL, "fzrm", "fsrs", "fsrc", NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL, "amx-fp16", NULL, "avx-ifma" } },
    { 0xd, 1, CPUID_EAX, { "xsaveopt", "xsavec", "xgetbv1", "xsaves", "xfd" } },
    { 6, 0, CPUID_EAX, { NULL, NULL, "arat" } },
    { 0x80000001, 0, CPUID_EDX, {
        [11] = "syscall", [19] = "mp", "nx", NULL, "mmxext", [25] = "fxsr-opt", "pdpe1gb",
        "rdtscp", [29] = "lm", "3dnowext", "3dnow" } },
    { 0x80000001, 0, CPUID_ECX, {
        "lahf-lm", "cmp-legacy", "svm", "extapic", "cr8legacy", "abm", "sse4a", "misalignsse",
        "3dnowprefetch", "osvw", "ibs", "xop", "skinit", "wdt", NULL, "lwp",
        "fma4", "tce", NULL, "nodeid-msr", NULL, "tbm", "topoext", "perfctr-core",
        "perfctr-nb" } },
    { 0x80000007, 0, CPUID_EDX, { [8] = "invtsc" } },
    { 0x80000008, 0, CPUID_EBX, {
        "clzero", NULL, "xsaveerptr", NULL, NULL, NULL, NULL, NULL,
        NULL, "wbnoinvd", NULL, NULL, "ibpb", NULL, "ibrs", "amd-stibp",
        NULL, "stibp-always-on", NULL, NULL, NULL, NULL, NULL, NULL,
        "amd-ssbd", "virt-ssbd", "amd-no-ssb", NULL, "amd-psfd" } },
    { 0x40000001, 0, CPUID_EAX, {
        "kvmclock", "kvm-nopiodelay", "kvm-mmu", "kvmclock2", "kvm-asyncpf", "kvm-steal-time",
        "kvm-pv-eoi", "kvm-pv-unhalt", NULL, "kvm-pv-tlb-flush", "kvm-asyncpf-vmexit",
        "kvm-pv-ipi", "kvm-poll-control", "kvm-pv-sched-yield", "kvm-asyncpf-int",
        "kvm-msi-ext-dest-id", [24] = "kvmclock-stable-bit" } },
};

/* Other names for the same bit. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    { "sse3", "pni" }, { "sse4-1", "sse4.1" }, { "sse4_1", "sse4.1" }, { "sse4-2", "sse4.2" },
    { "sse4_2", "sse4.2" }, { "xd", "nx" }, { "ffxsr", "fxsr-opt" }, { "i64", "lm" },
    { "cmp_legacy", "cmp-legacy" }, { "lahf_lm", "lahf-lm" }, { "nodeid_msr", "nodeid-msr" },
    { "perfctr_core", "perfctr-core" }, { "perfctr_nb", "perfctr-nb" }, { "sha_ni", "sha-ni" },
};

static const char *const models[][2] = {
    { "host", "all features that the accelerator supports on this host" },
    { "max", "the same (default)" },
};

const char *cpu_feature_name(uint32_t leaf, uint32_t subleaf, CpuidReg reg, unsigned bit)
{
    for (unsigned w = 0; w < G_N_ELEMENTS(words); w++) {
        if (words[w].leaf == leaf && words[w].subleaf == subleaf && words[w].reg == reg) {
            return words[w].names[bit];
        }
    }
    return NULL;
}

/* Find @name; offers every name to @near on the way. */
static bool feature_find(const char *name, CpuFeature *out, Suggest *near)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(aliases); i++) {
        if (strcmp(aliases[i].alias, name) == 0) {
            name = aliases[i].name;
        }
    }
    for (unsigned w = 0; w < G_N_ELEMENTS(words); w++) {
        for (unsigned bit = 0; bit < 32; bit++) {
            const char *candidate = words[w].names[bit];

            if (candidate == NULL) {
                continue;
            }
            if (strcmp(candidate, name) == 0) {
                *out = (CpuFeature) {
                    candidate, words[w].leaf, words[w].subleaf, words[w].reg, bit,
                };
                return true;
            }
            suggest_offer(near, candidate);
        }
    }
    return false;
}

/* ---- -cpu ---- */

/* "+name", "-name", "name=on". */
static bool change_parse(const char *text, CpuFeatureChange *out, GError **errp)
{
    g_autofree char *name = NULL;
    const char *value = NULL;
    Suggest near;

    if (*text == '+' || *text == '-') {
        name = g_strdup(text + 1);
        out->on = *text == '+';
    } else {
        value = strchr(text, '=');
        if (value == NULL) {
            err_set(errp, "-cpu: '%s' is neither +FEATURE, -FEATURE nor FEATURE=on|off", text);
            return false;
        }
        name = g_strndup(text, value - text);
    }
    suggest_start(&near, name);
    if (!feature_find(name, &out->feature, &near)) {
        err_set(errp, "-cpu: there is no CPU feature '%s'", name);
        suggest_append(&near, errp);
        return false;
    }
    if (value != NULL && !scalar_parse_bool(value + 1, &out->on)) {
        err_set(errp, "-cpu: '%s' of feature '%s' is neither on nor off", value + 1, name);
        return false;
    }
    return true;
}

static bool model_set_name(VmCpuModel *model, const char *name, GError **errp)
{
    Suggest near;

    suggest_start(&near, name);
    for (unsigned i = 0; i < G_N_ELEMENTS(models); i++) {
        if (strcmp(models[i][0], name) == 0) {
            model->name = models[i][0];
            return true;
        }
        suggest_offer(&near, models[i][0]);
    }
    err_set(errp, "-cpu: there is no CPU model '%s'; there are host and max", name);
    suggest_append(&near, errp);
    return false;
}

VmCpuModel *cpu_model_parse(const char *text, GError **errp)
{
    g_autoptr(VmCpuModel) model = g_new0(VmCpuModel, 1);
    g_auto(GStrv) parts = g_strsplit(text != NULL ? text : "max", ",", -1);

    model->changes = g_array_new(false, false, sizeof(CpuFeatureChange));
    if (!model_set_name(model, parts[0] != NULL ? parts[0] : "", errp)) {
        return NULL;
    }
    for (unsigned i = 1; parts[i] != NULL; i++) {
        CpuFeatureChange change;

        if (!change_parse(parts[i], &change, errp)) {
            return NULL;
        }
        g_array_append_val(model->changes, change);
    }
    return g_steal_pointer(&model);
}

void cpu_model_free(VmCpuModel *model)
{
    if (model != NULL) {
        g_clear_pointer(&model->changes, g_array_unref);
        g_free(model);
    }
}

static gint name_cmp(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void cpu_model_help(GString *out)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    unsigned column = 0;

    g_string_append(out, "Available CPUs:\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(models); i++) {
        g_string_append_printf(out, "x86 %-20s  %s\n", models[i][0], models[i][1]);
    }
    for (unsigned w = 0; w < G_N_ELEMENTS(words); w++) {
        for (unsigned bit = 0; bit < 32; bit++) {
            if (words[w].names[bit] != NULL) {
                g_ptr_array_add(names, (gpointer)words[w].names[bit]);
            }
        }
    }
    g_ptr_array_sort(names, name_cmp);
    g_string_append(out, "\nRecognized CPUID flags:\n");
    for (unsigned i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);

        if (column + 1 + strlen(name) > 78) {
            g_string_append_c(out, '\n');
            column = 0;
        }
        g_string_append_printf(out, "%s%s", column == 0 ? "  " : " ", name);
        column += strlen(name) + (column == 0 ? 2 : 1);
    }
    g_string_append_c(out, '\n');
}

/* ---- topology ---- */

static unsigned bits_for(unsigned n)
{
    unsigned bits = 0;

    while (1u << bits < n) {
        bits++;
    }
    return bits;
}

unsigned cpu_thread_bits(const VmConfig *config)
{
    return bits_for(config->threads);
}

unsigned cpu_socket_bits(const VmConfig *config)
{
    return cpu_thread_bits(config) + bits_for(config->cores);
}

uint32_t cpu_apic_id(const VmConfig *config, unsigned cpu)
{
    unsigned thread = cpu % config->threads;
    unsigned core = cpu / config->threads % config->cores;
    unsigned socket = cpu / (config->threads * config->cores);

    return socket << cpu_socket_bits(config) | core << cpu_thread_bits(config) | thread;
}
