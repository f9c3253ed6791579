// SPDX-License-Identifier: MIT OR Apache-2.0
/* Loops of many vectors, of what programs have in them besides, and of threads that have a handler too. */
#include "polled.h"
#include <sys/timerfd.h>

static void many_in_one_loop(void)
{
	enum { MANY = 100 };
	int files[MANY], loop = epoll_create1(0);

	for (int i = 0; i < MANY; i++) {
		long own = polled();

		CHECK(own >= 0);
		files[i] = call(own, UINTR_VECTOR, i % UINTR_VECTORS | UINTR_NONBLOCK);
		CHECK(files[i] >= 0 && call(files[i], UINTR_CONNECT, 0) == i);
		CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, files[i], &(struct epoll_event){ .events = EPOLLIN, .data.u32 = i }));
	}
	for (int i = 0; i < 5 * MANY; i++) {
		struct epoll_event event;
		unsigned int which = i * 37 % MANY;

		_senduipi(which);
		CHECK(epoll_wait(loop, &event, 1, -1) == 1 && event.data.u32 == which);
		CHECK(read_of(files[which]) == 1);
		goes_on();
	}
}

static void all_vectors_of_one(void)
{
	int files[UINTR_VECTORS], loop = epoll_create1(0);
	struct epoll_event events[UINTR_VECTORS];
	uint64_t seen = 0;

	receiver = polled();
	for (int i = 0; i < UINTR_VECTORS; i++) {
		files[i] = call(receiver, UINTR_VECTOR, i | UINTR_NONBLOCK);
		CHECK(files[i] >= 0 && call(files[i], UINTR_CONNECT, 0) == i);
		CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, files[i], &(struct epoll_event){ .events = EPOLLIN | EPOLLET, .data.u32 = i }));
	}
	for (int i = 0; i < UINTR_VECTORS; i++)
		_senduipi(i);
	while (~seen) {
		int n = epoll_wait(loop, events, UINTR_VECTORS, -1);

		CHECK(n > 0);
		while (n--)
			seen |= 1ull << events[n].data.u32;
	}
	for (int i = 0; i < UINTR_VECTORS; i++)
		CHECK(read_of(files[i]) == 1 && empty(files[i]));
}

/* ---- a loop as programs have it ---- */

static int pair[2];

static void *asks(void *nothing)
{
	char byte = 'a';

	for (int i = 0; i < ROUNDS; i++) {
		_senduipi(0);
		CHECK(write(pair[1], &byte, 1) == 1);
		CHECK(read(pair[1], &byte, 1) == 1);
		while (heard <= i)
			sched_yield();
	}
	return nothing;
}

static void serves_a_timer_and_a_socket_beside(void)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), loop, ticks = 0, answers = 0;

	is_polled(UINTR_NONBLOCK);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK(!timerfd_settime(timer, 0, &(struct itimerspec){ { 0, 1000000 }, { 0, 1000000 } }, NULL));
	loop = loop_with(vector, EPOLLIN);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, timer, &(struct epoll_event){ .events = EPOLLIN, .data.fd = timer }));
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, pair[0], &(struct epoll_event){ .events = EPOLLIN, .data.fd = pair[0] }));
	on_thread(asks, NULL);
	while (heard < ROUNDS || ticks < 5 || answers < ROUNDS) {
		struct epoll_event event;
		char byte;

		CHECK(epoll_wait(loop, &event, 1, -1) == 1);
		if (event.data.fd == vector) {
			CHECK(read_of(vector) == 1);
			hears();
		} else if (event.data.fd == timer) {
			ticks += read_of(timer);
		} else {
			CHECK(read(pair[0], &byte, 1) == 1 && write(pair[0], &byte, 1) == 1);
			answers++;
		}
	}
}

/* ---- a loop whose thread has a handler too ---- */

static int other;

/* To the handler, and then to the loop, each once it sleeps. */
static void *sends_to_both(void *nothing)
{
	await_state(receiving_thread, 'S');
	_senduipi(0);
	await(1);
	await_state(receiving_thread, 'S');
	_senduipi(1);
	return nothing;
}

static int loop_beside_a_handler(uint32_t flags)
{
	long own = polled();

	CHECK(own >= 0);
	receives_with(flags);
	other = call(own, UINTR_VECTOR, 9 | UINTR_NONBLOCK);
	CHECK(other >= 0 && call(other, UINTR_CONNECT, 0) == 1);
	receiving_thread = gettid();
	return loop_with(other, EPOLLIN);
}

static void has_a_handler_that_ends_the_wait(void)
{
	int loop = loop_beside_a_handler(0);

	on_thread(sends_to_both, NULL);
	CHECK(ready(loop, -1) == -1 && errno == EINTR && handled == 1);
	CHECK(ready(loop, -1) == 1 && handled == 1);
	CHECK(read_of(other) == 1 && empty(other));
}

static void has_a_handler_behind_which_the_wait_goes_on(void)
{
	int loop = loop_beside_a_handler(UINTR_RESUMES);
	struct pollfd poll_of = { other, POLLIN, 0 };
	sigset_t none;

	on_thread(sends_to_both, NULL);
	CHECK(ready(loop, -1) == 1 && handled == 1);
	CHECK(read_of(other) == 1 && empty(other));
	handled = 0;
	on_thread(sends_to_both, NULL);
	CHECK(poll(&poll_of, 1, -1) == 1 && handled == 1);
	CHECK(read_of(other) == 1);
	sigemptyset(&none);
	handled = 0;
	on_thread(sends_to_both, NULL);
	CHECK(epoll_pwait(loop, &(struct epoll_event){ 0 }, 1, -1, &none) == 1 && handled == 1);
	CHECK(read_of(other) == 1);
	/* What is left of a time-out nobody knows. */
	handled = 0;
	on_thread(sends_to_both, NULL);
	CHECK(ready(loop, 1000 * LOST_AFTER) == -1 && errno == EINTR && handled == 1);
	CHECK(ready(loop, 1000 * LOST_AFTER) == 1);
}

static void *signals_sleeper(void *nothing)
{
	await_state(receiving_thread, 'S');
	CHECK(!syscall(SYS_tgkill, getpid(), receiving_thread, SIGUSR1));
	return nothing;
}

/* A signal ends it all the same. */
static void goes_on_but_for_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	int loop = loop_beside_a_handler(UINTR_RESUMES);

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	on_thread(signals_sleeper, NULL);
	CHECK(ready(loop, -1) == -1 && errno == EINTR && handled == 0);
}

const struct life polled_loops[] = {
	{ .name = "a hundred receivers in one loop", .run = many_in_one_loop },
	{ .name = "64 vectors of one receiver in one loop", .run = all_vectors_of_one },
	{ .name = "a loop with a timer and a socket", .run = serves_a_timer_and_a_socket_beside },
	{ .name = "a handler ends the wait of a loop", .run = has_a_handler_that_ends_the_wait },
	{ .name = "a loop goes on behind a handler if asked for", .run = has_a_handler_behind_which_the_wait_goes_on },
	{ .name = "a signal ends the wait of a loop that goes on", .run = goes_on_but_for_signals },
	{ 0 },
};
