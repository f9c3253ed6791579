/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The twelve cases that the test of kvm-unit-tests for user interrupts has, written afresh: what others hold an
 * implementation to. They send at CPL 0 with interrupts open and go to CPL 3 afterwards, in one order for all.
 */

#include "harness.h"

#define VECTOR          3
#define PATIENCE        100000

static const volatile uint64_t *handled;
static bool to_the_end;

static void spin(void)
{
    unsigned long n;

    for (n = 0; n < PATIENCE && (to_the_end || !*handled); n++) {
        pause();
    }
    user_done();
}

/* A receiver with UIF set that can also send to itself by entry 0 */
static void ready(void)
{
    fresh_receiver();
    wrmsr(MSR_UI_ADJUST, 0);
    uitt[0].low = ENTRY(VECTOR);
    stui();
}

static void visit(uint64_t rflags, bool none)
{
    handled = &this_cpu()->user.count;
    to_the_end = none;
    check(run_user(spin, rflags) == DONE);
}

static void send_and_visit(uint64_t rflags, bool none)
{
    senduipi(0);
    settle();
    if (rflags & IF) {
        open_interrupts();
    }
    visit(rflags, none);
    check(this_cpu()->user.count == !none, "%lu times", this_cpu()->user.count);
}

static void stui_off(void)
{
    ready();
    write_cr4(read_cr4() & ~CR4_UINTR);
    check(TRY(STUI_BYTES) == UD);
}

static void send_off(void)
{
    ready();
    write_cr4(read_cr4() & ~CR4_UINTR);
    check(try_senduipi(0) == UD);
}

static void table_off(void)
{
    ready();
    wrmsr(MSR_UI_TT, UITT_ADDR);
    check(try_senduipi(0) == UD);
}

static void beyond(void)
{
    ready();
    check(try_senduipi(N_ENTRIES) == GP);
}

static void not_valid(void)
{
    ready();
    uitt[0].low &= ~BIT(0);
    check(try_senduipi(0) == GP);
}

static void entry_reserved(void)
{
    ready();
    uitt[0].low |= BIT(16);
    check(try_senduipi(0) == GP);
}

static void upid_reserved(void)
{
    ready();
    upid[0].low |= BIT(2);
    check(try_senduipi(0) == GP);
}

static void delivered(void)
{
    ready();
    send_and_visit(IF, false);
}

static void uif_clear(void)
{
    ready();
    clui();
    send_and_visit(IF, true);
    check(rdmsr(MSR_UI_RR) == BIT(VECTOR));
}

static void if_clear(void)
{
    ready();
    send_and_visit(0, true);
    check(rdmsr(MSR_UI_RR) == 0 && upid[0].pir == BIT(VECTOR));
}

static void suppressed(void)
{
    ready();
    upid[0].low |= SN;
    send_and_visit(IF, true);
    check(upid[0].pir == BIT(VECTOR) && !(upid[0].low & ON));
}

static void written(void)
{
    ready();
    wrmsr(MSR_UI_RR, BIT(VECTOR));
    visit(IF, false);
    check(this_cpu()->user.count == 1 && this_cpu()->user.vector == VECTOR);
}

const struct item kut_items[] = {
    { "kut.stui-off", "§10.1", "CR4.UINTR = 0: STUI raises #UD", stui_off },
    { "kut.send-off", "§10.1", "CR4.UINTR = 0: SENDUIPI raises #UD", send_off },
    { "kut.table-off", "§10.2", "TT[0] = 0: SENDUIPI raises #UD", table_off },
    { "kut.beyond", "§10.3", "index above UITTSZ: #GP", beyond },
    { "kut.not-valid", "§10.4", "entry not valid: #GP", not_valid },
    { "kut.entry-reserved", "§10.4", "reserved bit in the entry: #GP", entry_reserved },
    { "kut.upid-reserved", "§10.5", "reserved bit in the UPID: #GP", upid_reserved },
    { "kut.delivered", "§10.6", "the handler runs after SENDUIPI", delivered },
    { "kut.uif", "§10.6", "UIF = 0: UIRR has the request, the handler does not run", uif_clear },
    { "kut.if", "§10.7", "RFLAGS.IF = 0: no notification is identified", if_clear },
    { "kut.sn", "§10.8", "SN = 1: PIR has the request, the handler does not run", suppressed },
    { "kut.rr", "§10.10", "WRMSR of UIRR: the handler runs", written },
    { 0 },
};
