// SPDX-License-Identifier: MIT OR Apache-2.0
/* When a handler runs, and what it leaves alone. */
#include "shared.h"
#include <math.h>

/* All of the processor's kinds of registers are in use where it interrupts, and by it. */
static void uses_everything(unsigned int number, void *argument)
{
	volatile double values[32];
	double sum = 0;
	long double other = 1;

	for (int i = 0; i < 32; i++)
		values[i] = sqrt(i + number);
	for (int i = 0; i < 32; i++)
		sum += values[i] * values[31 - i], other += other / (i + 1);
	if (sum < 0 || other < 0)
		abort();
	errno = 0;
	handler(number, argument);
}

static double work(void)
{
	double a[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	long double b = 1;
	uint64_t n = 1, m = 88172645463325252ull;

	for (int i = 0; i < 20000; i++) {
		for (int k = 0; k < 8; k++)
			a[k] = a[k] * 1.0000001 + 1.0 / (k + 1);
		b = b * 1.0000001L + 0.5L;
		m ^= m << 13, m ^= m >> 7, m ^= m << 17;
		n = n * 31 + m;
	}
	for (int k = 1; k < 8; k++)
		a[0] += a[k];
	return a[0] + (double)b + (double)(n % 1000);
}

static void leaves_registers_alone(void)
{
	double alone = work();
	pthread_t sender;

	begins();
	CHECK(uintr_handle(uses_everything, NULL, 0) == 0);
	own_index = uintr_register_self(5, 0);
	CHECK(own_index >= 0);
	uintr_unmask();
	sender = on_thread(sends_until_enough, NULL);
	await(1);
	errno = ERANGE;
	for (int i = 0; i < 100 || handled < 200; i++)
		CHECK(work() == alone);
	CHECK(errno == ERANGE);
	enough = true;
	CHECK(!pthread_join(sender, NULL));
}

/* What a function without calls keeps below the stack pointer. */
static void leaves_the_red_zone_alone(void)
{
#ifdef __x86_64__
	pthread_t sender;

	receives();
	sender = on_thread(sends_until_enough, NULL);
	for (uint64_t i = 0; i < 100 || handled < 200; i++) {
		uint64_t changed = 0, turns = 20000;

		__asm__ volatile(
			"1:	movq %[mark], -8(%%rsp)\n"
			"	movq %[mark], -64(%%rsp)\n"
			"	movq %[mark], -128(%%rsp)\n"
			"	movq -8(%%rsp), %%rax\n	xorq %[mark], %%rax\n	orq %%rax, %[changed]\n"
			"	movq -64(%%rsp), %%rax\n	xorq %[mark], %%rax\n	orq %%rax, %[changed]\n"
			"	movq -128(%%rsp), %%rax\n	xorq %[mark], %%rax\n	orq %%rax, %[changed]\n"
			"	decq %[turns]\n"
			"	jnz 1b\n"
			: [changed] "+r"(changed), [turns] "+r"(turns)
			: [mark] "r"(0x5a5a5a5a5a5a5a5aull + i)
			: "rax", "memory", "cc");
		CHECK(!changed);
	}
	enough = true;
	CHECK(!pthread_join(sender, NULL));
#else
	skip("there is none");
#endif
}

static void sets_errno(unsigned int number, void *argument)
{
	errno = 0;
	handler(number, argument);
}

static void keeps_what_comes_while_masked(void)
{
	begins();
	CHECK(uintr_handle(sets_errno, NULL, 0) == 0);
	own_index = uintr_register_self(5, 0);
	uintr_unmask();
	uintr_mask();
	CHECK(!uintr_unmasked());
	for (int i = 0; i < 1000; i++)
		uintr_send(own_index);
	passes_some_time();
	CHECK(handled == 0);
	uintr_unmask();
	/* Soon, and what met is one. */
	await(1);
	CHECK(uintr_unmasked());
	passes_some_time();
	CHECK(handled == 1 && last_vector == 5);
	uintr_mask();
	uintr_send(own_index);
	errno = ERANGE;
	uintr_unmask();
	await(2);
	CHECK(errno == ERANGE);
}

static int indices[UINTR_VECTORS], order = UINTR_VECTORS;

static void comes_in_order(unsigned int number, void *argument)
{
	if ((int)number >= order || uintr_unmasked())
		_exit(3);
	order = number;
	handler(number, argument);
}

static void takes_the_highest_first(void)
{
	volatile int seen = 0;

	begins();
	CHECK(uintr_handle(comes_in_order, (void *)&seen, 0) == 0);
	for (int i = 0; i < UINTR_VECTORS; i++) {
		indices[i] = uintr_register_self(i, 0);
		CHECK(indices[i] == i);
	}
	for (int i = 0; i < UINTR_VECTORS; i++)
		uintr_send(indices[i]);
	CHECK(uintr_wait_until(-1, 0) == 0);
	uintr_unmask();
	await(UINTR_VECTORS);
	CHECK(order == 0 && seen == UINTR_VECTORS);
	uintr_mask();
	FAILS(uintr_wait_until(0, 0), ETIMEDOUT);
}

static volatile int depth, deepest;

static void lets_others_through(unsigned int number, void *argument)
{
	if (++depth > deepest)
		deepest = depth;
	if (number == 1) {
		uintr_unmask();
		uintr_send(indices[2]);
		while (deepest < 2)
			sched_yield();
	}
	depth--;
	handler(number, argument);
}

static void may_be_interrupted_itself(void)
{
	begins();
	CHECK(uintr_handle(lets_others_through, NULL, 0) == 0);
	indices[1] = uintr_register_self(1, 0);
	indices[2] = uintr_register_self(2, 0);
	uintr_unmask();
	for (int i = 1; i <= 20; i++) {
		deepest = 0;
		uintr_send(indices[1]);
		await(2 * i);
		CHECK(depth == 0 && uintr_unmasked());
	}
	/* By way of uintr_unmask() as well. */
	uintr_mask();
	deepest = 0;
	uintr_send(indices[1]);
	uintr_unmask();
	await(42);
}

static void may_send_and_mask(unsigned int number, void *argument)
{
	handler(number, argument);
	if (handled < 1000)
		uintr_send(own_index);
	/* Of no effect: its return opens the flag. */
	uintr_mask();
}

static void sends_to_itself_from_the_handler(void)
{
	begins();
	CHECK(uintr_handle(may_send_and_mask, NULL, 0) == 0);
	own_index = uintr_register_self(0, 0);
	uintr_unmask();
	uintr_send(own_index);
	await(1000);
	passes_some_time();
	CHECK(handled == 1000 && uintr_unmasked());
}

static char *alternate;
static volatile bool on_alternate;

static void looks_at_its_stack(unsigned int number, void *argument)
{
	char here;

	on_alternate = &here > alternate && &here < alternate + 65536;
	handler(number, argument);
}

static void takes_an_alternate_stack(void)
{
	begins();
	alternate = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(uintr_handle(looks_at_its_stack, NULL, 0) == 0);
	own_index = uintr_register_self(0, 0);
	FAILS(uintr_alt_stack(alternate, UINTR_HANDLE_STACK_LEAST - 1, 0), EINVAL);
	CHECK(uintr_alt_stack(alternate, 65536, 0) == 0);
	uintr_unmask();
	for (int i = 1; i <= 100; i++) {
		uintr_send(own_index);
		await(i);
		CHECK(on_alternate);
	}
	CHECK(uintr_alt_stack(NULL, 0, 0) == 0);
	uintr_send(own_index);
	await(101);
	CHECK(!on_alternate);
}

static void comes_and_goes(void)
{
	int before;

	FAILS(uintr_handle(handler, NULL, 1), EINVAL);
	begins();
	FAILS(uintr_handle(handler, NULL, 1), EINVAL);
	FAILS(uintr_handle(NULL, NULL, 0), EFAULT);
	before = open_descriptors();
	for (int i = 1; i <= 100; i++) {
		volatile int seen = 0;
		int index;

		CHECK(uintr_handle(handler, (void *)&seen, 0) == 0);
		FAILS(uintr_handle(handler, NULL, 0), EBUSY);
		index = uintr_register_self(i % UINTR_VECTORS, 0);
		CHECK(index == 0);
		uintr_unmask();
		uintr_send(index);
		await(i);
		CHECK(seen == 1);
		CHECK(uintr_unregister_handler(0) == 0);
		/* To who has ended: nothing. */
		uintr_send(index);
		CHECK(uintr_unregister_sender(index, 0) == 0);
	}
	CHECK(open_descriptors() == before);
}

static volatile int refused;

static void tries_to_end_its_receiver(unsigned int number, void *argument)
{
	if (uintr_unregister_handler(0) == -1)
		refused = errno;
	handler(number, argument);
}

static void cannot_end_its_receiver(void)
{
	begins();
	CHECK(uintr_handle(tries_to_end_its_receiver, NULL, 0) == 0);
	own_index = uintr_register_self(0, 0);
	uintr_unmask();
	uintr_send(own_index);
	await(1);
	CHECK(refused == EBUSY);
	CHECK(uintr_unregister_handler(0) == 0);
}

const struct item handlers[] = {
	{ "a handler leaves all registers and errno alone", leaves_registers_alone, 0 },
	{ "a handler leaves the red zone alone", leaves_the_red_zone_alone, 0 },
	{ "what comes while masked is kept, and is one", keeps_what_comes_while_masked, 0 },
	{ "of 64 vectors at once the highest goes first, each once, masked", takes_the_highest_first, 0 },
	{ "a handler that unmasks is interrupted itself", may_be_interrupted_itself, 0 },
	{ "a handler sends to itself, and its return unmasks", sends_to_itself_from_the_handler, 0 },
	{ "a handler runs on a stack of its own", takes_an_alternate_stack, 0 },
	{ "a handler comes and goes", comes_and_goes, 0 },
	{ "a handler cannot end its receiver", cannot_end_its_receiver, 0 },
	{ 0 },
};
