// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What the driver promises, case by case. Each case is a process of its own, after
 * which the driver must hold nothing. Prints TAP; anybody may run it where the
 * driver is loaded.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86gprintrin.h>

#include <linux/io_uring.h>
#include <linux/uintr.h>

static volatile int handled, last_vector;
static volatile uint64_t handler_sp;

__attribute__((interrupt, target("general-regs-only")))
static void handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	handler_sp = (uint64_t)__builtin_frame_address(0);
	last_vector = vector;
	handled++;
}

#define CHECK(statement) \
	do { \
		if (!(statement)) { \
			printf("# lives.c:%d: %s (errno %d, handled %d)\n", __LINE__, #statement, errno, handled); \
			fflush(stdout); \
			_exit(1); \
		} \
	} while (0)

/* Seconds. Nothing stands still that long, whatever else the emulator's host does. */
#define LOST_AFTER	120

/* Where a case that takes long on a busy host has come a step further. */
static void goes_on(void)
{
	alarm(LOST_AFTER);
}

#define SKIPPED		77

/* For want of something that is not the driver's. */
__attribute__((noreturn))
static void skip(const char *reason)
{
	printf("# %s\n", reason);
	fflush(stdout);
	_exit(SKIPPED);
}

/* What the call gives, or the errno that it fails with, negative. */
static long call(int file, unsigned long command, unsigned long argument)
{
	long result = ioctl(file, command, argument);

	return result < 0 ? -errno : result;
}

static int device;

static long receive(uint32_t flags)
{
	struct uintr_receive args = { .handler = (uintptr_t)handler, .flags = flags };

	return call(device, UINTR_RECEIVE, (uintptr_t)&args);
}

static long wait_until(int receiver, int64_t deadline)
{
	struct uintr_wait args = { .deadline = deadline };

	return call(receiver, UINTR_WAIT, (uintptr_t)&args);
}

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static int receiver, vector;

/* The calling thread receives, and may send vector 5 to itself with index 0. */
static void receives_with(uint32_t flags)
{
	receiver = receive(flags);
	CHECK(receiver >= 0);
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(vector >= 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
	CHECK(!_testui());
	_stui();
}

static void receives(void)
{
	receives_with(0);
}

/* Until the handler has run @times; the test's own time-out ends a wait in vain. */
static void await(int times)
{
	while (handled < times)
		__builtin_ia32_pause();
}

static void send_to_itself(void)
{
	int before = handled;

	_senduipi(0);
	await(before + 1);
	CHECK(last_vector == 5);
}

static void on_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, run, argument));
	CHECK(!pthread_detach(thread));
}

/* Until the kernel says this of the thread @tid: S it sleeps, T it was stopped. */
static void await_state(pid_t tid, char wanted)
{
	char path[64], text[512], *state = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	do {
		int file = open(path, O_RDONLY);
		ssize_t length = read(file, text, sizeof(text) - 1);

		CHECK(length > 0);
		text[length] = 0;
		state = strrchr(text, ')');
		close(file);
	} while (!state || state[2] != wanted);
}

static void put(const char *folder, const char *file, const char *text)
{
	char path[128];
	int open_file;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	open_file = open(path, O_WRONLY);
	CHECK(open_file >= 0);
	CHECK(write(open_file, text, strlen(text)) == (ssize_t)strlen(text));
	close(open_file);
}

static pid_t receiving_thread;

/* Sends once the receiving thread sleeps, from another thread of the process. */
static void *sends_to_sleeper(void *nothing)
{
	await_state(receiving_thread, 'S');
	_senduipi(0);
	return nothing;
}

static void goes_off_asleep(void)
{
	receiving_thread = gettid();
	on_thread(sends_to_sleeper, NULL);
}

/* ---- ends ---- */

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

static int pipe_ends[2];

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

static void after_exec(char **files)
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

/* ---- children and threads ---- */

