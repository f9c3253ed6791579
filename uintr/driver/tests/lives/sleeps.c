// SPDX-License-Identifier: MIT OR Apache-2.0
/* Asleep, in UINTR_WAIT and in other system calls. */
#include "shared.h"

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

const struct life sleeps[] = {
	{ .name = "waiting", .run = waits, .alarms = true },
	{ .name = "waiting in a time namespace", .run = waits_in_a_time_namespace },
	{ .name = "read(2) goes on after the handler", .run = sleeps_in_read },
	{ .name = "read(2), poll(2) and pause(2) end with EINTR if asked for", .run = sleeps_in_read_and_is_interrupted },
	{ .name = "io_uring_enter(2) ends with EINTR", .run = sleeps_in_io_uring },
	{ .name = "a call with a time-out ends with EINTR", .run = sleeps_with_a_timeout },
	{ .name = "a request before the sleep is not slept on", .run = sleeps_on_a_request },
	{ .name = "who shut UIF sleeps on", .run = sleeps_with_uif_shut },
	{ .name = "UIF stays shut on a CPU where others open it", .run = shares_its_cpu },
	{ 0 },
};
