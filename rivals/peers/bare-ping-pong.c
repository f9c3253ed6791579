// SPDX-License-Identifier: MIT OR Apache-2.0
// Two processes that answer each other through a word each, and nothing else: what `doorbell ping spin` is held against. The
// clock is read once in a thousand round trips.
//
//   bare-ping-pong CPU CPU MILLISECONDS     prints the mean
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 1000
#define OVER UINT32_MAX

// Two lines apart: processors fetch lines in pairs.
struct word {
	_Atomic uint32_t value;
	char apart[124];
};

static struct words {
	struct word there, back;
} *words;

static void must(int succeeded, const char *what)
{
	if (succeeded)
		return;
	fprintf(stderr, "bare-ping-pong: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int pin(pid_t process, const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(strtoul(cpu, NULL, 10), &set);
	return sched_setaffinity(process, sizeof(set), &set) == 0;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

static uint32_t rounds(uint32_t round)
{
	for (uint32_t end = round + BATCH; round < end; round++) {
		atomic_store_explicit(&words->there.value, round, memory_order_release);
		while (atomic_load_explicit(&words->back.value, memory_order_acquire) != round)
			;
	}
	return round;
}

static void answer(void)
{
	uint32_t seen = 0;

	while (seen != OVER) {
		uint32_t value = atomic_load_explicit(&words->there.value, memory_order_acquire);

		if (value != seen)
			atomic_store_explicit(&words->back.value, seen = value, memory_order_release);
	}
}

int main(int count, char **arguments)
{
	uint64_t opened, closes, closed, done = 0;
	uint32_t round = 1;
	pid_t parent = getpid(), child;

	if (count != 4) {
		fprintf(stderr, "usage: bare-ping-pong CPU CPU MILLISECONDS\n");
		return 2;
	}
	words = mmap(NULL, sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(words != MAP_FAILED, "no memory to share");
	must(pin(0, arguments[1]), arguments[1]);
	child = fork();
	must(child >= 0, "cannot fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		// Whoever lost its parent before that line would spin for ever.
		if (getppid() == parent)
			answer();
		return 0;
	}
	must(pin(child, arguments[2]), arguments[2]);
	round = rounds(round);
	opened = now();
	closes = opened + strtoull(arguments[3], NULL, 10) * UINT64_C(1000000);
	do {
		round = rounds(round);
		done += BATCH;
		closed = now();
	} while (closed < closes && round < OVER - 2 * BATCH);
	atomic_store(&words->there.value, OVER);
	waitpid(child, NULL, 0);
	printf("%.2f ns a round trip, %lu round trips\n", (double)(closed - opened) / done, (unsigned long)done);
	return 0;
}
