/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where things are in the guest's physical memory. E820 (boot.c), the ACPI
 * tables (acpi.c, dsdt.asl) and the PCI windows (pc.c) agree through this file.
 */
#ifndef HW_I386_LAYOUT_H
#define HW_I386_LAYOUT_H

/* What the loader leaves for the kernel, in low RAM. */
#define LOADER_GDT 0x1000u
#define LOADER_START_INFO 0x2000u       /* PVH: hvm_start_info, modules, map */
#define LOADER_BOOT_PARAMS 0x7000u      /* Linux' zero page */
#define LOADER_PAGE_TABLES 0x9000u      /* 6 pages: 4 GiB of 2 MiB pages */
#define LOADER_STACK 0x1f000u
#define LOADER_CMDLINE 0x20000u
#define LOADER_CMDLINE_MAX 0x10000u     /* with its NUL */

#define LOW_RAM_END 0x9fc00u            /* as a BIOS leaves it, under its data area */
#define VIDEO_HOLE 0xa0000u             /* no RAM from here ... */
#define VIDEO_HOLE_END 0xc0000u         /* ... to here */
#define BIOS_AREA 0xe0000u              /* ACPI tables; RAM, but not the kernel's */
#define BIOS_AREA_END 0x100000u
#define HIGH_RAM 0x100000u

/* RAM beyond this goes above 4 GiB; what is between is PCI's. */
#define RAM_SPLIT 0xc0000000ull
#define PCI_MEM32_BASE 0xc0000000ull
#define PCI_MEM32_LIMIT 0xfec00000ull   /* IOAPIC and LAPIC follow */
#define KVM_PAGES_BASE 0xfffbc000ull    /* identity map and TSS: see accel/kvm */
#define RAM_ABOVE_4G 0x100000000ull
#define PCI_MEM64_BASE 0x4000000000ull  /* 256 GiB: reachable with 39 address bits */
#define PCI_MEM64_LIMIT 0x8000000000ull
#define PCI_PIO_BASE 0xc000u
#define PCI_PIO_LIMIT 0x10000u

#define IOAPIC_ADDR 0xfec00000u
#define LAPIC_ADDR 0xfee00000u

/* ACPI fixed hardware, in ports. */
#define PM_BASE 0x600u
#define PM_CONTROL (PM_BASE + 4)
#define PM_TIMER (PM_BASE + 8)
#define PM_SIZE 12
#define SCI_GSI 9

#endif
