/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sections 2 and 3.1: enumeration, CR4 and the rows of the MSR table. */

#include "harness.h"

/* Neither canonical with 48 bits of address nor with 57 */
static const uint64_t not_canonical[] = { BIT(63), 0x0100000000000000, 0xfeffffffffffffc0 };
static const uint64_t canonical[] = { 0, 0x00007fffffffffc0, 0xffff800000000000, 0xffffffffffffffc0 };

static void cr4_bit(void)
{
    fresh();
    check(try_write_cr4(read_cr4() & ~CR4_UINTR) == NONE);
    check(!(read_cr4() & CR4_UINTR));
    check(try_write_cr4(read_cr4() | CR4_UINTR) == NONE);
    check(read_cr4() & CR4_UINTR);
}

static void not_gated(void)
{
    fresh();
    write_cr4(read_cr4() & ~CR4_UINTR);
    check(try_wrmsr(MSR_UI_ADJUST, 128) == NONE);
    check(try_rdmsr(MSR_UI_ADJUST) == NONE);
    check(rdmsr(MSR_UI_ADJUST) == 128);
}

static void rejects(uint32_t msr, uint64_t v)
{
    uint64_t before = rdmsr(msr);

    check(try_wrmsr(msr, v) == GP, "MSR %x, %lx", msr, v);
    check(this_cpu()->caught.error == 0);
    check(rdmsr(msr) == before, "MSR %x, %lx", msr, v);
}

static void accepts(uint32_t msr, uint64_t v)
{
    check(try_wrmsr(msr, v) == NONE, "MSR %x, %lx", msr, v);
    check(rdmsr(msr) == v, "MSR %x: %lx, wrote %lx", msr, rdmsr(msr), v);
}

static void rejects_non_canonical(uint32_t msr)
{
    unsigned i;

    for (i = 0; i < sizeof(not_canonical) / sizeof(*not_canonical); i++) {
        rejects(msr, not_canonical[i]);
    }
    if (!has_la57) {
        rejects(msr, BIT(47));
        rejects(msr, BIT(56));
    }
}

static void accepts_canonical(uint32_t msr)
{
    unsigned i;

    for (i = 0; i < sizeof(canonical) / sizeof(*canonical); i++) {
        accepts(msr, canonical[i]);
    }
}

static void rr(void)
{
    fresh();
    accepts(MSR_UI_RR, ~0ULL);
    accepts(MSR_UI_RR, BIT(63) | 1);
    accepts(MSR_UI_RR, 0);
}

static void handler(void)
{
    fresh();
    accepts_canonical(MSR_UI_HANDLER);
    rejects_non_canonical(MSR_UI_HANDLER);
}

static void adjust(void)
{
    fresh();
    accepts_canonical(MSR_UI_ADJUST);
    accepts(MSR_UI_ADJUST, 0x7fff00000001);
    rejects_non_canonical(MSR_UI_ADJUST);
}

static void misc(void)
{
    unsigned bit;

    fresh();
    accepts(MSR_UI_MISC, 0xffffffffffULL);
    accepts(MSR_UI_MISC, MISC_UINV(0xec) | 255);
    for (bit = 40; bit < 64; bit++) {
        rejects(MSR_UI_MISC, BIT(bit));
    }
}

static void pd(void)
{
    unsigned bit;

    fresh();
    accepts_canonical(MSR_UI_PD);
    rejects_non_canonical(MSR_UI_PD);
    for (bit = 0; bit < 6; bit++) {
        rejects(MSR_UI_PD, BIT(bit));
    }
}

static void tt(void)
{
    unsigned bit;

    fresh();
    accepts_canonical(MSR_UI_TT);
    accepts(MSR_UI_TT, UITT_ADDR | TT_ENABLE);
    accepts(MSR_UI_TT, 0x10);
    rejects_non_canonical(MSR_UI_TT);
    for (bit = 1; bit < 4; bit++) {
        rejects(MSR_UI_TT, BIT(bit));
    }
}

static void widest_address(void)
{
    fresh();
    accepts(MSR_UI_HANDLER, BIT(47));
    accepts(MSR_UI_ADJUST, 0x00ffffffffffff00);
    accepts(MSR_UI_PD, BIT(55));
    accepts(MSR_UI_TT, 0xff00000000000001);
    rejects(MSR_UI_HANDLER, BIT(56));
}

static uint64_t reset_values[7];

static void read_reset_values(void *unused)
{
    unsigned i;

    (void)unused;
    /* Nothing on this CPU has written the MSRs since it was started. */
    for (i = 0; i < 6; i++) {
        reset_values[i] = rdmsr(MSR_UI_RR + i);
    }
    write_cr4(read_cr4() | CR4_UINTR);
    reset_values[6] = testui();
}

static void reset(void)
{
    unsigned i;

    for (i = 0; i < 7; i++) {
        reset_values[i] = ~0ULL;        /* A CPU that reads none of them is no proof. */
    }
    run_on(1, read_reset_values, NULL);
    for (i = 0; i < 7; i++) {
        check(reset_values[i] == 0, "%u: %lx", i, reset_values[i]);
    }
}

const struct item msr_items[] = {
    { "msr.reset", "§3", "a CPU starts with every register of user interrupts zero", reset, NEEDS_CPU2 },
    { "msr.cr4", "§2", "CR4 bit 25 can be set and cleared", cr4_bit },
    { "msr.not-gated", "§2", "CR4.UINTR does not gate the MSRs", not_gated },
    { "msr.rr", "§3.1", "IA32_UINTR_RR takes every value", rr },
    { "msr.handler", "§3.1", "IA32_UINTR_HANDLER must be canonical", handler },
    { "msr.stackadjust", "§3.1", "IA32_UINTR_STACKADJUST must be canonical", adjust },
    { "msr.misc", "§3.1", "IA32_UINTR_MISC bits 63:40 are reserved", misc },
    { "msr.pd", "§3.1", "IA32_UINTR_PD bits 5:0 are reserved, the address canonical", pd },
    { "msr.tt", "§3.1", "IA32_UINTR_TT bits 3:1 are reserved, the address canonical", tt },
    { "msr.la57", "§3.1", "canonical means for the widest address, whatever the paging mode",
      widest_address, NEEDS_LA57 },
    { 0 },
};
