/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sending to another CPU, and what a CPU does that waits. */

#include "harness.h"

static volatile bool stop;
static volatile uint64_t wakes;

static void spin_until_stop(void)
{
    while (!stop) {
        pause();
    }
    user_done();
}

/* Run code at CPL 3, receiving at UPID 1. */
static void receive(void *code)
{
    struct cpu *cpu = this_cpu();

    cpu->user = (struct user_block) { .rflags_and = ~0ULL };
    receive_at_1(recording_handler);
    stui();
    cpu->online = true;
    run_user((void (*)(void))code, IF);
    clui();
    wrmsr(MSR_UI_MISC, 0);
}

static struct cpu *receiver(void (*code)(void))
{
    struct cpu *cpu = cpu_at(1);

    fresh_receiver();
    upid[1].low = UPID(NV, cpu->apic_id);
    uitt[1].low = ENTRY(33);
    uitt[1].upid = UPID_ADDR(1);
    stop = false;
    cpu->online = false;
    start_on(1, receive, code);
    eventually(cpu->online);
    return cpu;
}

static void release(void)
{
    stop = true;
    wait_for(1);
}

static void to_another(void)
{
    struct cpu *cpu = receiver(spin_until_stop);
    unsigned n;

    for (n = 1; n <= 100; n++) {
        senduipi(1);
        if (!check(eventually(cpu->user.count == n), "%u: %lu", n, cpu->user.count)) {
            break;
        }
    }
    release();
    check(cpu->user.vector == 33);
    check(upid[1].pir == 0 && !(upid[1].low & ON));
    check(cpu->irqs[NV] == 0);
}

static void destination_bits(void)
{
    struct cpu *cpu = receiver(spin_until_stop);

    if (x2apic) {
        release();
        skip("x2APIC mode: all bits of NDST count");
        return;
    }
    upid[1].low |= 0xffff00ff00000000;
    senduipi(1);
    check(eventually(cpu->user.count == 1), "only NDST[15:8] counts in xAPIC mode");
    release();
}

static void nowhere(void)
{
    fresh_receiver();
    upid[0].low = UPID(NV, 0xfd);
    check(try_senduipi(0) == NONE, "no such APIC: no fault");
    settle();
    check((upid[0].low & ON) && upid[0].pir == BIT(5) && !apic_requested(NV));
}

static void halt(void *watched)
{
    this_cpu()->hook = take_breakpoint;
    write_cr4(read_cr4() | CR4_UINTR);
    wrmsr(MSR_UI_RR, 0);
    wrmsr(MSR_UI_PD, UPID_ADDR(1));
    wrmsr(MSR_UI_MISC, MISC_UINV(NV));
    wakes = 0;
    watch((uint64_t)watched);
    this_cpu()->online = true;
    while (!stop) {
        asm volatile("sti; hlt; cli" : : : "memory");
        wakes++;
    }
    watch(0);
    wrmsr(MSR_UI_MISC, 0);
}

static void notify_halted(uint64_t watched)
{
    struct cpu *cpu = cpu_at(1);

    fresh_receiver();
    upid[1].low = UPID(NV, cpu->apic_id);
    uitt[1].low = ENTRY(33);
    uitt[1].upid = UPID_ADDR(1);
    stop = false;
    cpu->online = false;
    start_on(1, halt, (void *)watched);
    eventually(cpu->online);
    delay_us(1000);
    check(wakes == 0);

    senduipi(1);
    check(eventually(!(upid[1].low & ON)), "processed while halted");
    check(upid[1].pir == 0);
    delay_us(1000);
    check(wakes == 0, "HLT goes on");

    stop = true;
    apic_send(cpu->apic_id, 0x40);
    wait_for(1);
    check(wakes == 1, "an ordinary interrupt ends HLT: %lu", wakes);
}

static void halted(void)
{
    notify_halted(0);
}

static void halted_watched(void)
{
    notify_halted(UPID_ADDR(1) + 8);
}

static uint8_t buffer[1 << 14];

