/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ACPI tables (ACPI 6.4 §5.2): RSDP, XSDT, FADT, FACS, MADT; the DSDT is
 * compiled from dsdt.asl.
 */
#include <stddef.h>
#include <string.h>

#include "hw/core/cpu-model.h"
#include "pc-internal.h"

/* from dsdt.asl */
extern const unsigned char dsdt_aml_code[];
extern const unsigned dsdt_aml_size;

#define OEM_ID "QEMU  "
#define OEM_TABLE_ID "PC      "
#define ALIGN 64

enum {
    FADT_WBINVD = 1 << 0, FADT_C1 = 1 << 2, FADT_NO_SLEEP_BUTTON = 1 << 5,
    FADT_TIMER_32BIT = 1 << 8,
    FADT_RESET_REG = 1 << 10,
};
enum {
    BOOT_ARCH_LEGACY_DEVICES = 1 << 0, BOOT_ARCH_NO_VGA = 1 << 2,
};
enum {
    MADT_LAPIC = 0, MADT_IOAPIC = 1, MADT_OVERRIDE = 2, MADT_LAPIC_NMI = 4,
    MADT_PCAT_COMPAT = 1,
    MADT_ENABLED = 1,
    MADT_LEVEL_HIGH = 0x0d, MADT_CONFORMS = 0,
};
#define RESET_PORT 0xcf9
#define RESET_VALUE 0x0f
#define SPACE_IO 1
#define C2_C3_UNSUPPORTED 0xffff        /* latencies above 100 and 1000 us say so */

typedef struct __attribute__((packed)) Header {
    char signature[4];
    uint32_t length;
    uint8_t revision, checksum;
    char oem_id[6], oem_table_id[8];
    uint32_t oem_revision;
    char creator_id[4];
    uint32_t creator_revision;
} Header;

typedef struct __attribute__((packed)) Rsdp {
    char signature[8];
    uint8_t checksum;
    char oem_id[6];
    uint8_t revision;
    uint32_t rsdt;
    uint32_t length;
    uint64_t xsdt;
    uint8_t extended_checksum, reserved[3];
} Rsdp;

typedef struct __attribute__((packed)) Gas {
    uint8_t space, bit_width, bit_offset, access;
    uint64_t addr;
} Gas;

typedef struct __attribute__((packed)) Fadt {
    Header h;
    uint32_t facs, dsdt;
    uint8_t reserved0, preferred_profile;
    uint16_t sci_int;
    uint32_t smi_cmd;
    uint8_t acpi_enable, acpi_disable, s4bios_req, pstate_cnt;
    uint32_t pm1a_evt, pm1b_evt, pm1a_cnt, pm1b_cnt, pm2_cnt, pm_tmr, gpe0, gpe1;
    uint8_t pm1_evt_len, pm1_cnt_len, pm2_cnt_len, pm_tmr_len, gpe0_len, gpe1_len, gpe1_base;
    uint8_t cst_cnt;
    uint16_t c2_latency, c3_latency, flush_size, flush_stride;
    uint8_t duty_offset, duty_width, day_alarm, month_alarm, century;
    uint16_t boot_arch;
    uint8_t reserved1;
    uint32_t flags;
    Gas reset_reg;
    uint8_t reset_value;
    uint16_t arm_boot_arch;
    uint8_t minor;
    uint64_t x_facs, x_dsdt;
    Gas x_pm1a_evt, x_pm1b_evt, x_pm1a_cnt, x_pm1b_cnt, x_pm2_cnt, x_pm_tmr, x_gpe0, x_gpe1;
} Fadt;

typedef struct __attribute__((packed)) Facs {
    char signature[4];
    uint32_t length, hardware_signature, waking_vector, global_lock, flags;
    uint64_t x_waking_vector;
    uint8_t version, reserved[31];
} Facs;

_Static_assert(sizeof(Header) == 36 && sizeof(Rsdp) == 36, "ACPI headers");
_Static_assert(sizeof(Fadt) == 244 && sizeof(Facs) == 64, "FADT revision 3, FACS");