static int status_of(pid_t child)
{
	int status;

	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

static bool killed_by(int status, int signal)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

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

/* ---- vectors and connections ---- */

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
	struct uintr_wait wait = { .deadline = 0, .flags = 1 };
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

/* ---- waiting ---- */

static void on_signal(int signal)
{
	(void)signal;
}

static void waits(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	/* Again and again: the first may come before the wait. */
	struct itimerval soon = { { 0, 100000 }, { 0, 100000 } };
	int64_t start;

	receives();
	_clui();
	/* What is pending is not slept on, though nobody will send again (H4). */
	_senduipi(0);
	CHECK(wait_until(receiver, -1) == 0 && !handled);
	_stui();
	_clui();
	CHECK(handled == 1);
	CHECK(wait_until(receiver, 0) == -ETIMEDOUT);
	start = now();
	CHECK(wait_until(receiver, start + 20000000) == -ETIMEDOUT);
	CHECK(now() >= start + 20000000);
	goes_off_asleep();
	CHECK(wait_until(receiver, -1) == 0 && handled == 1);
	_stui();
	_clui();
	CHECK(handled == 2);
	sigaction(SIGALRM, &action, NULL);
	CHECK(!setitimer(ITIMER_REAL, &soon, NULL));
	CHECK(wait_until(receiver, -1) == -EINTR);
	CHECK(handled == 2);
}

/* A deadline is of the clock that its process sees. */
static void waits_in_a_time_namespace(void)
{
	pid_t child;

	if (geteuid())
		skip("only root may make a time namespace");
	if (unshare(CLONE_NEWTIME))
		skip("this kernel has no time namespaces");
	put("/proc/self", "timens_offsets", "monotonic 1000000 0");
	child = fork();
	if (!child) {
		int64_t start = now();

		alarm(LOST_AFTER);
		CHECK(start > 1000000 * 1000000000ll);
		receives();
		_clui();
		CHECK(wait_until(receiver, start + 20000000) == -ETIMEDOUT);
		CHECK(now() >= start + 20000000);
		CHECK(wait_until(receiver, start - 1000000 * 1000000000ll) == -ETIMEDOUT);
		goes_off_asleep();
		CHECK(wait_until(receiver, INT64_MAX) == 0);
		_exit(0);
	}
	CHECK(status_of(child) == 0);
}

static void *sends_to_sleeper_and_writes(void *nothing)
{
	sends_to_sleeper(nothing);
	await(1);
	CHECK(write(pipe_ends[1], "x", 1) == 1);
	return nothing;
}

/* A blocking call goes on where it was; the handler ran in the middle of it. */
static void sleeps_in_read(void)
{
	char byte;

	receives();
	CHECK(!pipe(pipe_ends));
	receiving_thread = gettid();
	on_thread(sends_to_sleeper_and_writes, NULL);
	CHECK(read(pipe_ends[0], &byte, 1) == 1);
	CHECK(handled == 1);
}

static void sleeps_in_read_and_is_interrupted(void)
{
	int ends[2];
	char byte;

	receives_with(UINTR_INTERRUPTS);
	CHECK(!pipe(ends));
	goes_off_asleep();
	CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR);
	CHECK(handled == 1);
	goes_off_asleep();
	CHECK(poll(NULL, 0, -1) == -1 && errno == EINTR);
	CHECK(handled == 2);
	goes_off_asleep();
	CHECK(pause() == -1 && errno == EINTR);
	CHECK(handled == 3);
}

/* It runs task work where it sleeps, and goes on sleeping behind that. */
static void sleeps_in_io_uring(void)
{
	struct io_uring_params params = { 0 };
	int ring = syscall(SYS_io_uring_setup, 4, &params);

	if (ring < 0 && errno == ENOSYS)
		skip("this kernel has no io_uring");
	CHECK(ring >= 0);
	receives();
	for (int i = 1; i <= 2; i++) {
		goes_off_asleep();
		CHECK(syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) == -1 && errno == EINTR);
		CHECK(handled == i);
	}
}

/* Where the kernel keeps in one place how such a call goes on, which one that the handler makes would overwrite. */
static void sleeps_with_a_timeout(void)
{
	receives();
	goes_off_asleep();
	CHECK(nanosleep(&(struct timespec){ 1000, 0 }, NULL) == -1 && errno == EINTR);
	CHECK(handled == 1);
}

static void sleeps_on_a_request(void)
{
	struct timespec long_time = { 1000, 0 };

	/* Posted before the sleep, and not delivered before it: UIF opens inside. */
	receives_with(UINTR_INTERRUPTS);
	for (int i = 0; i < 1000; i++) {
		int before = handled;

		goes_on();
		_senduipi(0);
		while (handled == before)
			nanosleep(&long_time, NULL);
	}
}

