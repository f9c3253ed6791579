/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sections 4 and 5.1: SENDUIPI and the structures that it reads. */

#include "harness.h"

static void refused(uint64_t index, int vector, const char *why, uint64_t what)
{
    uint64_t low = upid[0].low, pir = upid[0].pir;
    int got = try_senduipi(index);

    check(got == vector, "%s %lx: %d", why, what, got);
    check(vector == UD || this_cpu()->caught.error == 0);
    check(upid[0].low == low && upid[0].pir == pir, "%s %lx: UPID changed", why, what);
    check(!apic_requested(NV), "%s %lx: an IPI was sent", why, what);
}

static void tt_disabled(void)
{
    fresh_receiver();
    wrmsr(MSR_UI_TT, UITT_ADDR);
    refused(0, UD, "TT", 0);
    /* #UD wins over #GP */
    refused(N_ENTRIES, UD, "index", N_ENTRIES);
}

static void index_bound(void)
{
    fresh_receiver();
    uitt[7] = uitt[0];
    uitt[8] = uitt[0];
    wrmsr(MSR_UI_MISC, MISC_UINV(NV) | 7);
    check(try_senduipi(7) == NONE);
    check(upid[0].pir == BIT(5));
    settle();
    open_interrupts();
    refused(8, GP, "index", 8);
    refused(BIT(32), GP, "index", BIT(32));
    refused(~0ULL, GP, "index", ~0ULL);
}

static void entry_invalid(void)
{
    fresh_receiver();
    uitt[0].low &= ~BIT(0);
    refused(0, GP, "V", 0);
}

static void entry_reserved(void)
{
    unsigned bit;

    fresh_receiver();
    for (bit = 1; bit < 64; bit++) {
        if (bit < 8 || bit >= 16) {
            uitt[0].low = ENTRY(5) | BIT(bit);
            refused(0, GP, "entry bit", bit);
        }
    }
}

static void entry_vector(void)
{
    unsigned v;

    fresh_receiver();
    for (v = 64; v < 256; v++) {
        uitt[0].low = ENTRY(v);
        refused(0, GP, "vector", v);
    }
}

static void entry_upid_address(void)
{
    unsigned bit;

    fresh_receiver();
    for (bit = 0; bit < 6; bit++) {
        uitt[0].upid = UPID_ADDR(0) | BIT(bit);
        refused(0, GP, "address bit", bit);
    }
    uitt[0].upid = BIT(63);
    refused(0, GP, "address", BIT(63));
    if (!has_la57) {
        uitt[0].upid = BIT(47);
        refused(0, GP, "address", BIT(47));
    }
}

static void upid_reserved(void)
{
    uint64_t good;
    unsigned bit;

    fresh_receiver();
    good = upid[0].low;
    upid[0].pir = 0x1234;
    for (bit = 2; bit < 32; bit++) {
        if (bit < 16 || bit >= 24) {
            upid[0].low = good | BIT(bit);
            refused(0, GP, "UPID bit", bit);
        }
    }
}

static void every_vector(void)
{
    unsigned v;

    for (v = 0; v < 64; v++) {
        fresh_receiver();
        uitt[0].low = ENTRY(v);
        upid[0].low |= SN;
        senduipi(0);
        check(upid[0].pir == BIT(v), "vector %u: %lx", v, upid[0].pir);
    }
}

static void notifies(void)
{
    uint64_t low;

    fresh_receiver();
    low = upid[0].low;
    senduipi(0);
    settle();
    check(upid[0].low == (low | ON));
    check(upid[0].pir == BIT(5));
    check(apic_requested(NV));
    check(rdmsr(MSR_UI_RR) == 0, "IF = 0: the IPI waits in the APIC");
}

static void suppressed_sn(void)
{
    fresh_receiver();
    upid[0].low |= SN;
    senduipi(0);
    settle();
    check(!(upid[0].low & ON) && (upid[0].low & SN));
    check(upid[0].pir == BIT(5));
    check(!apic_requested(NV));
}

static void suppressed_on(void)
{
    fresh_receiver();
    upid[0].low |= ON;
    upid[0].pir = BIT(63);
    senduipi(0);
    settle();
    check(upid[0].low & ON);
    check(upid[0].pir == (BIT(63) | BIT(5)));
    check(!apic_requested(NV));
}

