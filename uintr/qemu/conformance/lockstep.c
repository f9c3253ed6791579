/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Random steps on several CPUs, one at a time, with the state after each, as
 * text for a model to follow; README.md describes the format. A token says
 * whose turn it is; who has it makes a few steps and passes it on. Interrupts
 * are shut except where a step opens them, so what a step does is determined
 * by the state before it.
 */

#include "harness.h"
#include "main.h"

#define TRACE_START     0x08000000UL
#define TRACE_SIZE      0x24000000UL
#define LINE_MAX        2048
#define MAX_FAULTS      8

#define PLACES          4       /* UPIDs that steps touch */
#define ENTRIES         8       /* UITT entries that steps fill */
#define ABSENT          (WINDOW + (PAGE_FREE + 1) * PAGE)
#define COMPONENT       BIT(14)

static const uint8_t vectors[] = { NV, OTHER, 0x51 };
#define N_VECTORS       (sizeof(vectors) / sizeof(vectors[0]))

struct view {
    uint64_t rr, handler, adjust, misc, pd, tt, uif, cr4, irr;
};

static const char *const field_names[] = {
    "rr", "handler", "adjust", "misc", "pd", "tt", "uif", "cr4", "irr",
};

struct area {
    uint8_t legacy[512];
    uint64_t xstate_bv, xcomp_bv, reserved[6];
    uint64_t state[8];
} __attribute__((aligned(64)));

static struct view shown[MAX_CPUS];
static struct uitte shown_uitt[ENTRIES];
static uint64_t shown_upid[PLACES][2];
static struct area areas[MAX_CPUS];
static uint8_t user_stacks[MAX_CPUS][PAGE] __attribute__((aligned(4096)));

static char *at;
static uint64_t state;
static unsigned long steps_left;
static unsigned n_playing;
static volatile unsigned token;
static struct frame faults[MAX_FAULTS];
static uint64_t fault_addresses[MAX_FAULTS];
static unsigned n_faults;

static uint64_t any(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % n;
}

static bool rarely(void)
{
    return any(16) == 0;
}

#define pick(...)                                               \
    ({                                                          \
        const uint64_t choices[] = { __VA_ARGS__ };             \
        choices[any(sizeof(choices) / sizeof(choices[0]))];     \
    })

#define say(...)    (at = format_to(at, __VA_ARGS__))

static uint64_t user_stack(void)
{
    return (uint64_t)user_stacks[this_cpu()->index] + PAGE;
}

static struct view look(void)
{
    uint64_t cr4 = read_cr4();
    struct view v = {
        .rr = rdmsr(MSR_UI_RR), .handler = rdmsr(MSR_UI_HANDLER),
        .adjust = rdmsr(MSR_UI_ADJUST), .misc = rdmsr(MSR_UI_MISC),
        .pd = rdmsr(MSR_UI_PD), .tt = rdmsr(MSR_UI_TT),
        .cr4 = !!(cr4 & CR4_UINTR),
    };
    unsigned i;

    /* TESTUI needs the feature to be on. */
    write_cr4(cr4 | CR4_UINTR);
    v.uif = testui();
    write_cr4(cr4);
    for (i = 0; i < N_VECTORS; i++) {
        v.irr |= (uint64_t)apic_requested(vectors[i]) << i;
    }
    return v;
}

static void show_changes(void)
{
    unsigned me = this_cpu()->index;
    struct view now = look();
    uint64_t *new = &now.rr, *old = &shown[me].rr;
    bool any_change = false;
    unsigned i;

    for (i = 0; i < sizeof(now) / 8; i++) {
        if (new[i] != old[i]) {
            if (!any_change) {
                say("cpu %u", me);
            }
            any_change = true;
            say(" %s=%lx", field_names[i], new[i]);
        }
    }
    if (any_change) {
        say("\n");
    }
    shown[me] = now;

    for (i = 0; i < PLACES; i++) {
        if (upid[i].low != shown_upid[i][0] || upid[i].pir != shown_upid[i][1]) {
            shown_upid[i][0] = upid[i].low;
            shown_upid[i][1] = upid[i].pir;
            say("upid %u %lx %lx\n", i, shown_upid[i][0], shown_upid[i][1]);
        }
    }
    for (i = 0; i < ENTRIES; i++) {
        if (uitt[i].low != shown_uitt[i].low || uitt[i].upid != shown_uitt[i].upid) {
            shown_uitt[i].low = uitt[i].low;
            shown_uitt[i].upid = uitt[i].upid;
            say("uitt %u %lx %lx\n", i, shown_uitt[i].low, shown_uitt[i].upid);
        }
    }
}

