// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes that send and receive are killed, exit, or execute another program in
 * the middle of their traffic, again and again: `deaths NUMBER [SEED]`. The survivor
 * goes on, and is told of each death by POLLHUP.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86gprintrin.h>

#include <linux/uintr.h>

#include "traffic.h"

/* Alive at a time. */
#define TOGETHER	4
/* Seconds from one word of how far it is to the next: a slow guest looks like one that stands still. */
#define TOLD_EVERY	30
/* No death is under way that long, whatever else the emulator's host does. */
#define LOST_AFTER	300

static volatile unsigned long handled;

__attribute__((interrupt, target("general-regs-only")))
static void handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	(void)vector;
	handled++;
}

#define CHECK(statement) \
	do { \
		if (!(statement)) { \
			fprintf(stderr, "deaths.c:%d: %s (errno %d)\n", __LINE__, #statement, errno); \
			_exit(1); \
		} \
	} while (0)

static int device, own_vector;

static int receiver_new(int *vector)
{
	struct uintr_receive args = { .handler = (uintptr_t)handler };
	int receiver = ioctl(device, UINTR_RECEIVE, &args);

	CHECK(receiver >= 0);
	*vector = ioctl(receiver, UINTR_VECTOR, 63);
	CHECK(*vector >= 0);
	return receiver;
}

/* Sends or takes the descriptor of a vector. */
static void pass(int door, int *vector, ssize_t (*by)(int, struct msghdr *, int))
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };

	*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), vector, sizeof(int));
	CHECK(by(door, &message, 0) == 1);
	memcpy(vector, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
}

static ssize_t send_it(int door, struct msghdr *message, int flags)
{
	return sendmsg(door, message, flags);
}

static ssize_t take_it(int door, struct msghdr *message, int flags)
{
	return recvmsg(door, message, flags);
}

static int to_parent;

/* Without end, and with rests: whoever is sent to is to get on as well. */
static void *sends(void *nothing)
{
	for (;;) {
		for (int i = 0; i < 1000; i++)
			_senduipi(to_parent);
		usleep(500);
	}
	return nothing;
}

static void executes(int number)
{
	(void)number;
	execl("/proc/self/exe", "deaths", "--nothing", NULL);
	_exit(1);
}

/* Receives, sends, sleeps, until something ends it. */
static void child(int door, uint64_t seed)
{
	struct uintr_wait wait = { .deadline = -1 };
	pthread_t thread;
	int receiver, vector;

	state = seed;
	signal(SIGUSR1, executes);
	receiver = receiver_new(&vector);
	to_parent = ioctl(own_vector, UINTR_CONNECT, 0);
	CHECK(to_parent >= 0);
	pass(door, &vector, send_it);
	close(door);
	_stui();
	if (lot(4) == 0)
		CHECK(!pthread_create(&thread, NULL, sends, NULL));
	for (;;) {
		switch (lot(5)) {
		case 0:
			_clui();
			wait.deadline = lot(2) ? -1 : (int64_t)lot(1000000);
			ioctl(receiver, UINTR_WAIT, &wait);
			_stui();
			break;
		case 1:
			poll(NULL, 0, lot(3));
			break;
		case 2:
			for (uint64_t i = lot(100); i; i--)
				_senduipi(to_parent);
			break;
		case 3:
			if (lot(200) == 0)
				exit(0);
			break;
		default:
			for (volatile uint64_t i = lot(5000); i; i--)
				;
		}
	}
}

static struct victim {
	pid_t pid;
	int vector, index;
} victims[TOGETHER];

/* For whom the survivor waits, and for what. */
static volatile struct {
	const char *what;
	pid_t whom;
} doing;

static void does(const char *what, pid_t whom)
{
	doing.what = what;
	doing.whom = whom;
	alarm(LOST_AFTER);
}

/* Copies a file of /proc to the standard error. */
static void show(pid_t process, pid_t thread, const char *name)
{
	char text[4096];
	ssize_t length;
	int file;

	snprintf(text, sizeof(text), "/proc/%d/task/%d/%s", process, thread, name);
	fprintf(stderr, "%s:\n", text);
	file = open(text, O_RDONLY);
	while ((length = read(file, text, sizeof(text))) > 0)
		fwrite(text, 1, length, stderr);
	close(file);
}

