// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Traffic in which nothing but what is sent helps: each sender sends again when its last was handled, so that the handler
 * runs exactly as often as was sent, and one that is lost stands still.
 */
#include "shared.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define SENDERS		3

static volatile uint32_t *answered;
/* Whether they write to eventfds, and the kernel sends. */
static bool by_eventfd;
static int files[SENDERS];
static pid_t children[SENDERS];

static uint64_t draws(uint64_t *random)
{
	*random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
	return *random;
}

static void spins(uint64_t turns)
{
	while (turns--)
		__asm__ volatile("" : : : "memory");
}

static void counts_for_the_sender(unsigned int number, void *argument)
{
	(void)argument;
	handled++;
	__atomic_add_fetch(&answered[number * 16], 1, __ATOMIC_RELEASE);
}

static void sends_and_waits_for_the_answer(int number)
{
	uint64_t random = 88172645463325252ull * (number + 1), one = 1;
	int index = by_eventfd ? 0 : uintr_register_sender(files[number], 0);

	CHECK(index == 0);
	for (int i = 1; i <= times; i++) {
		if (by_eventfd)
			CHECK(write(files[number], &one, sizeof(one)) == sizeof(one));
		else
			uintr_send(index);
		while (__atomic_load_n(&answered[number * 16], __ATOMIC_ACQUIRE) != (uint32_t)i)
			sched_yield();
		spins(draws(&random) & 2047);
		if (random % 64 == 0)
			usleep(random >> 8 & 127);
	}
}

static void is_sent_to_by(int senders)
{
	begins();
	answered = shared(4096);
	CHECK(uintr_handle(counts_for_the_sender, NULL, 0) == 0);
	for (int i = 0; i < senders; i++) {
		files[i] = by_eventfd ? eventfd(0, 0) : uintr_vector_fd(i, 0);
		CHECK(files[i] >= 0 && (!by_eventfd || uintr_vector_eventfd(i, files[i], 0) == 0));
	}
	uintr_unmask();
	for (int i = 0; i < senders; i++) {
		children[i] = forks();
		if (!children[i]) {
			sends_and_waits_for_the_answer(i);
			_exit(0);
		}
	}
}

static void has_handled_all_of(int senders)
{
	for (int i = 0; i < senders; i++)
		CHECK(ends_well(children[i]));
	passes_some_time();
	CHECK(handled == senders * times);
}

static void only_runs(int senders)
{
	is_sent_to_by(senders);
	/* Without any call: nobody but the senders has the handler run. */
	while (handled < senders * times)
		spins(1);
	has_handled_all_of(senders);
}

static void only_runs_for_one(void)
{
	only_runs(1);
}

static void only_runs_for_three(void)
{
	only_runs(SENDERS);
}

static void only_waits(void)
{
	is_sent_to_by(1);
	uintr_mask();
	while (handled < times) {
		CHECK(uintr_wait_until(-1, 0) == 0);
		uintr_unmask();
		uintr_mask();
	}
	has_handled_all_of(1);
}

static int echoes;

/* Asked by the loop, once for each that was handled: two sources that both may be lost. */
static void *answers_by_the_loop(void *line)
{
	char byte;

	while (read((int)(intptr_t)line, &byte, 1) == 1)
		CHECK(write((int)(intptr_t)line, &byte, 1) == 1);
	return NULL;
}

/* The flag is shut from each look until the sleep, as pselect(2) has signals. */
static void only_loops(void)
{
	int loop = epoll_create1(0), line[2];
	struct epoll_event event = { .events = EPOLLIN };
	char byte = 0;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, line) && !epoll_ctl(loop, EPOLL_CTL_ADD, line[0], &event));
	is_sent_to_by(1);
	on_thread(answers_by_the_loop, (void *)(intptr_t)line[1]);
	for (int asked = 0; uintr_mask(), handled < times || echoes < times;) {
		int count;

		for (; asked < handled; asked++)
			CHECK(write(line[0], &byte, 1) == 1);
		count = uintr_epoll_wait(loop, &event, 1, -1);
		CHECK(count == 1 || (count == -1 && errno == EINTR));
		if (count == 1)
			CHECK(read(line[0], &byte, 1) == 1 && ++echoes);
		uintr_unmask();
	}
	uintr_unmask();
	has_handled_all_of(1);
}

/* Shut and opened once around each, wherever the sender is meanwhile; then it only runs. */
static void is_masked_for_a_while(void)
{
	uint64_t random = 362436069362436069ull;

	is_sent_to_by(1);
	for (int i = 0; i < times; i++) {
		spins(draws(&random) & 2047);
		uintr_mask();
		spins(random >> 16 & 511);
		uintr_unmask();
		while (handled <= i)
			spins(1);
	}
	has_handled_all_of(1);
}

static void does_everything(void)
{
	uint64_t random = 362436069362436069ull;

	is_sent_to_by(SENDERS);
	while (handled < SENDERS * times) {
		switch (draws(&random) % 4) {
		case 0:
			uintr_mask();
			if (handled < SENDERS * times)
				CHECK(uintr_wait_until(-1, 0) == 0);
			uintr_unmask();
			break;
		case 1:
			uintr_mask();
			spins(random >> 8 & 1023);
			uintr_unmask();
			break;
		case 2:
			nanosleep(&(struct timespec){ 0, 50000 }, NULL);
			break;
		default:
			spins(random >> 8 & 4095);
		}
	}
	has_handled_all_of(SENDERS);
}

static void only_runs_for_an_eventfd(void)
{
	by_eventfd = true;
	only_runs(1);
}

static void only_waits_for_an_eventfd(void)
{
	by_eventfd = true;
	only_waits();
}

static void does_everything_for_eventfds(void)
{
	by_eventfd = true;
	does_everything();
}

const struct item storms[] = {
	{ "many to one that only runs, each handled alone", only_runs_for_one, 0 },
	{ "many of three senders to one that only runs", only_runs_for_three, 0 },
	{ "many to one that only waits", only_waits, 0 },
	{ "many to one that loops masked, with a descriptor beside it", only_loops, 0 },
	{ "many to one that masks around each", is_masked_for_a_while, 0 },
	{ "many of three senders to one that runs, masks, waits and sleeps", does_everything, 0 },
	{ "many written to an eventfd of one that only runs, each handled alone", only_runs_for_an_eventfd, 0 },
	{ "many written to an eventfd of one that only waits", only_waits_for_an_eventfd, 0 },
	{ "many written to three eventfds of one that runs, masks, waits and sleeps", does_everything_for_eventfds, 0 },
	{ 0 },
};