/* Who shut UIF is not disturbed. */
static void *sends_to_sleeper_and_writes_later(void *nothing)
{
	sends_to_sleeper(nothing);
	/* It would be up by then. */
	usleep(100000);
	CHECK(write(pipe_ends[1], "x", 1) == 1);
	return nothing;
}

static void sleeps_with_uif_shut(void)
{
	char byte;

	CHECK(!pipe(pipe_ends));
	receives_with(UINTR_INTERRUPTS);
	_clui();
	receiving_thread = gettid();
	on_thread(sends_to_sleeper_and_writes_later, NULL);
	CHECK(read(pipe_ends[0], &byte, 1) == 1);
	CHECK(handled == 0);
	_stui();
	await(1);
}

/* Whoever else opens UIF on its CPU, without any part in this. */
static void shares_its_cpu(void)
{
	volatile long *turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cpu_set_t one;
	pid_t child;

	CHECK(turns != MAP_FAILED);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	child = fork();
	if (!child) {
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		for (;; ++*turns) {
			_stui();
			sched_yield();
		}
	}
	receives();
	_clui();
	while (*turns < 100) {
		sched_yield();
		CHECK(!_testui());
	}
	CHECK(!kill(child, SIGKILL));
	CHECK(killed_by(status_of(child), SIGKILL));
}

/* ---- signals (H12) ---- */

static volatile int uif_in_signal = -1, handled_in_signal = -1;

static void looks_at_uif(int signal)
{
	(void)signal;
	uif_in_signal = _testui();
	_senduipi(0);
	/* Long enough to be delivered if it were let through. */
	usleep(20000);
	handled_in_signal = handled;
}

static void takes_signals_with(uint32_t flags, int sa_flags)
{
	struct sigaction action = { .sa_handler = looks_at_uif, .sa_flags = sa_flags };

	if (sa_flags & SA_ONSTACK) {
		stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

		CHECK(!sigaltstack(&stack, NULL));
	}
	receives_with(flags);
	sigaction(SIGUSR1, &action, NULL);
}

static void takes_a_signal(void)
{
	for (int stack = 0; stack < 2; stack++) {
		handled = 0;
		if (stack)
			close(receiver);
		takes_signals_with(0, stack ? SA_ONSTACK : 0);
		raise(SIGUSR1);
		CHECK(uif_in_signal == 0 && handled_in_signal == 0);
		await(1);
		CHECK(_testui());
		/* Shut before is shut after. */
		_clui();
		raise(SIGUSR1);
		CHECK(uif_in_signal == 0 && !_testui() && handled == 1);
		_stui();
		await(2);
		if (stack)
			break;
		/* Index 0 is the first receiver's. */
		CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
	}
}

static void takes_a_signal_open(void)
{
	takes_signals_with(UINTR_IN_SIGNALS, 0);
	raise(SIGUSR1);
	CHECK(uif_in_signal == 1 && handled_in_signal == 1);
	CHECK(_testui());
}

static volatile int depth, deepest;

static void nests(int signal)
{
	CHECK(!_testui());
	depth++;
	if (depth > deepest)
		deepest = depth;
	if (signal < SIGRTMIN + 8)
		raise(signal + 1);
	else
		_senduipi(0);
	CHECK(!_testui() && !handled);
	depth--;
}

static void nests_signals(void)
{
	receives();
	for (int signal = SIGRTMIN; signal <= SIGRTMIN + 8; signal++)
		sigaction(signal, &(struct sigaction){ .sa_handler = nests }, NULL);
	raise(SIGRTMIN);
	CHECK(deepest == 9);
	await(1);
	CHECK(_testui());
}

/* There is no room for its frame, so SIGSEGV comes instead. */
static void takes_a_signal_without_a_frame(void)
{
	stack_t stack = { .ss_size = 1 << 16 };

	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack.ss_sp != MAP_FAILED && !sigaltstack(&stack, NULL));
	takes_signals_with(0, 0);
	sigaction(SIGSEGV, &(struct sigaction){ .sa_handler = looks_at_uif }, NULL);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_ONSTACK }, NULL);
	raise(SIGUSR1);
	CHECK(uif_in_signal == 0 && handled_in_signal == 0);
	await(1);
	CHECK(_testui());
}

