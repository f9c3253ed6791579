// SPDX-License-Identifier: MIT OR Apache-2.0
// Two processes that answer each other, and nothing else: what `doorbell ping` is held against. Each writes a number into a word of its
// own; who waits looks at the other's (spin), or sleeps on it (futex), or a byte or a count goes through a pipe or an eventfd each way. The
// clock is read once in a thousand round trips.
//
//   bare-ping-pong spin|futex|eventfd|pipe CPU CPU MILLISECONDS     prints the mean
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

// One direction: its word, and where it has descriptors their reading and writing end.
struct line {
	struct word *word;
	int ends[2];
	size_t bytes;
};

static struct line there, back;

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

static void spin_ring(struct line *line, uint32_t round)
{
	atomic_store_explicit(&line->word->value, round, memory_order_release);
}

static uint32_t spin_wait(struct line *line, uint32_t seen)
{
	uint32_t value;

	do
		value = atomic_load_explicit(&line->word->value, memory_order_acquire);
	while (value == seen);
	return value;
}

static void futex_ring(struct line *line, uint32_t round)
{
	spin_ring(line, round);
	must(syscall(SYS_futex, &line->word->value, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0, "FUTEX_WAKE");
}

static uint32_t futex_wait(struct line *line, uint32_t seen)
{
	uint32_t value;

	while ((value = atomic_load_explicit(&line->word->value, memory_order_acquire)) == seen)
		must(syscall(SYS_futex, &line->word->value, FUTEX_WAIT, seen, NULL, NULL, 0) == 0 || errno == EAGAIN,
		     "FUTEX_WAIT");
	return value;
}

// The word says which round it is: it is seen because the kernel's locks lie between.
static void write_ring(struct line *line, uint32_t round)
{
	uint64_t one = 1;

	spin_ring(line, round);
	must(write(line->ends[1], &one, line->bytes) == (ssize_t)line->bytes, "write");
}

static uint32_t read_wait(struct line *line, uint32_t seen)
{
	uint64_t token;

	(void)seen;
	must(read(line->ends[0], &token, line->bytes) == (ssize_t)line->bytes, "read");
	return atomic_load_explicit(&line->word->value, memory_order_acquire);
}

static int open_pipe(struct line *line)
{
	line->bytes = 1;
	return pipe(line->ends) == 0;
}

static int open_eventfd(struct line *line)
{
	line->bytes = sizeof(uint64_t);
	line->ends[0] = line->ends[1] = eventfd(0, 0);
	return line->ends[0] >= 0;
}

// Each is compiled as a loop of its own.
#define LOOPS(name, ring, wait)                                                          \
	static uint32_t name##_rounds(uint32_t round)                                    \
	{                                                                                \
		for (uint32_t end = round + BATCH; round < end; round++) {               \
			ring(&there, round);                                             \
			must(wait(&back, round - 1) == round, "another round's answer"); \
		}                                                                        \
		return round;                                                            \
	}                                                                                \
                                                                                         \
	static void name##_answer(void)                                                  \
	{                                                                                \
		uint32_t seen = 0;                                                       \
                                                                                         \
		while ((seen = wait(&there, seen)) != OVER)                              \
			ring(&back, seen);                                               \
	}

LOOPS(spin, spin_ring, spin_wait)
LOOPS(futex, futex_ring, futex_wait)
LOOPS(descriptor, write_ring, read_wait)

static const struct way {
	const char *name;
	int (*open)(struct line *line);
	uint32_t (*rounds)(uint32_t round);
	void (*answer)(void);
	void (*ring)(struct line *line, uint32_t round);
} ways[] = {
	{ "spin", NULL, spin_rounds, spin_answer, spin_ring },
	{ "futex", NULL, futex_rounds, futex_answer, futex_ring },
	{ "eventfd", open_eventfd, descriptor_rounds, descriptor_answer, write_ring },
	{ "pipe", open_pipe, descriptor_rounds, descriptor_answer, write_ring },
};

int main(int count, char **arguments)
{
	uint64_t opened, closes, closed, done = 0;
	const struct way *way = NULL;
	uint32_t round = 1;
	pid_t parent = getpid(), child;
	struct word *words;

	for (size_t place = 0; count == 5 && place < sizeof(ways) / sizeof(*ways); place++)
		if (strcmp(ways[place].name, arguments[1]) == 0)
			way = &ways[place];
	if (!way) {
		fprintf(stderr, "usage: bare-ping-pong spin|futex|eventfd|pipe CPU CPU MILLISECONDS\n");
		return 2;
	}
	words = mmap(NULL, 2 * sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(words != MAP_FAILED, "no memory to share");
	there.word = &words[0];
	back.word = &words[1];
	must(!way->open || (way->open(&there) && way->open(&back)), way->name);
	must(pin(0, arguments[2]), arguments[2]);
	child = fork();
	must(child >= 0, "cannot fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		// Whoever lost its parent before that line would wait for ever.
		if (getppid() == parent)
			way->answer();
		return 0;
	}
	must(pin(child, arguments[3]), arguments[3]);
	round = way->rounds(round);
	opened = now();
	closes = opened + strtoull(arguments[4], NULL, 10) * UINT64_C(1000000);
	do {
		round = way->rounds(round);
		done += BATCH;
		closed = now();
	} while (closed < closes && round < OVER - 2 * BATCH);
	way->ring(&there, OVER);
	waitpid(child, NULL, 0);
	printf("%.2f ns a round trip, %lu round trips\n", (double)(closed - opened) / done, (unsigned long)done);
	return 0;
}
