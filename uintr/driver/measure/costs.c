// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What user interrupts cost, in instructions, where instructions are the guest's
 * clock (--deterministic). `costs`: what every thread pays, with the driver loaded
 * or not. `costs --receivers`: what those pay that use it.
 * Run as root.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86gprintrin.h>

#include <linux/uintr.h>

#include "instructions.h"

/* The low halves of what RDTSC said. */
static volatile uint32_t began, woken;
/* For the handler, which names them. */
volatile uint32_t entered, left;

asm(
"	.text\n"
"handler:\n"
"	pushq %rax\n"
"	pushq %rdx\n"
"	rdtsc\n"
"	movl %eax, entered(%rip)\n"
"	rdtsc\n"
"	movl %eax, left(%rip)\n"
"	popq %rdx\n"
"	popq %rax\n"
"	addq $8, %rsp\n"
"	uiret\n");
extern char handler[];
/* Its own instructions before the first stamp, between both, and behind the second without UIRET. */
#define BEFORE	2
#define BETWEEN	2
#define BEHIND	4

static int device, vectors[2];

static int receive_as(const struct uintr_receive *args)
{
	int receiver = ioctl(device, UINTR_RECEIVE, args);

	if (receiver < 0)
		err(1, "UINTR_RECEIVE");
	return receiver;
}

static int receive(void)
{
	return receive_as(&(struct uintr_receive){ .handler = (uintptr_t)handler, .flags = UINTR_INTERRUPTS });
}

static int vector_of(int receiver)
{
	int vector = ioctl(receiver, UINTR_VECTOR, 0);

	if (vector < 0)
		err(1, "UINTR_VECTOR");
	return vector;
}

static int connect_to(int vector)
{
	int index = ioctl(vector, UINTR_CONNECT, 0);

	if (index < 0)
		err(1, "UINTR_CONNECT");
	return index;
}

static pthread_t start(void *(*body)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, argument))
		err(1, "pthread_create");
	return thread;
}

/* ---- two threads that yield to each other: system call 24 is sched_yield(2) ---- */

static volatile bool end;

static void takes_no_part(void)
{
}

static void only_sends(void)
{
	connect_to(vectors[0]);
}

static void receives(void)
{
	receive();
	_stui();
}

static void *yields(void *part)
{
	on_cpu_0(1);
	((void (*)(void))part)();
	while (!end)
		sched_yield();
	return NULL;
}

static void *switches(void *part)
{
	pthread_t other;

	on_cpu_0(1);
	((void (*)(void))part)();
	end = false;
	other = start(yields, part);
	for (int i = 0; i < 100; i++)
		sched_yield();
	while (n < SAMPLES)
		sample(STAMPED("movl $24, %%eax; syscall", 0));
	end = true;
	pthread_join(other, NULL);
	return NULL;
}

/* ---- a signal ---- */

static void on_signal(int number)
{
	(void)number;
}

static void *signals(void *part)
{
	on_cpu_0(1);
	((void (*)(void))part)();
	signal(SIGUSR1, on_signal);
	while (n < SAMPLES) {
		uint32_t before = stamp();

		raise(SIGUSR1);
		sample(stamp() - before);
	}
	return NULL;
}

/* ---- sender, delivery, return ---- */

static void *posts(void *nothing)
{
	int index = connect_to(vectors[0]);

	on_cpu_0(1);
	while (n < SAMPLES)
		sample(STAMPED("senduipi %2", index));
	return nothing;
}

enum half { DELIVERY, RETURN };

static void *interrupts_itself(void *half)
{
	int index = connect_to(vector_of(receive()));
	uint32_t took;

	on_cpu_0(1);
	_stui();
	while (n < SAMPLES) {
		took = STAMPED("senduipi %2", index);
		sample((intptr_t)half == DELIVERY ? entered - stamped : took - (left - began));
	}
	return NULL;
}

/* ---- waits ---- */

static void *waits_for_nothing(void *nothing)
{
	int receiver = receive(), index = connect_to(vector_of(receiver));
	struct uintr_wait wait = { .deadline = -1 };

	on_cpu_0(1);
	_senduipi(index);
	while (n < SAMPLES) {
		uint32_t before = stamp();

		ioctl(receiver, UINTR_WAIT, &wait);
		sample(stamp() - before);
	}
	return nothing;
}

enum sleep { IN_WAIT, IN_POLL, READING_VECTOR, VECTOR_IN_EPOLL, READING_EVENTFD, EVENTFD_IN_EPOLL };

static int event;

