// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the cases share: a receiver that counts, others that send to it, and descriptors that are passed. */
#include "shared.h"
#include <dirent.h>

unsigned int backend;
int times = 4000;
volatile int handled;
volatile int last_vector;
int vector, own_index;

void handler(unsigned int vector, void *argument)
{
	last_vector = vector;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
	if (argument)
		++*(volatile int *)argument;
}

__attribute__((noreturn)) void skip(const char *reason)
{
	printf("# %s\n", reason);
	fflush(stdout);
	_exit(SKIPPED);
}

void begins(void)
{
	CHECK(uintr_start(backend) == (int)backend);
}

void receives_with(unsigned int flags)
{
	begins();
	CHECK(uintr_handle(handler, NULL, flags) == 0);
	vector = uintr_vector_fd(5, 0);
	CHECK(vector >= 0);
	own_index = uintr_register_sender(vector, 0);
	CHECK(own_index >= 0);
	CHECK(!uintr_unmasked());
	uintr_unmask();
}

void receives(void)
{
	receives_with(0);
}

void await(int times)
{
	while (handled < times)
		sched_yield();
}

int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

pid_t on_child(void (*run)(void))
{
	pid_t child = forks();

	if (!child) {
		run();
		_exit(0);
	}
	return child;
}

static void (*then)(void);

static void *acts_when_it_sleeps(void *thread)
{
	char path[64], line[256], *state;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", (long)(intptr_t)thread);
	do {
		FILE *file = fopen(path, "r");

		CHECK(file && fgets(line, sizeof(line), file));
		fclose(file);
		state = strrchr(line, ')');
		usleep(1000);
	} while (!state || state[2] != 'S');
	then();
	return NULL;
}

void once_i_sleep(void (*act)(void))
{
	then = act;
	pthread_detach(on_thread(acts_when_it_sleeps, (void *)(intptr_t)gettid()));
}

static void sends(void)
{
	uintr_send(own_index);
}

void sends_to_me_asleep(void)
{
	once_i_sleep(sends);
}

volatile bool enough;

void *sends_until_enough(void *nothing)
{
	while (!enough)
		uintr_send(own_index);
	return nothing;
}

void *shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

/* In which what is not to happen would. */
void passes_some_time(void)
{
	usleep(50000);
}

int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	CHECK(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}
