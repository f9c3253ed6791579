// SPDX-License-Identifier: MIT OR Apache-2.0
/* A thread's own timer: it comes to who runs, waits and sleeps, and to nobody behind its end. Nothing is asserted on how late. */
#include "shared.h"
#include <sys/epoll.h>

#define MILLISECOND	1000000ull

enum { TICK = 9 };

static void passes_some_turns(void)
{
	for (int turns = 0; turns < 50000; turns++)
		__asm__ volatile("" : : : "memory");
}

static void begins_a_timer(uint64_t first, uint64_t period)
{
	receives();
	CHECK(uintr_timer(TICK, first, period) == 0);
}

static void comes_to_who_runs(void)
{
	int64_t start = now();

	begins_a_timer(MILLISECOND, MILLISECOND);
	/* Without a call. */
	await(20);
	CHECK(last_vector == TICK && now() >= start + 20 * (int64_t)MILLISECOND && uintr_unmasked());
	/* At other times, and once: by a lower vector, before which a tick that is pending is handled. */
	uintr_mask();
	CHECK(uintr_timer(TICK - 1, MILLISECOND, 0) == 0);
	uintr_unmask();
	while (last_vector != TICK - 1)
		;
	handled = 0;
	passes_some_time();
	CHECK(handled == 0);
}

static void stops(void)
{
	begins_a_timer(MILLISECOND, MILLISECOND);
	await(2);
	CHECK(uintr_timer(0, 0, 0) == 0);
	handled = 0;
	passes_some_time();
	CHECK(handled == 0);
	/* Before it came at all. */
	CHECK(uintr_timer(TICK, 1000000 * MILLISECOND, 0) == 0 && uintr_timer(TICK, 0, 0) == 0);
	CHECK(handled == 0);
}

/* How often an expiry was late by less than 2^n ns, for who ran and for who waited. */
enum found { RAN, WAITED, FOUND };
static unsigned int late[FOUND][64];
static volatile int64_t due, came;

static void looks_at_the_clock(unsigned int number, void *argument)
{
	came = now();
	handler(number, argument);
}

/* In octaves of time. */
static void tells_how_late(const char *name, const unsigned int *late)
{
	static const struct { const char *name; double part; } quantiles[] = { { "half", 0.5 }, { "99 %", 0.99 }, { "99.9 %", 0.999 }, { "all", 1 } };
	unsigned int total = 0, below = 0, q = 0;

	for (int n = 0; n < 64; n++)
		total += late[n];
	printf("# late, of %u that found it %s:", total, name);
	for (int n = 0; n < 64; n++) {
		below += late[n];
		for (; total && q < 4 && below >= quantiles[q].part * total; q++)
			printf("%s %s by less than %.1f us", q ? "," : "", quantiles[q].name, (double)(1ull << n) / 1000);
	}
	printf("\n");
}

/* Each is due when the last was handled: one that is lost stands still. */
static void comes_each_time(void)
{
	uint64_t random = 88172645463325252ull;

	begins();
	CHECK(uintr_handle(looks_at_the_clock, NULL, 0) == 0);
	uintr_unmask();
	for (int i = 1; i <= times; i++) {
		uint64_t first;
		int how;

		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		first = UINTR_TIMER_LEAST + random % 50000;
		how = random >> 32 & 3;
		due = now() + first;
		CHECK(uintr_timer(TICK, first, 0) == 0);
		switch (how) {
		case 0:
			uintr_mask();
			while (handled < i && uintr_wait_until(-1, 0))
				CHECK(errno == EINTR);
			uintr_unmask();
			break;
		case 1:
			uintr_mask();
			passes_some_turns();
			uintr_unmask();
			break;
		case 2:
			sched_yield();
		}
		await(i);
		CHECK(came >= due);
		if (how != 1)
			late[how ? RAN : WAITED][64 - __builtin_clzll((came - due) | 1)]++;
	}
	CHECK(handled == times);
	tells_how_late("running", late[RAN]);
	tells_how_late("waiting", late[WAITED]);
}

static void is_kept_while_masked(void)
{
	receives();
	uintr_mask();
	CHECK(uintr_timer(TICK, MILLISECOND, MILLISECOND) == 0);
	while (uintr_wait_until(-1, 0))
		CHECK(errno == EINTR);
	passes_some_time();
	CHECK(handled == 0);
	CHECK(uintr_timer(TICK, 0, 0) == 0);
	uintr_unmask();
	await(1);
	passes_some_time();
	CHECK(handled == 1);
}

