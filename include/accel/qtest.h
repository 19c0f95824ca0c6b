/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The accelerator without vCPUs: lines on a socket do what a guest would do, so
 * that devices are tested on any machine and under sanitizers.
 *
 * Each command is a line, each answer one line, "OK [VALUE]" or "FAIL TEXT".
 * Numbers are decimal, 0x hexadecimal or 0 octal; DATA is 0x and two digits a
 * byte.
 *
 *     outb|outw|outl PORT VALUE            inb|inw|inl PORT
 *     writeb|writew|writel|writeq ADDR VALUE
 *     readb|readw|readl|readq ADDR
 *     write ADDR SIZE DATA                 read ADDR SIZE         RAM, no devices
 *     b64write ADDR SIZE BASE64            b64read ADDR SIZE
 *     memset ADDR SIZE VALUE
 *     irq_intercept_in ioapic
 *     endianness
 *
 * After irq_intercept_in, lines "IRQ raise N" and "IRQ lower N" tell of the pins'
 * changes, and "MSI ADDR DATA" of messages that are not to RAM. A message to RAM
 * is a write of 4 bytes there, so that a test may give its own memory as the
 * address of an MSI-X vector and look at it.
 */
#ifndef ACCEL_QTEST_H
#define ACCEL_QTEST_H

#include "hw/core/vm-ops.h"

extern const VmOps qtest_vm_ops;

/*
 * Serve @spec: "unix:PATH" (where a test listens) or "stdio". When the other side
 * closes, @closed runs. Main thread; ends with the Vm.
 */
bool qtest_serve(Vm *vm, const char *spec, void (*closed)(void *opaque), void *opaque,
                 GError **errp);

#endif