/* Says where everybody stands, in a process that does nothing else any more. */
static void stands_still(int signal)
{
	static const char *const files[] = { "status", "stack", "wchan", "syscall" };
	pid_t processes[] = { getpid(), doing.whom };
	char path[64];

	(void)signal;
	fprintf(stderr, "deaths: for %d s the survivor (%d) %s %d\n", LOST_AFTER, getpid(), doing.what, doing.whom);
	for (int i = 0; i < 2; i++) {
		struct dirent *entry;
		DIR *folder;

		snprintf(path, sizeof(path), "/proc/%d/task", processes[i]);
		folder = opendir(path);
		while (folder && (entry = readdir(folder)))
			for (int f = 0; entry->d_name[0] != '.' && f < 4; f++)
				show(processes[i], atoi(entry->d_name), files[f]);
	}
	_exit(1);
}

static void is_born(struct victim *victim)
{
	int ends[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	victim->pid = fork();
	CHECK(victim->pid >= 0);
	if (!victim->pid) {
		close(ends[0]);
		child(ends[1], state + getpid());
	}
	close(ends[1]);
	does("waits for the vector of", victim->pid);
	pass(ends[0], &victim->vector, take_it);
	close(ends[0]);
	victim->index = ioctl(victim->vector, UINTR_CONNECT, 0);
	/* It may be over already. */
	CHECK(victim->index >= 0 || errno == ESHUTDOWN);
}

static void dies(struct victim *victim)
{
	int status, told;

	switch (lot(3)) {
	case 0:
		break;
	case 1:
		kill(victim->pid, SIGUSR1);
		break;
	default:
		kill(victim->pid, SIGKILL);
	}
	/* Who was left alone is killed some time later, in the middle of this. */
	for (int i = 0; victim->index >= 0 && i < 200; i++)
		_senduipi(victim->index);
	kill(victim->pid, SIGKILL);
	does("waits for the end of", victim->pid);
	CHECK(waitpid(victim->pid, &status, 0) == victim->pid);
	does("waits to be told of the end of", victim->pid);
	do
		told = poll(&(struct pollfd){ victim->vector, 0, 0 }, 1, -1);
	while (told < 0 && errno == EINTR);
	CHECK(told == 1);
	does("goes on after", victim->pid);
	for (int i = 0; victim->index >= 0 && i < 10; i++)
		_senduipi(victim->index);
	CHECK(victim->index < 0 || ioctl(device, UINTR_DISCONNECT, victim->index) == 0);
	close(victim->vector);
}

int main(int argc, char **argv)
{
	long number = argc > 1 ? atol(argv[1]) : 0;
	unsigned long before;
	time_t start, told;
	int receiver, index;

	if (argc == 2 && !strcmp(argv[1], "--nothing"))
		return 0;
	if (number < 1) {
		fprintf(stderr, "usage: deaths NUMBER [SEED]\n");
		return 2;
	}
	state = argc > 2 ? atol(argv[2]) : 1;
	signal(SIGALRM, stands_still);
	setlinebuf(stdout);
	device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC);
	CHECK(device >= 0);
	receiver = receiver_new(&own_vector);
	/* The survivor's own; children that are made meanwhile have UIF shut. */
	_stui();
	for (int i = 0; i < TOGETHER; i++)
		is_born(&victims[i]);
	start = told = time(NULL);
	for (long i = 0; i < number; i++) {
		struct victim *victim = &victims[lot(TOGETHER)];

		for (uint64_t sends = lot(500); victim->index >= 0 && sends; sends--)
			_senduipi(victim->index);
		if (lot(2))
			poll(NULL, 0, lot(4));
		dies(victim);
		is_born(victim);
		if (time(NULL) - told >= TOLD_EVERY) {
			told = time(NULL);
			printf("%ld of %ld deaths after %ld s\n", i + 1, number, (long)(told - start));
		}
	}
	for (int i = 0; i < TOGETHER; i++)
		dies(&victims[i]);
	/* It still hears. */
	does("listens, after", 0);
	before = handled;
	index = ioctl(own_vector, UINTR_CONNECT, 0);
	CHECK(index >= 0);
	_senduipi(index);
	while (handled == before)
		;
	printf("%ld deaths, and the survivor was told of each; it handled %lu\n", number + TOGETHER, handled);
	close(receiver);
	return 0;
}
