/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TESTUI under a fast timer. An emulator may keep the flags in a form of its
 * own that TESTUI has to bring up to date for whoever reads them next, and
 * an interrupt between the two is where that shows. The timer's period is
 * an odd number of instructions, so that it comes everywhere in the loop.
 */

#include "harness.h"
#include "main.h"

#define TIMER           0x40
#define PERIODIC        BIT(17)
#define DIVIDE_BY_1     0xb
#define PERIOD          1999    /* the interrupt itself takes some 100 instructions */

void hammer(unsigned long rounds)
{
    const uint64_t arithmetic = CF | PF_FLAG | AF | ZF | SF | OF;
    struct cpu *cpu = this_cpu();
    unsigned long n, wrong = 0;

    fresh();
    cpu->irqs[TIMER] = 0;
    apic_write(APIC_LVT_TIMER, PERIODIC | TIMER);
    apic_write(APIC_TIMER_DIVIDE, DIVIDE_BY_1);
    apic_write(APIC_TIMER_COUNT, PERIOD);
    asm volatile("sti");
    for (n = 0; n < rounds; n++) {
        bool uif = n * 0x9e3779b97f4a7c15 >> 63;
        uint64_t after;

        if (uif) {
            stui();
        } else {
            clui();
        }
        /* 0 - 1 sets flags that TESTUI has to clear, and CF. */
        asm volatile("cmp $1, %k1; " TESTUI_BYTES "; pushfq; pop %0" : "=r"(after) : "r"(0) : "cc");
        wrong += (after & arithmetic) != (uif ? CF : 0);
    }
    asm volatile("cli");
    apic_write(APIC_LVT_TIMER, BIT(16) | TIMER);
    clui();
    print("# hammer: %lu TESTUIs, %u interrupts, %lu wrong\n", rounds, cpu->irqs[TIMER], wrong);
    report(wrong == 0 && cpu->irqs[TIMER] > 0, "hammer.testui", "TESTUI's flags survive interrupts", "§5");
}
