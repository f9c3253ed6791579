// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls the driver in every wrong way, with structure: descriptors of all kinds for
 * each command, arguments at and around their bounds, pointers that are none,
 * several threads, forks, closes at any moment, SENDUIPI with any index:
 * `fuzz CALLS [SEED]`. Meanwhile a bystander, whose vectors are given to nobody,
 * hears nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86gprintrin.h>

#include <linux/uintr.h>

#include "traffic.h"

#define POOL		48
#define THREADS		3
/* Calls of a process before the next takes its place. */
#define LIFE		2000
#define WORKERS		4
/* Of the driver. */
#define COMMANDS	10

static struct shared {
	atomic_long calls, good, sends, processes;
	atomic_bool disturbed, end;
	atomic_long by_command[COMMANDS];
} *shared;

static volatile unsigned long handled;

__attribute__((interrupt, target("general-regs-only")))
static void handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	(void)vector;
	handled++;
}

/* A third of the places for each kind: the device, receivers, vectors. Sometimes another kind gets there. */
static atomic_int pool[POOL];
static char memory[4096];

enum kind { DEVICES, RECEIVERS, VECTORS };

static int place(enum kind kind)
{
	return lot(8) ? kind * (POOL / 3) + lot(POOL / 3) : lot(POOL);
}

static void keep(enum kind kind, int file)
{
	int old = atomic_exchange(&pool[place(kind)], file);

	if (old >= 0)
		close(old);
}

static uint64_t number(void)
{
	static const uint64_t around[] = { 0, 1, 5, 62, 63, 64, 65, 100, 255, 256, 257, 2047, 2048, 4096 };
	uint64_t value = around[lot(sizeof(around) / sizeof(*around))];

	switch (lot(8)) {
	case 0:
		return -value;
	case 1:
		return value << lot(60);
	case 2:
		return state;
	default:
		return value;
	}
}

static uint64_t address(void)
{
	static const uint64_t wrong[] = {
		0, 1, 0xabcd, 0x7ffffffff000, 0x800000000000, 0xff000000000000, 0x100000000000000, 0xffff800000000000,
		0xffffffff81000000, 0xffff888000000000, 0xffffffffff600000, -1ull, -4096ull,
	};

	switch (lot(4)) {
	case 0:
		return wrong[lot(sizeof(wrong) / sizeof(*wrong))];
	case 1:
		return state;
	case 2:
		return (uintptr_t)memory + lot(sizeof(memory));
	default:
		return (uintptr_t)handler;
	}
}

static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t ready;

static void survive(int signal)
{
	if (!ready)
		_exit(100 + signal);
	siglongjmp(back, 1);
}

/* All threads' loop; what is in it is whatever has the descriptor's number. */
static int loop;
/* Theirs too: written to, and given to vectors of any of them. */
static int event;

