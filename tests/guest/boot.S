/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Everything of the guest that runs in ring 0. Some hypervisors emulate ring 0 at about two
 * million instructions a second, so this file stays short and all work is done in ring 3.
 *
 * Entry is the PVH protocol's: 32-bit protected mode, paging off, EBX = hvm_start_info. Page tables,
 * GDT and TSS are laid out at link time. The IDT is ordinary user-accessible memory and is filled
 * in by ring 3 (cpu.c).
 */
#include "gate.h"

#define KERNEL_CS 0x10
#define KERNEL_DS 0x18
#define USER_DS   0x2b
#define USER_CS   0x33
#define TSS_SEL   0x40

/* Page table flags: present, writable, user; accessed and dirty already set; 2 MiB page. */
#define PT_TABLE  0x27
#define PT_PAGE   0xe7

#define LAPIC_EOI 0xfee000b0

    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 8, 18                  /* name size, value size, XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .quad pvh_entry

    .section .boot, "ax", @progbits
    .code32
    .globl pvh_entry
pvh_entry:
    cli
    cld
    movl %ebx, start_info_addr
    movl $page_map_4, %eax
    movl %eax, %cr3
    movl %cr4, %eax
    orl $0x20, %eax                 /* PAE */
    movl %eax, %cr4
    movl $0xc0000080, %ecx          /* EFER: long mode */
    rdmsr
    orl $0x100, %eax
    wrmsr
    lgdt gdt_pointer
    movl %cr0, %eax
    orl $0x80000001, %eax           /* paging */
    movl %eax, %cr0
    ljmp $KERNEL_CS, $long_entry

    .code64
long_entry:
    movl $KERNEL_DS, %eax
    movl %eax, %ss
    movl $kernel_stack_top, %esp
    movl $USER_DS, %eax
    movl %eax, %ds
    movl %eax, %es
    movl $tss, %eax                 /* base address into its descriptor */
    movw %ax, gdt_tss + 2
    shrl $16, %eax
    movb %al, gdt_tss + 4
    movb %ah, gdt_tss + 7
    movl $TSS_SEL, %eax
    ltr %ax
    lidt idt_pointer
    pushq $USER_DS
    pushq $user_stack_top
    pushq $2                        /* flags: interrupts off until GATE_ENABLE */
    pushq $USER_CS
    pushq $guest_main
    iretq

/*
 * Services for ring 3: the undefined instruction at gate_call. An exception is the one way into ring 0
 * that works everywhere: KVM without VT-x or SVM turns INT n into #UD, and enters ring 0 by SYSCALL
 * without its privileges. Function in RAX, arguments in RDI, RSI, RDX; see gate.h. Interrupts are
 * off meanwhile.
 */
    .globl gate_call
gate_call:
    ud2
    ret

undefined_entry:
    cmpq $gate_call, (%rsp)
    jne fault_stub_6
    addq $2, (%rsp)
    testl %eax, %eax
    jnz 2f
    cmpq %rsi, (%rdi)               /* GATE_WAIT */
    jne 1f
    sti
halt_insn:
    hlt
    cli
1:  iretq
2:  cmpl $GATE_CPUID, %eax
    jne 3f
    pushq %rbx
    movq %rdx, %r8
    movl %edi, %eax
    movl %esi, %ecx
    cpuid
    movl %eax, (%r8)
    movl %ebx, 4(%r8)
    movl %ecx, 8(%r8)
    movl %edx, 12(%r8)
    popq %rbx
    iretq
3:  movl %edi, %ecx
    cmpl $GATE_RDMSR, %eax
    jne 4f
    rdmsr
    shlq $32, %rdx
    orq %rdx, %rax
    iretq
4:  cmpl $GATE_WRMSR, %eax
    jne 5f
    movl %esi, %eax
    movq %rsi, %rdx
    shrq $32, %rdx
    wrmsr
    iretq
5:  cmpl $GATE_ENABLE, %eax
    jne 6f
    orl $0x200, 16(%rsp)
    iretq
6:  lidt no_idt                     /* GATE_TRIPLE_FAULT */
    ud2

/* A fault in ring 3 or ring 0 resumes in fault_report() in ring 3, which prints it and exits. */
fault_common:
    movq (%rsp), %rdi               /* vector */
    movq 8(%rsp), %rsi              /* error code */
    movq 16(%rsp), %rdx             /* where */
    movq %cr2, %rcx
    addq $16, %rsp
    movq $fault_report, (%rsp)
    movq $USER_CS, 8(%rsp)
    movq $2, 16(%rsp)
    movq $fault_stack_top, 24(%rsp)
    movq $USER_DS, 32(%rsp)
    iretq

    .macro fault_stub vector