static void fill_until_stop(void)
{
    while (!stop) {
        uint8_t *to = buffer;
        uint64_t n = sizeof(buffer);
        unsigned i;

        asm volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0x5a) : "memory");
        if (n || to != buffer + sizeof(buffer)) {
            asm volatile("ud2");
        }
        for (i = 0; i < sizeof(buffer); i += 4096) {
            if (buffer[i] != 0x5a || buffer[i + 4095] != 0x5a) {
                asm volatile("ud2");
            }
            buffer[i] = buffer[i + 4095] = 0;
        }
        pause();
    }
    user_done();
}

static void strings(void)
{
    struct cpu *cpu;
    unsigned n;

    cpu = receiver(fill_until_stop);
    for (n = 1; n <= 200; n++) {
        senduipi(1);
        if (!check(eventually(cpu->user.count == n), "%u: %lu", n, cpu->user.count)) {
            break;
        }
    }
    release();
    check((int)cpu->caught.vector == DONE, "the fill was disturbed");
}

static void wait_here(void)
{
    while (!stop) {
        /* tpause %ecx, C0.2, a deadline far away */
        asm volatile(".byte 0x66, 0x0f, 0xae, 0xf1" : : "a"(~0), "d"(~0), "c"(0) : "cc", "memory");
    }
    user_done();
}

static void tpause(void)
{
    struct cpu *cpu;
    unsigned n;

    if (!has_waitpkg) {
        skip("CPUID has no WAITPKG");
        return;
    }
    cpu = receiver(wait_here);
    delay_us(1000);
    senduipi(1);
    check(eventually(cpu->user.count == 1));
    stop = true;
    /* One that comes between its look at "stop" and its TPAUSE ends none: the next does. */
    for (n = 0; n < 100 && __atomic_load_n(&cpu->work, __ATOMIC_ACQUIRE); n++) {
        senduipi(1);
        delay_us(1000);
    }
    wait_for(1);
}

/* MOV EAX, imm32; RET; its operand is changed while another CPU runs it. */
static struct {
    uint8_t unused[3], mov;
    volatile uint32_t operand;
    uint8_t ret;
} __attribute__((aligned(4096))) code = { .mov = 0xb8, .ret = 0xc3 };

static volatile uint32_t executed;

static void execute(void *unused)
{
    uint32_t registers[4];

    (void)unused;
    while (!stop) {
        /* Behind it what was stored is executed: SDM volume 3, "Handling Self- and Cross-Modifying Code". */
        cpuid(0, 0, registers);
        executed = ((uint32_t (*)(void))&code.mov)();
    }
}

static void changed_code(void)
{
    /*
     * Where CPUs take turns nothing comes in between, and each change costs
     * a turn: the faults' runs, which have little patience, make one.
     */
    const uint32_t changes = patience / 20000;
    uint32_t n;

    code.operand = executed = 0;
    stop = false;
    start_on(1, execute, NULL);
    for (n = 1; n <= changes; n++) {
        code.operand = n;
        if (!check(eventually(executed == n), "%u was stored, %u is executed", n, executed)) {
            break;
        }
    }
    release();
}

const struct item smp_items[] = {
    { "smp.send", "§5.1", "SENDUIPI reaches a CPU that runs at CPL 3", to_another, NEEDS_CPU2 },
    { "smp.destination", "§4.1", "xAPIC mode uses NDST[15:8] alone", destination_bits, NEEDS_CPU2 },
    { "smp.nowhere", "§5.1", "an IPI to nobody is no fault", nowhere },
    { "smp.halt", "§6.4 [inferred]", "a notification does not end HLT", halted, NEEDS_CPU2 },
    { "smp.halt-watched", "§6.4 [inferred]", "nor does a data breakpoint on the UPID, and it loses none", halted_watched, NEEDS_CPU2 },
    { "smp.string", "§6.3", "a string instruction is interrupted between iterations", strings, NEEDS_CPU2 },
    { "smp.tpause", "§6.2, §10.19", "a user interrupt ends TPAUSE", tpause, NEEDS_CPU2 },
    { 0 },
};

/* Every CPU's, also without user interrupts */
const struct item code_items[] = {
    { "smp.code", "SDM 3", "code that is changed while another CPU runs it is executed as it is", changed_code, NEEDS_CPU2 },
    { 0 },
};
