// SPDX-License-Identifier: MIT OR Apache-2.0
/* Vectors that are read and polled. */
#include "shared.h"
#include <sys/epoll.h>
#include <sys/select.h>

static int polled, polled_index;

static void makes(unsigned int flags)
{
	begins();
	polled = uintr_poll_fd(flags);
	CHECK(polled >= 0);
	polled_index = uintr_register_sender(polled, 0);
	CHECK(polled_index == 0);
}

static uint64_t reads(void)
{
	uint64_t count = 0;

	CHECK(read(polled, &count, sizeof(count)) == sizeof(count));
	return count;
}

static bool readable(void)
{
	struct pollfd one = { .fd = polled, .events = POLLIN };

	return poll(&one, 1, 0) == 1 && one.revents == POLLIN;
}

static void is_read_and_polled(void)
{
	uint64_t count;
	fd_set files;

	makes(UINTR_NONBLOCK);
	CHECK(!readable());
	FAILS(read(polled, &count, sizeof(count)), EAGAIN);
	for (int i = 1; i <= 10; i++) {
		uintr_send(polled_index);
		CHECK(readable());
	}
	FD_ZERO(&files);
	FD_SET(polled, &files);
	CHECK(select(polled + 1, &files, NULL, NULL, NULL) == 1);
	count = reads();
	CHECK(count >= 1 && count <= 10);
	CHECK(!readable());
	FAILS(read(polled, &count, sizeof(count)), EAGAIN);
}

static void counts_as_a_semaphore(void)
{
	int times = 0;

	makes(UINTR_SEMAPHORE | UINTR_NONBLOCK);
	for (int i = 0; i < 5; i++) {
		uintr_send(polled_index);
		CHECK(readable());
	}
	for (; readable(); times++)
		CHECK(reads() == 1);
	CHECK(times >= 1 && times <= 5);
}

static void *sends_a_little_later(void *nothing)
{
	passes_some_time();
	uintr_send(polled_index);
	return nothing;
}

static void blocks_until_it_is_sent(void)
{
	makes(0);
	for (int i = 0; i < 5; i++) {
		pthread_t sender = on_thread(sends_a_little_later, NULL);

		CHECK(reads() == 1);
		CHECK(!pthread_join(sender, NULL));
	}
}

static int waits_in(int loop, int timeout)
{
	struct epoll_event event;

	return epoll_wait(loop, &event, 1, timeout);
}

static void is_in_loops(void)
{
	int level = epoll_create1(0), edge = epoll_create1(0), once = epoll_create1(0), nested = epoll_create1(0);

	makes(UINTR_NONBLOCK);
	CHECK(!epoll_ctl(level, EPOLL_CTL_ADD, polled, &(struct epoll_event){ .events = EPOLLIN }));
	CHECK(!epoll_ctl(edge, EPOLL_CTL_ADD, polled, &(struct epoll_event){ .events = EPOLLIN | EPOLLET }));
	CHECK(!epoll_ctl(once, EPOLL_CTL_ADD, polled, &(struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT }));
	CHECK(!epoll_ctl(nested, EPOLL_CTL_ADD, level, &(struct epoll_event){ .events = EPOLLIN }));
	for (int i = 0; i < 5; i++) {
		CHECK(waits_in(level, 0) == 0 && waits_in(edge, 0) == 0 && waits_in(nested, 0) == 0);
		on_thread(sends_a_little_later, NULL);
		CHECK(waits_in(nested, -1) == 1);
		CHECK(waits_in(level, -1) == 1 && waits_in(level, 0) == 1);
		CHECK(waits_in(edge, -1) == 1 && waits_in(edge, 0) == 0);
		CHECK(waits_in(once, i ? 0 : -1) == !i);
		reads();
	}
	CHECK(!epoll_ctl(once, EPOLL_CTL_MOD, polled, &(struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT }));
	uintr_send(polled_index);
	CHECK(waits_in(once, -1) == 1);
}

static int back;

static void answers_through_loops(void)
{
	uint64_t count;
	int loop = epoll_create1(0);

	CHECK(uintr_register_sender(back, 0) == 0);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, polled, &(struct epoll_event){ .events = EPOLLIN | EPOLLET }));
	for (int i = 0; i < 3000; i++) {
		CHECK(waits_in(loop, -1) == 1);
		CHECK(read(polled, &count, sizeof(count)) == sizeof(count) && count == 1);
		uintr_send(0);
	}
}

/* Nothing but what is sent ends a wait: what were lost would stand still. */
static void wakes_and_is_woken(void)
{
	int loop = epoll_create1(0);
	uint64_t count;
	pid_t child;

	makes(UINTR_NONBLOCK);
	back = uintr_poll_fd(0);
	CHECK(back >= 0);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, back, &(struct epoll_event){ .events = EPOLLIN }));
	child = on_child(answers_through_loops);
	for (int i = 0; i < 3000; i++) {
		uintr_send(polled_index);
		if (i % 2)
			CHECK(waits_in(loop, -1) == 1);
		CHECK(read(back, &count, sizeof(count)) == sizeof(count) && count == 1);
	}
	CHECK(ends_well(child));
}

static void are_many(void)
{
	int files[200];

	begins();
	for (int i = 0; i < 200; i++) {
		uint64_t count;

		files[i] = uintr_poll_fd(UINTR_NONBLOCK);
		CHECK(files[i] >= 0);
		CHECK(uintr_register_sender(files[i], 0) == i);
		uintr_send(i);
		CHECK(read(files[i], &count, sizeof(count)) == sizeof(count) && count == 1);
	}
	for (int i = 0; i < 200; i++)
		CHECK(!close(files[i]));
}

const struct item polls[] = {
	{ "a vector is read and polled", is_read_and_polled, 0 },
	{ "a vector is a semaphore", counts_as_a_semaphore, 0 },
	{ "a read blocks until something is sent", blocks_until_it_is_sent, 0 },
	{ "a vector in loops: level, edge, oneshot, nested", is_in_loops, 0 },
	{ "two processes wake each other's loops", wakes_and_is_woken, 0 },
	{ "two hundred polled vectors", are_many, 0 },
	{ 0 },
};
