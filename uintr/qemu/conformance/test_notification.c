/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Section 6.4: what becomes of an interrupt whose vector is UINV, on one CPU. */

#include "harness.h"

static void post_here(void)
{
    senduipi(0);
    settle();
}

static void kernel(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    post_here();
    check(upid[0].pir == BIT(5) && (upid[0].low & ON) && rdmsr(MSR_UI_RR) == 0, "IF = 0");
    open_interrupts();
    check(rdmsr(MSR_UI_RR) == BIT(5), "%lx", rdmsr(MSR_UI_RR));
    check(upid[0].pir == 0 && !(upid[0].low & ON));
    check(cpu->irqs[NV] == 0, "not through the IDT");
    check(cpu->user.count == 0, "not at CPL 0");
    check(run_user(set_uif, IF) == DONE);
    check(cpu->user.count == 1 && cpu->user.vector == 5);
}

static void eoi(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    post_here();
    open_interrupts();
    check(!apic_in_service(NV) && !apic_requested(NV));
    /* One of lower priority gets through. */
    apic_send(cpu->apic_id, 0x40);
    settle();
    open_interrupts();
    check(cpu->irqs[0x40] == 1);
}

static void send(void)
{
    senduipi(0);
    user_done();
}

static void at_user(void)
{
    struct cpu *cpu = this_cpu();
    int vector;

    fresh_receiver();
    stui();
    vector = run_user(send, IF);
    /* The IPI takes its time; it may come during a later visit to CPL 3. */
    eventually(cpu->user.count || (vector = run_user(nothing, IF)) != DONE);
    check(vector == DONE);
    check(cpu->user.count == 1 && cpu->user.vector == 5, "%lu", cpu->user.count);
    check(cpu->irqs[NV] == 0);
    check(upid[0].pir == 0 && !(upid[0].low & ON));
}

static void ordinary_ipi(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    upid[0].pir = BIT(17);
    apic_send(cpu->apic_id, NV);
    settle();
    open_interrupts();
    check(rdmsr(MSR_UI_RR) == BIT(17), "any interrupt with that vector is a notification");
    check(cpu->irqs[NV] == 0);
}

static void ored(void)
{
    fresh_receiver();
    wrmsr(MSR_UI_RR, BIT(40));
    post_here();
    open_interrupts();
    check(rdmsr(MSR_UI_RR) == (BIT(40) | BIT(5)), "%lx", rdmsr(MSR_UI_RR));
}

static void nothing_posted(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    upid[0].low |= ON | SN;
    apic_send(cpu->apic_id, NV);
    settle();
    open_interrupts();
    check(rdmsr(MSR_UI_RR) == 0 && cpu->irqs[NV] == 0);
    check((upid[0].low & 3) == SN, "ON cleared, SN kept: %lx", upid[0].low);
}

static void not_examined(void)
{
    struct cpu *cpu = this_cpu();
    uint64_t low;

    fresh_receiver();
    /* Reserved bits, a strange NV and NDST */
    low = 0x1234567800000000 | 0xff00fffc | 7 << 16;
    upid[0].low = low | ON;
    upid[0].pir = BIT(1);
    apic_send(cpu->apic_id, NV);
    settle();
    open_interrupts();
    check(rdmsr(MSR_UI_RR) == BIT(1));
    check(upid[0].low == low, "%lx", upid[0].low);
}

static void mismatch(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    upid[0].low = UPID(OTHER, cpu->apic_id);
    post_here();
    open_interrupts();
    check(cpu->irqs[OTHER] == 1, "through the IDT");
    check((upid[0].low & ON) && upid[0].pir == BIT(5), "ON and PIR untouched");
    check(rdmsr(MSR_UI_RR) == 0);
}

static void uinv_zero(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    wrmsr(MSR_UI_MISC, N_ENTRIES - 1);
    post_here();
    open_interrupts();
    check(cpu->irqs[NV] == 1);
    check((upid[0].low & ON) && upid[0].pir == BIT(5) && rdmsr(MSR_UI_RR) == 0);
}

static void cr4_clear(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    post_here();
    write_cr4(read_cr4() & ~CR4_UINTR);
    open_interrupts();
    check(cpu->irqs[NV] == 1);
    check((upid[0].low & ON) && upid[0].pir == BIT(5) && rdmsr(MSR_UI_RR) == 0);
}

static void task_priority(void)
{
    fresh_receiver();
    apic_write(APIC_TPR, 0xf0);
    post_here();
    open_interrupts();
    check(rdmsr(MSR_UI_RR) == 0 && apic_requested(NV), "held back by the TPR");
    apic_write(APIC_TPR, 0);
    open_interrupts();
    check(rdmsr(MSR_UI_RR) == BIT(5));
}