/* Of the higher priority: whoever wakes it is preempted at once. */
static void *sleeps(void *how)
{
	bool polled = (intptr_t)how == READING_VECTOR || (intptr_t)how == VECTOR_IN_EPOLL;
	int receiver = polled ? receive_as(&(struct uintr_receive){ .flags = UINTR_POLLED }) : receive();
	int loop = epoll_create1(EPOLL_CLOEXEC), file;
	struct epoll_event ready = { .events = EPOLLIN };
	struct uintr_wait wait = { .deadline = -1 };
	uint64_t number;

	vectors[1] = vector_of(receiver);
	file = polled ? vectors[1] : event;
	if (((intptr_t)how == VECTOR_IN_EPOLL || (intptr_t)how == EVENTFD_IN_EPOLL) && epoll_ctl(loop, EPOLL_CTL_ADD, file, &ready))
		err(1, "epoll_ctl");
	on_cpu_0(2);
	while (!end) {
		switch ((intptr_t)how) {
		case IN_WAIT:
			ioctl(receiver, UINTR_WAIT, &wait);
			_stui();
			woken = entered;
			_clui();
			break;
		case IN_POLL:
			_stui();
			poll(NULL, 0, -1);
			woken = entered;
			_clui();
			break;
		case VECTOR_IN_EPOLL:
		case EVENTFD_IN_EPOLL:
			if (epoll_wait(loop, &ready, 1, -1) != 1)
				err(1, "epoll_wait");
			/* fallthrough */
		default:
			if (read(file, &number, sizeof(number)) != sizeof(number))
				err(1, "read");
			woken = stamp();
		}
	}
	close(loop);
	/* The others end with their threads. */
	if (polled)
		close(receiver);
	return NULL;
}

static void *wakes(void *how)
{
	bool writes = (intptr_t)how >= READING_EVENTFD;
	uint64_t one = 1;
	pthread_t other;
	int index;

	on_cpu_0(1);
	end = false;
	/* It is ahead of us, and sleeps when this returns. */
	other = start(sleeps, how);
	usleep(100000);
	index = connect_to(vectors[1]);
	while (n < SAMPLES) {
		end = n == SAMPLES - 1;
		woken = began = stamp();
		if (writes && write(event, &one, sizeof(one)) != sizeof(one))
			err(1, "eventfd");
		if (!writes)
			_senduipi(index);
		if (woken == began)
			errx(1, "the waiter was not woken at once");
		sample(woken - began);
	}
	pthread_join(other, NULL);
	ioctl(device, UINTR_DISCONNECT, index);
	close(vectors[1]);
	return NULL;
}

static void measure(const char *name, void *(*body)(void *), void *argument, int beside, int parts)
{
	/* A thread of its own, with which its part ends. */
	pthread_join(start(body, argument), NULL);
	show(name, beside, parts);
}

int main(int argc, char **argv)
{
	calibrate();
	if (argc == 1) {
		measure("a switch, thread without a part", switches, takes_no_part, STAMPS, 2);
		measure("a signal to itself, thread without a part", signals, takes_no_part, STAMPS, 1);
		return 0;
	}
	if (argc > 2 || strcmp(argv[1], "--receivers"))
		errx(2, "usage: costs [--receivers]");
	device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC);
	if (device < 0 || event < 0)
		err(1, UINTR_DEVICE);
	/* It never opens UIF: who sends to it posts and tells nobody. */
	vectors[0] = vector_of(receive());
	measure("a switch, thread without a part", switches, takes_no_part, STAMPS, 2);
	measure("a switch, thread that only sends", switches, only_sends, STAMPS, 2);
	measure("a switch, receiver", switches, receives, STAMPS, 2);
	measure("a signal to itself, thread without a part", signals, takes_no_part, STAMPS, 1);
	measure("a signal to itself, receiver", signals, receives, STAMPS, 1);
	measure("SENDUIPI", posts, NULL, STAMPS, 1);
	measure("SENDUIPI to itself until the handler's first instruction", interrupts_itself, (void *)DELIVERY, STAMPS + BEFORE, 1);
	measure("UIRET", interrupts_itself, (void *)RETURN, STAMPS + BEHIND - 1, 1);
	measure("UINTR_WAIT with a request there", waits_for_nothing, NULL, STAMPS, 1);
	measure("SENDUIPI to a sleeper in UINTR_WAIT until its handler", wakes, (void *)IN_WAIT, STAMPS + BEFORE, 1);
	measure("SENDUIPI to a sleeper in poll until its handler", wakes, (void *)IN_POLL, STAMPS + BEFORE, 1);
	measure("SENDUIPI to a vector until the sleeper's read returned", wakes, (void *)READING_VECTOR, STAMPS, 1);
	measure("write to an eventfd until the sleeper's read returned", wakes, (void *)READING_EVENTFD, STAMPS, 1);
	measure("SENDUIPI to a vector, epoll_wait and read", wakes, (void *)VECTOR_IN_EPOLL, STAMPS, 1);
	measure("write to an eventfd, epoll_wait and read", wakes, (void *)EVENTFD_IN_EPOLL, STAMPS, 1);
	return 0;
}
