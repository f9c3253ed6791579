/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Instructions, and the CPU that this code runs on. */

#ifndef CPU_H
#define CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

#define BIT(n)      (1UL << (n))

/* Exceptions, and the vector by which user code says that it is done */
enum { UD = 6, DB = 1, SS = 12, GP = 13, PF = 14, DONE = 0x80, NONE = -1 };

#define CF          BIT(0)
#define FIXED_1     BIT(1)
#define PF_FLAG     BIT(2)
#define AF          BIT(4)
#define ZF          BIT(6)
#define SF          BIT(7)
#define TF          BIT(8)
#define IF          BIT(9)
#define DF          BIT(10)
#define OF          BIT(11)
#define IOPL        (BIT(12) | BIT(13))
#define NT          BIT(14)
#define RF          BIT(16)
#define AC          BIT(18)
#define ID          BIT(21)

#define MSR_GS_BASE     0xc0000101
#define MSR_XSS         0xda0
#define MSR_UI_RR       0x985
#define MSR_UI_HANDLER  0x986
#define MSR_UI_ADJUST   0x987
#define MSR_UI_MISC     0x988
#define MSR_UI_PD       0x989
#define MSR_UI_TT       0x98a

#define MISC_UINV(v)    ((uint64_t)(v) << 32)
#define TT_ENABLE       BIT(0)

/* What a trap saves; enter_user() loads it too. */
struct frame {
    uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp;
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t vector, error;
    uint64_t rip, cs, rflags, rsp, ss;
};

struct user_block {
    volatile uint64_t count;    /* runs of the handler */
    uint64_t vector, rip, rflags, rsp;      /* the frame of the last one */
    uint64_t handler_rsp, handler_rflags;   /* registers at its start */
    uint64_t handler_uif;
    uint64_t rflags_and, rflags_or;         /* changes to the frame */
    uint64_t new_rip;                       /* replaces its RIP if not 0 */
    void (*function)(uint64_t vector);      /* of calling_handler */
    uint64_t scratch[2];
    uint8_t log[UB_LOG_SIZE];   /* vectors in order of delivery */
};

_Static_assert(offsetof(struct user_block, log) == UB_LOG, "layout.h");

struct cpu {
    unsigned index;
    uint32_t apic_id;

    /* The last exception that was caught, or how user code ended */
    struct frame caught;
    uint64_t cr2;
    uint64_t catch_rip;         /* an exception at CPL 0 goes on here */
    uint64_t user_kernel_rsp;   /* not 0: CPL 3 runs under run_user() */
    bool (*hook)(struct frame *f);  /* true: handled, resume */
    uint32_t irqs[256];         /* interrupts through the IDT */
    uint8_t irq_log[32];        /* their vectors, in order */
    unsigned n_irq_log;
    void *on_unexpected[5];     /* __builtin_setjmp */

    /* Work for a CPU that is not the first */
    void (*volatile work)(void *);
    void *volatile argument;
    volatile bool online;
    volatile bool lost;         /* an unexpected trap ended its work */

    uint64_t gdt[8];
    uint32_t tss[26];
    struct user_block user __attribute__((aligned(64)));
};

extern uint8_t cpu_area[MAX_CPUS][CPU_AREA_SIZE];
extern unsigned n_cpus;

static inline struct cpu *cpu_at(unsigned i)
{
    return (struct cpu *)cpu_area[i];
}

/* At CPL 0 only: it is found through the kernel stack. */
static inline struct cpu *this_cpu(void)
{
    uint64_t sp;

    asm volatile("mov %%rsp, %0" : "=r"(sp));
    return (struct cpu *)(sp & -(uint64_t)CPU_AREA_SIZE);
}

static inline void outb(uint16_t port, uint8_t v)
{
    asm volatile("outb %0, %1" : : "a"(v), "Nd"(port));
}

static inline uint8_t inb(uint16_t port)
{
    uint8_t v;

    asm volatile("inb %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static inline void pause(void)
{
    asm volatile("pause" : : : "memory");
}

/* About n microseconds, on any PC: one access to port 80H takes one. */
static inline void delay_us(unsigned n)
{
    while (n--) {
        outb(0x80, 0);
    }
}

static inline uint64_t rdtsc(void)
{
    uint32_t lo, hi;

    asm volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return (uint64_t)hi << 32 | lo;
}

static inline void cpuid(uint32_t leaf, uint32_t sub, uint32_t r[4])
{
    asm volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3])
                 : "0"(leaf), "2"(sub));
}

