/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Section 3.2: XSAVE component 14. */

#include "harness.h"

#define COMPONENT       BIT(14)
#define COMPACTED       BIT(63)

struct area {
    uint8_t legacy[512];
    uint64_t xstate_bv, xcomp_bv, reserved[6];
    uint64_t state[500];        /* component 14 comes first in most tests */
} __attribute__((aligned(64)));

enum { HANDLER, ADJUST, MISC, PD, RR, TT };

static struct area area;

static int xsaves(uint64_t mask)
{
    return TRY(".byte 0x48, 0x0f, 0xc7, 0x2f", "D"(&area), "a"((uint32_t)mask),
               "d"((uint32_t)(mask >> 32)));
}

static int xrstors(uint64_t mask)
{
    return TRY(".byte 0x48, 0x0f, 0xc7, 0x1f", "D"(&area), "a"((uint32_t)mask),
               "d"((uint32_t)(mask >> 32)));
}

static void clear_area(void)
{
    uint8_t *p = (uint8_t *)&area;
    unsigned i;

    for (i = 0; i < sizeof(area); i++) {
        p[i] = 0;
    }
}

static const uint64_t values[6] = {
    0x401000, 128, MISC_UINV(NV) | 255, 0xffff888000001040, BIT(63) | 3, 0xffff888000002001,
};
static const uint32_t msrs[6] = {
    MSR_UI_HANDLER, MSR_UI_ADJUST, MSR_UI_MISC, MSR_UI_PD, MSR_UI_RR, MSR_UI_TT,
};

static void fresh_xsave(void)
{
    fresh();
    wrmsr(MSR_XSS, COMPONENT);
    clear_area();
}

static void load_values(void)
{
    unsigned i;

    for (i = 0; i < 6; i++) {
        wrmsr(msrs[i], values[i]);
    }
}

static void good_image(void)
{
    unsigned i;

    clear_area();
    area.xstate_bv = COMPONENT;
    area.xcomp_bv = COMPONENT | COMPACTED;
    for (i = 0; i < 6; i++) {
        area.state[i] = values[i];
    }
}

static void enumeration(void)
{
    uint32_t r[4];
    uint32_t size;

    fresh_xsave();
    cpuid(0xd, 1, r);
    check(r[2] & COMPONENT);
    size = r[1];
    cpuid(0xd, 14, r);
    check(r[0] == 48 && r[1] == 0 && (r[2] & 3) == 1, "%x %x %x", r[0], r[1], r[2]);
    wrmsr(MSR_XSS, 0);
    cpuid(0xd, 1, r);
    check(r[1] == size - 48, "area of %u and %u bytes", r[1], size);
    cpuid(0xd, 0, r);
    check(!(r[0] & COMPONENT), "not in XCR0");
    check(try_wrmsr(MSR_XSS, BIT(1)) == GP, "a user component in IA32_XSS");
}

static void layout(void)
{
    unsigned i;

    fresh_xsave();
    load_values();
    stui();
    check(xsaves(COMPONENT) == NONE);
    check(area.xstate_bv == COMPONENT, "%lx", area.xstate_bv);
    check(area.xcomp_bv == (COMPONENT | COMPACTED), "%lx", area.xcomp_bv);
    for (i = 0; i < 6; i++) {
        uint64_t expected = values[i] | (i == MISC ? BIT(63) : 0);

        check(area.state[i] == expected, "byte %u: %lx", i * 8, area.state[i]);
    }
    check(area.state[6] == 0);
}

static void clears_uinv(void)
{
    unsigned i;

    fresh_xsave();
    load_values();
    stui();
    check(xsaves(COMPONENT) == NONE);
    for (i = 0; i < 6; i++) {
        uint64_t expected = i == MISC ? values[i] & 0xffffffff : values[i];

        check(rdmsr(msrs[i]) == expected, "MSR %x: %lx", msrs[i], rdmsr(msrs[i]));
    }
    check(testui(), "UIF kept");
    /* Once more: the image now says UINV = 0 (hazard H6). */
    check(xsaves(COMPONENT) == NONE);
    check(area.state[MISC] == (BIT(63) | 255), "%lx", area.state[MISC]);
}

static void not_requested(void)
{
    fresh_xsave();
    load_values();
    check(xsaves(BIT(0)) == NONE);
    check(rdmsr(MSR_UI_MISC) == values[MISC], "component 14 not in the mask");
    wrmsr(MSR_XSS, 0);
    check(xsaves(COMPONENT) == NONE);
    check(rdmsr(MSR_UI_MISC) == values[MISC], "component 14 not in IA32_XSS");
    check(!(area.xcomp_bv & COMPONENT));
}