static sigjmp_buf out;

static void jumps(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static void jumps_out_of_a_signal(void)
{
	receives();
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = jumps }, NULL);
	for (int i = 0; i < 100; i++) {
		if (!sigsetjmp(out, 1))
			raise(SIGUSR1);
		/* It left by its own way, and opens UIF itself. */
		CHECK(!_testui());
		_stui();
		send_to_itself();
	}
}

static void registers(int signal)
{
	(void)signal;
	receives();
	CHECK(_testui());
}

/* A frame from before the receiver says nothing of UIF. */
static void receives_in_a_signal(void)
{
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = registers }, NULL);
	raise(SIGUSR1);
	CHECK(_testui());
	send_to_itself();
}

static volatile int signalled;

static void counts(int signal)
{
	(void)signal;
	signalled++;
}

__attribute__((interrupt, target("general-regs-only")))
static void slow_handler(struct __uintr_frame *frame, unsigned long long number)
{
	(void)frame;
	(void)number;
	/* Signals come meanwhile. */
	for (volatile int i = 0; i < 2000000; i++)
		;
	if (_testui())
		last_vector = -1;
	handled++;
}

static void takes_signals_in_a_handler(void)
{
	struct uintr_receive args = { .handler = (uintptr_t)slow_handler };
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } };

	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = counts }, NULL);
	receiver = call(device, UINTR_RECEIVE, (uintptr_t)&args);
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
	_stui();
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	for (int i = 0; i < 20; i++) {
		_senduipi(0);
		await(i + 1);
	}
	CHECK(last_vector == 0 && signalled > 0);
	CHECK(_testui());
}

static void is_stopped(void)
{
	volatile int *heard = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	CHECK(heard != MAP_FAILED);
	receives();
	child = fork();
	if (!child) {
		pid_t parent = getppid();

		CHECK(call(vector, UINTR_CONNECT, 0) == 0);
		for (int i = 0; i < 50; i++) {
			CHECK(!kill(parent, SIGSTOP));
			await_state(parent, 'T');
			_senduipi(0);
			CHECK(!kill(parent, SIGCONT));
			while (*heard != i + 1)
				usleep(100);
		}
		_exit(0);
	}
	while (handled < 50)
		*heard = handled;
	*heard = 50;
	CHECK(status_of(child) == 0);
	send_to_itself();
}

static void is_traced(void)
{
	pid_t tracee;
	int status;

	tracee = fork();
	if (!tracee) {
		CHECK(!ptrace(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		receives();
		for (int i = 0; i < 200; i++)
			send_to_itself();
		_exit(handled == 200 ? 0 : 1);
	}
	CHECK(waitpid(tracee, &status, 0) == tracee && WIFSTOPPED(status));
	/* System call by system call, then some thousand instructions one by one, then free. */
	for (int i = 0; i < 20; i++) {
		CHECK(!ptrace(PTRACE_SYSCALL, tracee, 0, 0));
		CHECK(waitpid(tracee, &status, 0) == tracee);
		if (!WIFSTOPPED(status))
			break;
	}
	for (int i = 0; WIFSTOPPED(status) && i < 3000; i++) {
		CHECK(!ptrace(PTRACE_SINGLESTEP, tracee, 0, 0));
		CHECK(waitpid(tracee, &status, 0) == tracee);
	}
	if (WIFSTOPPED(status)) {
		CHECK(!ptrace(PTRACE_DETACH, tracee, 0, 0));
		CHECK(waitpid(tracee, &status, 0) == tracee);
	}
	CHECK(status == 0);
}

/* Whether a line of a file begins with @name; its number then. */
static long line_of(const char *folder, const char *name_of_file, const char *name)
{
	char path[128], line[256];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name_of_file);
	file = fopen(path, "r");
	CHECK(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			number = atol(line + strlen(name));
	fclose(file);
	CHECK(number >= 0);
	return number;
}

/* By its cgroup, asleep: a request does not wake it, again and again, until it is thawed. */
static void is_frozen(void)
{
	const char *group = "/sys/fs/cgroup/lives";
	char process[64], id[16];
	long switches;
	pid_t child;

	if (geteuid())
		skip("only root may freeze");
	if (access("/sys/fs/cgroup/cgroup.procs", F_OK))
		skip("there are no cgroups, or version 1's");
	CHECK(!pipe(pipe_ends));
	CHECK(!mkdir(group, 0755) || errno == EEXIST);
	receives();
	child = fork();
	if (!child) {
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		close(receiver);
		vector = 0;
		receives();
		CHECK(write(pipe_ends[1], &vector, sizeof(vector)) == sizeof(vector));
		while (!handled)
			poll(NULL, 0, 100);
		_exit(0);
	}
	CHECK(read(pipe_ends[0], &vector, sizeof(vector)) == sizeof(vector));
	vector = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, child, 0), vector, 0);
	CHECK(vector >= 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == 1);
	await_state(child, 'S');
	snprintf(id, sizeof(id), "%d", child);
	put(group, "cgroup.procs", id);
	put(group, "cgroup.freeze", "1");
	while (!line_of(group, "cgroup.events", "frozen "))
		usleep(1000);
	snprintf(process, sizeof(process), "/proc/%d", child);
	switches = line_of(process, "status", "voluntary_ctxt_switches:");
	_senduipi(1);
	for (int i = 0; i < 200; i++)
		usleep(1000);
	CHECK(line_of(process, "status", "voluntary_ctxt_switches:") - switches < 50);
	put(group, "cgroup.freeze", "0");
	CHECK(status_of(child) == 0);
	CHECK(!rmdir(group));
}

