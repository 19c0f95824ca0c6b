/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ELF with a PVH note: entered in 32-bit mode without paging, EBX points to a
 * hvm_start_info (Xen's public headers elfnote.h and arch-x86/hvm/start_info.h).
 */
#include <elf.h>
#include <string.h>

#include "boot-internal.h"
#include "util/err.h"

#define SEGMENTS_MAX 64
#define NOTES_MAX (1 << 20)             /* bytes */
#define NOTE_PHYS32_ENTRY 18
#define START_INFO_MAGIC 0x336ec578
#define START_INFO_VERSION 1

typedef struct StartInfo {
    uint32_t magic, version, flags, nr_modules;
    uint64_t modlist, cmdline, rsdp, memmap;
    uint32_t memmap_entries, reserved;
} StartInfo;

typedef struct StartModule {
    uint64_t addr, size, cmdline, reserved;
} StartModule;

typedef struct StartRange {
    uint64_t addr, size;
    uint32_t type, reserved;
} StartRange;

/* All of what start_info points to, in one piece. */
typedef struct StartBlock {
    StartInfo info;
    StartModule module;
    StartRange map[BOOT_RANGES_MAX];
} StartBlock;

bool boot_pvh_is(const uint8_t *head, size_t len)
{
    return len >= sizeof(Elf64_Ehdr) && memcmp(head, ELFMAG, SELFMAG) == 0;
}

static bool header_check(const BootImage *b, const Elf64_Ehdr *e, GError **errp)
{
    if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_ident[EI_DATA] != ELFDATA2LSB ||
        e->e_machine != EM_X86_64) {
        err_set(errp, "ELF kernel '%s' is not for 64-bit x86", b->kernel_path);
        return false;
    }
    if (e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phnum == 0 || e->e_phnum > SEGMENTS_MAX) {
        err_set(errp, "ELF kernel '%s': %u program headers of %u bytes; 1 to %u of %zu are "
                "possible", b->kernel_path, e->e_phnum, e->e_phentsize, SEGMENTS_MAX,
                sizeof(Elf64_Phdr));
        return false;
    }
    if (e->e_phoff > b->kernel_size ||
        e->e_phnum * sizeof(Elf64_Phdr) > b->kernel_size - e->e_phoff) {
        err_set(errp, "ELF kernel '%s': its program headers lie behind the end of the file",
                b->kernel_path);
        return false;
    }
    return true;
}

static bool in_file(const BootImage *b, const Elf64_Phdr *p, GError **errp)
{
    if (p->p_offset <= b->kernel_size && p->p_filesz <= b->kernel_size - p->p_offset) {
        return true;
    }
    err_set(errp, "ELF kernel '%s': a segment lies behind the end of the file", b->kernel_path);
    return false;
}

static bool segment_add(BootImage *b, const Elf64_Phdr *p, GError **errp)
{
    if (!in_file(b, p, errp)) {
        return false;
    }
    if (p->p_filesz > p->p_memsz || p->p_paddr < HIGH_RAM || p->p_paddr >= RAM_SPLIT ||
        p->p_memsz > RAM_SPLIT - p->p_paddr) {
        err_set(errp, "ELF kernel '%s': a segment is at 0x%" G_GINT64_MODIFIER "x+0x%"
                G_GINT64_MODIFIER "x; 1 MiB to 3 GiB is possible", b->kernel_path,
                (uint64_t)p->p_paddr, (uint64_t)p->p_memsz);
        return false;
    }
    b->segments[b->n_segments++] = (BootSegment) {
        .offset = p->p_offset, .file_size = p->p_filesz, .addr = p->p_paddr,
        .mem_size = p->p_memsz,
    };
    b->kernel_end = MAX(b->kernel_end, p->p_paddr + p->p_memsz);
    return true;
}

/* Look for the entry point among the notes in @data. */
static bool notes_search(const char *data, size_t len, uint64_t *entry)
{
    size_t at = 0;

    while (len - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr n;
        size_t name, desc;

        memcpy(&n, data + at, sizeof(n));
        name = at + sizeof(n);
        if (n.n_namesz > len - name || n.n_namesz > NOTES_MAX) {
            return false;
        }
        desc = name + (n.n_namesz + 3) / 4 * 4;
        if (desc > len || n.n_descsz > len - desc) {
            return false;
        }
        if (n.n_type == NOTE_PHYS32_ENTRY && n.n_namesz == 4 &&
            memcmp(data + name, "Xen", 4) == 0 && (n.n_descsz == 4 || n.n_descsz == 8)) {
            *entry = 0;
            memcpy(entry, data + desc, n.n_descsz);
            return true;
        }
        at = desc + ((size_t)n.n_descsz + 3) / 4 * 4;
        if (at > len) {
            return false;
        }
    }
    return false;
}