static void restores(void)
{
    unsigned i;

    fresh_xsave();
    good_image();
    area.state[MISC] |= BIT(63);
    check(xrstors(COMPONENT) == NONE);
    for (i = 0; i < 6; i++) {
        check(rdmsr(msrs[i]) == values[i], "MSR %x: %lx", msrs[i], rdmsr(msrs[i]));
    }
    check(testui());
    wrmsr(MSR_UI_MISC, 0);
    area.state[MISC] &= ~BIT(63);
    check(xrstors(COMPONENT) == NONE);
    check(!testui(), "UIF comes from bit 63");
}

static void uinv_not_zero(void)
{
    fresh_xsave();
    wrmsr(MSR_UI_MISC, MISC_UINV(0x20));
    good_image();
    check(xrstors(COMPONENT) == GP);
    check(this_cpu()->caught.error == 0);
    check(rdmsr(MSR_UI_HANDLER) == 0 && rdmsr(MSR_UI_RR) == 0, "nothing loaded");
    check(xrstors(0) == NONE, "not if component 14 is not requested");
}

static void uinv_not_zero_initial(void)
{
    fresh_xsave();
    wrmsr(MSR_UI_MISC, MISC_UINV(0x20));
    good_image();
    area.xstate_bv = 0;
    check(xrstors(COMPONENT) == GP);
    check(rdmsr(MSR_UI_MISC) == MISC_UINV(0x20));
}

static void rejects(unsigned field, uint64_t v)
{
    good_image();
    area.state[field] = v;
    check(xrstors(COMPONENT) == GP, "field %u, %lx", field, v);
    check((rdmsr(MSR_UI_MISC) & MISC_UINV(0xff)) == 0, "UINV is 0 after a fault");
}

static void bad_image(void)
{
    unsigned bit;

    fresh_xsave();
    rejects(HANDLER, BIT(63));
    rejects(ADJUST, BIT(63));
    rejects(PD, BIT(63));
    rejects(TT, BIT(63));
    for (bit = 40; bit < 63; bit++) {
        rejects(MISC, BIT(bit));
    }
    for (bit = 0; bit < 6; bit++) {
        rejects(PD, BIT(bit));
    }
    for (bit = 1; bit < 4; bit++) {
        rejects(TT, BIT(bit));
    }
}

static void bad_header(void)
{
    unsigned i;

    fresh_xsave();
    good_image();
    area.xcomp_bv = 0;
    check(xrstors(COMPONENT) == GP, "not compacted");
    good_image();
    area.xcomp_bv = COMPACTED;
    check(xrstors(COMPONENT) == GP, "XSTATE_BV has more than XCOMP_BV");
    good_image();
    area.xcomp_bv |= BIT(13);
    check(xrstors(COMPONENT) == GP, "XCOMP_BV has more than XCR0 and IA32_XSS");
    for (i = 0; i < 6; i++) {
        good_image();
        area.reserved[i] = 1;
        check(xrstors(COMPONENT) == GP, "header byte %u", 16 + i * 8);
    }
}

static void initial(void)
{
    unsigned i;

    fresh_xsave();
    load_values();
    wrmsr(MSR_UI_MISC, 255);
    stui();
    good_image();
    area.xstate_bv = 0;
    check(xrstors(COMPONENT) == NONE);
    for (i = 0; i < 6; i++) {
        check(rdmsr(msrs[i]) == 0, "MSR %x: %lx", msrs[i], rdmsr(msrs[i]));
    }
    check(!testui());
}

static void in_use(void)
{
    fresh_xsave();
    check(xsaves(COMPONENT) == NONE);
    /* A CPU may say "in use" of a state that is initial; not the reverse. */
    check(!(area.xstate_bv & COMPONENT) || area.state[0] == 0);
    stui();
    check(xsaves(COMPONENT) == NONE);
    check(area.xstate_bv & COMPONENT, "UIF alone");
    clui();
    wrmsr(MSR_UI_RR, 1);
    check(xsaves(COMPONENT) == NONE);
    check(area.xstate_bv & COMPONENT, "UIRR alone");
}