/* What the dump goes to, a program of the kernel's choosing: it reads slowly, so that the dump sleeps, and says whether all of it came. */
static int takes_core(const char *report)
{
	const size_t most = 64 << 20;
	char *core = malloc(most);
	size_t length = 0, whole = 0;
	const Elf64_Ehdr *head = (void *)core;
	const Elf64_Phdr *part = (void *)(core + sizeof(*head));
	ssize_t more;
	char done[128];
	int file;

	while ((more = read(0, core + length, most - length < 4096 ? most - length : 4096)) > 0) {
		length += more;
		if (length % (1 << 20) < 4096)
			usleep(1000);
	}
	for (int i = 0; length > sizeof(*head) && i < head->e_phnum; i++)
		if (part[i].p_offset + part[i].p_filesz > whole)
			whole = part[i].p_offset + part[i].p_filesz;
	snprintf(done, sizeof(done), "%s.part", report);
	file = open(done, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dprintf(file, "%zu %zu\n", length, whole);
	close(file);
	return rename(done, report);
}

/* Into a pipe, while it is sent to all the time: the core is whole. */
static void dumps_core(void)
{
	const char *report = "/tmp/lives.core", *setting = "/proc/sys/kernel/core_pattern";
	char self[256] = "", pattern[512], before[128] = "";
	size_t length = 0, whole = 0;
	pid_t child;
	FILE *file;
	int old;

	if (geteuid())
		skip("only root may say where cores go");
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(pattern, sizeof(pattern), "|%s --take-core %s", self, report);
	/* So long the kernel lets it be. */
	CHECK(strlen(pattern) < 127);
	old = open(setting, O_RDONLY);
	CHECK(old >= 0 && read(old, before, sizeof(before) - 1) > 0);
	close(old);
	unlink(report);
	CHECK(!pipe(pipe_ends));
	receives();
	child = fork();
	if (!child) {
		char *filled = malloc(8 << 20);

		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		CHECK(!setrlimit(RLIMIT_CORE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }));
		memset(filled, 1, 8 << 20);
		close(receiver);
		receives();
		CHECK(write(pipe_ends[1], &vector, sizeof(vector)) == sizeof(vector));
		await(1);
		abort();
	}
	CHECK(read(pipe_ends[0], &vector, sizeof(vector)) == sizeof(vector));
	vector = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, child, 0), vector, 0);
	CHECK(vector >= 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == 1);
	put("/proc/sys/kernel", "core_pattern", pattern);
	while (access(report, F_OK)) {
		_senduipi(1);
		usleep(100);
	}
	put("/proc/sys/kernel", "core_pattern", before);
	CHECK(status_of(child) == (SIGABRT | 0x80));
	file = fopen(report, "r");
	CHECK(file && fscanf(file, "%zu %zu", &length, &whole) == 2);
	printf("# %zu of %zu bytes\n", length, whole);
	CHECK(whole > (8 << 20) && length >= whole);
	fclose(file);
	unlink(report);
}

