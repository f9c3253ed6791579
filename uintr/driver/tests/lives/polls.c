// SPDX-License-Identifier: MIT OR Apache-2.0
/* Receivers without a handler: by which calls what is sent to them is read and polled. */
#include "polled.h"
#include <sys/select.h>

static void reads(void)
{
	uint64_t number;

	is_polled(UINTR_NONBLOCK);
	CHECK(empty(vector));
	CHECK(read(vector, &number, 7) == -1 && errno == EINVAL);
	CHECK(write(vector, &number, 8) == -1 && errno == EINVAL);
	/* Nobody looks: two that are sent are one. */
	_senduipi(0);
	_senduipi(0);
	CHECK(read_of(vector) == 1 && empty(vector));
	CHECK(!fcntl(vector, F_SETFL, 0));
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(read_of(vector) == 1);
		hears();
	}
}

/* An edge for each notice, also where nobody reads; and the count of them. */
static void is_told_by_edges(void)
{
	int loop;

	is_polled(UINTR_NONBLOCK);
	loop = loop_with(vector, EPOLLIN | EPOLLET);
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(ready(loop, -1) == 1);
		hears();
	}
	CHECK(ready(loop, 0) == 0);
	CHECK(read_of(vector) == ROUNDS && empty(vector));
}

static void is_a_semaphore(void)
{
	int loop;

	is_polled(UINTR_NONBLOCK | UINTR_SEMAPHORE);
	loop = loop_with(vector, EPOLLIN | EPOLLET);
	for (int i = 0; i < 3; i++) {
		_senduipi(0);
		CHECK(ready(loop, -1) == 1);
	}
	for (int i = 0; i < 3; i++)
		CHECK(read_of(vector) == 1);
	CHECK(empty(vector));
}

static void is_told_by_level(void)
{
	int loop;

	is_polled(UINTR_NONBLOCK);
	loop = loop_with(vector, EPOLLIN);
	CHECK(ready(loop, 0) == 0);
	_senduipi(0);
	for (int i = 0; i < 3; i++)
		CHECK(ready(loop, -1) == 1);
	CHECK(read_of(vector) == 1);
	CHECK(ready(loop, 0) == 0);
	/* Sent before the loop knew of it, and before anybody could be interrupted. */
	CHECK(!epoll_ctl(loop, EPOLL_CTL_DEL, vector, NULL));
	_senduipi(0);
	_senduipi(0);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, vector, &(struct epoll_event){ .events = EPOLLIN, .data.fd = vector }));
	CHECK(ready(loop, -1) == 1);
	CHECK(read_of(vector) >= 1 && empty(vector));
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(ready(loop, -1) == 1);
		CHECK(read_of(vector) == 1);
		hears();
	}
}

static void is_told_once(void)
{
	int loop;

	is_polled(UINTR_NONBLOCK);
	loop = loop_with(vector, EPOLLIN | EPOLLONESHOT);
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(ready(loop, -1) == 1);
		CHECK(ready(loop, 0) == 0);
		CHECK(read_of(vector) == 1);
		CHECK(!epoll_ctl(loop, EPOLL_CTL_MOD, vector, &(struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT, .data.fd = vector }));
		hears();
	}
	/* Sent while it is not asked for. */
	_senduipi(0);
	CHECK(ready(loop, -1) == 1);
	_senduipi(0);
	CHECK(ready(loop, 0) == 0);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_MOD, vector, &(struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT, .data.fd = vector }));
	CHECK(ready(loop, -1) == 1);
}

static volatile int taken;
static _Atomic int tellers;

