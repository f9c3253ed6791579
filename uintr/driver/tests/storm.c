// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Notifications by the million between threads that are moved about: senders and
 * receivers, in two processes, change CPUs at random and are moved by a third
 * thread; other threads compete for the CPUs, a fifth of the time each; receivers run,
 * wait with and without a time-out, sleep in other system calls, shut UIF; signals hit
 * them; senders post to one receiver in bursts or to all in a round, with gaps of 0 to
 * 10 ms. What takes long is done seldom, so that ten million take minutes.
 *
 * A sender writes a number for a vector, then sends; the handler reads the number.
 * After each burst or round the sender waits until every number of it was seen: a lost
 * notification is one whose number is never seen. With --burst 1 no vector is sent
 * again before it was handled, and the handlers run exactly as often as was sent. With
 * --signals 0 --timeouts 0 nothing but a notification ends a sleep, so that a wake-up
 * that is lost is seen too; else the next signal or time-out would make up for it. Run
 * as root where the driver is loaded: what is left at the end comes from debugfs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86gprintrin.h>

#include <linux/uintr.h>

#include "traffic.h"

/* Vectors of each sender at each receiver; the highest numbers, where shifts go wrong. */
#define LANES		4
#define MOST		16
static struct {
	long count, receivers, senders, load, seed, burst, lanes, gaps, signals, timeouts, moves;
	/* Seconds; nothing is under way that long, whatever else the emulator's host does. */
	long lost_after;
} want = { .count = 100000, .receivers = 3, .senders = 3, .load = 2, .seed = 1, .burst = 64, .lanes = LANES, .gaps = 1, .signals = 1, .timeouts = 1, .moves = 1, .lost_after = 120 };

/* Shared by both processes. */
static struct shared {
	struct lane {
		_Alignas(64) atomic_ulong sent;
		_Alignas(64) atomic_ulong seen;
	} lanes[MOST][MOST][LANES];
	_Alignas(64) atomic_long posted, handled, stale;
	atomic_long running, ready, resting;
	atomic_int tids[2 * MOST];
	atomic_bool end;
	atomic_ulong waits, timed_out, rescued, interrupted, calls, signalled, opened, moved;
} *shared;

static int vectors[MOST][MOST][LANES];

/* ---- receivers ---- */

static __thread int own;
static __thread volatile bool in_signal;

__attribute__((interrupt, target("general-regs-only")))
static void handler(struct __uintr_frame *frame, unsigned long long vector)
{
	int n = 63 - vector;
	struct lane *lane = &shared->lanes[own][n / LANES][n % LANES];

	(void)frame;
	if (in_signal)
		shared->opened++;
	/* Pairs with the release in burst(). */
	atomic_store_explicit(&lane->seen, atomic_load_explicit(&lane->sent, memory_order_acquire), memory_order_release);
	atomic_fetch_add_explicit(&shared->handled, 1, memory_order_relaxed);
}

static void on_signal(int number)
{
	(void)number;
	in_signal = true;
	if (_testui())
		shared->opened++;
	for (volatile int i = 0; i < 1000; i++)
		;
	shared->signalled++;
	in_signal = false;
}

static bool something_to_see(void)
{
	for (int s = 0; s < want.senders; s++)
		for (int l = 0; l < want.lanes; l++)
			if (shared->lanes[own][s][l].sent != shared->lanes[own][s][l].seen)
				return true;
	return false;
}

/* Whether the sleeps of this receiver end by notifications alone. */
static __thread bool endless;

/* With @patience nanoseconds, or for as long as nothing can take. */
static void wait_for_one(int receiver, int64_t patience)
{
	bool patient = patience < 0;
	struct uintr_wait args = { .deadline = endless ? -1 : now() + (patient ? want.lost_after * 1000000000ll : patience) };

	_clui();
	shared->waits++;
	if (ioctl(receiver, UINTR_WAIT, &args) == 0) {
		_stui();
		return;
	}
	if (errno == ETIMEDOUT) {
		shared->timed_out++;
		if (patient && something_to_see())
			shared->rescued++;
	} else if (errno == EINTR) {
		/* The last wait is ended by a signal in any case. */
		shared->interrupted += !shared->end;
	} else {
		fail("UINTR_WAIT: %s", strerror(errno));
	}
	_stui();
}