/* Tables are put one behind the other into the BIOS area. */
typedef struct Area {
    uint8_t *host;
    size_t used, size;
} Area;

static void *area_take(Area *a, size_t len, uint64_t *gpa)
{
    void *p = a->host + a->used;

    if (len > a->size - a->used) {
        return NULL;
    }
    *gpa = BIOS_AREA + a->used;
    a->used = MIN((a->used + len + ALIGN - 1) / ALIGN * ALIGN, a->size);
    return p;
}

static uint8_t checksum(const void *data, size_t len)
{
    const uint8_t *p = data;
    uint8_t sum = 0;

    for (size_t i = 0; i < len; i++) {
        sum += p[i];
    }
    return -sum;
}

static void header_fill(Header *h, const char *signature, uint8_t revision, uint32_t length)
{
    memcpy(h->signature, signature, 4);
    h->length = length;
    h->revision = revision;
    memcpy(h->oem_id, OEM_ID, 6);
    memcpy(h->oem_table_id, OEM_TABLE_ID, 8);
    h->oem_revision = 1;
    memcpy(h->creator_id, "QEMU", 4);
    h->creator_revision = 1;
    h->checksum = 0;
}

/* Copy a finished table in and sum it up; 0: no room. */
static uint64_t table_put(Area *a, Header *table)
{
    uint64_t gpa = 0;
    void *p = area_take(a, table->length, &gpa);

    if (p == NULL) {
        return 0;
    }
    table->checksum = 0;
    table->checksum = checksum(table, table->length);
    memcpy(p, table, table->length);
    return gpa;
}

static uint64_t dsdt_put(Area *a)
{
    g_autofree uint8_t *copy = g_memdup2(dsdt_aml_code, dsdt_aml_size);

    return table_put(a, (Header *)copy);
}

static uint64_t facs_put(Area *a)
{
    Facs f = { .length = sizeof(f), .version = 1 };
    uint64_t gpa = 0;
    void *p = area_take(a, sizeof(f), &gpa);

    memcpy(f.signature, "FACS", 4);
    if (p != NULL) {
        memcpy(p, &f, sizeof(f));
    }
    return gpa;
}

static Gas io_register(uint64_t port, unsigned bytes)
{
    return (Gas) { .space = SPACE_IO, .bit_width = bytes * 8, .addr = port };
}

static uint64_t fadt_put(Area *a, uint64_t facs, uint64_t dsdt)
{
    Fadt f = {
        .facs = facs, .x_facs = 0,      /* both must not be given */
        .dsdt = dsdt, .x_dsdt = dsdt,
        .sci_int = SCI_GSI,
        .pm1a_evt = PM_BASE, .pm1_evt_len = 4, .x_pm1a_evt = io_register(PM_BASE, 4),
        .pm1a_cnt = PM_CONTROL, .pm1_cnt_len = 2, .x_pm1a_cnt = io_register(PM_CONTROL, 2),
        .pm_tmr = PM_TIMER, .pm_tmr_len = 4, .x_pm_tmr = io_register(PM_TIMER, 4),
        .c2_latency = C2_C3_UNSUPPORTED, .c3_latency = C2_C3_UNSUPPORTED,
        .century = 0x32,                /* where the RTC keeps it */
        .boot_arch = BOOT_ARCH_LEGACY_DEVICES | BOOT_ARCH_NO_VGA,
        .flags = FADT_WBINVD | FADT_C1 | FADT_NO_SLEEP_BUTTON | FADT_TIMER_32BIT |
                 FADT_RESET_REG,
        .reset_reg = io_register(RESET_PORT, 1), .reset_value = RESET_VALUE,
    };

    header_fill(&f.h, "FACP", 3, sizeof(f));
    return table_put(a, &f.h);
}

/* ---- MADT ---- */

static void put8(GByteArray *b, uint8_t v)
{
    g_byte_array_append(b, &v, 1);
}

static void put16(GByteArray *b, uint16_t v)
{
    put8(b, v);
    put8(b, v >> 8);
}