static void say_exception(int vector)
{
    struct cpu *cpu = this_cpu();

    switch (vector) {
    case NONE:
    case DONE:
        say(" ok");
        break;
    case UD:
        say(" ud");
        break;
    case GP:
        say(" gp");
        break;
    case SS:
        say(" ss");
        break;
    case PF:
        say(" pf:%lx:%lx", cpu->cr2, cpu->caught.error);
        break;
    default:
        say(" exception:%u", (unsigned)vector);
    }
}

static void say_interrupts(void)
{
    struct cpu *cpu = this_cpu();
    unsigned i;

    for (i = 0; i < cpu->n_irq_log; i++) {
        say(" irq:%x", cpu->irq_log[i]);
    }
    cpu->n_irq_log = 0;
}

static void send(void)
{
    uint64_t index = rarely() ? any(400) : any(ENTRIES);

    say("send %lx ->", index);
    say_exception(try_senduipi(index));
    delay_us(1);
}

/* Processing a notification may fault; the program goes on where it was. */
static bool note_fault(struct frame *f)
{
    if ((f->vector != PF && f->vector != GP) || (f->cs & 3) || n_faults == MAX_FAULTS) {
        return false;
    }
    faults[n_faults] = *f;
    fault_addresses[n_faults++] = this_cpu()->cr2;
    return true;
}

static void open(void)
{
    struct cpu *cpu = this_cpu();
    unsigned i;

    say("open ->");
    n_faults = 0;
    cpu->hook = note_fault;
    open_interrupts();
    cpu->hook = NULL;
    say_interrupts();
    for (i = 0; i < n_faults; i++) {
        cpu->caught = faults[i];
        cpu->cr2 = fault_addresses[i];
        say_exception(faults[i].vector);
    }
    say(" ok");
}

/* Time for an IPI to oneself to arrive */
static inline __attribute__((always_inline)) void linger(void)
{
    unsigned i;

    for (i = 0; i < 16; i++) {
        asm volatile("" : : : "memory");
    }
}

static void user_clui(void)
{
    clui();
    user_done();
}

static void user_send(uint64_t index)
{
    senduipi(index);
    linger();
    user_done();
}

static void user(void)
{
    struct cpu *cpu = this_cpu();
    bool interrupts = any(2);
    bool stay_off = any(4) == 0;
    unsigned action = any(4);
    uint64_t index = any(ENTRIES);
    struct frame f;
    int vector;
    uint64_t i;

    say("user %u %u ", interrupts, stay_off);
    switch (action) {
    case 0:
        f = user_frame(nothing, 0);
        say("nothing ->");
        break;
    case 1:
        f = user_frame(set_uif, 0);
        say("stui ->");
        break;
    case 2:
        f = user_frame(user_clui, 0);
        say("clui ->");
        break;
    default:
        f = user_frame(user_send, 0);
        f.rdi = index;
        say("send %lx ->", index);
    }
    f.rflags |= interrupts ? IF : 0;
    f.rsp = user_stack();
    cpu->user.count = 0;
    cpu->user.rflags_and = stay_off ? ~FIXED_1 : ~0ULL;
    vector = run_user_frame(&f);
    say_interrupts();
    for (i = 0; i < cpu->user.count && i < UB_LOG_SIZE; i++) {
        say(" user:%x", cpu->user.log[i]);
    }
    say_exception(vector);
}

static void change_flag(void)
{
    int vector;

    switch (any(3)) {
    case 0:
        say("clui ->");
        say_exception(TRY(CLUI_BYTES));
        break;
    case 1:
        say("stui ->");
        say_exception(TRY(STUI_BYTES));
        break;
    default:
        say("testui ->");
        vector = TRY(TESTUI_BYTES);
        if (vector == NONE) {
            say(" uif:%u", testui());
        } else {
            say_exception(vector);
        }
    }
}

static uint64_t bad_address(void)
{
    return pick(BIT(63), 0x0100000000000000, 0xfeffffffffffffc0, 0x123456789abcdef0);
}