static void suppressed_both(void)
{
    fresh_receiver();
    upid[0].low |= ON | SN;
    senduipi(0);
    settle();
    check((upid[0].low & 3) == (ON | SN));
    check(upid[0].pir == BIT(5));
    check(!apic_requested(NV));
}

static void tt_masked(void)
{
    fresh_receiver();
    /* An odd multiple of 16, and an entry that only the right address finds */
    uitt[1] = uitt[0];
    uitt[0].low = 0;
    wrmsr(MSR_UI_TT, (UITT_ADDR + 16) | TT_ENABLE);
    check(try_senduipi(0) == NONE);
    check(upid[0].pir == BIT(5));
}

/* senduipi with the index in register n, all others holding a bad one */
#define SEND_FROM(n, prefix, modrm, reg)                                    \
    static void send_from_##n(void)                                         \
    {                                                                       \
        asm volatile("mov %rdi, %" reg "; .byte 0xf3; " prefix            \
                     ".byte 0x0f, 0xc7, " modrm "; int $0x80");        \
        __builtin_unreachable();                                            \
    }
#define LOW(n, modrm, reg)  SEND_FROM(n, "", modrm, reg)
#define HIGH(n, modrm, reg) SEND_FROM(n, ".byte 0x41;", modrm, reg)
LOW(0, "0xf0", "rax")
LOW(1, "0xf1", "rcx")
LOW(2, "0xf2", "rdx")
LOW(3, "0xf3", "rbx")
LOW(4, "0xf4", "rsp")
LOW(5, "0xf5", "rbp")
LOW(6, "0xf6", "rsi")
LOW(7, "0xf7", "rdi")
HIGH(8, "0xf0", "r8")
HIGH(9, "0xf1", "r9")
HIGH(10, "0xf2", "r10")
HIGH(11, "0xf3", "r11")
HIGH(12, "0xf4", "r12")
HIGH(13, "0xf5", "r13")
HIGH(14, "0xf6", "r14")
HIGH(15, "0xf7", "r15")

static void every_register(void)
{
    static void (*const send[16])(void) = {
        send_from_0, send_from_1, send_from_2, send_from_3,
        send_from_4, send_from_5, send_from_6, send_from_7,
        send_from_8, send_from_9, send_from_10, send_from_11,
        send_from_12, send_from_13, send_from_14, send_from_15,
    };
    unsigned n, i;

    for (n = 0; n < 16; n++) {
        struct frame f;
        uint64_t *general = &f.rax;

        fresh_receiver();
        uitt[200] = uitt[0];
        uitt[0].low = 0;
        f = user_frame(send[n], 0);
        for (i = 0; i < 15; i++) {
            general[i] = 0x5a5a5a5a5a5a5a5a;
        }
        f.rdi = 200;
        check(run_user_frame(&f) == DONE, "register %u: %ld", n, this_cpu()->caught.vector);
        check(upid[0].pir == BIT(5), "register %u", n);
    }
}

static void operand_size(void)
{
    fresh_receiver();
    wrmsr(MSR_UI_MISC, 0);
    check(TRY(".byte 0x66; " SENDUIPI_RAX, "a"(BIT(32))) == GP, "66H: still 64 bits");
    check(TRY(".byte 0x66; " SENDUIPI_RAX, "a"(0)) == NONE);
    check(TRY(".byte 0xf3, 0x48, 0x0f, 0xc7, 0xf0", "a"(BIT(32))) == GP, "REX.W");
}

static void memory_operand(void)
{
    fresh_receiver();
    /* VMXON, which needs CR4.VMXE */
    check(TRY(".byte 0xf3, 0x0f, 0xc7, 0x30", "a"(&upid[0])) == UD);
}

static void send_at_user(void)
{
    senduipi(0);
    user_done();
}

static void supervisor_pages(void)
{
    fresh_receiver();
    check(run_user(send_at_user, 0) == DONE, "UITT and UPID are supervisor pages");
    check(upid[0].pir == BIT(5));
}

