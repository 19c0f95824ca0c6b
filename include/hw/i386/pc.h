/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pc board: PCI, COM1, RTC, ACPI; boots Linux and PVH kernels by itself.
 */
#ifndef HW_I386_PC_H
#define HW_I386_PC_H

#include "hw/core/machine.h"

extern const MachineType machine_type_pc;

/* What main() adds to its list of types. */
extern const ObjType type_pc_host_bridge;
extern const ObjType type_isa_debug_exit;

#endif
