/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MC146818: time of day, alarm, update and periodic interrupts, 114 bytes of
 * memory that say how much RAM there is. Runs in UTC.
 *
 * vCPU threads write registers, timers belong to the main loop: a change
 * schedules a bottom half that arms them.
 */
#include <string.h>
#include <time.h>

#include "pc-internal.h"
#include "util/aio.h"

#define PORT_INDEX 0x70
#define RTC_GSI 8
#define NS 1000000000LL
#define UPDATE_NS 244000        /* that long before a new second the clock says "in progress" */
#define PERIODIC_HZ 32768
#define DAY_SECONDS 86400

enum {
    SECONDS, SECONDS_ALARM, MINUTES, MINUTES_ALARM, HOURS, HOURS_ALARM,
    WEEKDAY, DAY, MONTH, YEAR, REG_A, REG_B, REG_C, REG_D,
    BASE_MEM_LOW = 0x15, EXT_MEM_LOW = 0x17, EXT_MEM2_LOW = 0x30, CENTURY = 0x32,
    MEM_16M_LOW = 0x34, MEM_4G_LOW = 0x5b, CPUS = 0x5f, CMOS_SIZE = 128,
};
enum {
    A_IN_PROGRESS = 0x80, A_RATE = 0x0f,
    B_SET = 0x80, B_PERIODIC = 0x40, B_ALARM = 0x20, B_UPDATE = 0x10, B_BINARY = 0x04, B_24H = 0x02,
    C_IRQ = 0x80, C_PERIODIC = 0x40, C_ALARM = 0x20, C_UPDATE = 0x10,
    D_VALID = 0x80,
    HOUR_PM = 0x80,
    ALARM_ANY = 0xc0,           /* such an alarm byte matches always */
};

struct Rtc {
    Machine *machine;
    AcpiPm *pm;
    ResetHook reset_hook;
    uint8_t index;
    uint8_t mem[CMOS_SIZE];     /* time only while B_SET */
    int64_t offset_s;           /* guest's time - the host's */
    int64_t seen_s;             /* last second whose update was noted */
    int64_t periodic_ns;        /* next periodic event, monotonic */
    AioTimer timer;
    AioBh *rearm;
};

/* ---- time ---- */

static int64_t host_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec * NS + ts.tv_nsec;
}

static int64_t guest_s(const Rtc *rtc)
{
    return host_ns() / NS + rtc->offset_s;
}

static uint8_t encode(const Rtc *rtc, unsigned v)
{
    return rtc->mem[REG_B] & B_BINARY ? v : v / 10 << 4 | v % 10;
}

static unsigned decode(const Rtc *rtc, uint8_t v)
{
    return rtc->mem[REG_B] & B_BINARY ? v : (v >> 4) * 10 + (v & 15);
}

static uint8_t encode_hour(const Rtc *rtc, unsigned hour)
{
    if (rtc->mem[REG_B] & B_24H) {
        return encode(rtc, hour);
    }
    return encode(rtc, hour % 12 == 0 ? 12 : hour % 12) | (hour >= 12 ? HOUR_PM : 0);
}

static unsigned decode_hour(const Rtc *rtc, uint8_t v)
{
    if (rtc->mem[REG_B] & B_24H) {
        return decode(rtc, v);
    }
    return decode(rtc, v & ~HOUR_PM) % 12 + (v & HOUR_PM ? 12 : 0);
}

static void time_to_mem(Rtc *rtc, int64_t seconds)
{
    time_t t = seconds;
    struct tm tm;

    if (gmtime_r(&t, &tm) == NULL) {
        return;
    }
    rtc->mem[SECONDS] = encode(rtc, tm.tm_sec);
    rtc->mem[MINUTES] = encode(rtc, tm.tm_min);
    rtc->mem[HOURS] = encode_hour(rtc, tm.tm_hour);
    rtc->mem[WEEKDAY] = encode(rtc, tm.tm_wday + 1);
    rtc->mem[DAY] = encode(rtc, tm.tm_mday);
    rtc->mem[MONTH] = encode(rtc, tm.tm_mon + 1);
    rtc->mem[YEAR] = encode(rtc, tm.tm_year % 100);
    rtc->mem[CENTURY] = encode(rtc, (tm.tm_year + 1900) / 100);
}

static int64_t time_from_mem(const Rtc *rtc)
{
    struct tm tm = {
        .tm_sec = decode(rtc, rtc->mem[SECONDS]),
        .tm_min = decode(rtc, rtc->mem[MINUTES]),
        .tm_hour = decode_hour(rtc, rtc->mem[HOURS]),
        .tm_mday = decode(rtc, rtc->mem[DAY]),
        .tm_mon = (int)decode(rtc, rtc->mem[MONTH]) - 1,
        .tm_year = (int)(decode(rtc, rtc->mem[CENTURY]) * 100 + decode(rtc, rtc->mem[YEAR])) - 1900,
    };

    return timegm(&tm);
}

