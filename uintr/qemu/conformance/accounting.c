/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every SENDUIPI is accounted for. CPU 1 receives at CPL 3 and opens and
 * shuts UIF at random; all other CPUs send to it, each on vectors of its own
 * and with a sequence number per vector, written before the send. A handler
 * that finds the number n further on stands for n sends, of which n - 1 were
 * coalesced; n may be 0, because a handler can see a number whose send is
 * still to come.
 */

#include "harness.h"
#include "main.h"

#define VECTORS_EACH    8

/* Each sender's stack is the low end of its kernel stack, never that deep. */
#define USER_STACK_TOP  0x2000
_Static_assert(sizeof(struct cpu) < USER_STACK_TOP / 2, "no room for a stack");

static volatile uint64_t posted[64], seen[64];
static volatile uint64_t deliveries, coalesced, early, in_shut;
static volatile bool receiving, quiet;
static volatile unsigned senders_left;
static uint64_t sends_each;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void spend(uint64_t n)
{
    while (n--) {
        asm volatile("" : : : "memory");
    }
}

static void count(uint64_t v)
{
    uint64_t now = posted[v];
    uint64_t step = now - seen[v];

    deliveries++;
    if (step == 0) {
        early++;
    } else {
        coalesced += step - 1;
    }
    seen[v] = now;
}

static bool all_seen(void)
{
    unsigned v;

    for (v = 0; v < 64; v++) {
        if (seen[v] != posted[v]) {
            return false;
        }
    }
    return true;
}

static void receive_here(void)
{
    uint64_t state = 0x2545f4914f6cdd1d;
    uint64_t waited;

    receiving = true;
    while (senders_left) {
        uint64_t r = next_random(&state);
        uint64_t before;

        stui();
        spend(r & 1023);
        clui();
        before = deliveries;
        spend(r >> 10 & 1023);
        in_shut += deliveries != before;
    }
    stui();
    for (waited = 0; !all_seen() && waited < 2000000; waited++) {
        pause();
    }
    /* A delivery that brings no news may still be on its way. */
    for (waited = 0; waited < 100000; waited++) {
        pause();
    }
    clui();
    quiet = true;
    user_done();
}

static void receive(void *unused)
{
    (void)unused;
    this_cpu()->user = (struct user_block) { .function = count };
    receive_at_1(calling_handler);
    run_user(receive_here, IF);
}

static void send_here(uint64_t number)
{
    uint64_t state = 0x9e3779b97f4a7c15 * (number + 1);
    uint64_t first = number * VECTORS_EACH;
    uint64_t n;

    for (n = 0; n < sends_each; n++) {
        uint64_t r = next_random(&state);
        uint64_t v = first + r % VECTORS_EACH;

        posted[v]++;
        senduipi(v);
        /* Bursts, and between them pauses in which the receiver catches up */
        spend(r & 0x70000 ? r >> 32 & 63 : r >> 32 & 16383);
    }
    user_done();
}

static void send(void *number)
{
    struct frame f = user_frame(send_here, IF);

    write_cr4(read_cr4() | CR4_UINTR);
    wrmsr(MSR_UI_TT, UITT_ADDR | TT_ENABLE);
    wrmsr(MSR_UI_MISC, N_ENTRIES - 1);
    f.rdi = (uint64_t)number;
    f.rsp = (uint64_t)this_cpu() + USER_STACK_TOP;
    run_user_frame(&f);
    __atomic_sub_fetch(&senders_left, 1, __ATOMIC_RELEASE);
}

void accounting(unsigned long sends)
{
    struct cpu *receiver = cpu_at(1);
    uint64_t total = 0, left = 0;
    unsigned senders, i;

    if (n_cpus < 2) {
        print("# accounting needs two CPUs\n");
        return;
    }
    fresh_receiver();
    wrmsr(MSR_UI_PD, 0);
    for (i = 0; i < 64; i++) {
        uitt[i].low = ENTRY(i);
        uitt[i].upid = UPID_ADDR(1);
    }
    upid[1].low = UPID(NV, receiver->apic_id);

    senders = n_cpus - 1 > 64 / VECTORS_EACH ? 64 / VECTORS_EACH : n_cpus - 1;
    sends_each = sends / senders;
    senders_left = senders;
    start_on(1, receive, NULL);
    eventually(receiving);
    for (i = 2; i < senders + 1; i++) {
        start_on(i, send, (void *)(uint64_t)(i - 1));
    }
    send(NULL);
    /* However long it takes: a sender that is slow is no failure. */
    while (senders_left) {
        pause();
    }
    for (i = 1; i < senders + 1; i++) {
        wait_for(i);
    }

    for (i = 0; i < 64; i++) {
        total += posted[i];
        left += posted[i] - seen[i];
    }
    print("# accounting: sends %lu, deliveries %lu, coalesced %lu, early %lu, lost %lu, "
          "in shut sections %lu, IDT %u, left in PIR %lx, ON %lu\n",
          total, deliveries, coalesced, early, left, in_shut, receiver->irqs[NV],
          upid[1].pir, upid[1].low & ON);
    report(total == sends_each * senders && left == 0 && in_shut == 0 && quiet &&
           total == deliveries - early + coalesced && receiver->irqs[NV] == 0 &&
           upid[1].pir == 0 && !(upid[1].low & ON),
           "accounting", "every SENDUIPI is delivered or coalesced, none while UIF is 0", "§5, §6");
}