static void ends_sleeps(void)
{
	int loop = epoll_create1(0);
	struct epoll_event event;

	receives();
	uintr_mask();
	CHECK(uintr_timer(TICK, MILLISECOND, 0) == 0);
	while (uintr_wait_until(-1, 0))
		CHECK(errno == EINTR);
	CHECK(handled == 0);
	uintr_unmask();
	await(1);
	uintr_mask();
	CHECK(uintr_timer(TICK, MILLISECOND, 0) == 0);
	FAILS(uintr_epoll_wait(loop, &event, 1, -1), EINTR);
	uintr_unmask();
	await(2);
	/* Due before the look, between look and sleep, and behind: a period comes by all of them. */
	CHECK(uintr_timer(TICK, UINTR_TIMER_LEAST, 3 * UINTR_TIMER_LEAST) == 0);
	for (int i = 3; i < 300; i++) {
		uintr_mask();
		while (handled < i) {
			FAILS(uintr_epoll_wait(loop, &event, 1, -1), EINTR);
			uintr_unmask();
			uintr_mask();
		}
		uintr_unmask();
	}
	/* Again and again: the first may come before the sleep. */
	CHECK(uintr_timer(TICK, MILLISECOND, MILLISECOND) == 0);
	FAILS(nanosleep(&(struct timespec){ 1000, 0 }, NULL), EINTR);
}

static void *runs_with_a_timer(void *count)
{
	volatile int own = 0;

	CHECK(uintr_handle(handler, (void *)&own, 0) == 0);
	CHECK(uintr_timer(TICK, MILLISECOND, MILLISECOND) == 0);
	uintr_unmask();
	while (own < 20)
		;
	__atomic_add_fetch((int *)count, 1, __ATOMIC_RELAXED);
	CHECK(uintr_unregister_handler(0) == 0);
	return NULL;
}

static void is_each_threads_own(void)
{
	pthread_t threads[6];
	int count = 0;

	begins();
	for (int i = 0; i < 6; i++)
		threads[i] = on_thread(runs_with_a_timer, &count);
	for (int i = 0; i < 6; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(count == 6);
}

static void in_a_child(void)
{
	int before = handled;

	passes_some_time();
	CHECK(handled == before);
}

static void ends_with_its_receiver(void)
{
	begins_a_timer(MILLISECOND, MILLISECOND);
	await(2);
	CHECK(ends_well(on_child(in_a_child)));
	CHECK(uintr_unregister_handler(0) == 0);
	handled = 0;
	CHECK(uintr_handle(handler, NULL, 0) == 0);
	uintr_unmask();
	passes_some_time();
	CHECK(handled == 0);
}

static void is_wrong(void)
{
	FAILS(uintr_timer(TICK, MILLISECOND, 0), EINVAL);
	begins();
	FAILS(uintr_timer(TICK, MILLISECOND, 0), EINVAL);
	receives();
	FAILS(uintr_timer(UINTR_VECTORS, MILLISECOND, 0), EINVAL);
	FAILS(uintr_timer(TICK, UINTR_TIMER_LEAST - 1, 0), EINVAL);
	FAILS(uintr_timer(TICK, MILLISECOND, 1), EINVAL);
	FAILS(uintr_timer(TICK, INT64_MAX, 0), EINVAL);
	CHECK(uintr_timer(TICK, 0, 0) == 0);
	CHECK(handled == 0);
}

const struct item timers[] = {
	{ "a timer comes to who runs, again and again, and once", comes_to_who_runs, 0 },
	{ "a timer stops", stops, 0 },
	{ "each expiry of a timer comes", comes_each_time, 0 },
	{ "a timer's expiries while masked are kept, and are one", is_kept_while_masked, 0 },
	{ "a timer ends waits and system calls", ends_sleeps, 0 },
	{ "each of more threads than CPUs has its timer", is_each_threads_own, 0 },
	{ "a timer ends with its receiver, and no child has it", ends_with_its_receiver, 0 },
	{ "a timer is told what is wrong", is_wrong, 0 },
	{ 0 },
};
