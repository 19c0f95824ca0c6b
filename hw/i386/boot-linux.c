/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bzImage by the 64-bit boot protocol (Linux' Documentation/arch/x86/boot.rst).
 */
#include <asm/bootparam.h>
#include <stddef.h>
#include <string.h>

#include "boot-internal.h"
#include "util/err.h"

#define HEADER_OFFSET 0x1f1             /* of struct setup_header, file and zero page */
#define HEADER_MAGIC 0x53726448         /* "HdrS" */
#define BOOT_FLAG 0xaa55
#define PROTOCOL_MIN 0x20c              /* has xloadflags */
#define SECTOR 512
#define SETUP_SECTS_DEFAULT 4
#define ENTRY_64 0x200                  /* behind the start of the 64-bit kernel */
#define LOADER_UNKNOWN 0xff

_Static_assert(offsetof(struct boot_params, hdr) == HEADER_OFFSET, "zero page");
_Static_assert(BOOT_RANGES_MAX <= E820_MAX_ENTRIES_ZEROPAGE, "E820 in the zero page");

static struct setup_header header_of(const uint8_t *head)
{
    struct setup_header h;

    memcpy(&h, head + HEADER_OFFSET, sizeof(h));
    return h;
}

bool boot_linux_is(const uint8_t *head, size_t len)
{
    struct setup_header h;

    if (len < HEADER_OFFSET + sizeof(h)) {
        return false;
    }
    h = header_of(head);
    return h.boot_flag == BOOT_FLAG && h.header == HEADER_MAGIC;
}

/* At its preferred address. It unpacks itself there and needs init_size bytes for that. */
static bool place(BootImage *b, const struct setup_header *h, GError **errp)
{
    uint64_t align = h->kernel_alignment;

    if (align == 0 || (align & (align - 1)) != 0 || align > 1 << 30) {
        err_set(errp, "bzImage '%s': field kernel_alignment is 0x%x", b->kernel_path,
                h->kernel_alignment);
        return false;
    }
    if (h->pref_address < HIGH_RAM || h->pref_address >= RAM_SPLIT ||
        h->pref_address % align != 0) {
        err_set(errp, "bzImage '%s': field pref_address is 0x%llx", b->kernel_path,
                (unsigned long long)h->pref_address);
        return false;
    }
    b->kernel_addr = h->pref_address;
    b->kernel_end = b->kernel_addr + MAX(h->init_size, b->kernel_size - b->setup_bytes);
    return true;
}

bool boot_linux_probe(BootImage *b, const uint8_t *head, size_t len, GError **errp)
{
    struct setup_header h = header_of(head);
    unsigned sects = h.setup_sects != 0 ? h.setup_sects : SETUP_SECTS_DEFAULT;

    if (h.version < PROTOCOL_MIN) {
        err_set(errp, "bzImage '%s' speaks boot protocol %u.%02u; 2.12 is needed", b->kernel_path,
                h.version >> 8, h.version & 0xff);
        return false;
    }
    if (!(h.xloadflags & XLF_KERNEL_64) || !(h.loadflags & LOADED_HIGH)) {
        err_set(errp, "bzImage '%s' has no 64-bit entry point", b->kernel_path);
        return false;
    }
    b->setup_bytes = (sects + 1) * SECTOR;
    if (b->kernel_size < b->setup_bytes + ENTRY_64) {
        err_set(errp, "bzImage '%s' is cut short: %" G_GUINT64_FORMAT " bytes", b->kernel_path,
                b->kernel_size);
        return false;
    }
    b->cmdline_max = MIN(b->cmdline_max, h.cmdline_size);
    if (h.xloadflags & XLF_CAN_BE_LOADED_ABOVE_4G) {
        b->initrd_limit = RAM_SPLIT;
    } else {
        b->initrd_limit = MIN(RAM_SPLIT, (uint64_t)h.initrd_addr_max + 1);
    }
    return place(b, &h, errp);
}

static void zero_page_fill(BootImage *b, const Machine *m, uint64_t rsdp, struct boot_params *bp)
{
    BootRange map[BOOT_RANGES_MAX];
    unsigned n = boot_memory_map(m, map);

    bp->hdr.type_of_loader = LOADER_UNKNOWN;
    bp->hdr.cmd_line_ptr = LOADER_CMDLINE;
    bp->hdr.ramdisk_image = b->initrd_addr;
    bp->hdr.ramdisk_size = b->initrd_size;
    bp->acpi_rsdp_addr = rsdp;
    bp->e820_entries = n;
    for (unsigned i = 0; i < n; i++) {
        bp->e820_table[i].addr = map[i].addr;
        bp->e820_table[i].size = map[i].size;
        bp->e820_table[i].type = map[i].kind;
    }
}

bool boot_linux_load(BootImage *b, Machine *m, uint64_t rsdp, VmCpuStart *start, GError **errp)
{
    uint64_t payload = b->kernel_size - b->setup_bytes;
    struct boot_params *bp = machine_ram_ptr(m, LOADER_BOOT_PARAMS, sizeof(*bp));
    uint8_t head[BOOT_HEAD_SIZE] = { 0 };
    size_t header_end;

    if (!boot_read(b->kernel_fd, b->kernel_path, 0, head, MIN(b->kernel_size, sizeof(head)),
                   errp)) {
        return false;
    }
    /* the header says in the jump at 0x200 how long it is */
    header_end = MIN(0x202u + head[0x201], HEADER_OFFSET + sizeof(bp->hdr));
    memset(bp, 0, sizeof(*bp));
    memcpy(&bp->hdr, head + HEADER_OFFSET, header_end - HEADER_OFFSET);
    zero_page_fill(b, m, rsdp, bp);

    if (!boot_read(b->kernel_fd, b->kernel_path, b->setup_bytes,
                   machine_ram_ptr(m, b->kernel_addr, payload), payload, errp)) {
        return false;
    }
    start->mode = VM_CPU_LONG64;
    start->rip = b->kernel_addr + ENTRY_64;
    start->rsi = LOADER_BOOT_PARAMS;
    return true;
}
