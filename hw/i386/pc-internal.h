/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of hw/i386. BQL. */
#ifndef HW_I386_PC_INTERNAL_H
#define HW_I386_PC_INTERNAL_H

#include "hw/core/machine.h"
#include "hw/pci/pci.h"
#include "layout.h"

typedef struct Rtc Rtc;
typedef struct AcpiPm AcpiPm;
typedef struct PcReset PcReset;
typedef struct BootImage BootImage;

/* ---- acpi.c ---- */

/* Write the tables into the BIOS area; returns where the RSDP is, 0 if there is no room. */
uint64_t acpi_build(Machine *m);

/* ---- boot.c: kernels ---- */

/* Open and check; nothing is loaded yet. */
BootImage *boot_image_open(const char *kernel, const char *initrd, const char *append,
                           const Machine *m, GError **errp);
void boot_image_free(BootImage *b);
/* Read it into RAM, with all that the kernel wants to know. */
bool boot_image_load(BootImage *b, Machine *m, uint64_t rsdp, VmCpuStart *start, GError **errp);

/* ---- pm.c: ACPI's registers and the PM timer ---- */

AcpiPm *acpi_pm_new(Machine *m, GError **errp);
void acpi_pm_free(AcpiPm *pm);
/* The RTC's alarm is an event of ACPI's, too. */
void acpi_pm_rtc_alarm(AcpiPm *pm);

/* ---- rtc.c: MC146818 at ports 0x70 and 0x71 ---- */

/* @pm hears of alarms; it goes after the RTC. */
Rtc *rtc_new(Machine *m, AcpiPm *pm, GError **errp);
void rtc_free(Rtc *rtc);

/* ---- reset-ports.c: ports 0x64 and 0xCF9 ---- */

PcReset *pc_reset_new(Machine *m, GError **errp);
void pc_reset_free(PcReset *r);
/* Port 0xCF9 lies amid PCI's address register, which passes it on. */
void pc_reset_cf9(Machine *m, uint8_t value);

#endif