static bool skip_open(struct frame *f)
{
    /* The fault comes at an instruction boundary inside open_interrupts(). */
    if (f->vector != PF || (f->cs & 3)) {
        return false;
    }
    this_cpu()->caught = *f;
    map_page(PAGE_UPID, upid, PTE_P | PTE_W);
    return true;
}

static void upid_absent(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    post_here();
    unmap_page(PAGE_UPID);
    cpu->caught.vector = NONE;
    cpu->hook = skip_open;
    open_interrupts();
    check(cpu->caught.vector == PF && cpu->cr2 == UPID_ADDR(0));
    check(!(cpu->caught.error & 5), "error code %lx: supervisor, not present", cpu->caught.error);
    check(!apic_in_service(NV) && !apic_requested(NV), "the EOI is not undone");
    check((upid[0].low & ON) && upid[0].pir == BIT(5) && rdmsr(MSR_UI_RR) == 0);
    check(cpu->irqs[NV] == 0);
}

static bool count_breakpoint(struct frame *f)
{
    this_cpu()->caught = *f;
    return f->vector == DB;
}

/* Whether a breakpoint is reported for it is not specified; that it loses nothing is. */
static void watched(void)
{
    struct cpu *cpu = this_cpu();
    unsigned i;

    for (i = 0; i < 2; i++) {
        fresh_receiver();
        cpu->hook = count_breakpoint;
        watch(UPID_ADDR(0) + 8 * i);
        cpu->caught.vector = NONE;
        asm volatile("lock orq $0, (%0)" : : "r"(UPID_ADDR(0) + 8 * i) : "memory");
        check((int)cpu->caught.vector == DB, "the breakpoint is armed");
        post_here();
        open_interrupts();
        check(rdmsr(MSR_UI_RR) == BIT(5) && upid[0].pir == 0 && !(upid[0].low & ON), "qword %u of the UPID", i);
        check(run_user(set_uif, IF) == DONE && cpu->user.count == 1);

        /* And where it is taken at CPL 3 */
        clui();
        post_here();
        check(run_user(set_uif, IF) == DONE && cpu->user.count == 2, "qword %u of the UPID, CPL 3", i);
        watch(0);
        check(!apic_in_service(NV) && !apic_requested(NV));
    }
}

static void supervisor(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    post_here();
    check(run_user(nothing, IF) == DONE, "taken at CPL 3, UPID on a supervisor page");
    check(rdmsr(MSR_UI_RR) == BIT(5) && cpu->user.count == 0);
}

static void compatibility_mode(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    stui();
    post_here();
    check(run_user32() == DONE);
    check(rdmsr(MSR_UI_RR) == BIT(5) && cpu->user.count == 0 && cpu->irqs[NV] == 0);
    check(run_user(nothing, IF) == DONE && cpu->user.count == 1);
}

const struct item notification_items[] = {
    { "notify.kernel", "§6.4, §10.7", "at CPL 0 UIRR is loaded, delivery waits for CPL 3", kernel },
    { "notify.eoi", "§6.4", "the APIC is told the end of the interrupt", eoi },
    { "notify.user", "§6.4", "at CPL 3 delivery follows", at_user },
    { "notify.any-source", "§6.4", "any interrupt with vector UINV is a notification", ordinary_ipi },
    { "notify.or", "§6.4", "PIR is ORed into UIRR", ored },
    { "notify.empty", "§6.4", "PIR = 0: ON cleared, nothing pending, SN kept", nothing_posted },
    { "notify.unexamined", "§6.4", "reserved bits, NV and NDST are not looked at", not_examined },
    { "notify.mismatch", "§6.4, §10.17", "another vector: IDT, ON and PIR untouched", mismatch },
    { "notify.uinv-zero", "§6.4", "UINV = 0 never matches", uinv_zero },
    { "notify.cr4", "§6.4", "CR4.UINTR = 0: ordinary interrupt", cr4_clear },
    { "notify.tpr", "§6.4", "held back by the TPR like any interrupt", task_priority },
    { "notify.upid-absent", "§6.4", "UPID page absent: #PF, EOI done, UPID untouched", upid_absent },
    { "notify.watched", "§6.4", "a data breakpoint on the UPID loses no notification", watched },
    { "notify.supervisor", "§4, §6.4", "the UPID is accessed with supervisor rights at CPL 3", supervisor },
    { "notify.compat", "§6.2, §6.4", "processed in compatibility mode, delivered in 64-bit mode", compatibility_mode },
    { 0 },
};