static void put32(GByteArray *b, uint32_t v)
{
    put16(b, v);
    put16(b, v >> 16);
}

static void madt_lapic(GByteArray *b, unsigned cpu, uint32_t apic_id)
{
    put8(b, MADT_LAPIC);
    put8(b, 8);
    put8(b, cpu);
    put8(b, apic_id);
    put32(b, MADT_ENABLED);
}

static void madt_override(GByteArray *b, uint8_t irq, uint32_t gsi, uint16_t flags)
{
    put8(b, MADT_OVERRIDE);
    put8(b, 10);
    put8(b, 0);
    put8(b, irq);
    put32(b, gsi);
    put16(b, flags);
}

static uint64_t madt_put(Area *a, const Machine *m)
{
    g_autoptr(GByteArray) b = g_byte_array_new();
    const VmConfig *cfg = &m->vm->config;
    Header h;

    header_fill(&h, "APIC", 3, 0);
    g_byte_array_append(b, (const uint8_t *)&h, sizeof(h));
    put32(b, LAPIC_ADDR);
    put32(b, MADT_PCAT_COMPAT);
    for (unsigned i = 0; i < cfg->cpus; i++) {
        madt_lapic(b, i, cpu_apic_id(cfg, i));
    }
    put8(b, MADT_IOAPIC);
    put8(b, 12);
    put8(b, 0);
    put8(b, 0);
    put32(b, IOAPIC_ADDR);
    put32(b, 0);
    madt_override(b, 0, 2, MADT_CONFORMS);      /* the PIT */
    madt_override(b, SCI_GSI, SCI_GSI, MADT_LEVEL_HIGH);
    for (unsigned i = 0; i < 4; i++) {
        uint8_t gsi = pci_bus_config(m->pci)->irq_gsi[i];

        if (i < 2) {                            /* the four lines share two */
            madt_override(b, gsi, gsi, MADT_LEVEL_HIGH);
        }
    }
    put8(b, MADT_LAPIC_NMI);
    put8(b, 6);
    put8(b, 0xff);                              /* all processors */
    put16(b, 0);
    put8(b, 1);                                 /* LINT1 */
    ((Header *)b->data)->length = b->len;
    return table_put(a, (Header *)b->data);
}

/* ---- roots ---- */

static uint64_t xsdt_put(Area *a, const uint64_t *tables, unsigned n)
{
    struct __attribute__((packed)) {
        Header h;
        uint64_t tables[4];
    } x = { 0 };

    header_fill(&x.h, "XSDT", 1, sizeof(x.h) + n * sizeof(tables[0]));
    memcpy(x.tables, tables, n * sizeof(tables[0]));
    return table_put(a, &x.h);
}

static uint64_t rsdp_put(Area *a, uint64_t xsdt)
{
    Rsdp r = { .revision = 2, .length = sizeof(r), .xsdt = xsdt };
    uint64_t gpa = 0;
    void *p = area_take(a, sizeof(r), &gpa);

    memcpy(r.signature, "RSD PTR ", 8);
    memcpy(r.oem_id, OEM_ID, 6);
    r.checksum = checksum(&r, offsetof(Rsdp, length));
    r.extended_checksum = checksum(&r, sizeof(r));
    if (p != NULL) {
        memcpy(p, &r, sizeof(r));
    }
    return gpa;
}

uint64_t acpi_build(Machine *m)
{
    size_t size = BIOS_AREA_END - BIOS_AREA;
    Area a = { .host = machine_ram_ptr(m, BIOS_AREA, size), .size = size };
    uint64_t facs = facs_put(&a);               /* first: it wants 64 bytes alignment */
    uint64_t dsdt = dsdt_put(&a);
    uint64_t tables[2] = { fadt_put(&a, facs, dsdt), madt_put(&a, m) };
    uint64_t xsdt = xsdt_put(&a, tables, G_N_ELEMENTS(tables));
    uint64_t rsdp = rsdp_put(&a, xsdt);

    return facs != 0 && dsdt != 0 && tables[0] != 0 && tables[1] != 0 && xsdt != 0 ? rsdp : 0;
}
