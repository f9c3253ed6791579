// SPDX-License-Identifier: MIT OR Apache-2.0
/* Signals and UIF (H12). */
#include "shared.h"

static volatile int uif_in_signal = -1, handled_in_signal = -1;

static void looks_at_uif(int signal)
{
	(void)signal;
	uif_in_signal = _testui();
	_senduipi(0);
	/* Long enough to be delivered if it were let through. */
	usleep(20000);
	handled_in_signal = handled;
}

static void takes_signals_with(uint32_t flags, int sa_flags)
{
	struct sigaction action = { .sa_handler = looks_at_uif, .sa_flags = sa_flags };

	if (sa_flags & SA_ONSTACK) {
		stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

		CHECK(!sigaltstack(&stack, NULL));
	}
	receives_with(flags);
	sigaction(SIGUSR1, &action, NULL);
}

static void takes_a_signal(void)
{
	for (int stack = 0; stack < 2; stack++) {
		handled = 0;
		if (stack)
			close(receiver);
		takes_signals_with(0, stack ? SA_ONSTACK : 0);
		raise(SIGUSR1);
		CHECK(uif_in_signal == 0 && handled_in_signal == 0);
		await(1);
		CHECK(_testui());
		/* Shut before is shut after. */
		_clui();
		raise(SIGUSR1);
		CHECK(uif_in_signal == 0 && !_testui() && handled == 1);
		_stui();
		await(2);
		if (stack)
			break;
		/* Index 0 is the first receiver's. */
		CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
	}
}

static void takes_a_signal_open(void)
{
	takes_signals_with(UINTR_IN_SIGNALS, 0);
	raise(SIGUSR1);
	CHECK(uif_in_signal == 1 && handled_in_signal == 1);
	CHECK(_testui());
}

static volatile int depth, deepest;

static void nests(int signal)
{
	CHECK(!_testui());
	depth++;
	if (depth > deepest)
		deepest = depth;
	if (signal < SIGRTMIN + 8)
		raise(signal + 1);
	else
		_senduipi(0);
	CHECK(!_testui() && !handled);
	depth--;
}

static void nests_signals(void)
{
	receives();
	for (int signal = SIGRTMIN; signal <= SIGRTMIN + 8; signal++)
		sigaction(signal, &(struct sigaction){ .sa_handler = nests }, NULL);
	raise(SIGRTMIN);
	CHECK(deepest == 9);
	await(1);
	CHECK(_testui());
}

/* There is no room for its frame, so SIGSEGV comes instead. */
static void takes_a_signal_without_a_frame(void)
{
	stack_t stack = { .ss_size = 1 << 16 };

	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack.ss_sp != MAP_FAILED && !sigaltstack(&stack, NULL));
	takes_signals_with(0, 0);
	sigaction(SIGSEGV, &(struct sigaction){ .sa_handler = looks_at_uif }, NULL);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_ONSTACK }, NULL);
	raise(SIGUSR1);
	CHECK(uif_in_signal == 0 && handled_in_signal == 0);
	await(1);
	CHECK(_testui());
}

static sigjmp_buf out;

static void jumps(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static void jumps_out_of_a_signal(void)
{
	receives();
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = jumps }, NULL);
	for (int i = 0; i < 100; i++) {
		if (!sigsetjmp(out, 1))
			raise(SIGUSR1);
		/* It left by its own way, and opens UIF itself. */
		CHECK(!_testui());
		_stui();
		send_to_itself();
	}
}

static void registers(int signal)
{
	(void)signal;
	receives();
	CHECK(_testui());
}

/* A frame from before the receiver says nothing of UIF. */
static void receives_in_a_signal(void)
{
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = registers }, NULL);
	raise(SIGUSR1);
	CHECK(_testui());
	send_to_itself();
}

static volatile int signalled;

static void counts(int signal)
{
	(void)signal;
	signalled++;
}

__attribute__((interrupt, target("general-regs-only")))
static void slow_handler(struct __uintr_frame *frame, unsigned long long number)
{
	(void)frame;
	(void)number;
	/* Signals come meanwhile. */
	for (volatile int i = 0; i < 2000000; i++)
		;
	if (_testui())
		last_vector = -1;
	handled++;
}

static void takes_signals_in_a_handler(void)
{
	struct uintr_receive args = { .handler = (uintptr_t)slow_handler };
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } };

	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = counts }, NULL);
	receiver = call(device, UINTR_RECEIVE, (uintptr_t)&args);
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
	_stui();
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	for (int i = 0; i < 20; i++) {
		_senduipi(0);
		await(i + 1);
	}
	CHECK(last_vector == 0 && signalled > 0);
	CHECK(_testui());
}

const struct life signals[] = {
	{ .name = "a signal's handler runs with UIF shut, and UIF comes back", .run = takes_a_signal },
	{ .name = "a signal's handler runs with UIF open if asked for", .run = takes_a_signal_open },
	{ .name = "a signal without a frame", .run = takes_a_signal_without_a_frame },
	{ .name = "nested signals", .run = nests_signals },
	{ .name = "a jump out of a signal's handler", .run = jumps_out_of_a_signal },
	{ .name = "a receiver is made in a signal's handler", .run = receives_in_a_signal },
	{ .name = "signals in a user interrupt's handler", .run = takes_signals_in_a_handler, .alarms = true },
	{ 0 },
};