static void *receive(void *number)
{
	struct uintr_receive args = { .handler = (uintptr_t)handler };
	int device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC), receiver;
	bool patient;

	own = (long)number;
	begin(want.seed, own);
	/* Who never gives up would sleep for ever behind a lost notification. */
	patient = !want.timeouts || own % 2 == 0;
	endless = patient && !want.signals;
	args.flags = endless || own % 2 ? UINTR_INTERRUPTS : 0;
	receiver = ioctl(device, UINTR_RECEIVE, &args);
	if (receiver < 0)
		fail("UINTR_RECEIVE: %s", strerror(errno));
	for (int s = 0; s < want.senders; s++)
		for (int l = 0; l < want.lanes; l++) {
			vectors[own][s][l] = ioctl(receiver, UINTR_VECTOR, 63 - (s * LANES + l));
			if (vectors[own][s][l] < 0)
				fail("UINTR_VECTOR: %s", strerror(errno));
		}
	shared->tids[own] = gettid();
	_stui();
	shared->ready++;
	while (!shared->end) {
		switch (lot(64)) {
		case 0:
			for (volatile uint64_t i = lot(20000); i; i--)
				;
			break;
		case 1:
			if (want.moves)
				shared->moved += move(0);
			break;
		case 2 ... 9:
			/* The shortest way to miss one. */
			_clui();
			for (volatile uint64_t i = lot(200); i; i--)
				;
			_stui();
			break;
		case 10 ... 13:
			sched_yield();
			break;
		case 14 ... 21:
			/* Until a handler ran, or a while for those that go on behind it. */
			poll(NULL, 0, endless ? -1 : patient && own % 4 == 0 ? (int)lot(3) : (int)lot(20));
			shared->calls++;
			break;
		case 22 ... 29:
			nanosleep(&(struct timespec){ endless ? 1000 : 0, lot(100000) }, NULL);
			shared->calls++;
			break;
		default:
			wait_for_one(receiver, patient ? -1 : (int64_t)lot(5000000));
		}
	}
	/* All were seen: quiet until the figures are read. */
	_clui();
	shared->resting++;
	for (;;)
		poll(NULL, 0, -1);
	return NULL;
}

/* ---- senders ---- */

static void await(struct lane *lane, unsigned long number, int r, int s, int l)
{
	if (!comes_to(&lane->seen, number, s % 2, want.lost_after))
		fail("LOST: receiver %d, sender %d, lane %d: %lu sent, %lu seen", r, s, l, number, lane->seen);
}

static void *sender(void *argument)
{
	int s = (long)argument, index[MOST][LANES];

	begin(want.seed, MOST + s);
	shared->tids[MOST + s] = gettid();
	for (int r = 0; r < want.receivers; r++)
		for (int l = 0; l < want.lanes; l++) {
			index[r][l] = ioctl(vectors[r][s][l], UINTR_CONNECT, 0);
			if (index[r][l] < 0)
				fail("UINTR_CONNECT: %s", strerror(errno));
		}
	while (atomic_load_explicit(&shared->posted, memory_order_relaxed) < want.count) {
		long first = lot(want.receivers), rounds = lot(2) ? want.receivers : 1;
		long burst = rounds > 1 ? 1 : 1 + lot(lot(4) && want.burst > 4 ? 4 : want.burst);
		unsigned long last[MOST][LANES] = { 0 };

		for (int i = 0; i < rounds * burst; i++) {
			int r = (first + i / burst) % want.receivers, l = lot(want.lanes);
			struct lane *lane = &shared->lanes[r][s][l];

			last[r][l] = lane->sent + 1;
			atomic_store_explicit(&lane->sent, last[r][l], memory_order_release);
			_senduipi(index[r][l]);
		}
		atomic_fetch_add_explicit(&shared->posted, rounds * burst, memory_order_relaxed);
		for (int r = 0; r < want.receivers; r++)
			for (int l = 0; l < want.lanes; l++)
				await(&shared->lanes[r][s][l], last[r][l], r, s, l);
		if (want.moves && lot(64) == 0)
			shared->moved += move(0);
		if (want.gaps && lot(64) == 0)
			usleep(lot(10000));
	}
	shared->running--;
	return NULL;
}

/* ---- beside them ---- */

static void *competes(void *number)
{
	begin(want.seed, 2 * MOST + (long)number);
	while (!shared->end)
		compete();
	return NULL;
}

static void *disturbs(void *nothing)
{
	begin(want.seed, 4 * MOST);
	while (!shared->end) {
		int who = lot(2) ? lot(want.receivers) : MOST + lot(want.senders), tid = shared->tids[who];

		if (tid && want.moves)
			shared->moved += move(tid);
		if (want.signals && who < MOST && tid && lot(4) == 0)
			syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
		usleep(lot(4000));
	}
	return nothing;
}

/* ---- what is left ---- */

/* How many receivers have a CPU. */
static int armed(void)
{
	FILE *file = open_receivers();
	char line[4096];
	int n = 0;

	while (fgets(line, sizeof(line), file))
		n += figure(line, "armed", 10);
	fclose(file);
	return n;
}

