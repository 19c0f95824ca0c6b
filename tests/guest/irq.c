/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Local APIC, IOAPIC and PIC, driven from ring 3. Registers: Intel SDM volume 3, chapter 11;
 * 82093AA and 8259A data sheets.
 */
#include "cpu.h"
#include "console.h"

#define LAPIC_BASE      0xfee00000u
#define LAPIC_ID        0x20
#define LAPIC_TPR       0x80
#define LAPIC_SPURIOUS  0xf0
#define LAPIC_TIMER     0x320
#define LAPIC_LINT0     0x350
#define LAPIC_COUNT     0x380
#define LAPIC_DIVIDE    0x3e0
#define LAPIC_MASKED    0x10000
#define LAPIC_PERIODIC  0x20000
#define LAPIC_EXTINT    0x700

#define MSR_APIC_BASE   0x1b
#define APIC_X2APIC     0x400
#define APIC_ENABLED    0x800

#define IOAPIC_BASE     0xfec00000u
#define IOAPIC_LEVEL    0x8000
#define IOAPIC_MASKED   0x10000

/* The last message slot's vector is the timer's. */
#define TIMER_SLOT      (MSI_VECTORS - 1)

volatile uint64_t irq_count[MSI_VECTORS];
volatile uint64_t irq_total;
volatile uint64_t intx_queue[INTX_DEVICES];
volatile uint64_t intx_config[INTX_DEVICES];
volatile uint8_t *intx_isr[INTX_DEVICES];
uint32_t intx_devices;
uint8_t intx_lapic;

static bool lapic_ready;

static volatile uint32_t *lapic(unsigned reg)
{
    return (volatile uint32_t *)(uintptr_t)(LAPIC_BASE + reg);
}

static void lapic_start(void)
{
    uint64_t base;

    if (lapic_ready) {
        return;
    }
    base = cpu_rdmsr(MSR_APIC_BASE);
    if (base & APIC_X2APIC) {
        fail("the local APIC is in x2APIC mode, which this guest does not drive", NULL);
    }
    if (!(base & APIC_ENABLED)) {
        cpu_wrmsr(MSR_APIC_BASE, base | APIC_ENABLED);
    }
    /* Enabled first: a disabled one keeps its local vectors masked, whatever is written. */
    *lapic(LAPIC_SPURIOUS) = 0x100 | SPURIOUS_VECTOR;
    *lapic(LAPIC_TPR) = 0;
    *lapic(LAPIC_LINT0) = LAPIC_EXTINT;
    lapic_ready = true;
}

void lapic_timer(unsigned ms)
{
    lapic_start();
    if (ms == 0) {
        *lapic(LAPIC_TIMER) = LAPIC_MASKED;
        *lapic(LAPIC_COUNT) = 0;
        return;
    }
    /* Virtual APIC buses tick at 1 GHz. The timer only bounds waits: its exact rate is no
     * matter. */
    *lapic(LAPIC_DIVIDE) = 0x3;     /* by 16 */
    *lapic(LAPIC_TIMER) = LAPIC_PERIODIC | (MSI_VECTOR_BASE + TIMER_SLOT);
    *lapic(LAPIC_COUNT) = ms * (1000000 / 16);
}

uint64_t msi_address(void)
{
    lapic_start();
    return LAPIC_BASE | (*lapic(LAPIC_ID) >> 24) << 12;
}

uint32_t msi_data(unsigned slot)
{
    return MSI_VECTOR_BASE + slot;
}

static void ioapic_write(unsigned reg, uint32_t v)
{
    volatile uint32_t *io = (volatile uint32_t *)(uintptr_t)IOAPIC_BASE;

    io[0] = reg;
    io[4] = v;
}

void pic_init(void)
{
    outb(0x20, 0x11);
    outb(0x21, INTX_VECTOR_BASE);
    outb(0x21, 4);
    outb(0x21, 1);
    outb(0x21, 0xff);
    outb(0xa0, 0x11);
    outb(0xa1, INTX_VECTOR_BASE + 8);
    outb(0xa1, 2);
    outb(0xa1, 1);
    outb(0xa1, 0xff);
}

static void pic_unmask(unsigned line)
{
    uint16_t elcr = 0x4d0 + (line >> 3), data = line < 8 ? 0x21 : 0xa1;

    outb(elcr, inb(elcr) | 1 << (line & 7));
    outb(data, inb(data) & ~(1 << (line & 7)));
    outb(0x21, inb(0x21) & ~4);
}

unsigned intx_attach(volatile uint8_t *isr, unsigned line, bool ioapic)
{
    if (intx_devices == INTX_DEVICES) {
        fail("too many devices with INTx", NULL);
    }
    if (line == 0 || line >= (ioapic ? 24 : 16)) {
        fail_num("the device's interrupt line register holds no usable line", line);
    }
    lapic_start();
    intx_lapic = ioapic;
    intx_isr[intx_devices] = isr;
    intx_queue[intx_devices] = 0;
    intx_config[intx_devices] = 0;
    intx_devices++;
    if (ioapic) {
        ioapic_write(0x11 + 2 * line, *lapic(LAPIC_ID));
        ioapic_write(0x10 + 2 * line, IOAPIC_LEVEL | (INTX_VECTOR_BASE + (line & 15)));
    } else {
        pic_unmask(line);
    }
    return intx_devices - 1;
}

void intx_reset(void)
{
    if (intx_devices == 0) {
        return;
    }
    outb(0x21, 0xff);
    outb(0xa1, 0xff);
    for (unsigned line = 0; intx_lapic && line < 24; line++) {
        ioapic_write(0x10 + 2 * line, IOAPIC_MASKED);
    }
    intx_devices = 0;
}
