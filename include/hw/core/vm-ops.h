/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VmOps: all that machines and devices need of an accelerator, one const
 * table that an accelerator fills. Nothing here knows a device, and no device
 * sees the kernel's KVM headers.
 *
 * Thread: unless a comment says otherwise a function is called with the BQL
 * held (main or vCPU thread) and never waits for a vCPU that is in the guest.
 * "Any thread": also from an IOThread, without the BQL.
 *
 * Units: addresses and sizes are bytes of the guest's physical (or port)
 * space; a GSI is a global system interrupt number: 0..23 the pins of PIC and
 * IOAPIC, more only through VmOps.msi_route_add.
 *
 * Errors: set-up by GError, the rest by -errno.
 */
#ifndef HW_CORE_VM_OPS_H
#define HW_CORE_VM_OPS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Vm Vm;
typedef struct VmOps VmOps;
typedef struct VmCpuModel VmCpuModel;   /* hw/core/cpu-model.h */

typedef enum VmSpace {
    VM_PIO,
    VM_MMIO,
} VmSpace;

/* A piece of guest RAM. */
typedef struct VmRam {
    uint64_t gpa;               /* multiple of 4096 */
    uint64_t size;              /* multiple of 4096, not 0 */
    void *host;                 /* stays mapped until ram_del or destroy */
    bool read_only;             /* guest writes become exits (needs VM_CAP_RAM_READ_ONLY) */
} VmRam;

/*
 * A guest write of @len bytes at @addr signals @fd instead of leaving the
 * guest. len 0: any length (needs VM_CAP_IOEVENTFD_ANY_LENGTH; no @match).
 */
typedef struct VmIoEventFd {
    VmSpace space;
    uint64_t addr;
    unsigned len;               /* 0, 1, 2, 4, 8 */
    bool match;                 /* only when the value written equals @data */
    uint64_t data;
    int fd;                     /* the caller's; open until ioeventfd_del */
} VmIoEventFd;

typedef struct VmMsi {
    uint64_t addr;
    uint32_t data;
} VmMsi;

/* What an accelerator can do, asked of it and never derived from its name. */
typedef enum VmCap {
    VM_CAP_IOEVENTFD,
    VM_CAP_IOEVENTFD_ANY_LENGTH,
    VM_CAP_IRQFD,
    VM_CAP_IRQFD_RESAMPLE,
    VM_CAP_MSI_ROUTES,          /* msi_route_*() with irqfds on them */
    VM_CAP_RAM_READ_ONLY,
    VM_CAP_VCPUS,               /* guest code runs (qtest: not) */
} VmCap;

/* Flat protected mode, or long mode with what the loader left in memory. */
typedef enum VmCpuMode {
    VM_CPU_PROT32,              /* no paging (the PVH entry) */
    VM_CPU_LONG64,              /* page tables at @cr3 (Linux' 64-bit entry) */
} VmCpuMode;

/*
 * State in which the boot processor starts; the others wait for INIT-SIPI.
 * Code 0x10 and data 0x18 selectors of a flat GDT at @gdt, interrupts off.
 */
typedef struct VmCpuStart {
    VmCpuMode mode;
    uint64_t rip, rsp, rbx, rsi;
    uint64_t cr3;
    uint64_t gdt;               /* 4 entries of 8 bytes, in guest RAM */
} VmCpuStart;

/* What vCPUs need of the machine. */
typedef struct VmExits {
    /* BQL held. @size 1, 2 or 4 (pio), 1 to 8 (mmio). */
    uint64_t (*pio_read)(void *machine, uint16_t port, unsigned size);
    void (*pio_write)(void *machine, uint16_t port, uint64_t value, unsigned size);
    uint64_t (*mmio_read)(void *machine, uint64_t addr, unsigned size);
    void (*mmio_write)(void *machine, uint64_t addr, uint64_t value, unsigned size);
    /* BQL held. The guest shut its processor down (triple fault). */
    void (*shutdown)(void *machine);
    /*
     * BQL held. vCPU @cpu can't go on; it stays stopped. @text is one line,
     * @dump (may be NULL) several with the registers.
     */
    void (*failure)(void *machine, unsigned cpu, const char *text, const char *dump);
} VmExits;

