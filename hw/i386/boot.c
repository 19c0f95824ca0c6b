/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a boot loader does: kernel, initial RAM disk, command line and memory map
 * into RAM. The files stay open and are read again at each reset, so that no
 * copy of them costs memory. Formats: boot-linux.c, boot-pvh.c.
 */
#include "boot-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/err.h"

#define PAGE 4096ull
#define GDT_CODE64 0x00af9b000000ffffull
#define GDT_CODE32 0x00cf9b000000ffffull
#define GDT_DATA 0x00cf93000000ffffull
#define PT_PRESENT_WRITE 3ull
#define PT_LARGE 0x80ull
#define IDENTITY_GIB 4

bool boot_read(int fd, const char *path, uint64_t off, void *buf, uint64_t len, GError **errp)
{
    char *p = buf;

    while (len > 0) {
        ssize_t n = pread(fd, p, MIN(len, 1 << 30), off);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            err_set_errno(errp, n < 0 ? errno : EIO, "cannot read '%s'", path);
            return false;
        }
        p += n;
        off += n;
        len -= n;
    }
    return true;
}

static int file_open(const char *what, const char *path, uint64_t *size, GError **errp)
{
    /* a pipe that nobody writes to must not hold us up; files don't care */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0) {
        err_set_errno(errp, errno, "cannot open %s '%s'", what, path);
        return -1;
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        err_set(errp, "%s '%s' is not a regular file", what, path);
        close(fd);
        return -1;
    }
    *size = st.st_size;
    return fd;
}

/* ---- placement ---- */

/* Everything is loaded below the PCI hole, in the piece of RAM from 1 MiB on. */
uint64_t boot_low_ram_end(const Machine *m)
{
    return MIN(m->ram_size, RAM_SPLIT);
}

/* The initial RAM disk: as high as it may be, above @floor. */
static bool initrd_place(BootImage *b, const Machine *m, GError **errp)
{
    uint64_t top = MIN(boot_low_ram_end(m), b->initrd_limit);

    if (b->initrd_size > top || (top - b->initrd_size) / PAGE * PAGE < b->kernel_end) {
        err_set(errp, "initrd '%s' (%" G_GUINT64_FORMAT " KiB) doesn't fit into RAM behind the "
                "kernel: give the guest more memory (-m)", b->initrd_path,
                b->initrd_size >> 10);
        return false;
    }
    b->initrd_addr = (top - b->initrd_size) / PAGE * PAGE;
    return true;
}

static bool kernel_fits(const BootImage *b, const Machine *m, GError **errp)
{
    if (b->kernel_end > boot_low_ram_end(m)) {
        err_set(errp, "kernel '%s' needs RAM up to %" G_GUINT64_FORMAT " MiB; there is less: give "
                "the guest more memory (-m)", b->kernel_path, (b->kernel_end >> 20) + 1);
        return false;
    }
    return true;
}

/* ---- opening ---- */

void boot_image_free(BootImage *b)
{
    if (b == NULL) {
        return;
    }
    if (b->kernel_fd >= 0) {
        close(b->kernel_fd);
    }
    if (b->initrd_fd >= 0) {
        close(b->initrd_fd);
    }
    g_free(b->kernel_path);
    g_free(b->initrd_path);
    g_free(b->cmdline);
    g_free(b->segments);
    g_free(b);
}

static bool probe(BootImage *b, GError **errp)
{
    uint8_t head[BOOT_HEAD_SIZE] = { 0 };
    size_t len = MIN(b->kernel_size, sizeof(head));

    if (!boot_read(b->kernel_fd, b->kernel_path, 0, head, len, errp)) {
        return false;
    }
    if (boot_pvh_is(head, len)) {
        b->load = boot_pvh_load;
        return boot_pvh_probe(b, head, len, errp);
    }
    if (boot_linux_is(head, len)) {
        b->load = boot_linux_load;
        return boot_linux_probe(b, head, len, errp);
    }
    err_set(errp, "'%s' is neither a bzImage nor an ELF file", b->kernel_path);
    return false;
}