static void recognition(void)
{
    struct cpu *cpu = this_cpu();

    fresh_xsave();
    good_image();
    area.state[HANDLER] = (uint64_t)recording_handler;
    area.state[MISC] = BIT(63);
    area.state[RR] = BIT(21);
    check(xrstors(COMPONENT) == NONE);
    check(run_user(nothing, IF) == DONE);
    check(cpu->user.count == 1 && cpu->user.vector == 21, "XRSTORS makes it pending");

    fresh_xsave();
    wrmsr(MSR_UI_RR, BIT(21));
    wrmsr(MSR_UI_HANDLER, (uint64_t)recording_handler);
    good_image();
    area.state[HANDLER] = (uint64_t)recording_handler;
    area.state[MISC] = BIT(63);
    area.state[RR] = 0;
    check(xrstors(COMPONENT) == NONE);
    check(run_user(nothing, IF) == DONE);
    check(cpu->user.count == 0, "XRSTORS with UIRR = 0 takes it back");
}

static void with_others(void)
{
    uint32_t r[4];
    uint64_t mask;
    unsigned at = 0;

    fresh_xsave();
    cpuid(0xd, 0, r);
    mask = r[0] & 7;
    asm volatile("xsetbv" : : "c"(0), "a"((uint32_t)mask), "d"(0));
    if (mask & 4) {
        cpuid(0xd, 2, r);
        at = r[0] / 8;
    }
    load_values();
    check(xsaves(mask | COMPONENT) == NONE);
    check(area.xcomp_bv == (mask | COMPONENT | COMPACTED), "%lx", area.xcomp_bv);
    check(area.state[at + HANDLER] == values[HANDLER], "after the components below it");
    check(area.state[at + TT] == values[TT]);
    wrmsr(MSR_UI_TT, 0);
    check(xrstors(mask | COMPONENT) == NONE);
    check(rdmsr(MSR_UI_TT) == values[TT]);
    asm volatile("xsetbv" : : "c"(0), "a"(1), "d"(0));
}

static void xsaves_here(void)
{
    asm volatile(".byte 0x48, 0x0f, 0xc7, 0x2f" : : "D"(&area), "a"(0), "d"(0) : "memory");
    user_done();
}

static void xrstors_here(void)
{
    asm volatile(".byte 0x48, 0x0f, 0xc7, 0x1f" : : "D"(&area), "a"(0), "d"(0) : "memory");
    user_done();
}

static void privileged(void)
{
    fresh_xsave();
    good_image();
    check(run_user(xsaves_here, 0) == GP);
    check(run_user(xrstors_here, 0) == GP);
}

static void not_gated(void)
{
    fresh_xsave();
    load_values();
    write_cr4(read_cr4() & ~CR4_UINTR);
    check(xsaves(COMPONENT) == NONE);
    check(area.state[HANDLER] == values[HANDLER]);
    check(xrstors(COMPONENT) == NONE);
    check(rdmsr(MSR_UI_MISC) == values[MISC]);
}

const struct item xsave_items[] = {
    { "xsave.cpuid", "§2", "CPUID describes component 14", enumeration, NEEDS_XSAVES },
    { "xsave.layout", "§3.2", "the 48 bytes that XSAVES stores", layout, NEEDS_XSAVES },
    { "xsave.uinv", "§3.2, §10.16", "XSAVES clears UINV and nothing else", clears_uinv, NEEDS_XSAVES },
    { "xsave.mask", "§3.2", "component 14 only if asked for and enabled", not_requested, NEEDS_XSAVES },
    { "xsave.restore", "§3.2", "XRSTORS loads every field and UIF", restores, NEEDS_XSAVES },
    { "xsave.armed", "§3.2, §10.16", "XRSTORS while UINV is not 0: #GP, nothing loaded", uinv_not_zero, NEEDS_XSAVES },
    { "xsave.armed-initial", "§3.2 [inferred]", "so it is for the initial state", uinv_not_zero_initial, NEEDS_XSAVES },
    { "xsave.image", "§3.2", "XRSTORS of a bad image: #GP", bad_image, NEEDS_XSAVES },
    { "xsave.header", "§3.2", "XRSTORS of a bad header: #GP", bad_header, NEEDS_XSAVES },
    { "xsave.initial", "§3.2, §10.16", "XRSTORS without the component: all zero", initial, NEEDS_XSAVES },
    { "xsave.in-use", "§3.2", "in use if any field is not zero", in_use, NEEDS_XSAVES },
    { "xsave.recognition", "§3.2, §6.1", "after XRSTORS pending means UIRR not 0", recognition, NEEDS_XSAVES },
    { "xsave.position", "§3.2", "the place depends on the components below", with_others, NEEDS_XSAVES },
    { "xsave.cpl", "§3.2", "XSAVES and XRSTORS at CPL 3: #GP", privileged, NEEDS_XSAVES },
    { "xsave.not-gated", "§2", "CR4.UINTR does not gate component 14", not_gated, NEEDS_XSAVES },
    { 0 },
};
