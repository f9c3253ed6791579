/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sections 6.1 to 6.3: when a user interrupt is delivered, and how. */

#include "harness.h"

/* As set_uif(), with the address after STUI known */
void stui_then_done(void);
extern uint8_t after_stui[];
asm(".pushsection .text\n"
    "stui_then_done: " STUI_BYTES "\n"
    "after_stui: int $0x80\n"
    ".popsection");

static void pending(uint64_t rr)
{
    fresh_receiver();
    wrmsr(MSR_UI_RR, rr);
}

static void from_rr(void)
{
    struct cpu *cpu = this_cpu();
    unsigned v;

    for (v = 0; v < 64; v++) {
        pending(BIT(v));
        stui();
        check(cpu->user.count == 0, "not at CPL 0");
        check(run_user(nothing, IF) == DONE);
        check(cpu->user.count == 1 && cpu->user.vector == v, "%u: %lu times, vector %lu", v,
              cpu->user.count, cpu->user.vector);
        check(rdmsr(MSR_UI_RR) == 0);
    }
}

/* Whether a breakpoint is reported for it is not specified; that the handler runs once is. */
static void watched(void)
{
    struct cpu *cpu = this_cpu();
    unsigned i;

    for (i = 0; i < 4; i++) {
        pending(BIT(9));
        stui();
        cpu->hook = take_breakpoint;
        watch(USER_STACK - 128 - 32 + 8 * i);
        check(run_user(nothing, IF) == DONE);
        watch(0);
        check(cpu->user.count == 1 && cpu->user.vector == 9 && rdmsr(MSR_UI_RR) == 0, "qword %u: %lu times", i,
              cpu->user.count);
    }
}

static void uif_clear(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    check(run_user(nothing, IF) == DONE);
    check(cpu->user.count == 0 && rdmsr(MSR_UI_RR) == BIT(9));
    check(run_user(stui_then_done, IF) == DONE);
    check(cpu->user.count == 1 && cpu->user.vector == 9);
    check(cpu->user.rip == (uint64_t)after_stui, "STUI has no shadow: %lx", cpu->user.rip);
}

static void clui_at_once(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    stui();
    clui();
    check(run_user(nothing, IF) == DONE);
    check(cpu->user.count == 0 && rdmsr(MSR_UI_RR) == BIT(9));
}

static void if_clear(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    check(run_user(set_uif, 0) == DONE);
    check(cpu->user.count == 1, "RFLAGS.IF does not mask user interrupts");
}

static void cr4_clear(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    stui();
    write_cr4(read_cr4() & ~CR4_UINTR);
    check(run_user(nothing, IF) == DONE);
    check(cpu->user.count == 0 && rdmsr(MSR_UI_RR) == BIT(9));
    write_cr4(read_cr4() | CR4_UINTR);
    check(run_user(nothing, IF) == DONE);
    check(cpu->user.count == 1, "setting CR4.UINTR makes it deliverable");
}

static void compatibility_mode(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    stui();
    check(run_user32() == DONE);
    check(cpu->user.count == 0 && rdmsr(MSR_UI_RR) == BIT(9));
    check(run_user(nothing, IF) == DONE);
    check(cpu->user.count == 1);
}

static void order(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(63) | BIT(0));
    check(run_user(stui_then_done, IF) == DONE);
    check(cpu->user.count == 2 && cpu->user.log[0] == 63 && cpu->user.log[1] == 0,
          "%lu: %u %u", cpu->user.count, cpu->user.log[0], cpu->user.log[1]);
    check(cpu->user.rip == (uint64_t)after_stui, "the second comes right after UIRET");
}

static void all_vectors(void)
{
    struct cpu *cpu = this_cpu();
    unsigned v;

    pending(~0ULL);
    check(run_user(set_uif, IF) == DONE);
    check(cpu->user.count == 64, "%lu", cpu->user.count);
    for (v = 0; v < 64; v++) {
        check(cpu->user.log[v] == 63 - v, "%u: %u", v, cpu->user.log[v]);
    }
    check(rdmsr(MSR_UI_RR) == 0);
}

/* Deliver with this RSP and adjustment; the handler's RSP is in cpu->user. */
static int deliver_at(uint64_t rsp, uint64_t adjust)
{
    struct frame f;

    pending(BIT(9));
    wrmsr(MSR_UI_ADJUST, adjust);
    stui();
    f = user_frame(nothing, IF);
    f.rsp = rsp;
    return run_user_frame(&f);
}

