/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What survives when the machine is saved and goes on elsewhere: migration,
 * snapshots. Each item stops with "# hold" and goes on when a byte arrives on
 * the serial port; run/--move moves the machine in between. Sections are those
 * that say what the state means.
 */

#include "harness.h"
#include "main.h"

static void hold(void)
{
    print("# hold\n");
    console_wait();
}

static void uif_set(void)
{
    fresh_receiver();
    stui();
    hold();
    check(testui());
    check(try_senduipi(0) == NONE);
    settle();
    open_interrupts();
    check(run_user(nothing, IF) == DONE);
    check(this_cpu()->user.count == 1, "%lu", this_cpu()->user.count);
}

static void uif_clear(void)
{
    fresh_receiver();
    wrmsr(MSR_UI_RR, BIT(9));
    hold();
    check(!testui());
    check(run_user(nothing, IF) == DONE);
    check(this_cpu()->user.count == 0 && rdmsr(MSR_UI_RR) == BIT(9));
}

/* Nothing is written after the move: the interrupt has to come by itself. */
static void recognised(void)
{
    fresh_receiver();
    wrmsr(MSR_UI_RR, BIT(9));
    stui();
    hold();
    check(run_user(nothing, IF) == DONE);
    check(this_cpu()->user.count == 1 && this_cpu()->user.vector == 9);
    check(rdmsr(MSR_UI_RR) == 0);
}

/* The notification waits in the local APIC behind the task priority. */
static void in_the_apic(void)
{
    fresh_receiver();
    apic_write(APIC_TPR, 0xff);
    check(try_senduipi(0) == NONE);
    settle();
    open_interrupts();
    check(rdmsr(MSR_UI_RR) == 0);
    hold();
    check(rdmsr(MSR_UI_RR) == 0 && upid[0].pir == BIT(5) && (upid[0].low & ON));
    apic_write(APIC_TPR, 0);
    settle();
    open_interrupts();
    check(rdmsr(MSR_UI_RR) == BIT(5), "%lx", rdmsr(MSR_UI_RR));
    check(upid[0].pir == 0 && !(upid[0].low & ON));
}

static void registers(void)
{
    fresh_receiver();
    wrmsr(MSR_UI_RR, BIT(63) | BIT(1));
    hold();
    check(read_cr4() & CR4_UINTR);
    check(rdmsr(MSR_UI_RR) == (BIT(63) | BIT(1)));
    check(rdmsr(MSR_UI_HANDLER) == (uint64_t)recording_handler);
    check(rdmsr(MSR_UI_ADJUST) == 128);
    check(rdmsr(MSR_UI_PD) == UPID_ADDR(0));
    check(rdmsr(MSR_UI_TT) == (UITT_ADDR | TT_ENABLE));
    check(rdmsr(MSR_UI_MISC) == (MISC_UINV(NV) | (N_ENTRIES - 1)));
}

const struct item moved_items[] = {
    { "moved.registers", "§3", "CR4.UINTR and the six MSRs are where the machine goes", registers },
    { "moved.uif-set", "§3", "UIF = 1 goes with it", uif_set },
    { "moved.uif-clear", "§3", "UIF = 0 goes with it, and what is requested waits", uif_clear },
    { "moved.recognised", "§6.1, §6.2", "a recognised interrupt is delivered there", recognised },
    { "moved.in-the-apic", "§6.4", "a notification that waits in the APIC is processed there", in_the_apic },
    { 0 },
};
