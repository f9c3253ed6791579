// SPDX-License-Identifier: MIT OR Apache-2.0
/* Vectors, connections, and wrong calls. */
#include "shared.h"

static void sends_without_a_connection(void)
{
	_senduipi(0);
}

static void sends_beyond_its_table(void)
{
	receives();
	_senduipi(UINTR_CONNECTIONS);
}

static void sends_an_index_that_is_not_connected(void)
{
	receives();
	_senduipi(1);
}

static void is_revoked(void)
{
	receives();
	CHECK(call(receiver, UINTR_REVOKE, 5) == 0);
	CHECK(call(receiver, UINTR_REVOKE, 5) == -EINVAL);
	CHECK(poll(&(struct pollfd){ vector, 0, 0 }, 1, -1) == 1);
	CHECK(call(vector, UINTR_CONNECT, 0) == -ESHUTDOWN);
	/* The number is free for another. */
	CHECK(call(receiver, UINTR_VECTOR, 5) >= 0);
	_senduipi(0);
}

static void is_revoked_by_close(void)
{
	receives();
	close(dup(vector));
	send_to_itself();
	close(vector);
	_senduipi(0);
}

static void connects_as_often_as_it_can(void)
{
	int vectors[UINTR_VECTORS];

	receives();
	for (int i = 0; i < UINTR_VECTORS; i++) {
		vectors[i] = i == 5 ? vector : call(receiver, UINTR_VECTOR, i);
		CHECK(vectors[i] >= 0);
	}
	for (int i = 1; i < UINTR_CONNECTIONS; i++)
		CHECK(call(vectors[i % UINTR_VECTORS], UINTR_CONNECT, 0) == i);
	CHECK(call(vector, UINTR_CONNECT, 0) == -ENOSPC);
	for (int i = 0; i < UINTR_CONNECTIONS; i++) {
		_senduipi(i);
		await(i + 1);
		CHECK(last_vector == (i ? i % UINTR_VECTORS : 5));
	}
	CHECK(call(device, UINTR_DISCONNECT, 77) == 0);
	CHECK(call(device, UINTR_DISCONNECT, 77) == -EINVAL);
	CHECK(call(vector, UINTR_CONNECT, 0) == 77);
	_senduipi(77);
	await(UINTR_CONNECTIONS + 1);
	CHECK(last_vector == 5);
}

static void sends_all_vectors_at_once(void)
{
	int order = UINTR_VECTORS;

	receives();
	for (int i = 0; i < UINTR_VECTORS; i++)
		if (i != 5)
			CHECK(call(call(receiver, UINTR_VECTOR, i), UINTR_CONNECT, 0) > 0);
	_clui();
	for (int i = 0; i < UINTR_VECTORS; i++)
		_senduipi(i);
	/* The highest first; each once. */
	while (handled < UINTR_VECTORS) {
		int before = handled;

		CHECK(wait_until(receiver, -1) == 0);
		_stui();
		_clui();
		CHECK(handled > before);
		CHECK(last_vector < order);
		order = last_vector;
	}
	CHECK(wait_until(receiver, 0) == -ETIMEDOUT);
}

static void is_wrong(void)
{
	struct uintr_receive args = { .handler = (uintptr_t)handler };
	struct uintr_wait wait = { .deadline = 0, .flags = 2 };
	char stack[UINTR_STACK_LEAST];

	CHECK(call(device, _IO(0xf7, 99), 0) == -ENOTTY);
	CHECK(call(device, UINTR_RECEIVE, 0) == -EFAULT);
	args.handler = 0;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EFAULT);
	args.handler = -1ull;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EFAULT);
	args.handler = 1ull << 56;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EFAULT);
	args.handler = (uintptr_t)handler;
	args.flags = 1u << 31;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args.flags = 0;
	args.reserved = 1;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args.reserved = 0;
	args.stack = (uintptr_t)stack;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args.stack_size = sizeof(stack) - 1;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args.stack_size = -1ull;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EFAULT);
	args.stack = 0xffff888000000000;
	args.stack_size = sizeof(stack);
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EFAULT);
	CHECK(call(device, UINTR_DISCONNECT, 0) == -EINVAL);
	receives();
	CHECK(receive(0) == -EBUSY);
	CHECK(call(receiver, UINTR_VECTOR, 64) == -EINVAL);
	CHECK(call(receiver, UINTR_VECTOR, -1ul) == -EINVAL);
	CHECK(call(receiver, UINTR_VECTOR, 5) == -EBUSY);
	CHECK(call(receiver, UINTR_REVOKE, 64) == -EINVAL);
	CHECK(call(receiver, UINTR_REVOKE, 6) == -EINVAL);
	CHECK(call(receiver, UINTR_WAIT, 0) == -EFAULT);
	CHECK(call(receiver, UINTR_WAIT, (uintptr_t)&wait) == -EINVAL);
	/* A file without the flag, and the flag without a file. */
	wait = (struct uintr_wait){ .file = device };
	CHECK(call(receiver, UINTR_WAIT, (uintptr_t)&wait) == -EINVAL);
	wait = (struct uintr_wait){ .flags = UINTR_WAIT_FILE, .file = -1 };
	CHECK(call(receiver, UINTR_WAIT, (uintptr_t)&wait) == -EBADF);
	CHECK(call(receiver, UINTR_CONNECT, 0) == -ENOTTY);
	CHECK(call(vector, UINTR_CONNECT, 1) == -EINVAL);
	CHECK(call(vector, UINTR_VECTOR, 0) == -ENOTTY);
	CHECK(call(device, UINTR_DISCONNECT, 1) == -EINVAL);
	CHECK(call(device, UINTR_DISCONNECT, UINTR_CONNECTIONS) == -EINVAL);
	send_to_itself();
}