static void frame_relative(void)
{
    struct cpu *cpu = this_cpu();

    check(deliver_at(USER_STACK, 128) == DONE);
    check(cpu->user.handler_rsp == USER_STACK - 128 - 32, "%lx", cpu->user.handler_rsp);
    check(cpu->user.vector == 9);
    check(cpu->user.rip == (uint64_t)nothing);
    check(cpu->user.rsp == USER_STACK);
    check((cpu->user.rflags & (IF | FIXED_1)) == (IF | FIXED_1));
    check(cpu->caught.rsp == USER_STACK, "UIRET restores RSP");
}

static void frame_misaligned(void)
{
    struct cpu *cpu = this_cpu();
    unsigned off;

    for (off = 1; off < 16; off++) {
        check(deliver_at(USER_STACK - 256 + off, 0) == DONE);
        check(cpu->user.handler_rsp == USER_STACK - 256 - 32, "%u: %lx", off, cpu->user.handler_rsp);
        check(cpu->user.rsp == USER_STACK - 256 + off);
    }
}

static void frame_absolute(void)
{
    struct cpu *cpu = this_cpu();

    check(deliver_at(USER_STACK, (USER_STACK - 2048) | 1) == DONE);
    check(cpu->user.handler_rsp == USER_STACK - 2048 - 32, "%lx", cpu->user.handler_rsp);
    check(cpu->user.rsp == USER_STACK && cpu->caught.rsp == USER_STACK);
}

static void handler_state(void)
{
    struct cpu *cpu = this_cpu();
    struct frame f;

    pending(BIT(9));
    stui();
    f = user_frame(nothing, IF | DF | CF | ZF | AC);
    f.rbx = 0x1234;
    check(run_user_frame(&f) == DONE);
    check(!cpu->user.handler_uif, "UIF is 0 in the handler");
    check((cpu->user.handler_rflags & (DF | CF | ZF | AC | IF)) == (DF | CF | ZF | AC | IF),
          "%lx", cpu->user.handler_rflags);
    check(!(cpu->user.handler_rflags & (TF | RF)));
    check(testui(), "UIF is 1 after UIRET");
    check(cpu->caught.rbx == 0x1234);
}

static unsigned steps;
static uint64_t stepped[8];

static bool count_steps(struct frame *f)
{
    if (f->vector != DB) {
        return false;
    }
    if (steps < 8) {
        stepped[steps] = f->rip;
    }
    steps++;
    return true;
}

void step_this(void);
extern uint8_t step_1[], step_2[], step_3[];
asm(".pushsection .text\n"
    "step_this: nop\n"
    "step_1: " STUI_BYTES "\n"
    "step_2: nop\n"
    "step_3: int $0x80\n"
    ".popsection");

static void single_step(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    steps = 0;
    cpu->hook = count_steps;
    check(run_user(step_this, IF | TF) == DONE);
    check(cpu->user.count == 1);
    check(cpu->user.rip == (uint64_t)step_2, "delivered after STUI: %lx", cpu->user.rip);
    check(cpu->user.rflags & TF, "TF is in the frame");
    check(!(cpu->user.handler_rflags & TF), "TF is clear in the handler");
    check(steps == 3, "%u traps: after NOP, after STUI, after NOP; none in the handler", steps);
    check(stepped[0] == (uint64_t)step_1 && stepped[1] == (uint64_t)step_2 &&
          stepped[2] == (uint64_t)step_3);
}

static void popped_flags(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    cpu->user.rflags_or = IOPL | IF | ID;
    check(run_user(set_uif, 0) == DONE);
    check(cpu->user.count == 1);
    check(!(cpu->caught.rflags & (IOPL | IF)), "%lx", cpu->caught.rflags);
    check(cpu->caught.rflags & ID);
}

static void stays_off(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9) | BIT(8));
    cpu->user.rflags_and = ~FIXED_1;
    check(run_user(set_uif, IF) == DONE);
    check(cpu->user.count == 1, "the handler returned with user interrupts off");
    check(!testui() && rdmsr(MSR_UI_RR) == BIT(8));
}

static uint64_t fault_rip, fault_error, fault_count;

static bool mend_stack(struct frame *f)
{
    if (f->vector != PF) {
        return false;
    }
    fault_count++;
    fault_rip = f->rip;
    fault_error = f->error;
    map_page(PAGE_STACK + 1, stack_pages[1], PTE_P | PTE_W | PTE_U);
    return true;
}

