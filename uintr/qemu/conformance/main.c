/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Start of the program on each CPU, and the choice of what to run from the
 * multiboot command line:
 *
 *   items=PREFIX        only items whose id starts like this; "none" for none
 *   except=ID           not this item
 *   kut                 only the cases of kvm-unit-tests, see test_kut.c
 *   hold                only the items that stop to be moved, see test_moved.c
 *   testuis=N           N TESTUIs under a fast timer
 *   sends=N             account for N SENDUIPIs between two CPUs
 *   steps=N seed=S cpus=N   print N random steps in lock step
 *   patience=N          looks that a wait takes before it gives up
 *   x2apic              switch the local APICs to x2APIC mode
 *   rsdp=ADDRESS        where the ACPI root pointer is (hexadecimal)
 */

#include "main.h"

#include "acpi.h"
#include "harness.h"

#define MULTIBOOT_MAGIC     0x2badb002
#define DEBUG_EXIT          0xf4

unsigned n_cpus = 1;

static char command_line[256];
static bool want_x2apic;

static const char *option(const char *name)
{
    const char *p = command_line;

    while (*p) {
        const char *n = name;
        const char *q = p;

        while (*n && *q == *n) {
            n++, q++;
        }
        if (!*n && (!*q || *q == ' ' || *q == '=')) {
            return *q == '=' ? q + 1 : q;
        }
        while (*p && *p != ' ') {
            p++;
        }
        while (*p == ' ') {
            p++;
        }
    }
    return NULL;
}

static unsigned long number(const char *name, unsigned base, unsigned long otherwise)
{
    const char *p = option(name);
    unsigned long v = 0;

    if (!p) {
        return otherwise;
    }
    if (p[0] == '0' && p[1] == 'x') {
        p += 2;
        base = 16;
    }
    for (;; p++) {
        unsigned digit = *p >= '0' && *p <= '9' ? *p - '0' :
                         *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : 99;

        if (digit >= base) {
            return v;
        }
        v = v * base + digit;
    }
}

static void cpu_init(struct cpu *cpu)
{
    trap_init(cpu);
    apic_enable(want_x2apic);
    cpu->apic_id = apic_id();
    if (has_xsaves) {
        write_cr4(read_cr4() | CR4_OSXSAVE);
    }
}

static void __attribute__((noreturn)) serve(struct cpu *cpu)
{
    if (__builtin_setjmp(cpu->on_unexpected)) {
        __atomic_store_n(&cpu->work, NULL, __ATOMIC_RELEASE);
    }
    for (;;) {
        void (*work)(void *) = __atomic_load_n(&cpu->work, __ATOMIC_ACQUIRE);

        if (!work) {
            pause();
            continue;
        }
        /* The window may have changed since this CPU looked last. */
        asm volatile("mov %%cr3, %%rax; mov %%rax, %%cr3" : : : "rax", "memory");
        work(cpu->argument);
        __atomic_store_n(&cpu->work, NULL, __ATOMIC_RELEASE);
    }
}

static void start_cpus(const uint32_t *ids, unsigned n)
{
    uint8_t *to = (uint8_t *)TRAMPOLINE;
    unsigned i;

    for (i = 0; i < (unsigned)(trampoline_end - trampoline); i++) {
        to[i] = trampoline[i];
    }
    for (i = 0; i < n && n_cpus < MAX_CPUS; i++) {
        struct cpu *cpu = cpu_at(n_cpus);

        if (ids[i] == this_cpu()->apic_id) {
            continue;
        }
        cpu->index = n_cpus;
        trampoline_stack = (uint64_t)cpu + CPU_AREA_SIZE;
        apic_send(ids[i], ICR_INIT);
        delay_us(10000);
        apic_send(ids[i], ICR_STARTUP | TRAMPOLINE >> 12);
        delay_us(200);
        if (!cpu->online) {
            apic_send(ids[i], ICR_STARTUP | TRAMPOLINE >> 12);
        }
        if (eventually(cpu->online)) {
            n_cpus++;
        } else {
            print("# the CPU with APIC ID %u does not start\n", ids[i]);
        }
    }
}

static void __attribute__((noreturn)) end(unsigned code)
{
    outb(DEBUG_EXIT, code);
    for (;;) {
        asm volatile("cli; hlt");
    }
}

static const struct item *const tables[] = {
    msr_items, xsave_items, flag_items, senduipi_items, uiret_items,
    delivery_items, notification_items, smp_items, code_items,
};

void cpu_main(uint32_t magic, const uint32_t *multiboot)
{
    struct cpu *cpu = this_cpu();
    uint32_t ids[64];
    unsigned n, i;
    const char *items;
    char filter[32];

    if (magic == 0) {
        cpu_init(cpu);
        cpu->online = true;
        serve(cpu);
    }

    console_init();
    if (magic == MULTIBOOT_MAGIC && (multiboot[0] & BIT(2))) {
        const char *from = (const char *)(uint64_t)multiboot[4];

        /* The loader puts the name of the program first. */
        while (*from && *from != ' ') {
            from++;
        }
        while (*from == ' ') {
            from++;
        }
        for (i = 0; from[i] && i < sizeof(command_line) - 1; i++) {
            command_line[i] = from[i];
        }
    }
    want_x2apic = option("x2apic");
    patience = number("patience", 10, patience);

    /* No interrupts from the two 8259s */
    outb(0x21, 0xff);
    outb(0xa1, 0xff);
    read_features();
    cpu_init(cpu);
    n = acpi_cpus(number("rsdp", 16, 0), ids, sizeof(ids) / sizeof(ids[0]));
    start_cpus(ids, n);

    print("TAP version 13\n# %u CPUs, %s mode, UINTR %s, UIRET_UIF %s, XSAVES %s, LA57 %s\n",
          n_cpus, x2apic ? "x2APIC" : "xAPIC", has_uintr ? "yes" : "no",
          has_uiret_uif ? "yes" : "no", has_xsaves ? "yes" : "no", has_la57 ? "yes" : "no");

    items = option("items");
    for (i = 0; items && items[i] && items[i] != ' ' && i < sizeof(filter) - 1; i++) {
        filter[i] = items[i];
    }
    filter[i] = 0;
    left_out = option("except");

    if (!has_uintr) {
        run_items(absent_items, filter);
        run_items(code_items, filter);
    } else if (option("kut")) {
        run_items(kut_items, filter);
    } else if (option("hold")) {
        run_items(moved_items, filter);
    } else {
        for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
            run_items(tables[i], filter);
        }
        if (number("testuis", 10, 0)) {
            hammer(number("testuis", 10, 0));
        }
        if (number("sends", 10, 0)) {
            accounting(number("sends", 10, 0));
        }
        if (number("steps", 10, 0)) {
            lockstep(number("steps", 10, 0), number("seed", 10, 1), number("cpus", 10, 2));
        }
    }
    print("1..%u\n# %u failed\n# end\n", items_run(), items_failed());
    end(items_failed() ? 1 : 0);
}
