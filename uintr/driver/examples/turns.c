// SPDX-License-Identifier: MIT OR Apache-2.0
// User-level threads that take turns: every 50 us a timer interrupts whoever runs, and its handler goes on with the next.
// turns [THREADS [TURNS]]; with the hardware no signal and no system call is in a turn.
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <uintr.h>
#include "registers.h"

#ifndef QUANTUM
#define QUANTUM	50000	// ns
#endif
#define STACK	65536	// bytes; a handler's frame takes less than 4096 of them

enum { TICK = 1 };

struct thread {
	void *sp;		// while another one runs
	struct thread *next;	// in the ring of those that are not done
	uint64_t mark, rounds;
	uint64_t turns;
};

// Alone in its ring: what was due when the last thread was done changes nothing.
static struct thread *running, starter = { .next = &starter };
static volatile uint64_t turns;
static uint64_t wanted = 10000;
static int wrong;

// Keeps what a function call must keep, on this stack, and goes on where the other one was left. All else the handler's
// frame has, of which each thread that was interrupted has its own.
void switch_stacks(void **from, void *to);
__asm__(
	"switch_stacks:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
	"	ret\n");

static void go_on_with(struct thread *next)
{
	struct thread *before = running;

	running = next;
	switch_stacks(&before->sp, next->sp);
}

// Masked, on the stack of who was interrupted; it returns when that one has its next turn.
static void tick(unsigned int vector, void *argument)
{
	(void)vector, (void)argument;
	turns++;
	running->turns++;
	if (running->next != running)
		go_on_with(running->next);
}

// Where a thread begins, masked: in the handler of who had the turn before.
static void begins(void)
{
	struct thread *own = running, *last;

	uintr_unmask();
	for (; turns < wanted; own->rounds++)
		wrong |= registers_changed(own->mark, 2000);
	uintr_mask();
	for (last = own; last->next != own; last = last->next)
		;
	last->next = own->next;
	go_on_with(last == own ? &starter : own->next);
}

static void *new_stack(void)
{
	void **top = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (top == MAP_FAILED)
		err(1, "a stack");
	top += STACK / sizeof(*top);
	// As behind a call: nothing to return to, and below it where to begin and six registers.
	top -= 8;
	top[6] = (void *)begins;
	return top;
}

int main(int argc, char **argv)
{
	unsigned int count = argc > 1 ? atoi(argv[1]) : 4;
	struct thread *threads;

	wanted = argc > 2 ? strtoull(argv[2], NULL, 10) : wanted;
	if (argc > 3 || !count || !wanted || !(threads = calloc(count, sizeof(*threads))))
		errx(2, "usage: turns [THREADS [TURNS]]");
	if (uintr_start(0) < 0)
		errx(1, "%s", uintr_backend_reason());
	if (uintr_handle(tick, NULL, 0))
		err(1, "uintr_handle");
	for (unsigned int i = 0; i < count; i++)
		threads[i] = (struct thread){ new_stack(), &threads[(i + 1) % count], 0x9e3779b97f4a7c15 * (i + 1), 0, 0 };
	if (uintr_timer(TICK, QUANTUM, QUANTUM))
		err(1, "uintr_timer");
	running = &starter;
	go_on_with(threads);
	uintr_timer(TICK, 0, 0);
	uintr_unmask();
	if (uintr_unregister_handler(0))
		err(1, "uintr_unregister_handler");
	for (unsigned int i = 0; i < count; i++)
		printf("thread %u: %lu turns, %lu rounds\n", i, threads[i].turns, threads[i].rounds);
	printf("marks in 15 general registers, flags, MXCSR, x87's control, 8 MMX, %s\n", registers_names());
	printf("%lu turns, %s (%s)\n", turns, wrong ? "REGISTERS CHANGED" : "all registers kept", uintr_backend_reason());
	return wrong != 0;
}
