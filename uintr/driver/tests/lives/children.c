// SPDX-License-Identifier: MIT OR Apache-2.0
/* What a process's children and other threads have of its receivers and connections. */
#include "shared.h"

static void forks(void)
{
	pid_t child;

	receives();
	child = fork();
	if (!child) {
		CHECK(!_testui());
		CHECK(wait_until(receiver, 0) == -EPERM);
		CHECK(call(device, UINTR_DISCONNECT, 0) == -EINVAL);
		_senduipi(0);
		_exit(0);
	}
	CHECK(killed_by(status_of(child), SIGILL));
	/* The descriptors are the child's too. */
	child = fork();
	if (!child) {
		CHECK(call(vector, UINTR_CONNECT, 0) == 0);
		_senduipi(0);
		_exit(0);
	}
	CHECK(status_of(child) == 0);
	await(1);
	send_to_itself();
}

static void vforks(void)
{
	pid_t child;

	receives();
	child = vfork();
	if (!child) {
		/* The parent's memory, and none of its connections. */
		_senduipi(0);
		_exit(0);
	}
	CHECK(killed_by(status_of(child), SIGILL));
	send_to_itself();
	child = vfork();
	if (!child) {
		execl("/proc/self/exe", "lives", "--nothing", NULL);
		_exit(1);
	}
	CHECK(status_of(child) == 0);
	send_to_itself();
}

static void *sends(void *times)
{
	for (long i = 0; i < (long)times; i++) {
		int before = handled;

		_senduipi(0);
		await(before + 1);
	}
	return NULL;
}

static void has_threads(void)
{
	pthread_t threads[2];

	receives();
	for (int i = 0; i < 2; i++) {
		/* Made after the connection, they made no call themselves. */
		CHECK(!pthread_create(&threads[i], NULL, sends, (void *)1l));
		CHECK(!pthread_join(threads[i], NULL));
	}
	CHECK(handled == 2);
	CHECK(wait_until(receiver, 0) == -ETIMEDOUT);
}

static void *connects(void *nothing)
{
	CHECK(call(vector, UINTR_CONNECT, 0) == 1);
	return nothing;
}

/* Who connected is gone, and the others go on. */
static void loses_the_thread_that_connected(void)
{
	pthread_t thread;

	receives();
	CHECK(!pthread_create(&thread, NULL, connects, NULL));
	CHECK(!pthread_join(thread, NULL));
	_senduipi(1);
	await(1);
}

static void *disconnects(void *nothing)
{
	CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
	return nothing;
}

/* A connection is the process's, whichever of its threads made it or sent. */
static void disconnects_in_another_thread(void)
{
	pthread_t thread;

	receives();
	CHECK(!pthread_create(&thread, NULL, disconnects, NULL));
	CHECK(!pthread_join(thread, NULL));
	_senduipi(0);
}

const struct life children[] = {
	{ .name = "a child of fork has the descriptors and nothing else", .run = forks },
	{ .name = "a child of vfork has nothing", .run = vforks },
	{ .name = "threads made later send without a call", .run = has_threads },
	{ .name = "a connection outlives the thread that made it", .run = loses_the_thread_that_connected },
	{ .name = "another thread disconnects", .run = disconnects_in_another_thread, .signal = SIGSEGV },
	{ 0 },
};
