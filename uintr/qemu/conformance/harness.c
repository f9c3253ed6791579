/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "harness.h"

bool has_uintr, has_uiret_uif, has_xsaves, has_la57, has_waitpkg;

volatile struct upid upid[N_UPIDS] __attribute__((aligned(4096)));
volatile struct uitte uitt[N_ENTRIES] __attribute__((aligned(4096)));
uint8_t stack_pages[2][PAGE] __attribute__((aligned(4096)));

unsigned long patience = 20000000;

static unsigned n_run, n_failed;
static bool item_failed;
const char *left_out;
static const char *skipped;

void read_features(void)
{
    uint32_t r[4];

    cpuid(0, 0, r);
    if (r[0] < 7) {
        return;
    }
    cpuid(7, 0, r);
    has_uintr = r[3] & BIT(5);
    has_la57 = r[2] & BIT(16);
    has_waitpkg = r[2] & BIT(5);
    if (r[0] >= 1) {
        cpuid(7, 1, r);
        has_uiret_uif = r[3] & BIT(17);
    }
    cpuid(1, 0, r);
    if (r[2] & BIT(26)) {
        cpuid(0xd, 1, r);
        has_xsaves = r[0] & BIT(3);
    }
}

void failed(const char *file, int line, const char *what, const char *format, ...)
{
    va_list args;

    print("# %s:%d: not so: %s", file, line, what);
    if (*format) {
        print("; ");
        va_start(args, format);
        vprint(format, args);
        va_end(args);
    }
    print("\n");
    item_failed = true;
}

void skip(const char *why)
{
    skipped = why;
}

static const char *missing(unsigned needs)
{
    if ((needs & NEEDS_XSAVES) && !has_xsaves) {
        return "CPUID has no XSAVES";
    }
    if ((needs & NEEDS_LA57) && !has_la57) {
        return "CPUID has no LA57";
    }
    if ((needs & NEEDS_UIRET_UIF) && !has_uiret_uif) {
        return "CPUID has no UIRET_UIF";
    }
    if ((needs & NEEDS_CPU2) && n_cpus < 2) {
        return "one CPU only";
    }
    return NULL;
}

static bool starts_with(const char *s, const char *prefix)
{
    while (*prefix && *s == *prefix) {
        s++, prefix++;
    }
    return !*prefix;
}

static bool is_left_out(const char *id)
{
    const char *c = left_out;

    while (c && *id && *c == *id) {
        c++, id++;
    }
    return c && !*id && (!*c || *c == ' ');
}

void report(bool ok, const char *id, const char *text, const char *section)
{
    n_run++;
    n_failed += !ok;
    print("%sok %u - %s: %s (%s)", ok ? "" : "not ", n_run, id, text, section);
    if (skipped && ok) {
        print(" # SKIP %s", skipped);
    }
    print("\n");
}

void run_items(const struct item *items, const char *filter)
{
    for (; items->id; items++) {
        if (!starts_with(items->id, filter) || is_left_out(items->id)) {
            continue;
        }
        item_failed = false;
        skipped = missing(items->needs);
        if (!skipped) {
            if (__builtin_setjmp(this_cpu()->on_unexpected) == 0) {
                items->run();
            } else {
                item_failed = true;
            }
            this_cpu()->hook = NULL;
        }
        report(!item_failed, items->id, items->text, items->section);
        skipped = NULL;
    }
}

unsigned items_run(void)
{
    return n_run;
}

unsigned items_failed(void)
{
    return n_failed;
}

static void flush(unsigned page)
{
    asm volatile("invlpg (%0)" : : "r"(WINDOW + page * PAGE) : "memory");
}

void map_page(unsigned page, const volatile void *at, uint64_t bits)
{
    window_pt[page] = (uint64_t)at | bits;
    flush(page);
}

void unmap_page(unsigned page)
{
    window_pt[page] = 0;
    flush(page);
}