static void write_msr(void)
{
    uint32_t msr = MSR_UI_RR + any(6);
    uint64_t v = 0;

    switch (msr) {
    case MSR_UI_RR:
        v = any(2) ? BIT(any(64)) | BIT(any(64)) : 0;
        break;
    case MSR_UI_HANDLER:
        v = rarely() ? bad_address() : (uint64_t)recording_handler;
        break;
    case MSR_UI_ADJUST:
        v = rarely() ? bad_address() :
            pick(0, 128, 8, 1000, (user_stack() - 1024) | 1, (ABSENT + PAGE) | 1);
        break;
    case MSR_UI_MISC:
        v = pick(ENTRIES - 1, ENTRIES - 1, 3, 0, 300);
        /* A notification at address 0 would read what the firmware left there. */
        v |= rdmsr(MSR_UI_PD) ? MISC_UINV(pick(NV, NV, OTHER, 0x51, 0)) : 0;
        v |= rarely() ? BIT(40 + any(24)) : 0;
        break;
    case MSR_UI_PD:
        v = rarely() ? pick(ABSENT, bad_address()) : UPID_ADDR(any(PLACES));
        v |= rarely() ? BIT(any(6)) : 0;
        break;
    case MSR_UI_TT:
        v = UITT_ADDR | TT_ENABLE;
        v = rarely() ? pick(UITT_ADDR, (UITT_ADDR + 16) | 1, ABSENT | 1, bad_address()) : v;
        v |= rarely() ? BIT(1 + any(3)) : 0;
        break;
    }
    say("wrmsr %x %lx ->", msr, v);
    say_exception(try_wrmsr(msr, v));
}

static void save(void)
{
    struct area *area = &areas[this_cpu()->index];
    unsigned i;

    for (i = 0; i < 8; i++) {
        area->state[i] = 0;
    }
    say("xsaves ->");
    say_exception(TRY(".byte 0x48, 0x0f, 0xc7, 0x2f", "D"(area), "a"((uint32_t)COMPONENT), "d"(0)));
    say(" bv:%lx image", area->xstate_bv);
    for (i = 0; i < 6; i++) {
        say(":%lx", area->state[i]);
    }
}

static void restore(void)
{
    struct area *area = &areas[this_cpu()->index];
    struct area image = *area;
    unsigned i;

    image.xcomp_bv = COMPONENT | BIT(63);
    image.xstate_bv &= COMPONENT;
    switch (any(8)) {
    case 0:
        image.xstate_bv = 0;
        break;
    case 1:
        /*
         * A bit that makes the image bad, or the address one of the many
         * where nothing is mapped. Others would name memory of this program.
         */
        i = any(6);
        image.state[i] |= BIT(i == 4 ? any(64) : 40 + any(24));
        break;
    case 3:
        image.state[3] |= BIT(any(6));
        break;
    case 4:
        image.state[5] |= BIT(1 + any(3));
        break;
    case 2:
        image.state[2] ^= BIT(63);
        break;
    default:
        break;
    }
    say("xrstors bv:%lx image", image.xstate_bv);
    for (i = 0; i < 6; i++) {
        say(":%lx", image.state[i]);
    }
    say(" ->");
    say_exception(TRY(".byte 0x48, 0x0f, 0xc7, 0x1f", "D"(&image), "a"((uint32_t)COMPONENT), "d"(0)));
}

static void change_cr4(void)
{
    /* Mostly on: nothing else happens while it is off. */
    bool on = any(4);

    say("cr4 %u ->", on);
    write_cr4(on ? read_cr4() | CR4_UINTR : read_cr4() & ~CR4_UINTR);
    say(" ok");
}

static void interrupt(void)
{
    unsigned to = any(n_playing);
    uint8_t vector = vectors[any(N_VECTORS)];

    say("ipi %u %x ->", to, vector);
    apic_send(cpu_at(to)->apic_id, vector);
    delay_us(1);
    say(" ok");
}

static void change_upid(void)
{
    unsigned i = any(PLACES);
    uint64_t low = upid[i].low;

    switch (any(4)) {
    case 0:
        low ^= SN;
        break;
    case 1:
        low &= ~ON;
        break;
    case 2:
        low ^= rarely() ? BIT(pick(2, 7, 15, 24, 31)) : 0;
        break;
    default:
        low = UPID(rarely() ? 3 : pick(NV, NV, OTHER, 0x51),
                   rarely() ? 0xfd : cpu_at(any(n_playing))->apic_id);
    }
    upid[i].low = low;
    if (any(8) == 0) {
        upid[i].pir = 0;
    }
    say("setupid %u %lx %lx -> ok", i, upid[i].low, upid[i].pir);
}