static bool note_read(BootImage *b, const Elf64_Phdr *p, bool *found, GError **errp)
{
    g_autofree char *data = NULL;

    if (!in_file(b, p, errp)) {
        return false;
    }
    if (p->p_filesz > NOTES_MAX) {
        err_set(errp, "ELF kernel '%s': %" G_GUINT64_FORMAT " bytes of notes", b->kernel_path,
                (uint64_t)p->p_filesz);
        return false;
    }
    data = g_malloc(p->p_filesz + 1);
    if (!boot_read(b->kernel_fd, b->kernel_path, p->p_offset, data, p->p_filesz, errp)) {
        return false;
    }
    *found = *found || notes_search(data, p->p_filesz, &b->entry);
    return true;
}

static bool entry_is_loaded(const BootImage *b)
{
    for (unsigned i = 0; i < b->n_segments; i++) {
        const BootSegment *s = &b->segments[i];

        if (b->entry >= s->addr && b->entry - s->addr < s->mem_size) {
            return true;
        }
    }
    return false;
}

bool boot_pvh_probe(BootImage *b, const uint8_t *head, size_t len, GError **errp)
{
    Elf64_Phdr ph[SEGMENTS_MAX];
    bool found = false;
    Elf64_Ehdr e;

    memcpy(&e, head, sizeof(e));
    if (!header_check(b, &e, errp) ||
        !boot_read(b->kernel_fd, b->kernel_path, e.e_phoff, ph, e.e_phnum * sizeof(ph[0]), errp)) {
        return false;
    }
    b->segments = g_new0(BootSegment, e.e_phnum);
    for (unsigned i = 0; i < e.e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD && ph[i].p_memsz > 0 && !segment_add(b, &ph[i], errp)) {
            return false;
        }
        if (ph[i].p_type == PT_NOTE && !note_read(b, &ph[i], &found, errp)) {
            return false;
        }
    }
    if (b->n_segments == 0) {
        err_set(errp, "ELF kernel '%s' has nothing to load", b->kernel_path);
        return false;
    }
    if (!found) {
        err_set(errp, "ELF kernel '%s' has no PVH entry point (note 18 of Xen)", b->kernel_path);
        return false;
    }
    if (!entry_is_loaded(b)) {
        err_set(errp, "ELF kernel '%s': its PVH entry point 0x%" G_GINT64_MODIFIER "x lies in no "
                "segment", b->kernel_path, b->entry);
        return false;
    }
    return true;
}

static void start_info_fill(BootImage *b, Machine *m, uint64_t rsdp)
{
    StartBlock *s = machine_ram_ptr(m, LOADER_START_INFO, sizeof(*s));
    BootRange map[BOOT_RANGES_MAX];
    unsigned n = boot_memory_map(m, map);

    memset(s, 0, sizeof(*s));
    s->info = (StartInfo) {
        .magic = START_INFO_MAGIC,
        .version = START_INFO_VERSION,
        .cmdline = LOADER_CMDLINE,
        .rsdp = rsdp,
        .memmap = LOADER_START_INFO + offsetof(StartBlock, map),
        .memmap_entries = n,
    };
    if (b->initrd_fd >= 0) {
        s->info.nr_modules = 1;
        s->info.modlist = LOADER_START_INFO + offsetof(StartBlock, module);
        s->module = (StartModule) { .addr = b->initrd_addr, .size = b->initrd_size };
    }
    for (unsigned i = 0; i < n; i++) {
        s->map[i] = (StartRange) { map[i].addr, map[i].size, map[i].kind, 0 };
    }
}

bool boot_pvh_load(BootImage *b, Machine *m, uint64_t rsdp, VmCpuStart *start, GError **errp)
{
    for (unsigned i = 0; i < b->n_segments; i++) {
        const BootSegment *s = &b->segments[i];
        char *host = machine_ram_ptr(m, s->addr, s->mem_size);

        if (!boot_read(b->kernel_fd, b->kernel_path, s->offset, host, s->file_size, errp)) {
            return false;
        }
        memset(host + s->file_size, 0, s->mem_size - s->file_size);
    }
    start_info_fill(b, m, rsdp);
    start->mode = VM_CPU_PROT32;
    start->rip = b->entry;
    start->rbx = LOADER_START_INFO;
    return true;
}
