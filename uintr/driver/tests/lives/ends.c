// SPDX-License-Identifier: MIT OR Apache-2.0
/* How receivers end: exit, kill, close, exec. */
#include "shared.h"

static void exits(void)
{
	receives();
	send_to_itself();
}

static void exits_with_a_request(void)
{
	receives();
	_clui();
	_senduipi(0);
}

static void is_killed(void)
{
	receives();
	send_to_itself();
	raise(SIGKILL);
}

static void closes_and_comes_back(void)
{
	int old;

	receives();
	send_to_itself();
	old = receiver;
	CHECK(receive(0) == -EBUSY);
	close(old);
	/* Its vector names a receiver that has ended. */
	CHECK(poll(&(struct pollfd){ vector, 0, 0 }, 1, -1) == 1);
	CHECK(call(vector, UINTR_CONNECT, 0) == -ESHUTDOWN);
	CHECK(!_testui());
	/* Nobody hears it, and nothing happens. */
	_stui();
	_senduipi(0);
	/* Open as it was, it is shut for the new one. */
	receiver = receive(0);
	CHECK(receiver >= 0);
	CHECK(!_testui());
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(call(vector, UINTR_CONNECT, 0) == 1);
	_stui();
	_senduipi(1);
	await(2);
}

static void *closes(void *nothing)
{
	close(receiver);
	return nothing;
}

/* By another thread than the receiver, which runs and is not in a system call. */
static void is_closed_by_another_thread(void)
{
	receives();
	on_thread(closes, NULL);
	while (_testui())
		__builtin_ia32_pause();
	CHECK(poll(&(struct pollfd){ vector, 0, 0 }, 1, -1) == 1);
	CHECK(receive(0) >= 0);
}

static void *closes_a_sleeper(void *nothing)
{
	await_state(receiving_thread, 'S');
	close(receiver);
	CHECK(poll(&(struct pollfd){ vector, 0, 0 }, 1, -1) == 1);
	CHECK(write(pipe_ends[1], "x", 1) == 1);
	return nothing;
}

/* It sleeps, and goes on sleeping. */
static void is_closed_asleep(void)
{
	char byte;

	receives();
	CHECK(!pipe(pipe_ends));
	receiving_thread = gettid();
	on_thread(closes_a_sleeper, NULL);
	CHECK(read(pipe_ends[0], &byte, 1) == 1);
	CHECK(receive(0) >= 0);
}

static void executes_with_descriptors(void)
{
	char files[2][16];

	snprintf(files[0], sizeof(files[0]), "%d", receiver);
	snprintf(files[1], sizeof(files[1]), "%d", vector);
	execl("/proc/self/exe", "lives", "--after-exec", files[0], files[1], NULL);
	CHECK(!"exec");
}

static void executes(void)
{
	receives();
	executes_with_descriptors();
}

static void *executes_in_a_thread(void *nothing)
{
	_senduipi(0);
	executes_with_descriptors();
	return nothing;
}

/* Which becomes the process's only one; the receiver is killed. */
static void executes_in_another_thread(void)
{
	receives();
	on_thread(executes_in_a_thread, NULL);
	for (;;)
		pause();
}

void after_exec(char **files)
{
	CHECK(fcntl(atoi(files[0]), F_GETFD) == -1 && errno == EBADF);
	CHECK(fcntl(atoi(files[1]), F_GETFD) == -1 && errno == EBADF);
	CHECK(!_testui());
	_senduipi(0);
}

static void *receives_for_a_moment(void *nothing)
{
	long file;

	/* Those that have ended are given back behind a grace period. */
	while ((file = receive(0)) == -EAGAIN)
		usleep(1000);
	CHECK(file >= 0);
	CHECK(call(file, UINTR_VECTOR, 9) >= 0);
	close(file);
	return nothing;
}

/* More than a user may have at a time, one after the other, whose vectors somebody keeps. */
static void ends_and_does_not_count(void)
{
	pthread_t thread;

	CHECK(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 4096, 4096 }));
	for (int i = 0; i < 1100; i++) {
		goes_on();
		CHECK(!pthread_create(&thread, NULL, receives_for_a_moment, NULL));
		CHECK(!pthread_join(thread, NULL));
	}
}

static void *receives_and_ends(void *nothing)
{
	int file = receive(0);

	vector = call(file, UINTR_VECTOR, 9);
	CHECK(vector >= 0);
	return nothing;
}

static void sends_to_the_dead(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, receives_and_ends, NULL));
	while (!vector)
		__builtin_ia32_pause();
	/* It may have ended already. */
	long index = call(vector, UINTR_CONNECT, 0);
	CHECK(!pthread_join(thread, NULL));
	CHECK(poll(&(struct pollfd){ vector, 0, 0 }, 1, -1) == 1);
	for (int i = 0; index == 0 && i < 1000; i++)
		_senduipi(index);
	CHECK(call(vector, UINTR_CONNECT, 0) == -ESHUTDOWN);
}

const struct life ends[] = {
	{ .name = "a receiver exits", .run = exits },
	{ .name = "a receiver exits with a request pending", .run = exits_with_a_request },
	{ .name = "a receiver is killed", .run = is_killed, .signal = SIGKILL },
	{ .name = "a receiver is closed, and its thread receives again", .run = closes_and_comes_back },
	{ .name = "a receiver is closed by another thread", .run = is_closed_by_another_thread },
	{ .name = "a receiver is closed by another thread while it sleeps", .run = is_closed_asleep },
	{ .name = "exec ends all, and closes the descriptors", .run = executes, .signal = SIGILL },
	{ .name = "exec in another thread", .run = executes_in_another_thread, .signal = SIGILL },
	{ .name = "a send to a receiver that has ended does nothing, and poll tells", .run = sends_to_the_dead },
	{ .name = "who has ended does not count, whoever keeps a vector", .run = ends_and_does_not_count },
	{ 0 },
};