static void uitt_absent(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    unmap_page(PAGE_UITT);
    check(run_user(send_at_user, 0) == PF);
    check(cpu->cr2 == UITT_ADDR);
    check(cpu->caught.error == 0, "error code %lx: a supervisor read", cpu->caught.error);
    check(upid[0].pir == 0);
    map_page(PAGE_UITT, uitt, PTE_P | PTE_W);
    check(run_user(send_at_user, 0) == DONE);
    check(upid[0].pir == BIT(5));
}

static void upid_absent(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    unmap_page(PAGE_UPID);
    check(run_user(send_at_user, 0) == PF);
    check(cpu->cr2 == UPID_ADDR(0));
    check(!(cpu->caught.error & 5), "error code %lx: supervisor, not present", cpu->caught.error);
    check(upid[0].pir == 0 && !(upid[0].low & ON));
}

static void upid_read_only(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    map_page(PAGE_UPID, upid, PTE_P);
    check(run_user(send_at_user, 0) == PF);
    check(cpu->cr2 == UPID_ADDR(0));
    check(cpu->caught.error == 3, "error code %lx: supervisor write", cpu->caught.error);
    check(upid[0].pir == 0 && !(upid[0].low & ON));
}

static void illegal_vector(void)
{
    fresh_receiver();
    upid[0].low = UPID(3, this_cpu()->apic_id);
    apic_write(APIC_ESR, 0);
    check(try_senduipi(0) == NONE);
    settle();
    check((upid[0].low & ON) && upid[0].pir == BIT(5));
    check(!apic_requested(3));
    apic_write(APIC_ESR, 0);
    check(apic_read(APIC_ESR) & BIT(5), "send illegal vector");
}

static void through_icr(void)
{
    struct cpu *cpu = this_cpu();

    fresh_receiver();
    senduipi(0);
    check((uint32_t)(apic_icr() & 0xff) == NV);
    check(apic_icr() >> (x2apic ? 32 : 56) == cpu->apic_id);
}

const struct item senduipi_items[] = {
    { "send.tt-disabled", "§5.1, §10.2", "TT bit 0 clear: #UD", tt_disabled },
    { "send.index", "§5.1, §10.3", "index = UITTSZ works, above it #GP, compared as 64 bits", index_bound },
    { "send.entry-v", "§4.2, §10.4", "V = 0: #GP", entry_invalid },
    { "send.entry-reserved", "§4.2, §10.4", "each reserved bit of the entry: #GP", entry_reserved },
    { "send.entry-vector", "§4.2, §10.4", "user vector above 63: #GP", entry_vector },
    { "send.entry-address", "§4.2, §10.4", "UPID address misaligned or not canonical: #GP", entry_upid_address },
    { "send.upid-reserved", "§4.1, §10.5", "each reserved bit of the UPID: #GP, UPID unchanged", upid_reserved },
    { "send.vectors", "§5.1", "each of the 64 vectors sets its bit of PIR", every_vector },
    { "send.notify", "§5.1, §10.7", "ON = SN = 0: PIR and ON set, IPI sent", notifies },
    { "send.sn", "§5.1, §10.8", "SN = 1: PIR set, ON stays 0, no IPI", suppressed_sn },
    { "send.on", "§5.1, §10.9", "ON = 1: PIR set, no IPI", suppressed_on },
    { "send.on-sn", "§5.1", "ON = SN = 1: PIR set, no IPI", suppressed_both },
    { "send.tt-mask", "§3.1", "the table starts at TT without its low 4 bits", tt_masked },
    { "send.registers", "§5", "the index may be in any of the 16 registers", every_register },
    { "send.operand-size", "§5", "66H and REX.W have no effect", operand_size },
    { "send.memory-form", "§5", "with a memory operand it is another instruction", memory_operand },
    { "send.supervisor", "§4", "UITT and UPID are read and written with supervisor rights", supervisor_pages },
    { "send.uitt-absent", "§5.1", "UITT page absent: #PF; works after the fix", uitt_absent },
    { "send.upid-absent", "§5.1", "UPID page absent: #PF, nothing changed", upid_absent },
    { "send.upid-read-only", "§5.1", "UPID page read-only: #PF, nothing changed", upid_read_only },
    { "send.illegal-vector", "§5.1 [inferred]", "NV below 16: APIC error, ON stays 1", illegal_vector },
    { "send.icr", "§5.1", "the IPI goes through the ICR", through_icr },
    { 0 },
};
