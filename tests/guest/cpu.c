/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processor set-up that ring 3 can do: IDT contents, memory primitives, ways out.
 */
#include "cpu.h"
#include "console.h"

#define USER_CS_GATE 0x10 /* handlers run in the kernel's code segment */

struct IdtGate {
    uint16_t offset_low;
    uint16_t selector;
    uint8_t ist;
    uint8_t flags;
    uint16_t offset_mid;
    uint32_t offset_high;
    uint32_t reserved;
};

extern struct IdtGate idt[256];
extern const uint64_t fault_stubs[32];
extern const uint64_t msi_stubs[MSI_VECTORS];
extern const char undefined_entry[], intx_entry[], spurious_entry[];

void *memset(void *to, int byte, size_t len)
{
    void *p = to;

    __asm__ volatile("rep stosb" : "+D"(p), "+c"(len) : "a"(byte) : "memory");
    return to;
}

void *memcpy(void *to, const void *from, size_t len)
{
    void *p = to;

    __asm__ volatile("rep movsb" : "+D"(p), "+S"(from), "+c"(len) : : "memory");
    return to;
}

int memcmp(const void *a, const void *b, size_t len)
{
    const uint8_t *x = a, *y = b;

    for (size_t i = 0; i < len; i++) {
        if (x[i] != y[i]) {
            return x[i] - y[i];
        }
    }
    return 0;
}

size_t strlen(const char *s)
{
    size_t n = 0;

    while (s[n] != '\0') {
        n++;
        __asm__ volatile("");       /* or gcc turns this loop into a call of strlen() */
    }
    return n;
}

bool str_eq(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static uint64_t gate(uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t ret;

    __asm__ volatile("call gate_call"
                     : "=a"(ret), "+d"(c)
                     : "0"(function), "D"(a), "S"(b)
                     : "rcx", "r8", "memory", "cc");
    return ret;
}

static void idt_set(unsigned vector, uint64_t entry)
{
    idt[vector] = (struct IdtGate) {
        .offset_low = entry,
        .selector = USER_CS_GATE,
        .flags = 0x8e,              /* present interrupt gate */
        .offset_mid = entry >> 16,
        .offset_high = entry >> 32,
    };
}

void cpu_init(void)
{
    for (unsigned i = 0; i < 32; i++) {
        idt_set(i, fault_stubs[i]);
    }
    idt_set(6, (uint64_t)undefined_entry);
    for (unsigned i = 0; i < 16; i++) {
        idt_set(INTX_VECTOR_BASE + i, (uint64_t)intx_entry);
    }
    for (unsigned i = 0; i < MSI_VECTORS; i++) {
        idt_set(MSI_VECTOR_BASE + i, msi_stubs[i]);
    }
    idt_set(SPURIOUS_VECTOR, (uint64_t)spurious_entry);
    pic_init();
    gate(GATE_ENABLE, 0, 0, 0);
}

void cpu_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t out[4])
{
    gate(GATE_CPUID, leaf, subleaf, (uint64_t)out);
}

uint64_t cpu_rdmsr(uint32_t index)
{
    return gate(GATE_RDMSR, index, 0, 0);
}

void cpu_wrmsr(uint32_t index, uint64_t value)
{
    gate(GATE_WRMSR, index, value, 0);
}

void cpu_wait_irq(uint64_t seen)
{
    gate(GATE_WAIT, (uint64_t)&irq_total, seen, 0);
}

/* Give an asynchronous exit time to happen before the next way is tried. */
static void settle(void)
{
    uint64_t until = rdtsc() + 300000000;

    while (rdtsc() < until) {
        cpu_pause();
    }
}

void cpu_exit(const char *how, uint8_t code)
{
    bool any = str_eq(how, "auto");

    if (any || str_eq(how, "debug")) {
        outb(0xf4, code);
    }
    if (any || str_eq(how, "kbd")) {
        outb(0x64, 0xfe);
        settle();
    }
    if (any || str_eq(how, "cf9")) {
        outb(0xcf9, 0x02);
        outb(0xcf9, 0x06);
        settle();
    }
    if (any || str_eq(how, "triple")) {
        gate(GATE_TRIPLE_FAULT, 0, 0, 0);
    }
    for (;;) {
        cpu_wait_irq(irq_total);
    }
}

/* Ring 0 resumes here after an exception. */
__attribute__((noreturn)) void fault_report(uint64_t vector, uint64_t error, uint64_t rip,
                                            uint64_t address);

void fault_report(uint64_t vector, uint64_t error, uint64_t rip,
                  uint64_t address)
{
    out_begin("fault");
    out_u64("vector", vector);
    out_hex("error_code", error);
    out_hex("rip", rip);
    out_hex("address", address);
    out_u64("errors", 1);
    out_end();
    cpu_exit("auto", 2);
}
