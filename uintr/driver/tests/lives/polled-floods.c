// SPDX-License-Identifier: MIT OR Apache-2.0
/* What senders can take of the CPU of a loop, and of those that sleep with a handler. */
#include "polled.h"

#define FLOODED		64

static volatile bool flood_ends;
static volatile uint64_t flooded, worked;

static void *floods(void *on)
{
	runs_on((long)on);
	for (; !flood_ends; flooded++)
		for (int index = 0; index < FLOODED; index++)
			_senduipi(index);
	return NULL;
}

/* Keeps the CPU from being idle, where it would need no tick. */
static void *works(void *on)
{
	runs_on((long)on);
	while (!flood_ends)
		worked++;
	return NULL;
}

/* How often receivers were throttled, as only root is told; 0 where nobody is. */
static unsigned long throttled(void)
{
	static const char path[] = "/sys/kernel/debug/uintr/receivers";
	unsigned long all = 0;
	char line[1024];
	FILE *file;

	if (geteuid())
		return 1;
	file = fopen(path, "r");
	if (!file)
		skip("there is no /sys/kernel/debug/uintr/receivers");
	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, " throttled ");

		all += at ? strtoul(at + strlen(" throttled "), NULL, 10) : 0;
	}
	fclose(file);
	return all;
}

/* CPU 1 has its tick and gets on with its work, whatever is sent there from CPU 2. */
static void gets_on_in_a_flood(void)
{
	uint64_t before;
	long ticks;

	runs_on(0);
	on_thread(works, (void *)1);
	on_thread(floods, (void *)2);
	while (flooded < 1000)
		sched_yield();
	ticks = interrupts_of("LOC:", 1);
	before = worked;
	while (flooded < 5000 || interrupts_of("LOC:", 1) < ticks + 100 || worked == before)
		sched_yield();
}

/*
 * A sender needs one instruction for each interrupt, whose vector comes before the
 * timer's: the CPU whose loop it keeps busy goes on, and none that it sends last is lost.
 */
static void a_flood_leaves_the_cpu_its_tick(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET }, told[FLOODED];
	int loop = epoll_create1(0), files[FLOODED], seen = 0;
	uint64_t number;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 3)
		skip("there are fewer than three CPUs");
	CHECK(loop >= 0);
	runs_on(1);
	for (int i = 0; i < FLOODED; i++) {
		int each = polled();

		CHECK(each >= 0);
		files[i] = call(each, UINTR_VECTOR, 5 | UINTR_NONBLOCK);
		CHECK(files[i] >= 0 && call(files[i], UINTR_CONNECT, 0) == i);
		event.data.fd = i;
		CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, files[i], &event));
	}
	gets_on_in_a_flood();
	while (!throttled())
		sched_yield();
	flood_ends = true;
	/* Everything that was sent was noticed before this is over, or is noticed now. */
	for (int i = 0; i < FLOODED; i++)
		while (read(files[i], &number, sizeof(number)) == sizeof(number))
			;
	while (epoll_wait(loop, told, FLOODED, 0) > 0)
		;
	for (int i = 0; i < FLOODED; i++)
		_senduipi(i);
	while (seen < FLOODED) {
		int n = epoll_wait(loop, told, FLOODED, -1);

		CHECK(n > 0);
		for (int i = 0; i < n; i++)
			seen += read(files[told[i].data.fd], &number, sizeof(number)) == sizeof(number);
	}
}

static volatile int vector_of[FLOODED];
static volatile uint64_t woken[FLOODED];

static void *sleeps_over_and_over(void *number)
{
	long own = (long)number, file;

	runs_on(1);
	file = receive(0);
	CHECK(file >= 0);
	vector_of[own] = call(file, UINTR_VECTOR, 5);
	CHECK(vector_of[own] > 0);
	for (;;) {
		_clui();
		CHECK(wait_until(file, -1) == 0);
		_stui();
		woken[own]++;
	}
	return NULL;
}

/* One interrupt for each sleep, to which a thread comes back by the scheduler's leave alone. */
static void a_flood_of_sleepers_does_too(void)
{
	uint64_t before;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 3)
		skip("there are fewer than three CPUs");
	for (long i = 0; i < FLOODED; i++) {
		on_thread(sleeps_over_and_over, (void *)i);
		while (!vector_of[i])
			sched_yield();
		CHECK(call(vector_of[i], UINTR_CONNECT, 0) == i);
	}
	gets_on_in_a_flood();
	flood_ends = true;
	for (int i = 0; i < FLOODED; i++) {
		before = woken[i];
		_senduipi(i);
		while (woken[i] == before)
			sched_yield();
	}
}

const struct life polled_floods[] = {
	{ .name = "a flood of sleepers leaves the CPU its tick", .run = a_flood_of_sleepers_does_too },
	{ .name = "a flood leaves the CPU its tick", .run = a_flood_leaves_the_cpu_its_tick },
	{ 0 },
};