static inline uint64_t rdmsr(uint32_t msr)
{
    uint32_t lo, hi;

    asm volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
    return (uint64_t)hi << 32 | lo;
}

static inline void wrmsr(uint32_t msr, uint64_t v)
{
    asm volatile("wrmsr" : : "c"(msr), "a"((uint32_t)v), "d"((uint32_t)(v >> 32)) : "memory");
}

static inline uint64_t read_cr4(void)
{
    uint64_t v;

    asm volatile("mov %%cr4, %0" : "=r"(v));
    return v;
}

static inline void write_cr4(uint64_t v)
{
    asm volatile("mov %0, %%cr4" : : "r"(v) : "memory");
}

static inline uint64_t rflags(void)
{
    uint64_t v;

    asm volatile("pushfq; pop %0" : "=r"(v));
    return v;
}

/* Let every interrupt in that waits, then shut the door again. */
static inline void open_interrupts(void)
{
    asm volatile("sti; nop; nop; cli" : : : "memory");
}

/*
 * Run one piece of assembly at CPL 0; -1, or the vector of the exception
 * that it raised instead of completing.
 */
#define TRY(code, ...)                                              \
    ({                                                              \
        struct cpu *try_cpu = this_cpu();                           \
        try_cpu->caught.vector = NONE;                              \
        asm volatile("lea 9f(%%rip), %%r11\n\t"                     \
                     "mov %%r11, %c[catch](%[cpu])\n\t"             \
                     code "\n"                                      \
                     "9:\tmovq $0, %c[catch](%[cpu])"               \
                     TRY_OPERANDS(__VA_ARGS__)                      \
                     [cpu] "r"(try_cpu),                            \
                     [catch] "i"(offsetof(struct cpu, catch_rip))   \
                     : "r8", "r9", "r11", "cc", "memory");                      \
        (int)try_cpu->caught.vector;                                \
    })
#define TRY_OPERANDS(...)   : : __VA_ARGS__ __VA_OPT__(,)

static inline int try_wrmsr(uint32_t msr, uint64_t v)
{
    return TRY("wrmsr", "c"(msr), "a"((uint32_t)v), "d"((uint32_t)(v >> 32)));
}

static inline int try_rdmsr(uint32_t msr)
{
    return TRY("mov %%rax, %%r8; mov %%rdx, %%r9; rdmsr; mov %%r8, %%rax; mov %%r9, %%rdx", "c"(msr));
}

static inline int try_write_cr4(uint64_t v)
{
    return TRY("mov %[v], %%cr4", [v] "r"(v));
}

#define UIRET_BYTES     ".byte 0xf3, 0x0f, 0x01, 0xec"
#define TESTUI_BYTES    ".byte 0xf3, 0x0f, 0x01, 0xed"
#define CLUI_BYTES      ".byte 0xf3, 0x0f, 0x01, 0xee"
#define STUI_BYTES      ".byte 0xf3, 0x0f, 0x01, 0xef"
#define SENDUIPI_RAX    ".byte 0xf3, 0x0f, 0xc7, 0xf0"

static inline void clui(void)
{
    asm volatile(CLUI_BYTES : : : "memory");
}

static inline void stui(void)
{
    asm volatile(STUI_BYTES : : : "memory");
}

static inline bool testui(void)
{
    bool uif;

    asm volatile(TESTUI_BYTES : "=@ccc"(uif));
    return uif;
}

static inline void senduipi(uint64_t index)
{
    asm volatile(SENDUIPI_RAX : : "a"(index) : "memory");
}

static inline int try_senduipi(uint64_t index)
{
    return TRY(SENDUIPI_RAX, "a"(index));
}

static inline void user_done(void)
{
    asm volatile("int $0x80" : : : "memory");
    __builtin_unreachable();
}

/* boot.S */
void enter_user(struct frame *to, uint64_t *kernel_rsp, uint64_t *tss_rsp0);
void leave_user(uint64_t kernel_rsp) __attribute__((noreturn));
extern uint8_t trampoline[], trampoline_end[], trap_stubs[];
extern uint64_t trampoline_stack;
extern uint64_t window_pt[512];
void recording_handler(void);
void calling_handler(void);
extern uint8_t recording_handler_uiret[];

#endif
