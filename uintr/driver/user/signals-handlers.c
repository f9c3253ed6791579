// SPDX-License-Identifier: MIT OR Apache-2.0
/* How handlers run where user interrupts are made of signals: those that return, and those that end by UIRET. */
#define _GNU_SOURCE
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include "signals-receiver.h"

static void calls(const struct receiver *receiver, unsigned int vector)
{
	void (*function)(unsigned int, void *) = receiver->handler.function;
	void *argument = receiver->handler.argument;
	int error = errno;

	uintr_handlers_running++;
#ifdef __x86_64__
	if (receiver->stack_top) {
		uintptr_t top = receiver->stack_top & ~15ul;

		__asm__ volatile(
			"movq %%rsp, %%rbx\n\t"
			"movq %[top], %%rsp\n\t"
			"callq *%[function]\n\t"
			"movq %%rbx, %%rsp"
			: "+D"(vector), "+S"(argument), [top] "+r"(top), [function] "+r"(function)
			:
			: "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			  "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
	} else
#endif
		function(vector, argument);
	uintr_handlers_running--;
	errno = error;
}

/* Runs handlers that return, for all there is, and leaves the receiver open. */
void uintr_signals_runs(struct receiver *receiver)
{
	do {
		int vector;

		shuts(receiver);
		while ((vector = takes(receiver)) >= 0) {
			calls(receiver, vector);
			/* It may have opened it, or returned in a child that it made. */
			if (uintr_signals_own != receiver)
				return;
			shuts(receiver);
		}
		uintr_moment(BEFORE_OPENING);
		sets(receiver, OPEN);
		uintr_moment(BEHIND_OPENING);
	} while (pending(receiver));
}

#ifdef __x86_64__

/* What UIRET takes from the frame: CF PF AF ZF SF TF DF OF NT RF AC ID. */
#define UIRET_FLAGS	0x254dd5
#define RED_ZONE	128
#define TRAP_FLAG	(1 << 8)
#define RESUME_FLAG	(1 << 16)

/* A CPU that has UIRET executes it here too, once a driver has switched it on, and it returns without our knowing. */
static int cpu_has_uiret;
static struct sigaction previous_ill;
extern char uintr_returned[] __attribute__((visibility("hidden")));
__asm__(
	".text\n"
	".globl uintr_returned\n"
	".hidden uintr_returned\n"
	".type uintr_returned, @function\n"
	"uintr_returned:\n"
	"	ud2\n"
	".size uintr_returned, . - uintr_returned\n");

/* Has the thread go on in the handler that ends by UIRET, with the frame that the CPU would have pushed; open before and shut behind it. */
void uintr_signals_delivers(struct receiver *receiver, ucontext_t *context)
{
	greg_t *registers = context->uc_mcontext.gregs;
	uint64_t *frame;
	int vector;

	shuts(receiver);
	vector = takes(receiver);
	while (vector < 0) {
		uintr_moment(BEFORE_OPENING);
		sets(receiver, OPEN);
		uintr_moment(BEHIND_OPENING);
		if (!pending(receiver))
			return;
		shuts(receiver);
		vector = takes(receiver);
	}
	frame = (uint64_t *)((receiver->stack_top ? receiver->stack_top : (uintptr_t)registers[REG_RSP] - RED_ZONE) & ~15ul);
	if (cpu_has_uiret) {
		/* The frame is told by the one above it, which leads to an instruction that is invalid everywhere. */
		frame -= 4;
		frame[0] = registers[REG_RIP];
		frame[1] = registers[REG_EFL];
		frame[2] = registers[REG_RSP];
		registers[REG_RSP] = (greg_t)frame;
		registers[REG_RIP] = (greg_t)uintr_returned;
	}
	frame -= 4;
	frame[0] = vector;
	frame[1] = registers[REG_RIP];
	frame[2] = registers[REG_EFL];
	frame[3] = registers[REG_RSP];
	registers[REG_RSP] = (greg_t)frame;
	registers[REG_EFL] &= ~(TRAP_FLAG | RESUME_FLAG);
	registers[REG_RIP] = (greg_t)receiver->handler.uiret;
}

/* Whether @address has UIRET. What lies there was just fetched: but of an instruction that is none, maybe two bytes only. */
static int is_uiret(const unsigned char *address)
{
	return address[0] == 0xf3 && address[1] == 0x0f && address[2] == 0x01 && address[3] == 0xec;
}

/* UIRET, which is an invalid instruction as long as no driver has switched it on, and where one that was none leads to. */
static void on_illegal(int signal, siginfo_t *info, void *about)
{
	ucontext_t *context = about;
	greg_t *registers = context->uc_mcontext.gregs;
	int error = errno;

	if (uintr_signals_own && uintr_signals_own->handler.uiret && (registers[REG_RIP] == (greg_t)uintr_returned || is_uiret((void *)registers[REG_RIP]))) {
		do {
			uint64_t *frame = (uint64_t *)registers[REG_RSP];

			registers[REG_RIP] = frame[0];
			registers[REG_EFL] = (registers[REG_EFL] & ~UIRET_FLAGS) | (frame[1] & UIRET_FLAGS);
			registers[REG_RSP] = frame[2];
		} while (registers[REG_RIP] == (greg_t)uintr_returned);
		uintr_moment(BEFORE_OPENING);
		sets(uintr_signals_own, OPEN);
		uintr_moment(BEHIND_OPENING);
		if (pending(uintr_signals_own))
			uintr_signals_delivers(uintr_signals_own, context);
		errno = error;
		return;
	}
	if (previous_ill.sa_flags & SA_SIGINFO) {
		previous_ill.sa_sigaction(signal, info, about);
	} else if (previous_ill.sa_handler != SIG_DFL && previous_ill.sa_handler != SIG_IGN) {
		previous_ill.sa_handler(signal);
	} else {
		/* The instruction is tried again, and is what it would have been. */
		sigaction(SIGILL, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	}
}

int uintr_signals_takes_uiret(void)
{
	struct sigaction action = { .sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO }, before;
	unsigned int a, b, c, d;

	sigemptyset(&action.sa_mask);
	/* Between UIRET and where it returns to nothing is delivered. */
	sigaddset(&action.sa_mask, SIGURG);
	if (sigaction(SIGILL, NULL, &before))
		return -1;
	cpu_has_uiret = __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & 1 << 5;
	if (before.sa_flags & SA_SIGINFO && before.sa_sigaction == on_illegal)
		return 0;
	previous_ill = before;
	return sigaction(SIGILL, &action, NULL);
}

#else

void uintr_signals_delivers(struct receiver *receiver, ucontext_t *context)
{
	(void)receiver, (void)context;
}

int uintr_signals_takes_uiret(void)
{
	return refuse(ENOTSUP);
}

#endif