static void passes_a_vector(void)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	int ends[2];
	pid_t child;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	child = fork();
	if (!child) {
		int theirs;

		CHECK(recvmsg(ends[1], &message, 0) == 1);
		memcpy(&theirs, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
		CHECK(call(theirs, UINTR_CONNECT, 0) == 0);
		_senduipi(0);
		_exit(0);
	}
	receives();
	*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &vector, sizeof(int));
	CHECK(sendmsg(ends[0], &message, 0) == 1);
	await(1);
	CHECK(status_of(child) == 0);
}

static volatile int there;
static volatile bool leaves;

/* On CPU 1, as one that sends through a connection of its process. */
static void *sends_there(void *nothing)
{
	runs_on(1);
	_senduipi(0);
	for (there = 1; !leaves;)
		;
	there = 0;
	return nothing;
}

static void is_a_stranger_there(void)
{
	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	receives();
	CHECK(write(pipe_ends[1], "", 1) == 1);
	sends_there(NULL);
}

/* How many of CPU 1's interrupts by which a function is called come of so many revocations. */
static long called_there(int revocations)
{
	long before = interrupts_of("CAL:", 1);

	for (int i = 0; i < revocations; i++) {
		int file = call(receiver, UINTR_VECTOR, 6);
		long index = call(file, UINTR_CONNECT, 0);

		CHECK(index >= 0 && call(receiver, UINTR_REVOKE, 6) == 0);
		CHECK(call(device, UINTR_DISCONNECT, index) == 0 && !close(file));
	}
	return interrupts_of("CAL:", 1) - before;
}

/* Each waits for those who may be in the middle of a send to it, and takes nobody else's time. */
static void is_waited_for_by_none_but_its_senders(void)
{
	pid_t stranger;
	char byte;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip("there is one CPU");
	CHECK(!pipe(pipe_ends));
	stranger = fork();
	if (!stranger)
		is_a_stranger_there();
	runs_on(0);
	receives();
	CHECK(read(pipe_ends[0], &byte, 1) == 1);
	CHECK(called_there(500) < 100);
	CHECK(!kill(stranger, SIGKILL) && killed_by(status_of(stranger), SIGKILL));
	on_thread(sends_there, NULL);
	while (!there)
		sched_yield();
	CHECK(called_there(500) > 400);
	leaves = true;
	while (there)
		sched_yield();
}

const struct life vectors[] = {
	{ .name = "SENDUIPI without a connection is an invalid instruction", .run = sends_without_a_connection, .signal = SIGILL },
	{ .name = "SENDUIPI behind the table", .run = sends_beyond_its_table, .signal = SIGSEGV },
	{ .name = "SENDUIPI of an index that is not connected", .run = sends_an_index_that_is_not_connected, .signal = SIGSEGV },
	{ .name = "SENDUIPI of a vector that was revoked", .run = is_revoked, .signal = SIGSEGV },
	{ .name = "SENDUIPI of a vector whose last descriptor was closed", .run = is_revoked_by_close, .signal = SIGSEGV },
	{ .name = "256 connections and no more", .run = connects_as_often_as_it_can },
	{ .name = "64 vectors at once, the highest first", .run = sends_all_vectors_at_once },
	{ .name = "wrong calls", .run = is_wrong },
	{ .name = "a vector passes over a socket", .run = passes_a_vector },
	{ .name = "a revocation interrupts the CPUs of its senders, and no stranger's", .run = is_waited_for_by_none_but_its_senders },
	{ 0 },
};
