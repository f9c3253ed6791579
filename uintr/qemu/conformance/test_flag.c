/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Section 5: what the five instructions have in common, CLUI, STUI, TESTUI. */

#include "harness.h"

static void disabled(void)
{
    fresh_receiver();
    write_cr4(read_cr4() & ~CR4_UINTR);
    check(TRY(UIRET_BYTES) == UD);
    check(TRY(TESTUI_BYTES) == UD);
    check(TRY(CLUI_BYTES) == UD);
    check(TRY(STUI_BYTES) == UD);
    check(try_senduipi(0) == UD);
    check(upid[0].pir == 0);
}

static void locked(void)
{
    fresh_receiver();
    check(TRY(".byte 0xf0; " UIRET_BYTES) == UD);
    check(TRY(".byte 0xf0; " TESTUI_BYTES) == UD);
    check(TRY(".byte 0xf0; " CLUI_BYTES) == UD);
    check(TRY(".byte 0xf0; " STUI_BYTES) == UD);
    check(TRY(".byte 0xf0; " SENDUIPI_RAX, "a"(0)) == UD);
}

/* The same bytes are other instructions, or none, without F3. */
static void unprefixed(void)
{
    fresh_receiver();
    check(TRY(".byte 0x0f, 0x01, 0xec") == UD);
    check(TRY(".byte 0x0f, 0x01, 0xed") == UD);
    check(TRY(".byte 0xf2, 0x0f, 0x01, 0xec") == UD);
    check(TRY(".byte 0xf2, 0x0f, 0x01, 0xed") == UD);
}

static const uint8_t compat_code[5][5] = {
    { 0xf3, 0x0f, 0x01, 0xec, 0xf4 },
    { 0xf3, 0x0f, 0x01, 0xed, 0xf4 },
    { 0xf3, 0x0f, 0x01, 0xee, 0xf4 },
    { 0xf3, 0x0f, 0x01, 0xef, 0xf4 },
    { 0xf3, 0x0f, 0xc7, 0xf0, 0xf4 },
};

static void compatibility_mode(void)
{
    unsigned i;

    for (i = 0; i < 5; i++) {
        struct frame f;

        fresh_receiver();
        f = user_frame(compat_code[i], 0);
        f.cs = USER_CS32;
        f.rsp = (uint64_t)stack_pages[1] + PAGE;
        check(run_user_frame(&f) == UD, "instruction %u: %ld", i, this_cpu()->caught.vector);
        check(this_cpu()->caught.rip == f.rip);
    }
}

static void clui_stui(void)
{
    fresh();
    check(!testui());
    stui();
    check(testui());
    stui();
    check(testui());
    clui();
    check(!testui());
}

static uint64_t flags_after(bool uif, uint64_t before)
{
    uint64_t after;

    if (uif) {
        stui();
    } else {
        clui();
    }
    asm volatile("push %1; popfq; " TESTUI_BYTES "; pushfq; pop %0" : "=r"(after) : "r"(before) : "cc");
    return after;
}

static void testui_flags(void)
{
    const uint64_t arithmetic = CF | PF_FLAG | AF | ZF | SF | OF;

    fresh();
    check((flags_after(true, FIXED_1 | arithmetic) & arithmetic) == CF);
    check((flags_after(true, FIXED_1) & arithmetic) == CF);
    check((flags_after(false, FIXED_1 | arithmetic) & arithmetic) == 0);
    check((flags_after(false, FIXED_1) & arithmetic) == 0);
}

/* As flags_after(), but a jump lies between TESTUI and who reads the flags. */
static uint64_t flags_far_after(bool uif)
{
    uint64_t after;

    if (uif) {
        stui();
    } else {
        clui();
    }
    /* 0 - 1 sets CF, PF, AF and SF. */
    asm volatile("cmp $1, %k1; " TESTUI_BYTES "; lea 1f(%%rip), %0; jmp *%0\n1: pushfq; pop %0"
                 : "=&r"(after) : "r"(0) : "cc");
    return after;
}

static void testui_far(void)
{
    const uint64_t arithmetic = CF | PF_FLAG | AF | ZF | SF | OF;

    fresh();
    check((flags_far_after(true) & arithmetic) == CF);
    check((flags_far_after(false) & arithmetic) == 0);
}

static void user_flags(void)
{
    clui();
    if (testui()) {
        asm volatile("ud2");
    }
    stui();
    if (!testui()) {
        asm volatile("ud2");
    }
    user_done();
}

static void any_cpl(void)
{
    fresh();
    check(run_user(user_flags, 0) == DONE);
    check(testui(), "UIF belongs to the core and survives the way to CPL 0");
    fresh_receiver();
    check(try_senduipi(0) == NONE);
    check(upid[0].pir == BIT(5));
}

const struct item flag_items[] = {
    { "insn.cr4-off", "§5, §10.1", "CR4.UINTR = 0: each of the five raises #UD", disabled },
    { "insn.lock", "§5", "LOCK: each of the five raises #UD", locked },
    { "insn.prefix", "§5", "F3 is part of the opcode", unprefixed },
    { "insn.compat", "§5", "compatibility mode: each of the five raises #UD", compatibility_mode },
    { "insn.any-cpl", "§5", "the instructions work at CPL 0 and at CPL 3", any_cpl },
    { "insn.clui-stui", "§5", "CLUI clears UIF, STUI sets it", clui_stui },
    { "insn.testui", "§5", "TESTUI: CF is UIF, OF SF ZF AF PF are 0", testui_flags },
    { "insn.testui-far", "§5", "so it is for who reads them after a jump", testui_far },
    { 0 },
};