static void one_call(void)
{
	static const unsigned long commands[] = {
		UINTR_RECEIVE, UINTR_DISCONNECT, UINTR_VECTOR, UINTR_REVOKE, UINTR_WAIT, UINTR_STACK, UINTR_END, UINTR_TIMER, UINTR_EVENTFD, UINTR_CONNECT,
	};
	static const enum kind kinds[] = { DEVICES, DEVICES, RECEIVERS, RECEIVERS, RECEIVERS, RECEIVERS, RECEIVERS, RECEIVERS, RECEIVERS, VECTORS };
	_Static_assert(sizeof(commands) / sizeof(*commands) == COMMANDS, "each is counted");
	union {
		struct uintr_receive receive;
		struct uintr_wait wait;
		struct uintr_timer timer;
		struct uintr_eventfd eventfd;
	} args;
	uint64_t which = lot(COMMANDS), argument;
	int file = pool[place(kinds[which])];
	struct timespec time;
	long result;

	memset(&args, 0, sizeof(args));
	switch (commands[which]) {
	case UINTR_RECEIVE:
	case UINTR_STACK:
		args.receive.handler = lot(16) ? (uintptr_t)handler : address();
		if (lot(3) == 0) {
			args.receive.stack = address();
			args.receive.stack_size = number();
		}
		args.receive.flags = lot(4) ? lot(16) : number();
		if (lot(3) == 0)
			args.receive = (struct uintr_receive){ .flags = UINTR_POLLED };
		args.receive.reserved = lot(16) ? 0 : number();
		argument = (uintptr_t)&args;
		break;
	case UINTR_WAIT:
		/* Never for long. */
		clock_gettime(CLOCK_MONOTONIC, &time);
		args.wait.deadline = lot(4) ? time.tv_sec * 1000000000ll + time.tv_nsec + (int64_t)lot(300000) : (int64_t)lot(1000);
		args.wait.flags = lot(16) ? lot(2) * UINTR_WAIT_FILE : number();
		/* Any file: a receiver's, a vector's, the loop, itself. */
		args.wait.file = !lot(16) ? (int)number() : !args.wait.flags ? 0 : lot(3) ? pool[lot(sizeof(pool) / sizeof(*pool))] : loop;
		argument = (uintptr_t)&args;
		break;
	case UINTR_TIMER:
		args.timer.first = lot(16) ? lot(200000) : number();
		args.timer.period = lot(16) ? lot(200000) : number();
		args.timer.vector = lot(16) ? lot(UINTR_VECTORS) : number();
		args.timer.reserved = lot(16) ? 0 : number();
		argument = (uintptr_t)&args;
		break;
	case UINTR_EVENTFD:
		/* Else any file: a receiver's, a vector's, the loop, itself. */
		args.eventfd.eventfd = lot(4) ? event : lot(4) ? pool[lot(sizeof(pool) / sizeof(*pool))] : (int)number();
		args.eventfd.vector = lot(16) ? lot(UINTR_VECTORS) : number();
		argument = (uintptr_t)&args;
		break;
	default:
		argument = (commands[which] == UINTR_CONNECT || commands[which] == UINTR_END) && lot(8) ? 0 : number();
	}
	if (lot(20) == 0)
		argument = lot(2) ? address() : number();
	result = ioctl(file, lot(30) ? commands[which] : state, argument);
	shared->calls++;
	if (result < 0)
		return;
	shared->good++;
	shared->by_command[which]++;
	if (commands[which] == UINTR_RECEIVE)
		keep(RECEIVERS, result);
	if (commands[which] == UINTR_VECTOR)
		keep(VECTORS, result);
}

static void looks(int file)
{
	static const uint32_t modes[] = { 0, EPOLLET, EPOLLONESHOT, EPOLLEXCLUSIVE, EPOLLEXCLUSIVE | EPOLLET };
	struct epoll_event event = { .events = EPOLLIN | modes[lot(5)] };
	uint64_t value;

	switch (lot(6)) {
	case 0:
		epoll_ctl(loop, lot(4) ? EPOLL_CTL_ADD : lot(2) ? EPOLL_CTL_MOD : EPOLL_CTL_DEL, file, &event);
		break;
	case 1 ... 2:
		epoll_wait(loop, &event, 1, lot(8) ? 0 : 1);
		break;
	default:
		/* Never for long. */
		preadv2(file, &(struct iovec){ &value, lot(8) ? 8 : number() % 16 }, 1, -1, RWF_NOWAIT);
	}
}