void fresh(void)
{
    struct cpu *cpu = this_cpu();
    unsigned i;

    asm volatile("cli");
    write_cr4(read_cr4() | CR4_UINTR);
    wrmsr(MSR_UI_MISC, 0);
    wrmsr(MSR_UI_RR, 0);
    wrmsr(MSR_UI_HANDLER, 0);
    wrmsr(MSR_UI_ADJUST, 0);
    wrmsr(MSR_UI_PD, 0);
    wrmsr(MSR_UI_TT, 0);
    clui();
    apic_write(APIC_TPR, 0);
    settle();
    open_interrupts();

    for (i = 0; i < N_UPIDS; i++) {
        upid[i].low = upid[i].pir = 0;
    }
    for (i = 0; i < N_ENTRIES; i++) {
        uitt[i].low = uitt[i].upid = 0;
    }
    for (i = 0; i < 16; i++) {
        unmap_page(i);
    }
    map_page(PAGE_UPID, upid, PTE_P | PTE_W);
    map_page(PAGE_UITT, uitt, PTE_P | PTE_W);
    map_page(PAGE_STACK, stack_pages[0], PTE_P | PTE_W | PTE_U);
    map_page(PAGE_STACK + 1, stack_pages[1], PTE_P | PTE_W | PTE_U);

    for (i = 0; i < 256; i++) {
        cpu->irqs[i] = 0;
    }
    cpu->hook = NULL;
    cpu->user = (struct user_block) { .rflags_and = ~0ULL };
    wrmsr(MSR_GS_BASE, (uint64_t)&cpu->user);
}

void fresh_receiver(void)
{
    fresh();
    upid[0].low = UPID(NV, this_cpu()->apic_id);
    uitt[0].low = ENTRY(5);
    uitt[0].upid = UPID_ADDR(0);
    wrmsr(MSR_UI_HANDLER, (uint64_t)recording_handler);
    wrmsr(MSR_UI_ADJUST, 128);
    wrmsr(MSR_UI_PD, UPID_ADDR(0));
    wrmsr(MSR_UI_TT, UITT_ADDR | TT_ENABLE);
    wrmsr(MSR_UI_MISC, MISC_UINV(NV) | (N_ENTRIES - 1));
}

struct frame user_frame(const void *code, uint64_t rflags)
{
    return (struct frame) {
        .rip = (uint64_t)code, .cs = USER_CS, .rflags = rflags | FIXED_1,
        .rsp = USER_STACK, .ss = USER_DS,
    };
}

int run_user_frame(struct frame *f)
{
    struct cpu *cpu = this_cpu();

    cpu->caught.vector = NONE;
    /* RSP0 is at byte 4 of the TSS. */
    enter_user(f, &cpu->user_kernel_rsp, (uint64_t *)&cpu->tss[1]);
    cpu->user_kernel_rsp = 0;
    return cpu->caught.vector;
}

int run_user(void (*code)(void), uint64_t rflags)
{
    struct frame f = user_frame(code, rflags);

    return run_user_frame(&f);
}

void nothing(void)
{
    user_done();
}

void set_uif(void)
{
    stui();
    user_done();
}

int run_user32(void)
{
    static const uint8_t int80[] = { 0xcd, 0x80 };
    struct frame f = user_frame(int80, IF);

    f.cs = USER_CS32;
    f.rsp = (uint64_t)stack_pages[1] + PAGE;
    return run_user_frame(&f);
}

bool take_breakpoint(struct frame *f)
{
    return f->vector == DB;
}

void receive_at_1(void (*handler)(void))
{
    write_cr4(read_cr4() | CR4_UINTR);
    clui();
    wrmsr(MSR_GS_BASE, (uint64_t)&this_cpu()->user);
    wrmsr(MSR_UI_RR, 0);
    wrmsr(MSR_UI_HANDLER, (uint64_t)handler);
    wrmsr(MSR_UI_ADJUST, 128);
    wrmsr(MSR_UI_PD, UPID_ADDR(1));
    wrmsr(MSR_UI_MISC, MISC_UINV(NV));
}

void start_on(unsigned index, void (*fn)(void *), void *argument)
{
    struct cpu *cpu = cpu_at(index);

    cpu->lost = false;
    cpu->argument = argument;
    __atomic_store_n(&cpu->work, fn, __ATOMIC_RELEASE);
}

void wait_for(unsigned index)
{
    struct cpu *cpu = cpu_at(index);

    if (!check(eventually(!__atomic_load_n(&cpu->work, __ATOMIC_ACQUIRE)), "CPU %u does not come back", index)) {
        /* Nothing more can be asked of it. */
        n_cpus = index;
    }
    check(!cpu->lost, "CPU %u was stopped by a trap", index);
}

void run_on(unsigned index, void (*fn)(void *), void *argument)
{
    start_on(index, fn, argument);
    wait_for(index);
}
