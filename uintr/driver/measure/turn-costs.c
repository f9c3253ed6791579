// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a turn of examples/turns.c costs, in instructions, where they are the guest's clock: from the last of one user-level
 * thread to the first of the next, the kernel's included. Its handler and its switch are the example's own; UINTR_BACKEND says what
 * user interrupts are made of. Run as root.
 */
#define _GNU_SOURCE
#define main turns_main
#include "../examples/turns.c"
#undef main
#include "instructions.h"

/* Longer than a turn takes by signals, of which there would be no end else. */
#define APART	1000000	/* ns */
/*
 * An interrupt comes behind RDTSC, where the emulator ends what it translates together: from the last reading that was
 * stored to there, and from there to the reading that tells of the turn, are five instructions of the threads' own each.
 */
#define OWN	10

/* Each thread's last reading, which it alone stores: one that was interrupted before that stores an old one. */
static volatile uint32_t last[2];
static volatile uint64_t who;

/* Reads the clock until another had the turn, which is over when this one finds that. */
static void reads_the_clock(void)
{
	uint64_t own = running->mark;

	uintr_unmask();
	for (who = own; n < SAMPLES; who = own) {
		uint32_t now;

		__asm__ volatile(
			"1:	cmpq %[own], %[who]\n\t"
			"jne 2f\n\t"
			"rdtsc\n\t"
			"movl %%eax, %[last]\n\t"
			"jmp 1b\n"
			"2:	rdtsc"
			: "=&a"(now), [last] "=m"(last[own])
			: [own] "r"(own), [who] "m"(who)
			: "rdx", "cc", "memory");
		if (n < SAMPLES)
			sample(now - last[!own]);
	}
	uintr_mask();
	go_on_with(&starter);
}

int main(void)
{
	struct thread threads[2];

	calibrate();
	on_cpu_0(1);
	/* By what the environment says. */
	if (uintr_handle(tick, NULL, 0))
		err(1, "%s", uintr_backend_reason());
	for (int i = 0; i < 2; i++) {
		void **sp = new_stack();

		/* Where it begins, in place of the example's. */
		sp[6] = (void *)reads_the_clock;
		threads[i] = (struct thread){ .sp = sp, .next = &threads[!i], .mark = i };
	}
	if (uintr_timer(TICK, APART, APART))
		err(1, "uintr_timer");
	running = &starter;
	go_on_with(threads);
	uintr_timer(TICK, 0, 0);
	show(uintr_backend() == UINTR_HARDWARE ? "a turn of user-level threads, by the hardware" : "a turn of user-level threads, by signals", OWN, 1);
	return 0;
}
