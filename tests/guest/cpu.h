/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processor, interrupt controllers and clock. One vCPU, ring 3, memory identity-mapped.
 */
#ifndef GUEST_CPU_H
#define GUEST_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static inline void outb(uint16_t port, uint8_t v)
{
    __asm__ volatile("outb %0, %1" : : "a"(v), "Nd"(port));
}

static inline void outw(uint16_t port, uint16_t v)
{
    __asm__ volatile("outw %0, %1" : : "a"(v), "Nd"(port));
}

static inline void outl(uint16_t port, uint32_t v)
{
    __asm__ volatile("outl %0, %1" : : "a"(v), "Nd"(port));
}

static inline uint8_t inb(uint16_t port)
{
    uint8_t v;

    __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static inline uint16_t inw(uint16_t port)
{
    uint16_t v;

    __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static inline uint32_t inl(uint16_t port)
{
    uint32_t v;

    __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static inline uint64_t rdtsc(void)
{
    uint32_t lo, hi;

    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
    return (uint64_t)hi << 32 | lo;
}

static inline void cpu_pause(void)
{
    __builtin_ia32_pause();
}

/* A store before it is visible to the device before a load after it. */
static inline void full_barrier(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* a * b / c without overflow of the product; the quotient must fit. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t hi, lo;

    __asm__("mulq %3" : "=a"(lo), "=d"(hi) : "0"(a), "rm"(b));
    __asm__("divq %4" : "=a"(lo), "=d"(hi) : "0"(lo), "1"(hi), "rm"(c));
    return lo;
}

void *memset(void *to, int byte, size_t len);
void *memcpy(void *to, const void *from, size_t len);
int memcmp(const void *a, const void *b, size_t len);
size_t strlen(const char *s);
bool str_eq(const char *a, const char *b);

/* Fill the IDT and turn interrupts on. Called once. */
void cpu_init(void);

/* CPUID, emulated or not, with the hypervisor's answer (@out: EAX, EBX, ECX, EDX). */
void cpu_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t out[4]);
uint64_t cpu_rdmsr(uint32_t index);
void cpu_wrmsr(uint32_t index, uint64_t value);

/*
 * How the guest leaves: "auto" tries isa-debug-exit at port 0xf4 with @code (the process exits
 * with 2 * code + 1), then the keyboard controller's and the chipset's reset, then a triple fault.
 * Each can be chosen by name: debug, kbd, cf9, triple.
 */
__attribute__((noreturn)) void cpu_exit(const char *how, uint8_t code);

/* -- clock -- */

/* The TSC's frequency and where it was learned. @source: "auto", "kvmclock", "cpuid" or "pit". */
bool clock_init(const char *source);
extern uint64_t tsc_khz;
extern const char *tsc_source;
uint64_t cycles_to_ns(uint64_t cycles);
uint64_t ns_to_cycles(uint64_t ns);

/* -- interrupts -- */

/* Counters that ring 0 increments; irq_total counts every interrupt, of whatever kind. */
extern volatile uint64_t irq_count[MSI_VECTORS];
extern volatile uint64_t irq_total;

/* Sleep in HLT (ring 0) until irq_total differs from @seen. Returns at once if it does already. */
void cpu_wait_irq(uint64_t seen);

/* A periodic timer interrupt that ends waits, every @ms (0: off). */
void lapic_timer(unsigned ms);

/* The message address and data that raise vector MSI_VECTOR_BASE + @slot on this CPU. */
uint64_t msi_address(void);
uint32_t msi_data(unsigned slot);

/*
 * Both PICs: vectors from INTX_VECTOR_BASE, everything masked. Runs before interrupts are on,
 * since the first initialization word unmasks all lines while they still have the firmware's
 * vectors.
 */
void pic_init(void);

/* INTx: at most INTX_DEVICES devices whose ISR registers ring 0 reads on interrupt @line. */
#define INTX_DEVICES 64
extern volatile uint64_t intx_queue[INTX_DEVICES];
extern volatile uint64_t intx_config[INTX_DEVICES];

/* @ioapic: through the IOAPIC's input @line rather than the PIC's. Returns the index in the
 * arrays. */
unsigned intx_attach(volatile uint8_t *isr, unsigned line, bool ioapic);
void intx_reset(void);

#endif