BootImage *boot_image_open(const char *kernel, const char *initrd, const char *append,
                           const Machine *m, GError **errp)
{
    BootImage *b = g_new0(BootImage, 1);

    b->initrd_fd = -1;
    b->kernel_path = g_strdup(kernel);
    b->initrd_path = g_strdup(initrd);
    b->cmdline = g_strdup(append != NULL ? append : "");
    b->cmdline_max = LOADER_CMDLINE_MAX - 1;
    b->initrd_limit = RAM_SPLIT;
    b->kernel_fd = file_open("kernel", kernel, &b->kernel_size, errp);
    if (b->kernel_fd < 0 || !probe(b, errp) || !kernel_fits(b, m, errp)) {
        goto fail;
    }
    if (strlen(b->cmdline) > b->cmdline_max) {
        err_set(errp, "-append is %zu bytes long; this kernel takes %zu", strlen(b->cmdline),
                b->cmdline_max);
        goto fail;
    }
    if (initrd != NULL) {
        b->initrd_fd = file_open("initrd", initrd, &b->initrd_size, errp);
        if (b->initrd_fd < 0 || !initrd_place(b, m, errp)) {
            goto fail;
        }
    }
    return b;
fail:
    boot_image_free(b);
    return NULL;
}

/* ---- loading ---- */

unsigned boot_memory_map(const Machine *m, BootRange *map)
{
    unsigned n = 0;

    map[n++] = (BootRange) { 0, LOW_RAM_END, BOOT_RAM };
    map[n++] = (BootRange) { LOW_RAM_END, VIDEO_HOLE - LOW_RAM_END, BOOT_RESERVED };
    map[n++] = (BootRange) { BIOS_AREA, BIOS_AREA_END - BIOS_AREA, BOOT_RESERVED };
    map[n++] = (BootRange) { HIGH_RAM, boot_low_ram_end(m) - HIGH_RAM, BOOT_RAM };
    map[n++] = (BootRange) { KVM_PAGES_BASE, RAM_ABOVE_4G - KVM_PAGES_BASE, BOOT_RESERVED };
    if (m->ram_size > RAM_SPLIT) {
        map[n++] = (BootRange) { RAM_ABOVE_4G, m->ram_size - RAM_SPLIT, BOOT_RAM };
    }
    return n;
}

static void put64(void *p, uint64_t value)
{
    value = GUINT64_TO_LE(value);
    memcpy(p, &value, sizeof(value));
}

static void gdt_load(Machine *m, uint64_t code)
{
    char *gdt = machine_ram_ptr(m, LOADER_GDT, 32);

    memset(gdt, 0, 32);
    put64(gdt + 0x10, code);
    put64(gdt + 0x18, GDT_DATA);
}

/* 4 GiB onto themselves, in 2 MiB pages that every 64-bit processor has. */
static void page_tables_load(Machine *m)
{
    char *base = machine_ram_ptr(m, LOADER_PAGE_TABLES, (2 + IDENTITY_GIB) * PAGE);
    char *pdpt = base + PAGE;
    uint64_t next = LOADER_PAGE_TABLES + 2 * PAGE;

    memset(base, 0, (2 + IDENTITY_GIB) * PAGE);
    put64(base, (LOADER_PAGE_TABLES + PAGE) | PT_PRESENT_WRITE);
    for (unsigned g = 0; g < IDENTITY_GIB; g++) {
        char *pd = base + (2 + g) * PAGE;

        put64(pdpt + g * 8, (next + g * PAGE) | PT_PRESENT_WRITE);
        for (unsigned i = 0; i < 512; i++) {
            uint64_t addr = ((uint64_t)g << 30) | (uint64_t)i << 21;

            put64(pd + i * 8, addr | PT_PRESENT_WRITE | PT_LARGE);
        }
    }
}

bool boot_image_load(BootImage *b, Machine *m, uint64_t rsdp, VmCpuStart *start, GError **errp)
{
    *start = (VmCpuStart) { .gdt = LOADER_GDT, .rsp = LOADER_STACK };
    memcpy(machine_ram_ptr(m, LOADER_CMDLINE, LOADER_CMDLINE_MAX), b->cmdline,
           strlen(b->cmdline) + 1);
    if (b->initrd_fd >= 0 &&
        !boot_read(b->initrd_fd, b->initrd_path, 0,
                   machine_ram_ptr(m, b->initrd_addr, b->initrd_size), b->initrd_size, errp)) {
        return false;
    }
    if (!b->load(b, m, rsdp, start, errp)) {
        return false;
    }
    gdt_load(m, start->mode == VM_CPU_LONG64 ? GDT_CODE64 : GDT_CODE32);
    if (start->mode == VM_CPU_LONG64) {
        page_tables_load(m);
        start->cr3 = LOADER_PAGE_TABLES;
    }
    return true;
}