/* ---- what is used again ---- */

/*
 * In a process that can have no descriptor more, a vector is made and taken back again; its number may have become another's
 * meanwhile.
 */
static void fails_to_make_a_vector(void)
{
	pid_t child;

	receives();
	child = fork();
	if (!child) {
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		CHECK(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }));
		for (;;) {
			long result = call(receiver, UINTR_VECTOR, 7);

			CHECK(result == -EMFILE || result == -EBUSY);
		}
	}
	for (int i = 0; i < 5000; i++) {
		long file;

		goes_on();
		call(receiver, UINTR_REVOKE, 7);
		file = call(receiver, UINTR_VECTOR, 7);
		if (file < 0)
			continue;
		for (int tries = 0; tries < 3; tries++)
			CHECK(call(receiver, UINTR_VECTOR, 7) == -EBUSY);
		close(file);
	}
	CHECK(!kill(child, SIGKILL));
	CHECK(killed_by(status_of(child), SIGKILL));
}

static volatile bool foreign;

__attribute__((interrupt, target("general-regs-only")))
static void handler_of_1(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	foreign |= vector != 1;
}

__attribute__((interrupt, target("general-regs-only")))
static void handler_of_2(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	foreign |= vector != 2;
}

static volatile int vector_of[3];

/* Receives one vector for ever, and never another. */
static void *receives_one(void *number)
{
	long own = (long)number;
	struct uintr_receive args = { .handler = (uintptr_t)(own == 1 ? handler_of_1 : handler_of_2) };
	int file = call(device, UINTR_RECEIVE, (uintptr_t)&args);

	CHECK(file >= 0);
	vector_of[own] = call(file, UINTR_VECTOR, own);
	CHECK(vector_of[own] >= 0);
	for (;;) {
		_clui();
		CHECK(wait_until(file, -1) == 0);
		_stui();
	}
	return NULL;
}

/* The 4 bytes of SENDUIPI RAX. */
static void goes_on_behind_it(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 4;
}

static void *sends_index_0(void *nothing)
{
	for (;;)
		asm volatile("senduipi %%rax" : : "a" (0l) : "memory");
	return nothing;
}

/* One entry names this and that receiver in turn while it is sent through: no send takes a half of either. */
static void uses_an_entry_again(void)
{
	sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = goes_on_behind_it, .sa_flags = SA_SIGINFO }, NULL);
	on_thread(receives_one, (void *)1);
	on_thread(receives_one, (void *)2);
	while (!vector_of[1] || !vector_of[2])
		usleep(1000);
	CHECK(call(vector_of[1], UINTR_CONNECT, 0) == 0);
	on_thread(sends_index_0, NULL);
	on_thread(sends_index_0, NULL);
	for (int i = 0; i < 3000; i++) {
		goes_on();
		CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
		CHECK(call(vector_of[i % 2 ? 1 : 2], UINTR_CONNECT, 0) == 0);
		for (volatile int spins = i % 100; spins; spins--)
			;
	}
	CHECK(!foreign);
}

/* What was sent before is heard at the latest where it opens UIF; behind that there is nothing more. */
static void is_revoked_in_traffic(void)
{
	sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = goes_on_behind_it, .sa_flags = SA_SIGINFO }, NULL);
	receives();
	CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
	on_thread(sends_index_0, NULL);
	on_thread(sends_index_0, NULL);
	for (int i = 0; i < 300; i++) {
		int file = call(receiver, UINTR_VECTOR, 6), before = handled;

		goes_on();
		CHECK(call(file, UINTR_CONNECT, 0) == 0);
		await(before + 1);
		if (i % 2)
			close(file);
		else
			CHECK(call(receiver, UINTR_REVOKE, 6) == 0);
		_clui();
		while (wait_until(receiver, 0) == 0) {
			_stui();
			_clui();
		}
		before = handled;
		_stui();
		for (volatile int spins = 1000; spins; spins--)
			;
		CHECK(wait_until(receiver, 0) == -ETIMEDOUT && handled == before);
		if (!(i % 2))
			close(file);
		CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
	}
}

