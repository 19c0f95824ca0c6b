/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between boot.c and the two formats. */
#ifndef HW_I386_BOOT_INTERNAL_H
#define HW_I386_BOOT_INTERNAL_H

#include "pc-internal.h"

#define BOOT_HEAD_SIZE 4096     /* of the kernel, what probing gets to see */

/* A piece of an ELF kernel. Lies in RAM; file_size <= mem_size. */
typedef struct BootSegment {
    uint64_t offset, file_size, addr, mem_size;
} BootSegment;

struct BootImage {
    char *kernel_path, *initrd_path, *cmdline;
    int kernel_fd, initrd_fd;
    uint64_t kernel_size, initrd_size;
    size_t cmdline_max;                 /* without its NUL */
    uint64_t kernel_end;                /* behind what it uses at first */
    uint64_t initrd_limit, initrd_addr;
    bool (*load)(BootImage *b, Machine *m, uint64_t rsdp, VmCpuStart *start, GError **errp);

    /* bzImage */
    unsigned setup_bytes;               /* in the file, before the 64-bit kernel */
    uint64_t kernel_addr;

    /* ELF */
    BootSegment *segments;
    unsigned n_segments;
    uint64_t entry;
};

typedef enum BootRangeKind {
    BOOT_RAM = 1,                       /* numbers of E820 and of the PVH map */
    BOOT_RESERVED = 2,
} BootRangeKind;

typedef struct BootRange {
    uint64_t addr, size;
    BootRangeKind kind;
} BootRange;

#define BOOT_RANGES_MAX 8

/* Fills @map (room for BOOT_RANGES_MAX), returns how many. */
unsigned boot_memory_map(const Machine *m, BootRange *map);
uint64_t boot_low_ram_end(const Machine *m);

/* All of it, or an error. */
bool boot_read(int fd, const char *path, uint64_t off, void *buf, uint64_t len, GError **errp);

bool boot_linux_is(const uint8_t *head, size_t len);
bool boot_linux_probe(BootImage *b, const uint8_t *head, size_t len, GError **errp);
bool boot_linux_load(BootImage *b, Machine *m, uint64_t rsdp, VmCpuStart *start, GError **errp);

bool boot_pvh_is(const uint8_t *head, size_t len);
bool boot_pvh_probe(BootImage *b, const uint8_t *head, size_t len, GError **errp);
bool boot_pvh_load(BootImage *b, Machine *m, uint64_t rsdp, VmCpuStart *start, GError **errp);

#endif
