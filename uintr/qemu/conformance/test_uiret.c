/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Section 5.2: UIRET. The frame is laid out by hand, no interrupt is taken. */

#include "harness.h"

#define POPPED      (CF | PF_FLAG | AF | ZF | SF | TF | DF | OF | NT | RF | AC | ID)

static void uiret_here(void)
{
    asm volatile(UIRET_BYTES);
    __builtin_unreachable();
}

static void done_here(void)
{
    user_done();
}

/* Run UIRET at CPL 3 on a frame at USER_STACK - 64. */
static int uiret_user(uint64_t rip, uint64_t popped, uint64_t rsp, uint64_t flags)
{
    uint64_t *frame = (uint64_t *)(stack_pages[1] + PAGE - 64);
    struct frame f = user_frame(uiret_here, flags);

    frame[0] = rip;
    frame[1] = popped;
    frame[2] = rsp;
    f.rsp = USER_STACK - 64;
    return run_user_frame(&f);
}

static void restores(void)
{
    struct cpu *cpu = this_cpu();

    fresh();
    check(uiret_user((uint64_t)done_here, FIXED_1, USER_STACK - 1024, 0) == DONE);
    check(cpu->caught.rsp == USER_STACK - 1024);
    check(testui(), "UIRET sets UIF");
}

static void flags(void)
{
    struct cpu *cpu = this_cpu();
    const uint64_t popped = POPPED & ~(TF | NT | RF | AC);

    fresh();
    check(uiret_user((uint64_t)done_here, ~0ULL & ~(TF | NT | RF), USER_STACK, 0) == DONE);
    /* Compiled code may change the arithmetic flags before INT; DF, AC, ID stay. */
    check((cpu->caught.rflags & (DF | AC | ID)) == (DF | AC | ID), "%lx", cpu->caught.rflags);
    check(!(cpu->caught.rflags & (IF | IOPL)), "IF and IOPL stay: %lx", cpu->caught.rflags);
    check(!(cpu->caught.rflags & (BIT(17) | BIT(19) | BIT(20))), "VM, VIF, VIP: %lx", cpu->caught.rflags);

    fresh();
    check(uiret_user((uint64_t)done_here, 0, USER_STACK, popped | IF | IOPL) == DONE);
    check(!(cpu->caught.rflags & (DF | AC | ID)), "%lx", cpu->caught.rflags);
    check((cpu->caught.rflags & (IF | IOPL)) == (IF | IOPL), "IF and IOPL stay: %lx", cpu->caught.rflags);
}

static void arithmetic_flags(void)
{
    static const uint64_t each[] = { CF, PF_FLAG, AF, ZF, SF, OF };
    struct cpu *cpu = this_cpu();
    unsigned i;

    for (i = 0; i < 6; i++) {
        fresh();
        /* To an instruction that leaves the flags alone */
        check(uiret_user((uint64_t)done_here, each[i], USER_STACK, 0) == DONE);
        check((cpu->caught.rflags & (CF | PF_FLAG | AF | ZF | SF | OF)) == each[i], "%lx", cpu->caught.rflags);
    }
}

static void at_cpl0(void)
{
    uint64_t before, after;

    fresh();
    before = rflags();
    asm volatile("mov %%rsp, %%rcx\n\t"
                 "push %%rcx\n\t"
                 "push %1\n\t"
                 "lea 1f(%%rip), %%rcx\n\t"
                 "push %%rcx\n\t"
                 UIRET_BYTES "\n"
                 "1: pushfq; pop %0; cld"
                 : "=&r"(after) : "r"(FIXED_1 | IF | IOPL | DF) : "rcx", "cc", "memory");
    check((after & (IF | IOPL)) == (before & (IF | IOPL)), "%lx", after);
    check(after & DF);
    check(testui());
}

static void bad_rip(void)
{
    struct cpu *cpu = this_cpu();

    fresh();
    check(uiret_user(BIT(63), ~0ULL & ~TF, USER_STACK, ZF) == GP);
    check(cpu->caught.error == 0);
    check(cpu->caught.rip == (uint64_t)uiret_here);
    check(cpu->caught.rsp == USER_STACK - 64);
    check((cpu->caught.rflags & (POPPED & ~RF)) == ZF, "%lx", cpu->caught.rflags);
    check(!testui(), "UIF unchanged");
    check(uiret_user(BIT(47), 0, USER_STACK, 0) == GP, "not canonical in this paging mode");
}

static void bad_stack(void)
{
    struct cpu *cpu = this_cpu();
    struct frame f;

    fresh();
    f = user_frame(uiret_here, 0);
    f.rsp = BIT(63);
    check(run_user_frame(&f) == SS, "%ld", cpu->caught.vector);
    check(cpu->caught.error == 0);
    check(cpu->caught.rsp == f.rsp && !testui());

    fresh();
    unmap_page(PAGE_STACK + 1);
    f = user_frame(uiret_here, 0);
    f.rsp = USER_STACK - 64;
    check(run_user_frame(&f) == PF);
    check(cpu->cr2 == f.rsp);
    check(cpu->caught.error == 4, "error code %lx: a user read", cpu->caught.error);
    check(cpu->caught.rsp == f.rsp && !testui());
}

static void single_step(void)
{
    struct cpu *cpu = this_cpu();

    fresh();
    check(uiret_user((uint64_t)done_here, FIXED_1 | TF, USER_STACK, 0) != GP);
    /* TF takes effect after the instruction that follows, which is INT. */
    check(cpu->caught.vector == DONE || cpu->caught.vector == DB, "%ld", cpu->caught.vector);
    check(cpu->caught.rip != (uint64_t)done_here, "no trap before the instruction");

    fresh();
    check(uiret_user((uint64_t)done_here, FIXED_1, USER_STACK, TF) == DB, "a stepped UIRET traps");
    check(cpu->caught.rip == (uint64_t)done_here);
}

static void flexible(void)
{
    fresh();
    check(uiret_user((uint64_t)done_here, 0, USER_STACK, 0) == DONE);
    check(testui() == !has_uiret_uif, "bit 1 clear");
    fresh();
    check(uiret_user((uint64_t)done_here, FIXED_1, USER_STACK, 0) == DONE);
    check(testui(), "bit 1 set");
}

const struct item uiret_items[] = {
    { "uiret.restores", "§5.2", "RIP and RSP come from the frame, UIF becomes 1", restores },
    { "uiret.flags", "§5.2, §10.13", "DF AC ID are loaded; IF IOPL VM VIF VIP are not", flags },
    { "uiret.arithmetic", "§5.2", "CF PF AF ZF SF OF are loaded", arithmetic_flags },
    { "uiret.cpl0", "§5.2", "UIRET works at CPL 0 and leaves IF and IOPL alone", at_cpl0 },
    { "uiret.bad-rip", "§5.2, §10.14", "RIP not canonical: #GP, nothing changed", bad_rip },
    { "uiret.bad-stack", "§5.2", "stack not canonical: #SS; absent: #PF; nothing changed", bad_stack },
    { "uiret.step", "§5.2", "TF from the frame and TF before UIRET trap where they should", single_step },
    { "uiret.uif-bit", "§5.2", "bit 1 of the RFLAGS image is UIF if CPUID has UIRET_UIF", flexible },
    { 0 },
};