/* From a page that cannot be read: a driver that does SENDUIPI itself gives up, and the CPU does not mind. */
static void sends_from_an_unreadable_page(void)
{
	static const unsigned char code[] = { 0xf3, 0x0f, 0xc7, 0xf0, 0xc3 };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	CHECK(page != MAP_FAILED);
	memcpy(page, code, sizeof(code));
	/* By a protection key, where the CPU has them; else it stays readable. */
	CHECK(!mprotect(page, 4096, PROT_EXEC));
	receives();
	child = fork();
	if (!child) {
		CHECK(call(vector, UINTR_CONNECT, 0) == 0);
		asm volatile("call *%0" : : "r" (page), "a" (0l) : "memory", "cc");
		_exit(0);
	}
	status = status_of(child);
	if (killed_by(status, SIGILL)) {
		CHECK(line_of("/sys/module/uintr", "parameters/count_sends", "Y") == 0);
		return;
	}
	CHECK(status == 0);
	await(1);
}

/* ---- the stack ---- */

static void has_a_stack(void)
{
	const size_t size = 1 << 14;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uintr_receive args = {
		.handler = (uintptr_t)handler, .stack = (uintptr_t)stack, .stack_size = size,
	};

	CHECK(stack != MAP_FAILED);
	receiver = call(device, UINTR_RECEIVE, (uintptr_t)&args);
	CHECK(receiver >= 0);
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
	_stui();
	send_to_itself();
	CHECK(handler_sp > (uintptr_t)stack + size - 256 && handler_sp < (uintptr_t)stack + size);
	args.stack = args.stack_size = 0;
	CHECK(call(receiver, UINTR_STACK, (uintptr_t)&args) == 0);
	send_to_itself();
	CHECK(handler_sp < (uintptr_t)stack || handler_sp >= (uintptr_t)stack + size);
	args.stack = (uintptr_t)stack;
	args.stack_size = size;
	CHECK(call(receiver, UINTR_STACK, (uintptr_t)&args) == 0);
	usleep(1000);
	send_to_itself();
	CHECK(handler_sp > (uintptr_t)stack + size - 256 && handler_sp < (uintptr_t)stack + size);
}

/* ---- */

