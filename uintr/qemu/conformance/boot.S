/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From a multiboot loader to 64-bit C, for the first CPU and for the others;
 * the entry points of the IDT; the way to CPL 3 and back.
 */

#include "layout.h"

    .section .multiboot, "a"
    .balign 4
    .long 0x1badb002, 0, -0x1badb002

    .section .text
    .code32
    .globl _start
_start:
    cld
    mov %eax, %edi                      /* multiboot magic */
    mov %ebx, %esi                      /* multiboot information */
    mov $(cpu_area + CPU_AREA_SIZE), %esp
    jmp to_long_mode

/* EDI, ESI: arguments of the C entry; ESP: stack. */
to_long_mode:
    mov %cr4, %eax
    or $(CR4_PAE | CR4_OSFXSR | CR4_OSXMMEXCPT), %eax
    mov %eax, %cr4
    mov $pml4, %eax
    mov %eax, %cr3
    mov $MSR_EFER, %ecx
    rdmsr
    or $EFER_LME, %eax
    wrmsr
    mov $(CR0_PG | CR0_WP | CR0_NE | CR0_MP | CR0_PE), %eax
    mov %eax, %cr0
    lgdt boot_gdt_pointer
    ljmp $KERNEL_CS, $1f
    .code64
1:  mov $KERNEL_DS, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    xor %eax, %eax
    mov %eax, %fs
    mov %eax, %gs
    mov %esp, %esp
    mov %edi, %edi
    mov %esi, %esi
    xor %ebp, %ebp
    call cpu_main
2:  cli
    hlt
    jmp 2b

/*
 * Copied to TRAMPOLINE, where a start-up IPI sends the other CPUs in real
 * mode. One at a time: trampoline_stack is set for each.
 */
    .code16
    .globl trampoline, trampoline_end
trampoline:
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl TRAMPOLINE + (trampoline_gdt_pointer - trampoline)
    mov $(CR0_PE), %eax
    mov %eax, %cr0
    ljmpl $KERNEL_CS32, $ap_start
    .balign 8
trampoline_gdt_pointer:
    .word boot_gdt_end - boot_gdt - 1
    .long boot_gdt
trampoline_end:

    .code32
ap_start:
    mov $KERNEL_DS, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov trampoline_stack, %esp
    xor %edi, %edi
    xor %esi, %esi
    jmp to_long_mode

    .code64

/* One stub per vector; a zero stands in for an error code the CPU lacks. */
    .balign 16
    .globl trap_stubs
trap_stubs:
    .set vector, 0
    .rept 256
    .balign 16
    .if !(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21)
    push $0
    .endif
    push $vector
    jmp trap_entry
    .set vector, vector + 1
    .endr

trap_entry:
    push %r15
    push %r14
    push %r13
    push %r12
    push %r11
    push %r10
    push %r9
    push %r8
    push %rbp
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %rbx
    push %rax
    cld
    mov %rsp, %rdi
    and $-16, %rsp
    mov %rdi, %rbx
    call trap
    mov %rbx, %rsp
    pop %rax
    pop %rbx
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rbp
    pop %r8
    pop %r9
    pop %r10
    pop %r11
    pop %r12
    pop %r13
    pop %r14
    pop %r15
    add $16, %rsp
    iretq

/*
 * enter_user(struct frame *to, uint64_t *kernel_rsp, uint64_t *tss_rsp0):
 * returns when leave_user() is called.
 */
    .globl enter_user
enter_user:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rsi)
    mov %rsp, %rax
    and $-16, %rax
    mov %rax, (%rdx)
    mov %rdi, %rsp
    pop %rax
    pop %rbx
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rbp
    pop %r8
    pop %r9
    pop %r10
    pop %r11
    pop %r12
    pop %r13
    pop %r14
    pop %r15
    add $16, %rsp
    iretq

/* leave_user(uint64_t kernel_rsp) */
    .globl leave_user
leave_user:
    mov %rdi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret

