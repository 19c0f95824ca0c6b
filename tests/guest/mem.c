/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mem.h"
#include "console.h"
#include "cpu.h"

#define START_INFO_MAGIC 0x336ec578u
#define MEMMAP_RAM       1

#define PAGE_SHIFT_2M    21
#define PT_PRESENT       1ull
#define PT_TABLE         0x27ull
#define PT_DEVICE        0xffull    /* like boot.S's pages, but uncached */
#define PT_ADDRESS       0x000ffffffffff000ull
#define SPARE_TABLES     24

/* Xen's public interface, arch-x86/hvm/start_info: version 1. */
struct StartInfo {
    uint32_t magic;
    uint32_t version;
    uint32_t flags;
    uint32_t nr_modules;
    uint64_t modlist;
    uint64_t cmdline;
    uint64_t rsdp;
    uint64_t memmap;
    uint32_t memmap_entries;
    uint32_t reserved;
};

struct MemmapEntry {
    uint64_t addr;
    uint64_t size;
    uint32_t type;
    uint32_t reserved;
};

extern char guest_end[];
extern uint64_t page_map_4[512];

uint32_t start_info_addr;

static uint64_t heap, heap_end, ram_end;
static uint64_t spare_tables[SPARE_TABLES][512] __attribute__((aligned(4096)));
static unsigned spare_used;

/* The allocator must not run into what the loader left for us in the same region. */
static void heap_avoid(uint64_t addr, uint64_t len)
{
    uint64_t end = (addr + len + 4095) & ~4095ull;

    if (addr >= heap && addr < heap_end) {
        if (addr - heap > heap_end - end) {
            heap_end = addr & ~4095ull;
        } else {
            heap = end;
        }
    }
}

const char *mem_init(void)
{
    const struct StartInfo *info = (const void *)(uintptr_t)start_info_addr;
    const struct MemmapEntry *map;
    const char *cmdline = "";

    if (info->magic != START_INFO_MAGIC || info->version < 1 || info->memmap == 0) {
        fail("no PVH start information with a memory map", NULL);
    }
    heap = ((uintptr_t)guest_end + 4095) & ~4095ull;
    map = (const void *)info->memmap;
    for (uint32_t i = 0; i < info->memmap_entries && i < 128; i++) {
        if (map[i].type == MEMMAP_RAM && map[i].addr <= heap &&
            map[i].addr + map[i].size > heap) {
            heap_end = map[i].addr + map[i].size;
        }
    }
    heap_end = MIN(heap_end, 1ull << 32);
    ram_end = heap_end;
    if (heap_end == 0) {
        fail("the memory map has no RAM where the guest was loaded", NULL);
    }
    heap_avoid(start_info_addr, sizeof(*info));
    heap_avoid(info->memmap, info->memmap_entries * sizeof(*map));
    if (info->cmdline != 0) {
        cmdline = (const char *)info->cmdline;
        heap_avoid(info->cmdline, strlen(cmdline) + 1);
    }
    return cmdline;
}

void *mem_alloc(size_t size, size_t align)
{
    uint64_t at = (heap + align - 1) & ~(align - 1);

    if (size > heap_end || at > heap_end - size) {
        fail_num("not enough guest memory, bytes missing", at + size - heap_end);
    }
    heap = at + size;
    return memset((void *)at, 0, size);
}

uint64_t mem_mark(void)
{
    return heap;
}

void mem_release(uint64_t mark)
{
    heap = mark;
}

uint64_t mem_end(void)
{
    return ram_end;
}

static uint64_t *table_below(uint64_t *table, unsigned index)
{
    if (!(table[index] & PT_PRESENT)) {
        if (spare_used == SPARE_TABLES) {
            fail("out of page tables for device memory", NULL);
        }
        table[index] = (uintptr_t)spare_tables[spare_used++] | PT_TABLE;
    }
    return (uint64_t *)(table[index] & PT_ADDRESS);
}

void map_phys(uint64_t addr, uint64_t len)
{
    uint64_t first = addr >> PAGE_SHIFT_2M, last = (addr + len - 1) >> PAGE_SHIFT_2M;

    if (addr + len > 1ull << 47) {
        fail_num("a device register lies beyond the address space of this guest", addr);
    }
    for (uint64_t page = first; page <= last; page++) {
        uint64_t *l3 = table_below(page_map_4, page >> 18 & 511);
        uint64_t *l2 = table_below(l3, page >> 9 & 511);

        if (!(l2[page & 511] & PT_PRESENT)) {
            l2[page & 511] = page << PAGE_SHIFT_2M | PT_DEVICE;
        }
    }
}
