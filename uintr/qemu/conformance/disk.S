/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Boot sector of a disk that holds the program, for machines without a multiboot loader. Behind it lie a sector with the
 * command line and the program as it is to lie in memory from PROGRAM_AT to END; SECTORS says how long it is in the file and
 * ENTRY where it begins. It leaves the machine as a multiboot loader would.
 */

#include "layout.h"

#define PROGRAM_AT      0x100000
#define COMMAND_LINE    0x7e00          /* the second sector, right behind this one */
#define BUFFER          0x10000
#define AT_ONCE         64              /* sectors; BIOSes read no more than 127 */

    .code16
    .globl _start
_start:
    cli
    cld
    xor %ax, %ax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %ss
    mov $0x7c00, %sp
    mov %dl, drive
    in $0x92, %al                       /* A20 */
    or $2, %al
    and $0xfe, %al                      /* bit 0 resets */
    out %al, $0x92

    movl $1, first                      /* the command line */
    movw $1, count
    movw $COMMAND_LINE, offset
    movw $0, segment
    call read
    movw $0, offset
    movw $(BUFFER >> 4), segment
    movl $2, first
again:
    movw $AT_ONCE, count
    call read
    call flat
    mov $BUFFER, %esi
    mov to, %edi
    mov $(AT_ONCE * 512 / 4), %ecx
    addr32 rep movsl
    mov %edi, to                        /* BIOSes may use the upper halves of registers */
    addl $AT_ONCE, first
    cmpl $(SECTORS + 2), first
    jb again

    lgdt gdt_pointer
    mov %cr0, %eax
    or $CR0_PE, %al
    mov %eax, %cr0
    ljmpl $8, $start32

/* DS and ES reach all memory, with the limits of protected mode and the paragraphs of real mode. */
flat:
    cli                                 /* the BIOS may have opened interrupts */
    lgdt gdt_pointer
    mov %cr0, %eax
    or $CR0_PE, %al
    mov %eax, %cr0
    mov $16, %bx
    mov %bx, %ds
    mov %bx, %es
    and $~CR0_PE, %al
    mov %eax, %cr0
    xor %bx, %bx
    mov %bx, %ds
    mov %bx, %es
    ret

read:
    mov $0x42, %ah
    mov drive, %dl
    mov $packet, %si
    int $0x13
    jnc 1f
0:  hlt
    jmp 0b
1:  ret

    .code32
start32:
    mov $16, %ax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %ss
    mov to, %edi                        /* what the file does not have is zero */
    mov $END, %ecx
    sub %edi, %ecx
    jbe 1f
    xor %eax, %eax
    rep stosb
1:  mov $0x2badb002, %eax
    mov $information, %ebx
    mov $ENTRY, %ebp
    jmp *%ebp

    .balign 4
packet:
    .byte 16, 0
count:   .word 0
offset:  .word 0
segment: .word 0
first:   .long 0, 0
to:      .long PROGRAM_AT
/* Multiboot information: flags say that a command line is there. */
information:
    .long 4, 0, 0, 0, COMMAND_LINE
gdt:
    .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff
gdt_pointer:
    .word gdt_pointer - gdt - 1
    .long gdt
drive:
    .byte 0
    .org 510
    .word 0xaa55
