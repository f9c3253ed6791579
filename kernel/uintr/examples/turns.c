// SPDX-License-Identifier: MIT OR Apache-2.0
// User-level threads that take turns: every 50 us a timer interrupts whoever runs, and its handler goes on with the next.
// turns [THREADS [TURNS]]; with the hardware no signal and no system call is in a turn.
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <uintr.h>

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
static uint64_t wanted = 10000, wrong;

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

// Computes with its mark in every register that nobody else may touch; the bits that changed.
#define PUT(n)	"movq %[mark], %%xmm" #n "\n\t"
#define LOOK(n)	"movq %%xmm" #n ", %%rax\n\txorq %[mark], %%rax\n\torq %%rax, %[changed]\n\t"
static uint64_t computes(uint64_t mark)
{
	uint64_t changed = 0, left = 2000;

	__asm__ volatile(
		PUT(0) PUT(1) PUT(2) PUT(3) PUT(4) PUT(5) PUT(6) PUT(7) PUT(8) PUT(9) PUT(10) PUT(11) PUT(12) PUT(13) PUT(14) PUT(15)
		"movq %[mark], %%rcx\n\tmovq %[mark], %%rdx\n\tmovq %[mark], %%r8\n\tmovq %[mark], %%r9\n\t"
		"movq %[mark], %%r12\n\tmovq %[mark], %%r13\n\t"
		"1:	decq %[left]\n\tjnz 1b\n\t"
		"xorq %[mark], %%rcx\n\txorq %[mark], %%rdx\n\txorq %[mark], %%r8\n\txorq %[mark], %%r9\n\t"
		"xorq %[mark], %%r12\n\txorq %[mark], %%r13\n\t"
		"orq %%rcx, %[changed]\n\torq %%rdx, %[changed]\n\torq %%r8, %[changed]\n\torq %%r9, %[changed]\n\t"
		"orq %%r12, %[changed]\n\torq %%r13, %[changed]\n\t"
		LOOK(0) LOOK(1) LOOK(2) LOOK(3) LOOK(4) LOOK(5) LOOK(6) LOOK(7) LOOK(8) LOOK(9) LOOK(10) LOOK(11) LOOK(12) LOOK(13) LOOK(14) LOOK(15)
		: [changed] "+r"(changed), [left] "+r"(left)
		: [mark] "r"(mark)
		: "rax", "rcx", "rdx", "r8", "r9", "r12", "r13", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
		  "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return changed;
}

// Where a thread begins, masked: in the handler of who had the turn before.
static void begins(void)
{
	struct thread *own = running, *last;

	uintr_unmask();
	for (; turns < wanted; own->rounds++)
		wrong |= computes(own->mark);
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
	printf("%lu turns, %s (%s)\n", turns, wrong ? "REGISTERS CHANGED" : "all registers kept", uintr_backend_reason());
	return wrong != 0;
}