/* The driver's own account balances, and nothing is under way. */
static int audit(void)
{
	FILE *file = open_receivers();
	char line[4096];
	long posted = 0, merged = 0;
	bool counted = false;
	int wrong = 0, n = 0;

	while (fgets(line, sizeof(line), file)) {
		unsigned long low = figure(line, "low", 16);
#define IS(name) figure(line, name, 10)
		bool good = !(low & 1) && !figure(line, "pir", 16) && !figure(line, "uirr", 16) &&
			IS("in") == IS("out") + IS("armed") &&
			IS("slept") == IS("woken") + IS("rose") + IS("asleep") &&
			IS("waits") == IS("served") + IS("timed_out") + IS("signalled") &&
			IS("noticed") == IS("overtaken") + IS("woken") + IS("met") + IS("caught");

		if (strstr(line, " posted ")) {
			counted = true;
			posted += IS("posted");
			merged += IS("merged");
			good = good && IS("posted") == IS("notified") + IS("woke") + IS("covered") + IS("suppressed") &&
				IS("woke") == IS("woken") + IS("met") + IS("caught") &&
				IS("notified") >= IS("overtaken");
		}
		printf("%s%s", good ? "" : "WRONG: ", line);
		wrong += !good;
		n++;
	}
	fclose(file);
	if (n != want.receivers)
		fail("debugfs shows %d receivers of %ld", n, want.receivers);
	/* Two posts that the CPU put together are one run of the handler. */
	if (counted && (posted != shared->posted || shared->handled > posted - merged))
		fail("the driver counts %ld posts, %ld of them merged", posted, merged);
	return wrong;
}

static const struct option options[] = {
	{ "--count", &want.count }, { "--receivers", &want.receivers }, { "--senders", &want.senders },
	{ "--load", &want.load }, { "--seed", &want.seed }, { "--burst", &want.burst }, { "--lanes", &want.lanes }, { "--gaps", &want.gaps },
	{ "--signals", &want.signals }, { "--timeouts", &want.timeouts }, { "--moves", &want.moves },
	{ "--lost-after", &want.lost_after },
	{ 0 },
};

int main(int argc, char **argv)
{
	pthread_t thread;
	int64_t start;
	pid_t child;
	int status;

	read_options(argc - 1, argv + 1, options);
	if (want.receivers < 1 || want.senders < 1 || want.receivers > MOST || want.senders > MOST || want.senders * LANES > 64 ||
	    want.lanes < 1 || want.lanes > LANES)
		fail("1 to %d receivers, 1 to %d senders, 1 to %d lanes", MOST, 64 / LANES, LANES);
	setlinebuf(stdout);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("no memory");
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	shared->running = want.senders;
	for (long r = 0; r < want.receivers; r++)
		pthread_create(&thread, NULL, receive, (void *)r);
	while (shared->ready < want.receivers)
		usleep(1000);
	start = now();
	/* Half of the senders have nothing but the descriptors in common with the receivers. */
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (long s = 1; s < want.senders; s += 2)
			pthread_create(&thread, NULL, sender, (void *)s);
		while (!shared->end)
			usleep(1000);
		_exit(0);
	}
	for (long s = 0; s < want.senders; s += 2)
		pthread_create(&thread, NULL, sender, (void *)s);
	for (long l = 0; l < want.load; l++)
		pthread_create(&thread, NULL, competes, (void *)l);
	pthread_create(&thread, NULL, disturbs, NULL);
	for (long ticks = 1; shared->running; ticks++) {
		usleep(100000);
		if (waitpid(child, &status, WNOHANG))
			fail("the other process ended with status %#x", status);
		if (ticks % 300 == 0)
			printf("%ld of %ld after %ld s\n", shared->posted, want.count, (now() - start) / 1000000000);
	}
	shared->end = true;
	waitpid(child, &status, 0);
	if (status)
		fail("the other process ended with status %#x", status);
	/* Receivers leave their last wait by signals. */
	while (shared->resting < want.receivers) {
		for (int r = 0; r < want.receivers; r++)
			syscall(SYS_tgkill, getpid(), shared->tids[r], SIGUSR1);
		usleep(10000);
	}
	while (armed())
		usleep(10000);
	printf("%ld posted, %ld handled; %lu waits, %lu timed out, %lu interrupted, %lu other calls, %lu signals, %lu moves; %lu rescued by a time-out, %lu handled in a signal's handler\n",
	       shared->posted, shared->handled, shared->waits, shared->timed_out, shared->interrupted, shared->calls, shared->signalled, shared->moved,
	       shared->rescued, shared->opened);
	status = audit();
	if (want.burst == 1 && shared->handled != shared->posted)
		fail("the handlers ran %ld times for %ld", shared->handled, shared->posted);
	if (status || shared->rescued || shared->opened || (!want.signals && shared->interrupted))
		fail("that is wrong");
	printf("none lost\n");
	return 0;
}
