/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What -cpu says, and where CPUs stand in the topology.
 */
#ifndef HW_CORE_CPU_MODEL_H
#define HW_CORE_CPU_MODEL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "hw/core/vm-ops.h"

typedef enum CpuidReg {
    CPUID_EAX,
    CPUID_EBX,
    CPUID_ECX,
    CPUID_EDX,
} CpuidReg;

/* A bit of CPUID with the name that users type. */
typedef struct CpuFeature {
    const char *name;
    uint32_t leaf;
    uint32_t subleaf;
    CpuidReg reg;
    uint8_t bit;
} CpuFeature;

typedef struct CpuFeatureChange {
    CpuFeature feature;
    bool on;
} CpuFeatureChange;

struct VmCpuModel {
    const char *name;           /* "host" or "max": both all that the accelerator supports */
    GArray *changes;            /* of CpuFeatureChange, in the order given */
};

/* "MODEL[,+FEATURE][,-FEATURE][,FEATURE=on|off]". NULL: the default. */
VmCpuModel *cpu_model_parse(const char *text, GError **errp);
void cpu_model_free(VmCpuModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VmCpuModel, cpu_model_free)
/* As -cpu help prints it. */
void cpu_model_help(GString *out);

/* The name of a feature bit, NULL if it has none. */
const char *cpu_feature_name(uint32_t leaf, uint32_t subleaf, CpuidReg reg, unsigned bit);

/* Bits of an APIC ID that number the threads of a core, the CPUs of a socket. */
unsigned cpu_thread_bits(const VmConfig *config);
unsigned cpu_socket_bits(const VmConfig *config);
/* The APIC ID of CPU number @cpu; below 256 or the configuration was refused. */
uint32_t cpu_apic_id(const VmConfig *config, unsigned cpu);

#endif
