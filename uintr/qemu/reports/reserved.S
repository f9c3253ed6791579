# SPDX-License-Identifier: MIT OR Apache-2.0
# A boot sector that sets a reserved bit of CR4, and then of CR3, in 64-bit mode. README.md says how it is run.
    .set PML4, 0x1000
    .set PDPT, 0x2000
    .set PD, 0x3000
    .set IDT, 0x4000

    .code16
    .globl _start
_start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movw $0x7c00, %sp
    movw $PML4, %di
    movw $0x4000 / 2, %cx
    rep stosw
    movw $PDPT + 3, PML4
    movw $PD + 3, PDPT
    movw $0x83, PD                  # 2 MiB, where they are
    movl $1 << 5, %eax              # PAE
    movl %eax, %cr4
    movl $PML4, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx          # EFER.LME
    rdmsr
    orl $1 << 8, %eax
    wrmsr
    movl $0x80000001, %eax          # PG, PE
    movl %eax, %cr0
    lgdt gdt_pointer
    ljmp $8, $long_mode

    .code64
long_mode:
    movl $16, %eax
    movl %eax, %ss
    leaq protection(%rip), %rax     # below 64 KiB
    movw %ax, IDT + 13 * 16
    movw $8, IDT + 13 * 16 + 2
    movw $0x8e00, IDT + 13 * 16 + 4
    lidt idt_pointer(%rip)

    movq %cr4, %rax
    btsq $15, %rax
    leaq 1f(%rip), %rbp
    leaq cr4_bad(%rip), %rsi
    movq %rax, %cr4
    call print
    jmp 2f
1:  leaq cr4_good(%rip), %rsi
    call print
2:  movq %cr3, %rax
    btsq $52, %rax
    leaq 1f(%rip), %rbp
    leaq cr3_bad(%rip), %rsi
    movq %rax, %cr3
    call print
    jmp 2f
1:  leaq cr3_good(%rip), %rsi
    call print
2:  movw $0x501, %dx                # isa-debug-exit
    outb %al, %dx
3:  hlt
    jmp 3b

protection:
    addq $8, %rsp
    movq %rbp, (%rsp)
    iretq

print:
    lodsb
    outb %al, $0xe9
    cmpb $'\n', %al
    jne print
    ret

cr4_good: .ascii "CR4: #GP\n"
cr4_bad: .ascii "CR4: taken\n"
cr3_good: .ascii "CR3: #GP\n"
cr3_bad: .ascii "CR3: taken\n"
    .balign 8
gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
gdt_pointer: .word gdt_pointer - gdt - 1
    .long gdt
idt_pointer: .word 14 * 16 - 1
    .quad IDT
    .org 510
    .word 0xaa55