static void *calls(void *seed)
{
	state = (uintptr_t)seed;
	for (int i = 0; i < LIFE / THREADS; i++) {
		ready = 1;
		if (sigsetjmp(back, 1))
			continue;
		switch (lot(16)) {
		case 0:
			keep(DEVICES, open(UINTR_DEVICE, O_RDWR | O_CLOEXEC));
			break;
		case 1:
			keep(lot(3), lot(2) ? dup(pool[lot(POOL)]) : eventfd(0, 0));
			break;
		case 2:
			if (lot(4) == 0)
				keep(lot(3), -1);
			break;
		case 3:
			shared->sends++;
			_senduipi(number());
			break;
		case 4:
			shared->sends++;
			_senduipi(lot(8));
			break;
		case 5:
			if (lot(2))
				_stui();
			else
				_clui();
			break;
		case 6:
			poll(&(struct pollfd){ pool[lot(POOL)], POLLIN, 0 }, 1, 0);
			break;
		case 8:
			looks(pool[lot(POOL)]);
			break;
		case 9:
			eventfd_write(event, 1);
			break;
		case 7:
			if (lot(40) == 0 && fork() == 0)
				_exit(ioctl(pool[lot(POOL)], UINTR_CONNECT, 0) < 0);
			break;
		default:
			one_call();
		}
	}
	ready = 0;
	return NULL;
}

static void process(uint64_t seed)
{
	static const int signals[] = { SIGSEGV, SIGILL, SIGBUS };
	pthread_t threads[THREADS];

	signal(SIGCHLD, SIG_IGN);
	/* A handler's address may be anywhere. */
	alarm(60);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &(struct sigaction){ .sa_handler = survive, .sa_flags = SA_NODEFER }, NULL);
	state = seed;
	loop = epoll_create1(EPOLL_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC);
	for (int i = 0; i < POOL; i++)
		pool[i] = i < POOL / 3 ? open(UINTR_DEVICE, O_RDWR | O_CLOEXEC) : -1;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, calls, (void *)(uintptr_t)(seed * 31 + i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* Who has nothing to do with it. */
static void bystander(void)
{
	struct uintr_receive args = { .handler = (uintptr_t)handler };
	int device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC), receiver = ioctl(device, UINTR_RECEIVE, &args);

	for (int i = 0; i < UINTR_VECTORS; i++)
		if (ioctl(receiver, UINTR_VECTOR, i) < 0)
			_exit(1);
	_stui();
	while (!shared->end)
		poll(NULL, 0, 10);
	shared->disturbed = handled != 0;
	_exit(0);
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 0;
	uint64_t seed = argc > 2 ? atol(argv[2]) : 1;
	int status, killed = 0, idle = 0;
	pid_t quiet;

	if (calls < 1) {
		fprintf(stderr, "usage: fuzz CALLS [SEED]\n");
		return 2;
	}
	/* Cores of those that jumped anywhere are of no use. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	quiet = fork();
	if (!quiet)
		bystander();
	for (int alive = 0; shared->calls < calls || alive;) {
		while (shared->calls < calls && alive < WORKERS) {
			if (!fork())
				process(seed * 1000003 + shared->processes * 7 + 1);
			shared->processes++;
			alive++;
		}
		if (wait(&status) == quiet) {
			fprintf(stderr, "fuzz: the bystander ended with status %#x\n", status);
			return 1;
		}
		alive--;
		killed += WIFSIGNALED(status) || WEXITSTATUS(status) > 100;
	}
	shared->end = true;
	waitpid(quiet, &status, 0);
	printf("%ld calls, %ld of them good (", shared->calls, shared->good);
	for (int i = 0; i < COMMANDS; i++)
		printf("%s%ld", i ? " " : "", shared->by_command[i]);
	printf("), %ld sends, %ld processes, %d of them killed\n", shared->sends, shared->processes, killed);
	for (int i = 0; i < COMMANDS; i++)
		idle += !shared->by_command[i];
	/* Of a few thousand some are good, of a hundred thousand some of each command. */
	if (!shared->good || !shared->sends || (calls >= 100000 && idle) || 2 * killed > shared->processes) {
		fprintf(stderr, "fuzz: that tries too little\n");
		return 1;
	}
	if (status || shared->disturbed) {
		fprintf(stderr, "fuzz: the bystander was disturbed, or ended with status %#x\n", status);
		return 1;
	}
	printf("the bystander heard nothing\n");
	return 0;
}
