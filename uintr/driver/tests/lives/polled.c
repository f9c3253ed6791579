// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the promises about receivers without a handler have in common: polled.h says it. */
#include "polled.h"

long polled(void)
{
	struct uintr_receive args = { .flags = UINTR_POLLED };

	return call(device, UINTR_RECEIVE, (uintptr_t)&args);
}

void is_polled(unsigned long flags)
{
	receiver = polled();
	CHECK(receiver >= 0);
	vector = call(receiver, UINTR_VECTOR, 5 | flags);
	CHECK(vector >= 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
}

uint64_t read_of(int file)
{
	uint64_t number = 0;

	CHECK(read(file, &number, sizeof(number)) == sizeof(number));
	return number;
}

bool empty(int file)
{
	uint64_t number;

	return read(file, &number, sizeof(number)) == -1 && errno == EAGAIN;
}

volatile int heard;

static void *sends_to_sleeper_each_time(void *times)
{
	for (long i = 0; i < (long)times; i++) {
		await_state(receiving_thread, 'S');
		_senduipi(0);
		while (heard <= i)
			__builtin_ia32_pause();
	}
	return NULL;
}

void goes_off(long times)
{
	heard = 0;
	receiving_thread = gettid();
	on_thread(sends_to_sleeper_each_time, (void *)times);
}

void hears(void)
{
	heard++;
	goes_on();
}

int loop_with(int file, uint32_t events)
{
	int loop = epoll_create1(0);

	CHECK(loop >= 0);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, file, &(struct epoll_event){ .events = events, .data.fd = file }));
	return loop;
}

int ready(int loop, int timeout)
{
	struct epoll_event event = { 0 };
	int n = epoll_wait(loop, &event, 1, timeout);

	CHECK(n < 1 || event.events == EPOLLIN || event.events == (EPOLLIN | EPOLLHUP) || event.events == EPOLLHUP);
	return n;
}