/* ---- interrupts ---- */

static void irq_update(Rtc *rtc)
{
    Vm *vm = rtc->machine->vm;
    bool level = rtc->mem[REG_B] & rtc->mem[REG_C] & (C_PERIODIC | C_ALARM | C_UPDATE);

    if (level) {
        rtc->mem[REG_C] |= C_IRQ;
    }
    vm->ops->irq_set(vm, RTC_GSI, level);
}

static bool alarm_matches(Rtc *rtc, int64_t seconds)
{
    unsigned s = seconds % 60;
    unsigned m = seconds / 60 % 60;
    unsigned h = seconds / 3600 % 24;
    const uint8_t *mem = rtc->mem;

    return (mem[SECONDS_ALARM] >= ALARM_ANY || decode(rtc, mem[SECONDS_ALARM]) == s) &&
           (mem[MINUTES_ALARM] >= ALARM_ANY || decode(rtc, mem[MINUTES_ALARM]) == m) &&
           (mem[HOURS_ALARM] >= ALARM_ANY || decode_hour(rtc, mem[HOURS_ALARM]) == h);
}

/* Note what has happened until now. */
static void catch_up(Rtc *rtc)
{
    int64_t now_s = guest_s(rtc);
    int64_t now_ns = aio_clock_ns();
    unsigned rate = rtc->mem[REG_A] & A_RATE;

    if (!(rtc->mem[REG_B] & B_SET) && now_s != rtc->seen_s) {
        int64_t from = MAX(rtc->seen_s, now_s - DAY_SECONDS);

        rtc->mem[REG_C] |= C_UPDATE;
        for (int64_t s = from + 1; s <= now_s && !(rtc->mem[REG_C] & C_ALARM); s++) {
            if (alarm_matches(rtc, s)) {
                rtc->mem[REG_C] |= C_ALARM;
                if (rtc->mem[REG_B] & B_ALARM) {
                    acpi_pm_rtc_alarm(rtc->pm);
                }
            }
        }
    }
    rtc->seen_s = now_s;
    if (rate != 0 && now_ns >= rtc->periodic_ns) {
        /* 1 and 2 are another oscillator's way to say 8 and 9 */
        int64_t period_ns = (NS << ((rate < 3 ? rate + 7 : rate) - 1)) / PERIODIC_HZ;

        rtc->mem[REG_C] |= C_PERIODIC;
        rtc->periodic_ns = now_ns + period_ns;
    }
    irq_update(rtc);
}

/* Arm the timer for the next event that interrupts; without one it sleeps. */
static void rearm_bh(void *opaque)
{
    Rtc *rtc = opaque;
    int64_t deadline_ns = INT64_MAX;
    uint8_t b = rtc->mem[REG_B];

    if ((b & (B_UPDATE | B_ALARM)) && !(b & B_SET)) {
        deadline_ns = aio_clock_ns() + NS - host_ns() % NS;
    }
    if ((b & B_PERIODIC) && (rtc->mem[REG_A] & A_RATE) != 0) {
        deadline_ns = MIN(deadline_ns, rtc->periodic_ns);
    }
    if (deadline_ns != INT64_MAX) {
        aio_timer_set(&rtc->timer, deadline_ns);
    } else {
        aio_timer_cancel(&rtc->timer);
    }
}

static void timer_cb(void *opaque)
{
    catch_up(opaque);
    rearm_bh(opaque);
}

/* ---- registers ---- */

static uint8_t reg_read(Rtc *rtc, unsigned reg)
{
    uint8_t value;

    if (reg <= YEAR || reg == CENTURY) {
        if (!(rtc->mem[REG_B] & B_SET) &&
            reg != SECONDS_ALARM && reg != MINUTES_ALARM && reg != HOURS_ALARM) {
            time_to_mem(rtc, guest_s(rtc));
        }
        return rtc->mem[reg];
    }
    if (reg == REG_A) {
        bool soon = host_ns() % NS >= NS - UPDATE_NS && !(rtc->mem[REG_B] & B_SET);

        return rtc->mem[REG_A] | (soon ? A_IN_PROGRESS : 0);
    }
    if (reg == REG_C) {
        catch_up(rtc);
        value = rtc->mem[REG_C];
        rtc->mem[REG_C] = 0;
        irq_update(rtc);
        return value;
    }
    return rtc->mem[reg];
}