typedef struct VmConfig {
    unsigned cpus, sockets, cores, threads;     /* cpus = product of the rest, at most 255 */
    const VmCpuModel *cpu_model;                /* borrowed during create() */
    bool debug_threads;                         /* name vCPU threads "CPU n/KVM" */
    const VmExits *exits;
    void *machine;                              /* for @exits */
} VmConfig;

/* An accelerator's state begins with this. */
struct Vm {
    const VmOps *ops;
    VmConfig config;
};

struct VmOps {
    const char *name;                           /* as -accel knows it */

    Vm *(*create)(const VmConfig *config, GError **errp);
    /* vCPUs end first. RAM, fds stay the owners'. */
    void (*destroy)(Vm *vm);
    bool (*has)(const Vm *vm, VmCap cap);       /* any thread */

    /* ---- memory ---- */
    bool (*ram_add)(Vm *vm, const VmRam *ram, GError **errp);
    void (*ram_del)(Vm *vm, uint64_t gpa);

    /* ---- guest writes that signal an eventfd ---- */
    int (*ioeventfd_add)(Vm *vm, const VmIoEventFd *ev);
    void (*ioeventfd_del)(Vm *vm, const VmIoEventFd *ev);   /* the same as added */

    /* ---- interrupts ---- */
    /* Level of a pin; devices that share one OR their levels before. Any thread. */
    void (*irq_set)(Vm *vm, unsigned gsi, bool level);
    /* As firmware would: pins 0..15 with a bit in @mask are level-triggered at
     * the legacy controller. */
    void (*irq_set_level_triggered)(Vm *vm, uint16_t mask);
    /* Any thread. 0, or -errno when the address means nothing. */
    int (*msi_send)(Vm *vm, const VmMsi *msi);
    /* A new GSI that sends @msi, or -errno (-ENOSPC: no more). */
    int (*msi_route_add)(Vm *vm, const VmMsi *msi);
    int (*msi_route_update)(Vm *vm, unsigned gsi, const VmMsi *msi);
    void (*msi_route_del)(Vm *vm, unsigned gsi);    /* without an irqfd on it */
    /*
     * Signalling @fd raises @gsi; one that is already signalled does so at once.
     * @resample_fd >= 0: level; the pin goes down when the guest acknowledges
     * it, and @resample_fd is signalled.
     */
    int (*irqfd_add)(Vm *vm, unsigned gsi, int fd, int resample_fd);
    /* @fd no longer raises @gsi when this returns; what is signalled stays in it. */
    void (*irqfd_del)(Vm *vm, unsigned gsi, int fd);

    /* ---- vCPUs ---- */
    /* Make the vCPUs and their threads, paused. After RAM and before cpus_reset. */
    bool (*cpus_create)(Vm *vm, GError **errp);
    /* While paused: power-on state of CPUs and interrupt controllers, then @start. */
    void (*cpus_reset)(Vm *vm, const VmCpuStart *start);
    /*
     * No vCPU is in the guest or in an exit when this returns. Waits, giving
     * the BQL away meanwhile. Main thread only; no effect when paused.
     */
    void (*cpus_pause)(Vm *vm);
    void (*cpus_resume)(Vm *vm);
    /* Begin to pause and don't wait. Any thread. */
    void (*cpus_kick)(Vm *vm);
    /* Host thread of @cpu, 0 while there is none. Any thread. */
    int (*cpu_thread_id)(const Vm *vm, unsigned cpu);
    /* Frequency of the guest's TSC, 0 if not known. */
    uint32_t (*tsc_khz)(const Vm *vm);
};

#endif
