// SPDX-License-Identifier: MIT OR Apache-2.0
// A ping-pong on two eventfds as one writes it by hand: write; epoll_wait, read.
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

static void pass(int eventfd)
{
	const uint64_t one = 1;

	while (write(eventfd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		;
}

static void take(int epoll, int eventfd)
{
	struct epoll_event event;
	uint64_t count;

	do
		epoll_wait(epoll, &event, 1, -1);
	while (read(eventfd, &count, sizeof(count)) != (ssize_t)sizeof(count));
}

void epoll_call(int there, int back_epoll, int back, uint32_t times)
{
	while (times--) {
		pass(there);
		take(back_epoll, back);
	}
}

void epoll_answer(int there_epoll, int there, int back, uint32_t times)
{
	while (times--) {
		take(there_epoll, there);
		pass(back);
	}
}