static void stack_absent(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    fault_count = 0;
    unmap_page(PAGE_STACK + 1);
    cpu->hook = mend_stack;
    check(run_user(stui_then_done, IF) == DONE);
    check(fault_count == 1, "%lu", fault_count);
    check(fault_error == 6, "error code %lx: a user write", fault_error);
    check(fault_rip == (uint64_t)after_stui, "the interrupted instruction: %lx", fault_rip);
    check(cpu->user.count == 1 && cpu->user.vector == 9);
    check(cpu->user.rip == (uint64_t)after_stui);
    check(cpu->user.handler_rsp == USER_STACK - 128 - 32, "same frame: %lx", cpu->user.handler_rsp);
}

static void stack_fault_state(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    map_page(PAGE_STACK + 1, stack_pages[1], PTE_P | PTE_U);
    check(run_user(set_uif, IF) == PF);
    check(cpu->caught.error == 7, "error code %lx: a user write, present", cpu->caught.error);
    check(cpu->caught.rsp == USER_STACK, "RSP is restored: %lx", cpu->caught.rsp);
    check(rdmsr(MSR_UI_RR) == BIT(9), "still pending");
    check(testui(), "UIF unchanged");
    check(cpu->user.count == 0);
}

static void stack_supervisor(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    map_page(PAGE_STACK + 1, stack_pages[1], PTE_P | PTE_W);
    check(run_user(set_uif, IF) == PF, "the frame is written with user rights");
    check(cpu->caught.error == 7, "error code %lx", cpu->caught.error);
    /* A handler that was entered faults on the same page. */
    check(rdmsr(MSR_UI_RR) == BIT(9) && testui(), "still pending");
}

static void stack_not_canonical(void)
{
    struct cpu *cpu = this_cpu();

    check(deliver_at(BIT(63), 0) == SS, "%ld", cpu->caught.vector);
    check(cpu->caught.error == 0 && cpu->caught.rsp == BIT(63));
    check(rdmsr(MSR_UI_RR) == BIT(9) && testui());
}

static void handler_not_canonical(void)
{
    struct cpu *cpu = this_cpu();

    pending(BIT(9));
    wrmsr(MSR_UI_HANDLER, BIT(47));
    check(run_user(stui_then_done, IF) == GP, "%ld", cpu->caught.vector);
    check(cpu->caught.rip == (uint64_t)after_stui && cpu->caught.rsp == USER_STACK);
    check(rdmsr(MSR_UI_RR) == BIT(9) && testui());
}

const struct item delivery_items[] = {
    { "deliver.rr", "§6.1, §10.10", "WRMSR RR at CPL 0: delivered at CPL 3, every vector", from_rr },
    { "deliver.uif", "§6.2, §10.6", "UIF = 0 holds back, STUI opens without a shadow", uif_clear },
    { "deliver.clui", "§5", "CLUI takes effect at once", clui_at_once },
    { "deliver.if", "§6.2", "RFLAGS.IF does not matter", if_clear },
    { "deliver.cr4", "§6.1", "CR4.UINTR = 0 hides a pending interrupt", cr4_clear },
    { "deliver.compat", "§6.2", "none in compatibility mode, none lost", compatibility_mode },
    { "deliver.order", "§6.3, §10.11", "63 before 0, the second right after UIRET", order },
    { "deliver.all", "§6.3", "one bit of UIRR at a time, highest first", all_vectors },
    { "deliver.relative", "§6.3, §10.12", "frame below RSP - ADJ", frame_relative },
    { "deliver.misaligned", "§6.3, §10.12", "frame aligned to 16 whatever RSP is", frame_misaligned },
    { "deliver.absolute", "§6.3, §10.12", "ADJ bit 0: frame below ADJ", frame_absolute },
    { "deliver.state", "§6.3, §10.13", "UIF TF RF clear, other flags and registers kept", handler_state },
    { "deliver.step", "§6.3", "single step: no trap in the handler, none lost around it", single_step },
    { "deliver.popped", "§5.2, §10.13", "flags that a handler changed are masked by UIRET", popped_flags },
    { "deliver.stay-off", "§5.2", "a handler can return with user interrupts off", stays_off, NEEDS_UIRET_UIF },
    { "deliver.stack-absent", "§6.3, §10.18", "stack page absent: #PF, then the same frame", stack_absent },
    { "deliver.stack-fault", "§6.3", "a faulting push changes no register", stack_fault_state },
    { "deliver.stack-user", "§6.3", "the frame is written with the rights of CPL 3", stack_supervisor },
    { "deliver.watched", "§6.3", "a data breakpoint on the frame: delivered once", watched },
    { "deliver.stack-canonical", "§6.3", "stack not canonical: #SS, still pending", stack_not_canonical },
    { "deliver.handler-canonical", "§6.3", "handler not canonical in this paging mode: #GP",
      handler_not_canonical, NEEDS_LA57 },
    { 0 },
};
