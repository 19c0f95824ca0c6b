/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ACPI fixed hardware (ACPI 6.4 §4.8): PM1 event and control registers, the PM
 * timer. ACPI mode is always on; there is no SMI.
 */
#include "pc-internal.h"
#include "util/aio.h"

#define PM1_STATUS 0
#define PM1_ENABLE 2
#define PM1_CONTROL 4
#define PM1_TIMER 8

#define STATUS_TIMER (1u << 0)
#define STATUS_GLOBAL (1u << 5)
#define STATUS_POWER_BUTTON (1u << 8)
#define STATUS_RTC (1u << 10)
#define STATUS_BITS (STATUS_TIMER | STATUS_GLOBAL | STATUS_POWER_BUTTON | STATUS_RTC)
#define CONTROL_SCI_ENABLE (1u << 0)
#define CONTROL_SLEEP_TYPE (7u << 10)
#define CONTROL_SLEEP_ENABLE (1u << 13)

#define SLEEP_TYPE_S5 0         /* as \_S5 in dsdt.asl says */
#define PM_TIMER_HZ 3579545

struct AcpiPm {
    Machine *machine;
    ResetHook reset_hook;
    uint16_t status, enable, control;
};

static uint32_t timer_now(void)
{
    return (__uint128_t)aio_clock_ns() * PM_TIMER_HZ / 1000000000;
}

static void sci_update(AcpiPm *pm)
{
    Vm *vm = pm->machine->vm;

    vm->ops->irq_set(vm, SCI_GSI, (pm->status & pm->enable) != 0);
}

static uint16_t reg16(const AcpiPm *pm, unsigned reg)
{
    switch (reg) {
    case PM1_STATUS:
        return pm->status;
    case PM1_ENABLE:
        return pm->enable;
    case PM1_CONTROL:
        return pm->control | CONTROL_SCI_ENABLE;
    default:
        return 0;
    }
}

/* Any size and alignment: the bytes, one by one. */
static uint64_t pm_read(void *opaque, uint64_t off, unsigned size)
{
    AcpiPm *pm = opaque;
    uint32_t timer = timer_now();
    uint64_t value = 0;

    for (unsigned i = 0; i < size; i++) {
        unsigned at = off + i;
        uint8_t byte = at >= PM1_TIMER ? (uint8_t)(timer >> (8 * (at - PM1_TIMER))) :
                       (uint8_t)(reg16(pm, at & ~1u) >> (8 * (at & 1)));

        value |= (uint64_t)byte << (8 * i);
    }
    return value;
}

static void control_write(AcpiPm *pm, uint16_t value)
{
    pm->control = value & CONTROL_SLEEP_TYPE;
    if ((value & CONTROL_SLEEP_ENABLE) && (value & CONTROL_SLEEP_TYPE) >> 10 == SLEEP_TYPE_S5) {
        machine_request_shutdown(pm->machine, SHUTDOWN_GUEST_SHUTDOWN, 0);
    }
}

static void reg16_write(AcpiPm *pm, unsigned reg, uint16_t value)
{
    switch (reg) {
    case PM1_STATUS:
        pm->status &= ~value;   /* a one clears */
        sci_update(pm);
        break;
    case PM1_ENABLE:
        pm->enable = value & STATUS_BITS;
        sci_update(pm);
        break;
    case PM1_CONTROL:
        control_write(pm, value);
        break;
    default:
        break;                  /* the timer is read only */
    }
}

static void pm_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    AcpiPm *pm = opaque;

    if (size == 1) {
        unsigned reg = off & ~1u;
        unsigned shift = 8 * (off & 1);
        /* the other byte keeps its value; of the status register it clears nothing */
        uint16_t keep = reg == PM1_STATUS ? 0 : reg16(pm, reg) & ~(0xff << shift);

        reg16_write(pm, reg, keep | value << shift);
        return;
    }
    for (unsigned i = 0; i + 1 < size; i += 2) {
        reg16_write(pm, off + i, value >> (8 * i));
    }
}

static const IoOps pm_ops = {
    .name = "acpi-pm", .read = pm_read, .write = pm_write, .max_size = 4,
};

void acpi_pm_rtc_alarm(AcpiPm *pm)
{
    pm->status |= STATUS_RTC;
    sci_update(pm);
}

static void pm_reset(void *opaque)
{
    AcpiPm *pm = opaque;

    pm->status = 0;
    pm->enable = 0;
    pm->control = 0;
    sci_update(pm);
}

AcpiPm *acpi_pm_new(Machine *m, GError **errp)
{
    AcpiPm *pm = g_new0(AcpiPm, 1);

    if (!io_bus_add(m->pio, PM_BASE, PM_SIZE, &pm_ops, pm, errp)) {
        g_free(pm);
        return NULL;
    }
    pm->machine = m;
    pm->reset_hook = (ResetHook) { pm_reset, pm };
    machine_add_reset(m, &pm->reset_hook);
    return pm;
}

void acpi_pm_free(AcpiPm *pm)
{
    if (pm != NULL) {
        machine_remove_reset(pm->machine, &pm->reset_hook);
        io_bus_remove(pm->machine->pio, PM_BASE);
        g_free(pm);
    }
}
