/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A CPU without user interrupts: section 2 and the first lines of 3.1 and 5. */

#include "harness.h"

static void cr4_bit(void)
{
    check(try_write_cr4(read_cr4() | CR4_UINTR) == GP);
    check(!(read_cr4() & CR4_UINTR));
}

static void msrs(void)
{
    uint32_t msr;

    for (msr = MSR_UI_RR; msr <= MSR_UI_TT; msr++) {
        check(try_rdmsr(msr) == GP, "MSR %x", msr);
        check(try_wrmsr(msr, 0) == GP, "MSR %x", msr);
    }
}

static void instructions(void)
{
    check(TRY(UIRET_BYTES) == UD);
    check(TRY(TESTUI_BYTES) == UD);
    check(TRY(CLUI_BYTES) == UD);
    check(TRY(STUI_BYTES) == UD);
    check(try_senduipi(0) == UD);
}

static void component(void)
{
    uint32_t r[4];

    cpuid(0xd, 1, r);
    check(!(r[2] & BIT(14)));
    check(try_wrmsr(MSR_XSS, BIT(14)) == GP);
}

const struct item absent_items[] = {
    { "absent.cr4", "§2", "CR4 bit 25 without the CPUID bit raises #GP", cr4_bit },
    { "absent.msrs", "§3.1", "RDMSR and WRMSR of the six MSRs raise #GP", msrs },
    { "absent.instructions", "§5", "the five instructions raise #UD", instructions },
    { "absent.component", "§2", "IA32_XSS bit 14 does not exist", component, NEEDS_XSAVES },
    { 0 },
};