fault_stub_\vector:
    .if (\vector == 8) || ((\vector >= 10) && (\vector <= 14)) || (\vector == 17)
    .else
    pushq $0
    .endif
    pushq $\vector
    jmp fault_common
    .endm

    .altmacro
    .set vec, 0
    .rept 32
    fault_stub %vec
    .set vec, vec + 1
    .endr

/*
 * Message-signalled and timer interrupts: count, acknowledge, return. An interrupt that arrives
 * between the STI and the HLT of GATE_WAIT skips the HLT, whatever the emulator makes of STI's shadow.
 */
    .macro msi_stub n
msi_stub_\n:
    incq irq_count + 8 * \n
    incq irq_total
    pushq %rax
    xorl %eax, %eax
    movabsl %eax, LAPIC_EOI
    popq %rax
    cmpq $halt_insn, (%rsp)
    je skip_halt
    iretq
    .endm

    .set vec, 0
    .rept MSI_VECTORS
    msi_stub %vec
    .set vec, vec + 1
    .endr

skip_halt:
    incq (%rsp)
    iretq

/*
 * INTx by the PIC or the IOAPIC: reading a device's ISR register lowers its line, then the
 * interrupt controller is told. intx_isr[] lists the devices that the driver put on the line.
 */
    .globl intx_entry
intx_entry:
    pushq %rax
    pushq %rcx
    pushq %rdx
    xorl %ecx, %ecx
1:  cmpl %ecx, intx_devices
    jbe 4f
    movq intx_isr(, %rcx, 8), %rdx
    movzbl (%rdx), %eax
    testb $1, %al
    jz 2f
    incq intx_queue(, %rcx, 8)
2:  testb $2, %al
    jz 3f
    incq intx_config(, %rcx, 8)
3:  incl %ecx
    jmp 1b
4:  incq irq_total
    cmpb $0, intx_lapic
    jne 5f
    movb $0x20, %al                 /* end of interrupt for both PICs */
    outb %al, $0xa0
    outb %al, $0x20
    jmp 6f
5:  xorl %eax, %eax
    movabsl %eax, LAPIC_EOI
6:  popq %rdx
    popq %rcx
    popq %rax
    cmpq $halt_insn, (%rsp)
    je skip_halt
    iretq

    .globl spurious_entry
spurious_entry:
    iretq

    .data
    .balign 8
    .globl fault_stubs, msi_stubs, undefined_entry
    .macro stub_address prefix n
    .quad \prefix\n
    .endm
fault_stubs:
    .set vec, 0
    .rept 32
    stub_address fault_stub_, %vec
    .set vec, vec + 1
    .endr
msi_stubs:
    .set vec, 0
    .rept MSI_VECTORS
    stub_address msi_stub_, %vec
    .set vec, vec + 1
    .endr

    .balign 8
gdt:
    .quad 0, 0
    .quad 0x00af9b000000ffff        /* 0x10 kernel code */
    .quad 0x00cf93000000ffff        /* 0x18 kernel data */
    .quad 0
    .quad 0x00cff3000000ffff        /* 0x28 user data */
    .quad 0x00affb000000ffff        /* 0x30 user code */
    .quad 0
gdt_tss:                            /* 0x40, base filled in at entry */
    .word tss_end - tss - 1, 0
    .byte 0, 0x89, 0, 0
    .quad 0
gdt_end:

gdt_pointer:
    .word gdt_end - gdt - 1
    .quad gdt
idt_pointer:
    .word 256 * 16 - 1
    .quad idt
no_idt:
    .word 0
    .quad 0

/*
 * The all-zero I/O bitmap lets ring 3 use every port; IOPL 3 would do on hardware, but not where
 * ring 0 is emulated.
 */
    .balign 16
tss:
    .long 0
    .quad kernel_stack_top
    .fill 90, 1, 0
    .word tss_bitmap - tss
tss_bitmap:
    .fill 8192, 1, 0
    .byte 0xff
tss_end:

/* The first 4 GiB, identity-mapped for ring 3; map_phys() adds what lies above. */
    .balign 4096
    .globl page_map_4
page_map_4:
    .quad page_map_3 + PT_TABLE
    .fill 511, 8, 0
page_map_3:
    .quad page_map_2 + PT_TABLE
    .quad page_map_2 + 0x1000 + PT_TABLE
    .quad page_map_2 + 0x2000 + PT_TABLE
    .quad page_map_2 + 0x3000 + PT_TABLE
    .fill 508, 8, 0
page_map_2:
    .set page, 0
    .rept 2048
    .quad (page << 21) + PT_PAGE
    .set page, page + 1
    .endr

    .bss
    .balign 16
    .skip 4096
kernel_stack_top:
    .skip 4096
fault_stack_top:
    .skip 65536
user_stack_top:
    .balign 4096
    .globl idt
idt:
    .skip 4096

    .section .note.GNU-stack, "", @progbits
