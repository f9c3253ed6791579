/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers that assembly and C share. */

#ifndef LAYOUT_H
#define LAYOUT_H

#define MAX_CPUS        8
/* Per CPU: struct cpu at the bottom, the kernel stack growing down to it. */
#define CPU_AREA_SIZE   0x8000
#define TRAMPOLINE      0x8000

#define KERNEL_CS       0x08
#define KERNEL_DS       0x10
#define KERNEL_CS32     0x18
/* User selectors exist in the GDT of struct cpu only. */
#define USER_CS32       0x1b
#define USER_DS         0x23
#define USER_CS         0x2b
#define TSS_SELECTOR    0x30

#define CR0_PE          0x00000001
#define CR0_MP          0x00000002
#define CR0_NE          0x00000020
#define CR0_WP          0x00010000
#define CR0_PG          0x80000000
#define CR4_PAE         0x00000020
#define CR4_OSFXSR      0x00000200
#define CR4_OSXMMEXCPT  0x00000400
#define CR4_OSXSAVE     0x00040000
#define CR4_UINTR       0x02000000
#define MSR_EFER        0xc0000080
#define EFER_LME        0x00000100

#define PTE_P           0x01
#define PTE_W           0x02
#define PTE_U           0x04
#define PTE_PS          0x80

/* struct user_block, which GS points to at CPL 3 */
#define UB_COUNT            0
#define UB_VECTOR           8
#define UB_RIP              16
#define UB_RFLAGS           24
#define UB_RSP              32
#define UB_HANDLER_RSP      40
#define UB_HANDLER_RFLAGS   48
#define UB_HANDLER_UIF      56
#define UB_RFLAGS_AND       64
#define UB_RFLAGS_OR        72
#define UB_NEW_RIP          80
#define UB_FUNCTION         88
#define UB_SCRATCH          96
#define UB_LOG              112
#define UB_LOG_SIZE         128

#endif
