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
/* Between the reading before the interrupt and the one behind it are at most this many of the threads' own. */
#define OWN	7

static volatile uint32_t last;
static struct thread *volatile who;

/* Reads the clock all the time. Who finds another's reading has just been given the turn. */
static void reads_the_clock(void)
{
	struct thread *own = running;

	uintr_unmask();
	while (n < SAMPLES) {
		uint32_t before, now;

		/* RDTSC; two moves; a comparison and a jump. */
		__asm__ volatile(
			"1:	rdtsc\n\t"
			"movl %[last], %[before]\n\t"
			"movl %%eax, %[last]\n\t"
			"cmpq %[own], %[who]\n\t"
			"je 1b"
			: "=a"(now), [before] "=&r"(before), [last] "+m"(last)
			: [own] "r"(own), [who] "m"(who)
			: "rdx", "cc", "memory");
		if (who)
			sample(now - before);
		who = own;
	}
	uintr_mask();
	go_on_with(&starter);
}

int main(void)
{
	struct thread threads[2];

	calibrate();
	on_cpu_0(1);
	if (uintr_start(0) < 0)
		errx(1, "%s", uintr_backend_reason());
	if (uintr_handle(tick, NULL, 0))
		err(1, "uintr_handle");
	for (int i = 0; i < 2; i++) {
		void **sp = new_stack();

		/* Where it begins, in place of the example's. */
		sp[6] = (void *)reads_the_clock;
		threads[i] = (struct thread){ .sp = sp, .next = &threads[!i] };
	}
	if (uintr_timer(TICK, APART, APART))
		err(1, "uintr_timer");
	running = &starter;
	go_on_with(threads);
	uintr_timer(TICK, 0, 0);
	show(uintr_backend() == UINTR_HARDWARE ? "a turn of user-level threads, by the hardware" : "a turn of user-level threads, by signals", OWN, 1);
	return 0;
}
