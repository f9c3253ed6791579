// SPDX-License-Identifier: MIT OR Apache-2.0
// N processes or threads that hand over to one another by futex, written by hand: what `doorbell tasks process-futex` and
// `thread-futex` are held against. The same two system calls a hand-off, a ring in place of the queue, no count but the turns.
//
//   hand-off process|thread N Y [CPU]     prints: turns done, nanoseconds a hand-off
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct word {
	_Atomic unsigned value;
	char apart[124];
};

static struct shared {
	struct word ready, finished, home;
	_Atomic unsigned long turns;
} *shared;
static struct word *words;
static unsigned tasks, yields;
static int private_flag;

static void fail(const char *call)
{
	fprintf(stderr, "hand-off: %s failed: %s\n", call, strerror(errno));
	exit(1);
}

static void wake(struct word *word, int number, int flag)
{
	syscall(SYS_futex, &word->value, FUTEX_WAKE | flag, number, NULL, NULL, 0);
}

static void await(struct word *word, unsigned wanted, int flag)
{
	unsigned seen;

	while ((seen = atomic_load_explicit(&word->value, memory_order_acquire)) < wanted)
		syscall(SYS_futex, &word->value, FUTEX_WAIT | flag, seen, NULL, NULL, 0);
}

static void give(unsigned to)
{
	atomic_store_explicit(&words[to].value, 1, memory_order_release);
	wake(&words[to], 1, private_flag);
}

static void take(unsigned own)
{
	await(&words[own], 1, private_flag);
	atomic_store_explicit(&words[own].value, 0, memory_order_relaxed);
}

static void walk(unsigned own)
{
	if (atomic_fetch_add(&shared->ready.value, 1) + 1 == tasks)
		wake(&shared->ready, 1, 0);
	for (unsigned turn = 1; turn <= yields; turn++) {
		unsigned long done;

		take(own);
		done = atomic_load_explicit(&shared->turns, memory_order_relaxed) + 1;
		atomic_store_explicit(&shared->turns, done, memory_order_relaxed);
		if (done == (unsigned long)tasks * yields) {
			atomic_store(&shared->finished.value, 1);
			wake(&shared->finished, 1, 0);
		} else {
			give((own + 1) % tasks);
		}
	}
	await(&shared->home, 1, 0);
}

static void *thread(void *own)
{
	walk((unsigned)(unsigned long)own);
	return NULL;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

/* A whole number from least to most, or no return. */
static unsigned number(const char *text, unsigned long least, unsigned long most)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < least || value > most) {
		fprintf(stderr, "hand-off: '%s' is no number from %lu to %lu\n", text, least, most);
		exit(2);
	}
	return value;
}

int main(int count, char **arguments)
{
	int threads = count > 1 && strcmp(arguments[1], "thread") == 0;
	pthread_t *ids;
	double began, ended;

	if (count < 4) {
		fprintf(stderr, "usage: hand-off process|thread N Y [CPU]\n");
		return 2;
	}
	tasks = number(arguments[2], 2, 100000);
	yields = number(arguments[3], 1, 1000000000);
	if (count > 4) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(number(arguments[4], 0, CPU_SETSIZE - 1), &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			fail("sched_setaffinity");
	}
	shared = map(sizeof(*shared));
	words = map(tasks * sizeof(*words));
	private_flag = threads ? FUTEX_PRIVATE_FLAG : 0;
	ids = calloc(tasks, sizeof(*ids));
	for (unsigned own = 0; own < tasks; own++) {
		if (threads) {
			errno = pthread_create(&ids[own], NULL, thread, (void *)(unsigned long)own);
			if (errno)
				fail("pthread_create");
			continue;
		}
		pid_t driver = getpid(), child = fork();

		if (child < 0)
			fail("fork");
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() == driver)
				walk(own);
			_exit(0);
		}
	}
	await(&shared->ready, tasks, 0);
	// All get to their sleep: they share this CPU, and this process leaves it to them.
	usleep(20000);
	began = now();
	give(0);
	await(&shared->finished, 1, 0);
	ended = now();
	atomic_store(&shared->home.value, 1);
	wake(&shared->home, INT_MAX, 0);
	for (unsigned own = 0; own < tasks; own++) {
		if (threads)
			pthread_join(ids[own], NULL);
		else
			wait(NULL);
	}
	printf("%lu turns, %.1f ns a hand-off\n", atomic_load(&shared->turns),
	       (ended - began) / ((double)tasks * yields));
	return 0;
}
