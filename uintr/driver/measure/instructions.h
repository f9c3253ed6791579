/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counts of instructions where they are the guest's clock (--deterministic). Everything is on one CPU, in
 * threads of real-time policy, which the scheduler takes in turn without arithmetic: most samples are the
 * same to the last instruction. Shown are the count that came most often, how often it came, the least and the most.
 */
#ifndef UINTR_MEASURE_INSTRUCTIONS_H
#define UINTR_MEASURE_INSTRUCTIONS_H

#include <err.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES	1000

/* The low half of what RDTSC said, at the last of these: differences are below 2^32. */
static volatile uint32_t stamped;

/* Ticks that the instructions take. They may spoil RAX, RCX, RDX and R11. */
#define STAMPED(instructions, argument) ({ \
	uint32_t before_, after_; \
	asm volatile("rdtsc; movl %%eax, %0; " instructions "; rdtsc; movl %%eax, %1" \
		     : "=&r" (before_), "=&r" (after_) : "r" ((uint64_t)(argument)) \
		     : "rax", "rcx", "rdx", "r11", "cc", "memory"); \
	stamped = before_; \
	after_ - before_; })
/* Of which are the stamps' own: a move and an RDTSC. */
#define STAMPS	2

static inline uint32_t stamp(void)
{
	uint32_t low;

	asm volatile("rdtsc" : "=a" (low) : : "rdx", "memory");
	return low;
}

static uint32_t ticks, samples[SAMPLES];
static int n;

static void sample(uint32_t took)
{
	samples[n++] = took / ticks;
}

static int by_size(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

/* Each sample is @parts times what is meant, and @beside instructions that are not meant. */
static void show(const char *name, int beside, int parts)
{
	int often = 0, most = 0, first = 0;

	qsort(samples, n, sizeof(*samples), by_size);
	for (int i = 0; i < n; i++) {
		if (samples[i] != samples[first])
			first = i;
		if (i - first + 1 > most) {
			most = i - first + 1;
			often = first;
		}
	}
#define EACH(i) (((int)samples[i] - beside) / (double)parts)
	printf("%-58s %8.1f   %3d %% of %d   %.1f to %.1f\n", name, EACH(often), 100 * most / n, n, EACH(0), EACH(n - 1));
	n = 0;
}

/* A hundred instructions more are as many ticks nearly each time, or this clock counts something else. */
static void calibrate(void)
{
	uint32_t least = UINT32_MAX;
	int equal = 0;

	for (int i = 0; i < 100; i++) {
		uint32_t none = STAMPED("", 0), hundred = STAMPED(".rept 100; nop; .endr", 0) - none;

		if (hundred < least) {
			least = hundred;
			equal = 0;
		}
		/* A timer's interrupt comes between now and then. */
		equal += hundred == least && none * 100 == STAMPS * hundred;
	}
	ticks = least / 100;
	if (!ticks || least % 100 || equal < 90)
		errx(1, "instructions are not this machine's clock: a hundred took %u ticks at least, %d times of 100", least, equal);
}

static void on_cpu_0(int priority)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ priority }))
		err(1, "a real-time thread of CPU 0");
}

#endif