/*
 * The handler of user interrupts in most tests: writes down what it sees at
 * GS, changes the frame as the test asks, and returns.
 */
    .globl recording_handler
recording_handler:
    mov %rax, %gs:UB_SCRATCH
    pushfq
    popq %gs:UB_HANDLER_RFLAGS
    .byte 0xf3, 0x0f, 0x01, 0xed        /* testui */
    setc %gs:UB_HANDLER_UIF
    mov %rsp, %gs:UB_HANDLER_RSP
    mov (%rsp), %rax
    mov %rax, %gs:UB_VECTOR
    mov 8(%rsp), %rax
    mov %rax, %gs:UB_RIP
    mov 16(%rsp), %rax
    mov %rax, %gs:UB_RFLAGS
    mov 24(%rsp), %rax
    mov %rax, %gs:UB_RSP
    mov %rbx, %gs:UB_SCRATCH + 8
    mov %gs:UB_COUNT, %rbx
    mov (%rsp), %rax
    and $(UB_LOG_SIZE - 1), %ebx
    mov %al, %gs:UB_LOG(%rbx)
    mov %gs:UB_SCRATCH + 8, %rbx
    incq %gs:UB_COUNT
    mov %gs:UB_RFLAGS_AND, %rax
    and %rax, 16(%rsp)
    mov %gs:UB_RFLAGS_OR, %rax
    or %rax, 16(%rsp)
    mov %gs:UB_NEW_RIP, %rax
    test %rax, %rax
    jz 1f
    mov %rax, 8(%rsp)
1:  mov %gs:UB_SCRATCH, %rax
    add $8, %rsp
    .globl recording_handler_uiret
recording_handler_uiret:
    .byte 0xf3, 0x0f, 0x01, 0xec        /* uiret */

/* Calls user_handler(vector): for handlers written in C. */
    .globl calling_handler
calling_handler:
    push %rax
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    mov 72(%rsp), %rdi
    push %rbx
    mov %rsp, %rbx
    and $-16, %rsp
    cld
    call *%gs:UB_FUNCTION
    mov %rbx, %rsp
    pop %rbx
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rdx
    pop %rcx
    pop %rax
    add $8, %rsp
    .byte 0xf3, 0x0f, 0x01, 0xec        /* uiret */

    .section .data
    .balign 8
    .globl trampoline_stack
trampoline_stack:
    .quad 0

boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff            /* KERNEL_CS */
    .quad 0x00cf93000000ffff            /* KERNEL_DS */
    .quad 0x00cf9b000000ffff            /* KERNEL_CS32 */
boot_gdt_end:
boot_gdt_pointer:
    .word boot_gdt_end - boot_gdt - 1
    .long boot_gdt

/* The first 4 GiB are mapped one to one, for every CPL. */
    .balign 4096
    .globl pml4
pml4:
    .quad pdpt + (PTE_P | PTE_W | PTE_U)
    .quad window_pdpt + (PTE_P | PTE_W | PTE_U)
    .fill 510, 8, 0
pdpt:
    .set n, 0
    .rept 4
    .quad page_directories + n * 4096 + (PTE_P | PTE_W | PTE_U)
    .set n, n + 1
    .endr
    .fill 508, 8, 0
page_directories:
    .set n, 0
    .rept 2048
    .quad n * 0x200000 + (PTE_P | PTE_W | PTE_U | PTE_PS)
    .set n, n + 1
    .endr

/* A window of 2 MiB whose pages the tests map as they like. */
window_pdpt:
    .quad window_pd + (PTE_P | PTE_W | PTE_U)
    .fill 511, 8, 0
window_pd:
    .quad window_pt + (PTE_P | PTE_W | PTE_U)
    .fill 511, 8, 0
    .globl window_pt
window_pt:
    .fill 512, 8, 0

    .section .bss
    .balign CPU_AREA_SIZE
    .globl cpu_area
cpu_area:
    .skip CPU_AREA_SIZE * MAX_CPUS

    .section .note.GNU-stack, "", @progbits