static const struct life {
	const char *name;
	void (*run)(void);
	int signal;  /* that ends it, 0 for none */
} lives[] = {
	{ "a receiver exits", exits, 0 },
	{ "a receiver exits with a request pending", exits_with_a_request, 0 },
	{ "a receiver is killed", is_killed, SIGKILL },
	{ "a receiver is closed, and its thread receives again", closes_and_comes_back, 0 },
	{ "a receiver is closed by another thread", is_closed_by_another_thread, 0 },
	{ "a receiver is closed by another thread while it sleeps", is_closed_asleep, 0 },
	{ "exec ends all, and closes the descriptors", executes, SIGILL },
	{ "exec in another thread", executes_in_another_thread, SIGILL },
	{ "a send to a receiver that has ended does nothing, and poll tells", sends_to_the_dead, 0 },
	{ "a child of fork has the descriptors and nothing else", forks, 0 },
	{ "a child of vfork has nothing", vforks, 0 },
	{ "threads made later send without a call", has_threads, 0 },
	{ "a connection outlives the thread that made it", loses_the_thread_that_connected, 0 },
	{ "another thread disconnects", disconnects_in_another_thread, SIGSEGV },
	{ "who has ended does not count, whoever keeps a vector", ends_and_does_not_count, 0 },
	{ "SENDUIPI without a connection is an invalid instruction", sends_without_a_connection, SIGILL },
	{ "SENDUIPI behind the table", sends_beyond_its_table, SIGSEGV },
	{ "SENDUIPI of an index that is not connected", sends_an_index_that_is_not_connected, SIGSEGV },
	{ "SENDUIPI of a vector that was revoked", is_revoked, SIGSEGV },
	{ "SENDUIPI of a vector whose last descriptor was closed", is_revoked_by_close, SIGSEGV },
	{ "256 connections and no more", connects_as_often_as_it_can, 0 },
	{ "64 vectors at once, the highest first", sends_all_vectors_at_once, 0 },
	{ "wrong calls", is_wrong, 0 },
	{ "a vector passes over a socket", passes_a_vector, 0 },
	{ "waiting", waits, 0 },
	{ "waiting in a time namespace", waits_in_a_time_namespace, 0 },
	{ "read(2) goes on after the handler", sleeps_in_read, 0 },
	{ "read(2), poll(2) and pause(2) end with EINTR if asked for", sleeps_in_read_and_is_interrupted, 0 },
	{ "io_uring_enter(2) ends with EINTR", sleeps_in_io_uring, 0 },
	{ "a call with a time-out ends with EINTR", sleeps_with_a_timeout, 0 },
	{ "who is frozen sleeps on", is_frozen, 0 },
	{ "a core is dumped to its end", dumps_core, 0 },
	{ "a request before the sleep is not slept on", sleeps_on_a_request, 0 },
	{ "who shut UIF sleeps on", sleeps_with_uif_shut, 0 },
	{ "UIF stays shut on a CPU where others open it", shares_its_cpu, 0 },
	{ "a signal's handler runs with UIF shut, and UIF comes back", takes_a_signal, 0 },
	{ "a signal's handler runs with UIF open if asked for", takes_a_signal_open, 0 },
	{ "a signal without a frame", takes_a_signal_without_a_frame, 0 },
	{ "nested signals", nests_signals, 0 },
	{ "a jump out of a signal's handler", jumps_out_of_a_signal, 0 },
	{ "a receiver is made in a signal's handler", receives_in_a_signal, 0 },
	{ "signals in a user interrupt's handler", takes_signals_in_a_handler, 0 },
	{ "SIGSTOP and SIGCONT", is_stopped, 0 },
	{ "ptrace, by system calls and single steps", is_traced, 0 },
	{ "a vector that cannot be made revokes no other", fails_to_make_a_vector, 0 },
	{ "an entry that is used again sends nobody another's vector", uses_an_entry_again, 0 },
	{ "behind a revocation nothing comes", is_revoked_in_traffic, 0 },
	{ "SENDUIPI on a page that cannot be read", sends_from_an_unreadable_page, 0 },
	{ "a stack for the handler", has_a_stack, 0 },
};

/* The driver's count of who uses it. */
static int users(void)
{
	char text[32] = "";
	int file = open("/sys/module/uintr/refcnt", O_RDONLY);

	CHECK(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
	close(file);
	return atoi(text);
}

int main(int argc, char **argv)
{
	int wrong = 0, n = sizeof(lives) / sizeof(*lives);

	setlinebuf(stdout);
	if (argc > 1 && !strcmp(argv[1], "--nothing"))
		return 0;
	if (argc == 2 && !strcmp(argv[1], "--leave-uif-open")) {
		cpu_set_t one;

		for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			/* A CPU may be off-line. */
			if (!sched_setaffinity(0, sizeof(one), &one))
				_stui();
		}
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--take-core"))
		return takes_core(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "--after-exec")) {
		after_exec(argv + 2);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--as")) {
		uid_t user = atoi(argv[2]);

		CHECK(!setresgid(user, user, user) && !setresuid(user, user, user));
	} else if (argc > 1) {
		fprintf(stderr, "usage: lives [--as USER-ID | --leave-uif-open]\n");
		return 2;
	}
	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		bool good, skipped;
		int status, left;
		pid_t child = fork();
		int64_t end;

		if (!child) {
			alarm(lives[i].run == waits || lives[i].run == takes_signals_in_a_handler ? 0 : LOST_AFTER);
			device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC);
			CHECK(device >= 0);
			lives[i].run();
			exit(0);
		}
		status = status_of(child);
		skipped = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
		good = skipped || (lives[i].signal ? killed_by(status, lives[i].signal) : status == 0);
		/* The last reference may be given back some time after its parent knows of a thread's end. */
		end = now() + LOST_AFTER * 1000000000ll;
		while ((left = users()) && now() < end)
			usleep(1000);
		if (!good)
			printf("# it ended with status %#x\n", status);
		if (left)
			printf("# %d references are left\n", left);
		wrong += !good || left;
		printf("%s %d - %s%s\n", good && !left ? "ok" : "not ok", i + 1, lives[i].name,
		       skipped ? " # SKIP" : "");
	}
	return wrong != 0;
}