static void change_entry(void)
{
    unsigned i = any(ENTRIES);

    uitt[i].low = ENTRY(rarely() ? any(256) : any(64));
    uitt[i].low ^= rarely() ? BIT(any(64)) : 0;
    uitt[i].upid = rarely() ? pick(ABSENT, bad_address(), UPID_ADDR(1) | BIT(any(6))) :
                   UPID_ADDR(any(PLACES));
    say("setuitt %u %lx %lx -> ok", i, uitt[i].low, uitt[i].upid);
}

static void step(void)
{
    say("op %u ", this_cpu()->index);
    switch (any(20)) {
    case 0 ... 4:
        send();
        break;
    case 5 ... 6:
        open();
        break;
    case 7 ... 9:
        /* CPL 3 only with a handler that comes back */
        if (rdmsr(MSR_UI_HANDLER) == (uint64_t)recording_handler) {
            user();
        } else {
            say("wrmsr %x %lx ->", MSR_UI_HANDLER, (uint64_t)recording_handler);
            say_exception(try_wrmsr(MSR_UI_HANDLER, (uint64_t)recording_handler));
        }
        break;
    case 10 ... 11:
        change_flag();
        break;
    case 12 ... 14:
        write_msr();
        break;
    case 15:
        any(2) ? save() : restore();
        break;
    case 16:
        any(2) ? change_cr4() : open();
        break;
    case 17:
        interrupt();
        break;
    case 18:
        change_upid();
        break;
    default:
        change_entry();
    }
    say("\n");
}

static void play(void *unused)
{
    struct cpu *cpu = this_cpu();

    (void)unused;
    cpu->user = (struct user_block) { .rflags_and = ~0ULL };
    wrmsr(MSR_GS_BASE, (uint64_t)&cpu->user);
    wrmsr(MSR_XSS, COMPONENT);
    wrmsr(MSR_UI_MISC, 0);
    wrmsr(MSR_UI_RR, 0);
    wrmsr(MSR_UI_PD, 0);
    wrmsr(MSR_UI_TT, 0);
    wrmsr(MSR_UI_ADJUST, 0);
    wrmsr(MSR_UI_HANDLER, 0);
    write_cr4(read_cr4() | CR4_UINTR);
    clui();
    cpu->n_irq_log = 0;
    shown[cpu->index] = (struct view) { .cr4 = 1 };
    for (;;) {
        unsigned turn;

        while ((turn = __atomic_load_n(&token, __ATOMIC_ACQUIRE)) != cpu->index) {
            if (turn == ~0u) {
                wrmsr(MSR_UI_MISC, 0);
                return;
            }
            pause();
        }
        /* What the others have done to this CPU */
        show_changes();
        for (turn = 1 + any(30); turn && steps_left; turn--, steps_left--) {
            if (at > (char *)(TRACE_START + TRACE_SIZE - LINE_MAX)) {
                steps_left = 1;
            }
            step();
            show_changes();
        }
        __atomic_store_n(&token, steps_left ? any(n_playing) : ~0u, __ATOMIC_RELEASE);
    }
}

void lockstep(unsigned long steps, unsigned long seed, unsigned cpus)
{
    struct cpu *cpu = this_cpu();
    unsigned i;

    if (!has_xsaves) {
        print("# lock step needs XSAVES\n");
        return;
    }
    fresh();
    n_playing = cpus < n_cpus ? cpus : n_cpus;
    state = 0x9e3779b97f4a7c15 * (seed + 1);
    steps_left = steps;
    at = (char *)TRACE_START;
    say("lockstep 1 cpus %u apic %s uiret-uif %u la57 %u handler %lx stack", n_playing,
        x2apic ? "x2" : "x", has_uiret_uif, has_la57, (uint64_t)recording_handler);
    for (i = 0; i < n_playing; i++) {
        say(" %lx", (uint64_t)user_stacks[i] + PAGE);
    }
    say(" ids");
    for (i = 0; i < n_playing; i++) {
        say(" %x", cpu_at(i)->apic_id);
    }
    say(" upid %lx uitt %lx\n", UPID_ADDR(0), UITT_ADDR);

    token = 0;
    for (i = 1; i < n_playing; i++) {
        start_on(i, play, NULL);
    }
    if (__builtin_setjmp(cpu->on_unexpected) == 0) {
        play(NULL);
    } else {
        report(false, "lockstep", "an unexpected trap ended it", "§10");
        token = ~0u;
    }
    for (i = 1; i < n_playing; i++) {
        wait_for(i);
    }
    say("end %lu\n", steps);
    print("# trace at %lx size %lx\n", TRACE_START, (uint64_t)at - TRACE_START);
}
