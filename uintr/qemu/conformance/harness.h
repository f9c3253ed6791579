/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Test items, the machine they find, and what they share. */

#ifndef HARNESS_H
#define HARNESS_H

#include "apic.h"
#include "console.h"
#include "cpu.h"

struct item {
    const char *id;         /* fault lists name it; never renamed */
    const char *section;    /* of the specification */
    const char *text;
    void (*run)(void);
    unsigned needs;         /* NEEDS_... */
};

enum { NEEDS_XSAVES = 1, NEEDS_LA57 = 2, NEEDS_CPU2 = 4, NEEDS_UIRET_UIF = 8 };

/* One table per file, ended by an item without an id */
extern const struct item absent_items[], msr_items[], xsave_items[], flag_items[],
    senduipi_items[], uiret_items[], delivery_items[], notification_items[], smp_items[], code_items[], moved_items[],
    kut_items[];

/* Run the items of a table that the filter (a prefix of the id) lets through. */
void run_items(const struct item *items, const char *filter);
/* But not the one with this id; up to a blank. */
extern const char *left_out;
unsigned items_run(void);
unsigned items_failed(void);

/* Report something that is not in a table. */
void report(bool ok, const char *id, const char *text, const char *section);

/* A failed check fails the item and says why; the item goes on. Its value is the condition. */
#define check(condition, ...)                                       \
    ({                                                              \
        bool holds = (condition);                                   \
                                                                    \
        if (!holds) {                                               \
            failed(__FILE__, __LINE__, #condition, "" __VA_ARGS__); \
        }                                                           \
        holds;                                                      \
    })
void failed(const char *file, int line, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The item says nothing about this machine, because. */
void skip(const char *why);

/* What CPUID says */
extern bool has_uintr, has_uiret_uif, has_xsaves, has_la57, has_waitpkg;
void read_features(void);

/*
 * The window: pages that the tests map as they like. The UPIDs and the UITT
 * are supervisor pages in it; the kernel writes them through upid[], uitt[].
 */
#define WINDOW          (1UL << 39)
#define PAGE            4096UL
#define PAGE_UPID       0
#define PAGE_UITT       1       /* and PAGE_UITT + 1 stays absent */
#define PAGE_STACK      4       /* two pages, absent below and above */
#define PAGE_FREE       8
#define N_UPIDS         64
#define N_ENTRIES       256

struct upid {
    uint64_t low, pir;
    uint64_t unused[6];
};

struct uitte {
    uint64_t low, upid;
};

extern volatile struct upid upid[N_UPIDS];
extern volatile struct uitte uitt[N_ENTRIES];
extern uint8_t stack_pages[2][PAGE];

#define UPID_ADDR(n)    (WINDOW + PAGE_UPID * PAGE + (n) * 64)
#define UITT_ADDR       (WINDOW + PAGE_UITT * PAGE)
#define USER_STACK_LOW  (WINDOW + PAGE_STACK * PAGE)
#define USER_STACK      (WINDOW + (PAGE_STACK + 2) * PAGE)

#define ON              BIT(0)
#define SN              BIT(1)
#define UPID(nv, dest)  ((uint64_t)(nv) << 16 | (uint64_t)ndst(dest) << 32)
#define ENTRY(vector)   (BIT(0) | (uint64_t)(vector) << 8)

/* Notification vector, and one that no UINV names */
#define NV              0xec
#define OTHER           0xeb

void map_page(unsigned page, const volatile void *at, uint64_t bits);
void unmap_page(unsigned page);

/* Feature on, every register of user interrupts zero, window as above. */
void fresh(void);
/* After fresh(): this CPU receives at UPID 0 and sends to it by entry 0. */
void fresh_receiver(void);

/*
 * Run code at CPL 3 until it executes user_done() or faults; returns the
 * vector. Registers before are in f, those after in this_cpu()->caught.
 */
int run_user_frame(struct frame *f);
int run_user(void (*code)(void), uint64_t rflags);
struct frame user_frame(const void *code, uint64_t rflags);
/* Code for it: done at once, or after STUI. */
void nothing(void);
void set_uif(void);
/* Done at once in compatibility mode. */
int run_user32(void);
/* A hook: a data breakpoint is no fault of the item's. */
bool take_breakpoint(struct frame *f);
/* This CPU receives at UPID 1, which another has made. */
void receive_at_1(void (*handler)(void));

/* Another CPU does fn(argument) at CPL 0 with interrupts shut. */
void start_on(unsigned index, void (*fn)(void *), void *argument);
void wait_for(unsigned index);
void run_on(unsigned index, void (*fn)(void *), void *argument);

/*
 * How many looks a wait takes before it gives up: "patience=N" on the command
 * line. Each look lets other CPUs run, so that an emulator which runs one at
 * a time makes the same progress however slow it is.
 */
extern unsigned long patience;

#define eventually(condition)                                   \
    ({                                                          \
        unsigned long looks = 0;                                \
        while (!(condition) && looks++ < patience) {            \
            pause();                                            \
        }                                                       \
        (condition);                                            \
    })

/* A data breakpoint on the eight bytes at a linear address, when they are written; none at 0 */
static inline void watch(uint64_t at)
{
    const uint64_t always_1 = BIT(10), local_0 = BIT(0), when_written = BIT(16), eight_bytes = 2 << 18;

    asm volatile("mov %0, %%dr0; mov %1, %%dr7"
                 : : "r"(at), "r"(at ? always_1 | local_0 | when_written | eight_bytes : always_1) : "memory");
}

/* Long enough for an interrupt that was sent to reach its APIC */
#define settle()        delay_us(20)

#endif