/* One of several loops that ask for the same. */
static void *loops(void *events)
{
	int loop = loop_with(vector, (uintptr_t)events);
	uint64_t number;

	tellers++;
	for (;;) {
		CHECK(ready(loop, -1) == 1);
		if (read(vector, &number, sizeof(number)) == sizeof(number))
			__atomic_fetch_add(&taken, number, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void is_told_in_several(uint32_t events)
{
	is_polled(UINTR_NONBLOCK);
	for (int i = 0; i < 3; i++)
		on_thread(loops, (void *)(uintptr_t)events);
	while (tellers < 3)
		__builtin_ia32_pause();
	for (int i = 0; i < ROUNDS; i++) {
		_senduipi(0);
		while (taken <= i)
			sched_yield();
		CHECK(taken == i + 1);
		goes_on();
	}
}

static void is_told_in_several_loops(void)
{
	is_told_in_several(EPOLLIN);
}

static void is_told_in_several_exclusive_loops(void)
{
	is_told_in_several(EPOLLIN | EPOLLEXCLUSIVE);
}

static void is_nested(void)
{
	int inner, outer;

	is_polled(UINTR_NONBLOCK);
	inner = loop_with(vector, EPOLLIN | EPOLLET);
	outer = loop_with(inner, EPOLLIN);
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(ready(outer, -1) == 1);
		CHECK(ready(inner, 0) == 1);
		CHECK(ready(outer, 0) == 0);
		hears();
	}
	CHECK(read_of(vector) == ROUNDS);
}

static void is_polled_and_selected(void)
{
	struct pollfd poll_of = { 0 };
	fd_set set;

	is_polled(UINTR_NONBLOCK);
	poll_of = (struct pollfd){ vector, POLLIN, 0 };
	CHECK(poll(&poll_of, 1, 0) == 0);
	goes_off(2 * ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(poll(&poll_of, 1, -1) == 1 && poll_of.revents == POLLIN);
		CHECK(read_of(vector) == 1);
		hears();
		FD_ZERO(&set);
		FD_SET(vector, &set);
		CHECK(select(vector + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(vector, &set));
		CHECK(read_of(vector) == 1);
		hears();
	}
}

static void is_polled_wrongly(void)
{
	struct uintr_receive args = { .flags = UINTR_POLLED, .handler = (uintptr_t)handler };

	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args.handler = 0;
	args.flags = UINTR_POLLED | UINTR_INTERRUPTS;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args.flags = UINTR_POLLED;
	args.stack = 4096;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args = (struct uintr_receive){ .handler = (uintptr_t)handler, .flags = UINTR_INTERRUPTS | UINTR_RESUMES };
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	is_polled(0);
	CHECK(wait_until(receiver, 0) == -EPERM);
	CHECK(call(receiver, UINTR_VECTOR, 5) == -EBUSY);
	CHECK(call(receiver, UINTR_VECTOR, 64) == -EINVAL);
	CHECK(call(receiver, UINTR_VECTOR, 1ul << 10) == -EINVAL);
	CHECK(read(receiver, &(uint64_t){ 0 }, 8) == -1 && errno == EINVAL);
	/* With a handler it is the handler's. */
	receiver = receive(0);
	CHECK(receiver >= 0);
	CHECK(call(receiver, UINTR_VECTOR, 5 | UINTR_SEMAPHORE) == -EINVAL);
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(vector >= 0 && read(vector, &(uint64_t){ 0 }, 8) == -1 && errno == EINVAL);
	CHECK(poll(&(struct pollfd){ vector, POLLIN, 0 }, 1, 0) == 0);
}

const struct life polls[] = {
	{ .name = "read(2) of a vector, blocking and not", .run = reads },
	{ .name = "epoll by edges, which are counted", .run = is_told_by_edges },
	{ .name = "a vector is a semaphore", .run = is_a_semaphore },
	{ .name = "epoll by level", .run = is_told_by_level },
	{ .name = "epoll once", .run = is_told_once },
	{ .name = "one vector in several loops", .run = is_told_in_several_loops },
	{ .name = "one vector in several loops, exclusive", .run = is_told_in_several_exclusive_loops },
	{ .name = "a loop in a loop", .run = is_nested },
	{ .name = "poll(2) and select(2)", .run = is_polled_and_selected },
	{ .name = "wrong calls of what is polled", .run = is_polled_wrongly },
	{ 0 },
};