static void reg_b_write(Rtc *rtc, uint8_t value)
{
    uint8_t before = rtc->mem[REG_B];

    if (!(before & B_SET) && (value & B_SET)) {
        time_to_mem(rtc, guest_s(rtc));     /* frozen while it is set */
    }
    if ((before & B_SET) && !(value & B_SET)) {
        /* in the format in which it was written */
        rtc->offset_s = time_from_mem(rtc) - host_ns() / NS;
        rtc->seen_s = guest_s(rtc);
    }
    rtc->mem[REG_B] = value;
    irq_update(rtc);
}

static void reg_write(Rtc *rtc, unsigned reg, uint8_t value)
{
    switch (reg) {
    case SECONDS: case MINUTES: case HOURS: case WEEKDAY: case DAY: case MONTH: case YEAR:
    case CENTURY:
        if (rtc->mem[REG_B] & B_SET) {
            rtc->mem[reg] = value;
        } else {
            time_to_mem(rtc, guest_s(rtc));
            rtc->mem[reg] = value;
            rtc->offset_s = time_from_mem(rtc) - host_ns() / NS;
        }
        return;
    case REG_A:
        rtc->mem[REG_A] = value & ~A_IN_PROGRESS;
        rtc->periodic_ns = aio_clock_ns();
        break;
    case REG_B:
        reg_b_write(rtc, value);
        break;
    case REG_C: case REG_D:
        return;                 /* read only */
    default:
        rtc->mem[reg] = value;
        return;
    }
    catch_up(rtc);
    aio_bh_schedule(rtc->rearm);
}

static uint64_t rtc_read(void *opaque, uint64_t off, unsigned size)
{
    Rtc *rtc = opaque;

    return off == 0 ? 0xff : reg_read(rtc, rtc->index);
}

static void rtc_write(void *opaque, uint64_t off, uint64_t value, unsigned size)
{
    Rtc *rtc = opaque;

    if (off == 0) {
        rtc->index = value % CMOS_SIZE;     /* bit 7 would mask the NMI */
    } else {
        reg_write(rtc, rtc->index, value);
    }
}

static const IoOps rtc_ops = {
    .name = "rtc", .read = rtc_read, .write = rtc_write, .max_size = 1,
};

/* ---- life ---- */

static void mem_set16(Rtc *rtc, unsigned reg, uint64_t value)
{
    value = MIN(value, 0xffff);
    rtc->mem[reg] = value;
    rtc->mem[reg + 1] = value >> 8;
}

/* Sizes where PC firmware has always left them; MC146818's interrupts off. */
static void rtc_reset(void *opaque)
{
    Rtc *rtc = opaque;
    const Machine *m = rtc->machine;
    uint64_t low = MIN(m->ram_size, RAM_SPLIT);
    uint64_t above_4g = m->ram_size - low;

    rtc->mem[REG_A] = 0x26;     /* 32768 Hz, 1024 Hz periodic */
    rtc->mem[REG_B] = (rtc->mem[REG_B] & B_BINARY) | B_24H;
    rtc->mem[REG_C] = 0;
    rtc->mem[REG_D] = D_VALID;
    mem_set16(rtc, BASE_MEM_LOW, 640);
    mem_set16(rtc, EXT_MEM_LOW, low > 1 << 20 ? (low >> 10) - 1024 : 0);
    mem_set16(rtc, EXT_MEM2_LOW, low > 1 << 20 ? (low >> 10) - 1024 : 0);
    mem_set16(rtc, MEM_16M_LOW, low > 16 << 20 ? (low - (16 << 20)) >> 16 : 0);
    mem_set16(rtc, MEM_4G_LOW, above_4g >> 16 & 0xffff);
    rtc->mem[MEM_4G_LOW + 2] = above_4g >> 32;
    rtc->mem[CPUS] = m->vm->config.cpus - 1;
    irq_update(rtc);
    aio_bh_schedule(rtc->rearm);
}

Rtc *rtc_new(Machine *m, AcpiPm *pm, GError **errp)
{
    Rtc *rtc = g_new0(Rtc, 1);

    if (!io_bus_add(m->pio, PORT_INDEX, 2, &rtc_ops, rtc, errp)) {
        g_free(rtc);
        return NULL;
    }
    rtc->machine = m;
    rtc->pm = pm;
    rtc->seen_s = guest_s(rtc);
    aio_timer_init(&rtc->timer, m->ctx, timer_cb, rtc);
    rtc->rearm = aio_bh_new(m->ctx, "rtc", rearm_bh, rtc);
    rtc->reset_hook = (ResetHook) { rtc_reset, rtc };
    machine_add_reset(m, &rtc->reset_hook);
    return rtc;
}

void rtc_free(Rtc *rtc)
{
    if (rtc != NULL) {
        machine_remove_reset(rtc->machine, &rtc->reset_hook);
        aio_timer_cancel(&rtc->timer);
        aio_bh_delete(rtc->rearm);
        io_bus_remove(rtc->machine->pio, PORT_INDEX);
        g_free(rtc);
    }
}
