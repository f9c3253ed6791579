// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Ends a thread's part in user interrupts in every way there is, and calls the
 * module wrongly in every way it knows. Each case is a process of its own, after
 * which the module must hold nothing. Run as root where the module is loaded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86gprintrin.h>

#include "senduipi.h"

static volatile int handled;

__attribute__((interrupt, target("general-regs-only")))
static void handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	(void)vector;
	handled++;
}

#define CHECK(statement) \
	do { \
		if (!(statement)) { \
			fprintf(stderr, "ends: line %d: %s (errno %d)\n", __LINE__, #statement, errno); \
			_exit(1); \
		} \
	} while (0)

/* What the call gives, or the errno that it fails with, negative. */
static long call(int file, unsigned long command, unsigned long argument)
{
	long result = ioctl(file, command, argument);

	return result < 0 ? -errno : result;
}

static void bind_to(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	CHECK(!sched_setaffinity(0, sizeof(cpus), &cpus));
}

static int opened(void)
{
	int file = open("/dev/senduipi", O_RDWR);

	CHECK(file >= 0);
	return file;
}

/* The calling thread, bound, receives and may send to itself. */
static int receiving(void)
{
	int file = opened();

	bind_to(1);
	CHECK(call(file, SENDUIPI_RECEIVE, (unsigned long)handler) == 0);
	CHECK(call(file, SENDUIPI_CONNECT, 5) == 0);
	_stui();
	return file;
}

static void send_to_itself(void)
{
	int before = handled;

	_senduipi(0);
	while (handled == before)
		;
}

static void exits(void)
{
	receiving();
	send_to_itself();
}

static void leaves_and_comes_back(void)
{
	int file = receiving(), again;

	send_to_itself();
	CHECK(call(file, SENDUIPI_LEAVE, 0) == 0);
	CHECK(call(file, SENDUIPI_LEAVE, 0) == -ENOTCONN);
	/* The file goes on naming the receiver that is no more. */
	CHECK(call(file, SENDUIPI_RECEIVE, (unsigned long)handler) == -EBUSY);
	again = receiving();
	send_to_itself();
	CHECK(handled == 2);
	close(again);
	/* Its part is the thread's, not the file's. */
	send_to_itself();
}

static void is_killed(void)
{
	receiving();
	send_to_itself();
	raise(SIGKILL);
}

static void executes(void)
{
	char file[16];

	snprintf(file, sizeof(file), "%d", receiving());
	execl("/proc/self/exe", "ends", "--after-exec", file, NULL);
	CHECK(!"exec");
}

/* The file stays open, and the thread has nothing to do with the receiver that it names. */
static void after_exec(int file)
{
	CHECK(call(file, SENDUIPI_WAIT, 0) == -ENOTCONN);
	CHECK(call(file, SENDUIPI_LEAVE, 0) == -ENOTCONN);
}

static void *receives(void *file)
{
	*(int *)file = receiving();
	return NULL;
}

static void sends_to_the_dead(void)
{
	pthread_t thread;
	int file;
	long index;

	CHECK(!pthread_create(&thread, NULL, receives, &file));
	CHECK(!pthread_join(thread, NULL));
	bind_to(0);
	index = call(file, SENDUIPI_CONNECT, 9);
	CHECK(index == 0);
	for (int i = 0; i < 1000; i++)
		_senduipi(index);
	CHECK(!handled);
}

/* A child has no part, only the file; its SENDUIPI is an invalid instruction. */
static void forks(void)
{
	int file = receiving(), status;
	pid_t child = fork();

	if (!child) {
		CHECK(call(file, SENDUIPI_WAIT, 0) == -ENOTCONN);
		_senduipi(0);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL);
	send_to_itself();
}

static void is_moved(void)
{
	receiving();
	bind_to(0);
	for (;;)
		pause();
}

static void on_alarm(int signal)
{
	(void)signal;
}

static void waits(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	/* Again and again: the first may come before WAIT. */
	struct itimerval soon = { { 0, 100000 }, { 0, 100000 } };
	int file = receiving();

	_clui();
	/* What is pending is not slept on, though nobody will send again (H4). */
	_senduipi(0);
	CHECK(call(file, SENDUIPI_WAIT, 0) == 0 && !handled);
	_stui();
	_clui();
	CHECK(handled == 1);
	sigaction(SIGALRM, &action, NULL);
	CHECK(!setitimer(ITIMER_REAL, &soon, NULL));
	CHECK(call(file, SENDUIPI_WAIT, 0) == -EINTR);
	CHECK(handled == 1);
}

static void is_wrong(void)
{
	int file = opened(), other = opened();

	/* Not bound. */
	CHECK(call(file, SENDUIPI_RECEIVE, (unsigned long)handler) == -EINVAL);
	CHECK(call(file, SENDUIPI_CONNECT, 0) == -ENOTCONN);
	CHECK(call(file, SENDUIPI_WAIT, 0) == -ENOTCONN);
	CHECK(call(file, SENDUIPI_LEAVE, 0) == -ENOTCONN);
	CHECK(call(file, _IO('U', 9), 0) == -ENOTTY);
	bind_to(1);
	CHECK(call(file, SENDUIPI_RECEIVE, 0) == -EFAULT);
	CHECK(call(file, SENDUIPI_RECEIVE, -1ul) == -EFAULT);
	CHECK(call(file, SENDUIPI_RECEIVE, (unsigned long)handler) == 0);
	CHECK(call(other, SENDUIPI_RECEIVE, (unsigned long)handler) == -EBUSY);
	CHECK(call(file, SENDUIPI_CONNECT, 64) == -EINVAL);
	for (int i = 0; i < 16; i++)
		CHECK(call(file, SENDUIPI_CONNECT, 63) == i);
	CHECK(call(file, SENDUIPI_CONNECT, 63) == -ENOSPC);
}

static void sends_beyond_its_table(void)
{
	receiving();
	_senduipi(1);
}

static const struct end {
	const char *name;
	void (*run)(void);
	int signal;  /* that ends it, 0 for none */
} ends[] = {
	{ "exit", exits, 0 },
	{ "LEAVE, and once more", leaves_and_comes_back, 0 },
	{ "SIGKILL", is_killed, SIGKILL },
	{ "exec", executes, 0 },
	{ "receiver dead, sender alive", sends_to_the_dead, 0 },
	{ "fork", forks, 0 },
	{ "moved to another CPU", is_moved, SIGKILL },
	{ "WAIT", waits, 0 },
	{ "wrong calls", is_wrong, 0 },
	{ "index behind the table", sends_beyond_its_table, SIGSEGV },
};

/* The module's count of @what. */
static int held(const char *what)
{
	char path[128], text[32] = "";
	int file;

	snprintf(path, sizeof(path), "/sys/module/senduipi/parameters/%s", what);
	file = open(path, O_RDONLY);
	CHECK(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
	close(file);
	return atoi(text);
}

int main(int argc, char **argv)
{
	int wrong = 0;

	if (argc == 3 && !strcmp(argv[1], "--after-exec")) {
		after_exec(atoi(argv[2]));
		return 0;
	}
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		int status;
		bool good;
		pid_t child = fork();

		if (!child) {
			ends[i].run();
			_exit(0);
		}
		waitpid(child, &status, 0);
		good = ends[i].signal ? WIFSIGNALED(status) && WTERMSIG(status) == ends[i].signal : status == 0;
		/* A thread's last reference may be given back just after its parent knows of its end. */
		for (int tries = 0; tries < 1000 && (held("threads") || held("receivers")); tries++)
			usleep(1000);
		if (held("threads") || held("receivers"))
			good = false;
		printf("%s - %s\n", good ? "ok" : "not ok", ends[i].name);
		if (!good)
			printf("#   status %x, threads %d, receivers %d\n", status, held("threads"), held("receivers"));
		wrong += !good;
	}
	return wrong != 0;
}
