// SPDX-License-Identifier: MIT OR Apache-2.0
/* Who has a receiver without a handler, and its end. */
#include "polled.h"

static void ends_what_is_polled(void)
{
	struct pollfd poll_of;
	int copy, loop;

	is_polled(0);
	loop = loop_with(vector, EPOLLIN);
	copy = dup(vector);
	close(vector);
	_senduipi(0);
	CHECK(ready(loop, -1) == 1);
	/* What was sent before the end can be read behind it. */
	CHECK(call(receiver, UINTR_REVOKE, 5) == 0);
	poll_of = (struct pollfd){ copy, POLLIN, 0 };
	CHECK(poll(&poll_of, 1, -1) == 1 && poll_of.revents == (POLLIN | POLLHUP));
	CHECK(read_of(copy) == 1);
	CHECK(read(copy, &(uint64_t){ 0 }, 8) == 0);
	CHECK(poll(&poll_of, 1, -1) == 1 && poll_of.revents == POLLHUP);
	CHECK(call(copy, UINTR_CONNECT, 0) == -ESHUTDOWN);
	/* Another has the number, and nothing of the first. */
	CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
	vector = call(receiver, UINTR_VECTOR, 5 | UINTR_NONBLOCK);
	CHECK(vector >= 0 && empty(vector));
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
	_senduipi(0);
	CHECK(read_of(vector) == 1);
	/* The receiver ends: who sends is told, and does no harm; what was sent before can be read. */
	_senduipi(0);
	close(receiver);
	poll_of = (struct pollfd){ vector, 0, 0 };
	CHECK(poll(&poll_of, 1, -1) == 1 && poll_of.revents == POLLHUP);
	_senduipi(0);
	CHECK(read_of(vector) == 1);
	CHECK(read(vector, &(uint64_t){ 0 }, 8) == 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == -ESHUTDOWN);
}

static void *closes_when_asleep(void *file)
{
	await_state(receiving_thread, 'S');
	close((long)file);
	return NULL;
}

static void ends_under_a_reader(void)
{
	uint64_t number;

	is_polled(0);
	receiving_thread = gettid();
	on_thread(closes_when_asleep, (void *)(long)receiver);
	CHECK(read(vector, &number, sizeof(number)) == 0);
}

static void *makes_one(void *nothing)
{
	is_polled(0);
	return nothing;
}

/* It is no thread's: its maker may end, and another process may read. */
static void outlives_its_maker(void)
{
	pthread_t maker;
	pid_t child, ended;
	int status;

	CHECK(!pthread_create(&maker, NULL, makes_one, NULL) && !pthread_join(maker, NULL));
	child = fork();
	if (!child) {
		alarm(LOST_AFTER);
		for (int i = 0; i < 2; i++)
			CHECK(read_of(vector) >= 1);
		_exit(0);
	}
	await_state(child, 'S');
	/* Posts may meet, in one read. */
	while (!(ended = waitpid(child, &status, WNOHANG))) {
		_senduipi(0);
		usleep(1000);
	}
	CHECK(ended == child && status == 0);
}

/* Makes one, gives it away, and reads in a loop until it is killed. */
static void polls_until_killed(int socket)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	uint64_t number;
	int loop;

	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	is_polled(UINTR_NONBLOCK);
	loop = loop_with(vector, EPOLLIN);
	*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &vector, sizeof(int));
	CHECK(sendmsg(socket, &message, 0) == 1);
	for (;;) {
		CHECK(ready(loop, -1) == 1);
		CHECK(read(vector, &number, sizeof(number)) == sizeof(number) || errno == EAGAIN);
		CHECK(write(socket, &byte, 1) == 1);
	}
}

static void is_killed_in_traffic(void)
{
	for (int round = 0; round < 50; round++) {
		char byte, space[CMSG_SPACE(sizeof(int))] = { 0 };
		struct iovec data = { &byte, 1 };
		struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
		int ends[2], theirs;
		pid_t child;
		long index;

		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		child = fork();
		if (!child)
			polls_until_killed(ends[1]);
		CHECK(child > 0 && recvmsg(ends[0], &message, 0) == 1);
		memcpy(&theirs, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
		index = call(theirs, UINTR_CONNECT, 0);
		CHECK(index >= 0);
		for (int i = 0; i < round; i++) {
			_senduipi(index);
			CHECK(read(ends[0], &byte, 1) == 1);
		}
		for (int i = 0; i < 100; i++) {
			if (i == 50)
				CHECK(!kill(child, SIGKILL));
			_senduipi(index);
		}
		/* Told of it, and may go on for all that. */
		CHECK(poll(&(struct pollfd){ theirs, 0, 0 }, 1, -1) == 1);
		CHECK(killed_by(status_of(child), SIGKILL));
		_senduipi(index);
		CHECK(call(device, UINTR_DISCONNECT, index) == 0);
		close(theirs);
		close(ends[0]);
		close(ends[1]);
		goes_on();
	}
}

const struct life polled_ends[] = {
	{ .name = "a vector that is polled is revoked, and its receiver ends", .run = ends_what_is_polled },
	{ .name = "a receiver ends under its reader", .run = ends_under_a_reader },
	{ .name = "who made it may end, and a child may read", .run = outlives_its_maker },
	{ .name = "who polls is killed in traffic", .run = is_killed_in_traffic },
	{ 0 },
};
