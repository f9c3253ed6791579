/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What programs have in common that send and wait by the million: how they fail, the
 * time, chance, threads that change CPUs and compete for them, what the driver's account
 * says, options. Each is one source file.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((noreturn, format(printf, 1, 2)))
static inline void fail(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	_exit(1);
}

static inline int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

/* Of a thread, and never 0. */
static __thread uint64_t state = 1;

/* xorshift64, below @n */
static inline uint64_t lot(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

/* Each of the threads @who has chances of its own. */
static inline void begin(long seed, int who)
{
	state = seed * 0x9e3779b97f4a7c15ull + who + 1;
	for (int i = 0; i < 16; i++)
		lot(2);
}

/* Onto one CPU, or some, or all; whether it was. */
static inline bool move(int tid)
{
	static int cpus;
	cpu_set_t set;

	if (!cpus)
		cpus = sysconf(_SC_NPROCESSORS_CONF);
	CPU_ZERO(&set);
	for (int cpu = 0; cpu < cpus; cpu++)
		if (lot(2))
			CPU_SET(cpu, &set);
	if (lot(2) || !CPU_COUNT(&set)) {
		CPU_ZERO(&set);
		CPU_SET(lot(cpus), &set);
	}
	/* A CPU may be off-line, and a thread gone. */
	return !sched_setaffinity(tid, sizeof(set), &set);
}

/*
 * Until @seen is @number. False: it was waited for in vain for so many seconds, of which those do
 * not count in which the machine stood still: a look counts for 10 ms at most.
 */
static inline bool comes_to(const atomic_ulong *seen, unsigned long number, bool yields, long seconds)
{
	int64_t last = now(), waited = 0;

	for (unsigned long spins = 1; atomic_load_explicit(seen, memory_order_acquire) < number; spins++) {
		int64_t gap;

		if (spins % 256)
			continue;
		/* Half of them leave the CPU to whom they wait for. */
		if (yields)
			sched_yield();
		else
			usleep(lot(100));
		gap = now() - last;
		last += gap;
		waited += gap < 10000000 ? gap : 10000000;
		if (waited > seconds * 1000000000ll)
			return atomic_load_explicit(seen, memory_order_acquire) >= number;
	}
	return true;
}

/* A fifth of a CPU, in pieces of up to 1 ms. */
static inline void compete(void)
{
	int64_t end = now() + lot(1000000);

	while (now() < end)
		;
	usleep(lot(4000));
}

static inline FILE *open_receivers(void)
{
	static const char path[] = "/sys/kernel/debug/uintr/receivers";
	FILE *file = fopen(path, "r");

	if (!file)
		fail("%s: %s", path, strerror(errno));
	return file;
}

/* What a line of it says of @name. */
static inline unsigned long figure(const char *line, const char *name, int base)
{
	char wanted[32];
	const char *found;

	snprintf(wanted, sizeof(wanted), " %s ", name);
	found = strstr(line, wanted);
	if (!found)
		fail("debugfs has no %s in: %s", name, line);
	return strtoul(found + strlen(wanted), NULL, base);
}

struct option {
	const char *name;
	long *value;
};

/* Each is two words; the last of @options has no name. */
static inline void read_options(int count, char **words, const struct option *options)
{
	const struct option *option;

	for (; count > 0; count -= 2, words += 2) {
		for (option = options; option->name && strcmp(words[0], option->name); option++)
			;
		if (option->name && count > 1) {
			*option->value = atol(words[1]);
			continue;
		}
		fprintf(stderr, "usage: %s [OPTION NUMBER]..., and the options are", program_invocation_short_name);
		for (option = options; option->name; option++)
			fprintf(stderr, " %s [%ld]", option->name, *option->value);
		fprintf(stderr, "\n");
		exit(2);
	}
}

#endif
