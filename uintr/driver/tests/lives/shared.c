// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the promises share: a thread that receives and sends to itself, others that send to it, and what is known of processes. */
#include "shared.h"

volatile int handled, last_vector;
volatile uint64_t handler_sp;

__attribute__((interrupt, target("general-regs-only")))
void handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	handler_sp = (uint64_t)__builtin_frame_address(0);
	last_vector = vector;
	handled++;
}

/* Where a case that takes long on a busy host has come a step further. */
void goes_on(void)
{
	alarm(LOST_AFTER);
}

/* For want of something that is not the driver's. */
__attribute__((noreturn))
void skip(const char *reason)
{
	printf("# %s\n", reason);
	fflush(stdout);
	_exit(SKIPPED);
}

/* What the call gives, or the errno that it fails with, negative. */
long call(int file, unsigned long command, unsigned long argument)
{
	long result = ioctl(file, command, argument);

	return result < 0 ? -errno : result;
}

int device;

long receive(uint32_t flags)
{
	struct uintr_receive args = { .handler = (uintptr_t)handler, .flags = flags };

	return call(device, UINTR_RECEIVE, (uintptr_t)&args);
}

long wait_until(int receiver, int64_t deadline)
{
	struct uintr_wait args = { .deadline = deadline };

	return call(receiver, UINTR_WAIT, (uintptr_t)&args);
}

int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

int receiver, vector;

/* The calling thread receives, and may send vector 5 to itself with index 0. */
void receives_with(uint32_t flags)
{
	receiver = receive(flags);
	CHECK(receiver >= 0);
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(vector >= 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
	CHECK(!_testui());
	_stui();
}

void receives(void)
{
	receives_with(0);
}

/* Until the handler has run @times; the test's own time-out ends a wait in vain. */
void await(int times)
{
	while (handled < times)
		__builtin_ia32_pause();
}

void send_to_itself(void)
{
	int before = handled;

	_senduipi(0);
	await(before + 1);
	CHECK(last_vector == 5);
}

void on_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, run, argument));
	CHECK(!pthread_detach(thread));
}

/* Until the kernel says this of the thread @tid: S it sleeps, T it was stopped. */
void await_state(pid_t tid, char wanted)
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

void put(const char *folder, const char *file, const char *text)
{
	char path[128];
	int open_file;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	open_file = open(path, O_WRONLY);
	CHECK(open_file >= 0);
	CHECK(write(open_file, text, strlen(text)) == (ssize_t)strlen(text));
	close(open_file);
}

pid_t receiving_thread;

/* Sends once the receiving thread sleeps, from another thread of the process. */
void *sends_to_sleeper(void *nothing)
{
	await_state(receiving_thread, 'S');
	_senduipi(0);
	return nothing;
}

void goes_off_asleep(void)
{
	receiving_thread = gettid();
	on_thread(sends_to_sleeper, NULL);
}

int pipe_ends[2];

int status_of(pid_t child)
{
	int status;

	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

bool killed_by(int status, int signal)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

void on_signal(int signal)
{
	(void)signal;
}

/* Whether a line of a file begins with @name; its number then. */
long line_of(const char *folder, const char *name_of_file, const char *name)
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

/* The calling thread stays on this CPU. */
void runs_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set));
}

/* Of the kind @name of /proc/interrupts, of a CPU so far. */
long interrupts_of(const char *name, int cpu)
{
	char line[4096], *next = NULL;
	FILE *file = fopen("/proc/interrupts", "r");
	long number = -1;

	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, name);

		if (!at)
			continue;
		for (at += strlen(name); cpu >= 0; at = next, cpu--)
			number = strtol(at, &next, 10);
	}
	fclose(file);
	CHECK(number >= 0);
	return number;
}
