/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What ring 0 does for ring 3 (call of gate_call, function in RAX). Shared by C and assembly.
 */
#ifndef GUEST_GATE_H
#define GUEST_GATE_H

#define GATE_WAIT         0 /* RDI: address of a counter, RSI: value. Halt unless it has moved on */
#define GATE_CPUID        1 /* RDI: leaf, RSI: subleaf, RDX: four u32 to fill */
#define GATE_RDMSR        2 /* RDI: index; result in RAX */
#define GATE_WRMSR        3 /* RDI: index, RSI: value */
#define GATE_ENABLE       4 /* interrupts on for good */
#define GATE_TRIPLE_FAULT 5

/* IDT layout: 0x20 to 0x2f for the PIC and IOAPIC lines, then the message-signalled ones. */
#define INTX_VECTOR_BASE  0x20
#define MSI_VECTOR_BASE   0x40
#define MSI_VECTORS       0xa0
#define SPURIOUS_VECTOR   0xff

#endif
