// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a switch costs: two threads of one CPU yield to each other. In a guest whose
 * clock is instructions, at 8 ns each, the figures are counts: the least of many
 * rounds is that without a timer's interrupt. `switches [receiver]`: with a part in
 * user interrupts, or with none. Prints instructions for one yield, switch included.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <x86gprintrin.h>

#include <linux/uintr.h>

#define ROUNDS	400
#define YIELDS	10

static volatile int end;

__attribute__((interrupt, target("general-regs-only")))
static void handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	(void)vector;
}

static void receive(void)
{
	struct uintr_receive args = { .handler = (uintptr_t)handler };

	if (ioctl(open(UINTR_DEVICE, O_RDWR | O_CLOEXEC), UINTR_RECEIVE, &args) < 0)
		err(1, UINTR_DEVICE);
	_stui();
}

static void *other(void *receives)
{
	if (receives)
		receive();
	while (!end)
		sched_yield();
	return NULL;
}

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

int main(int argc, char **argv)
{
	int64_t least = INT64_MAX;
	pthread_t thread;
	cpu_set_t one;

	(void)argv;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		err(1, "sched_setaffinity");
	if (argc > 1)
		receive();
	pthread_create(&thread, NULL, other, argc > 1 ? &least : NULL);
	for (int round = 0; round < ROUNDS; round++) {
		int64_t start = now(), took;

		for (int i = 0; i < YIELDS; i++)
			sched_yield();
		took = now() - start;
		if (took < least)
			least = took;
	}
	end = 1;
	pthread_join(thread, NULL);
	/* The other one's yields lie between ours. */
	printf("%s: %.1f instructions a yield\n", argc > 1 ? "receivers" : "others", least / 8. / YIELDS / 2);
	return 0;
}
