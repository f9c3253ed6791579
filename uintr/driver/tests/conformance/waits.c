// SPDX-License-Identifier: MIT OR Apache-2.0
/* Asleep: in uintr_wait_until(), and in other system calls. */
#include "shared.h"
#include <sys/eventfd.h>
#include <sys/epoll.h>

static void on_alarm(int signal)
{
	(void)signal;
}

static void waits_for(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	int64_t start;

	receives();
	uintr_mask();
	/* What is pending is not slept on, though nobody will send again. */
	uintr_send(own_index);
	CHECK(uintr_wait_until(-1, 0) == 0 && !handled && !uintr_unmasked());
	uintr_unmask();
	await(1);
	uintr_mask();
	FAILS(uintr_wait_until(0, 0), ETIMEDOUT);
	start = now();
	FAILS(uintr_wait_until(start + 20000000, 0), ETIMEDOUT);
	CHECK(now() >= start + 20000000);
	sends_to_me_asleep();
	CHECK(uintr_wait_until(-1, 0) == 0 && handled == 1);
	uintr_unmask();
	await(2);
	uintr_mask();
	FAILS(uintr_wait_until(-1, 1), EINVAL);
	sigaction(SIGALRM, &action, NULL);
	ualarm(100000, 100000);
	FAILS(uintr_wait_until(-1, 0), EINTR);
	CHECK(handled == 2);
}

static void waits_unmasked(void)
{
	receives();
	sends_to_me_asleep();
	CHECK(uintr_wait_until(-1, 0) == 0 || errno == EINTR);
	await(1);
	CHECK(uintr_unmasked());
}

static int pipe_ends[2];

static void *sends_and_then_writes(void *nothing)
{
	sends_to_me_asleep();
	(void)nothing;
	return NULL;
}

static void *writes_once_handled(void *nothing)
{
	await(1);
	CHECK(write(pipe_ends[1], "x", 1) == 1);
	return nothing;
}

static void goes_on_with_what_it_slept_in(void)
{
	char byte;

	receives();
	CHECK(!pipe(pipe_ends));
	sends_to_me_asleep();
	on_thread(writes_once_handled, NULL);
	CHECK(read(pipe_ends[0], &byte, 1) == 1 && handled == 1);
}

static void is_interrupted_if_it_asked(void)
{
	char byte;

	receives_with(UINTR_HANDLER_FLAG_WAITING_ANY);
	CHECK(!pipe(pipe_ends));
	sends_and_then_writes(NULL);
	FAILS(read(pipe_ends[0], &byte, 1), EINTR);
	CHECK(handled == 1);
	sends_to_me_asleep();
	FAILS(poll(NULL, 0, -1), EINTR);
	CHECK(handled == 2);
	sends_to_me_asleep();
	FAILS(pause(), EINTR);
	CHECK(handled == 3);
}

static void is_interrupted_in_any_case(void)
{
	struct epoll_event event;
	int loop = epoll_create1(0);

	receives();
	sends_to_me_asleep();
	FAILS(nanosleep(&(struct timespec){ 1000, 0 }, NULL), EINTR);
	sends_to_me_asleep();
	FAILS(epoll_wait(loop, &event, 1, -1), EINTR);
	CHECK(handled == 2);
}

static void *sends_to_the_loop(void *file)
{
	uint64_t one = 1;

	await(1);
	CHECK(write((int)(intptr_t)file, &one, sizeof(one)) == sizeof(one));
	return NULL;
}

/* By signals nothing can, and that is said. */
static void goes_on_with_a_loop_if_it_asked(void)
{
	int loop = epoll_create1(0), file = eventfd(0, EFD_NONBLOCK);
	struct epoll_event event = { .events = EPOLLIN };

	begins();
	FAILS(uintr_handle(handler, NULL, UINTR_HANDLER_FLAG_RESUMES | UINTR_HANDLER_FLAG_WAITING_ANY), EINVAL);
	if (backend == UINTR_SIGNALS) {
		FAILS(uintr_handle(handler, NULL, UINTR_HANDLER_FLAG_RESUMES), ENOTSUP);
		receives();
		return;
	}
	receives_with(UINTR_HANDLER_FLAG_RESUMES);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, file, &event));
	sends_to_me_asleep();
	on_thread(sends_to_the_loop, (void *)(intptr_t)file);
	CHECK(epoll_wait(loop, &event, 1, -1) == 1 && handled == 1);
	/* With a time-out it is as it was. */
	sends_to_me_asleep();
	CHECK(read(file, &(uint64_t){ 0 }, 8) == 8);
	FAILS(epoll_wait(loop, &event, 1, 1000 * LOST_AFTER), EINTR);
	CHECK(handled == 2);
}

static void *writes_later(void *nothing)
{
	passes_some_time();
	passes_some_time();
	CHECK(write(pipe_ends[1], "x", 1) == 1);
	return nothing;
}

static void sleeps_on_while_masked(void)
{
	char byte;

	receives_with(UINTR_HANDLER_FLAG_WAITING_ANY);
	CHECK(!pipe(pipe_ends));
	uintr_mask();
	sends_to_me_asleep();
	on_thread(writes_later, NULL);
	CHECK(read(pipe_ends[0], &byte, 1) == 1);
	CHECK(handled == 0);
	uintr_unmask();
	/* Asleep: who sends may not have seen it so yet. */
	while (handled < 1)
		usleep(1000);
}

static int two[2];

static void *closes_one_and_sends_by_the_other(void *nothing)
{
	int index;

	passes_some_time();
	close(two[0]);
	passes_some_time();
	index = uintr_register_sender(two[1], 0);
	CHECK(index >= 0);
	uintr_send(index);
	return nothing;
}

static void sleeps_on_behind_a_last_close(void)
{
	receives();
	uintr_mask();
	for (int vector = 0; vector < 2; vector++)
		two[vector] = uintr_vector_fd(20 + vector, 0);
	on_thread(closes_one_and_sends_by_the_other, NULL);
	CHECK(uintr_wait_until(-1, 0) == 0 && handled == 0);
	uintr_unmask();
	await(1);
}

static void masks_and_unmasks(int signal)
{
	(void)signal;
	uintr_mask();
	uintr_unmask();
}

/* It went round without end, and looked at no clock. */
static void ends_in_time_whatever_a_handler_does_to_the_flag(void)
{
	struct sigaction action = { .sa_handler = masks_and_unmasks, .sa_flags = SA_RESTART };
	struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
	struct sigevent told = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	timer_t timer;

	receives();
	sigaddset(&action.sa_mask, uintr_signal());
	CHECK(!sigaction(SIGUSR2, &action, NULL));
	CHECK(!timer_create(CLOCK_MONOTONIC, &told, &timer) && !timer_settime(timer, 0, &often, NULL));
	for (int i = 0; i < 20; i++)
		CHECK(uintr_wait_until(now() + 20000000, 0) == -1 && (errno == ETIMEDOUT || errno == EINTR));
	timer_delete(timer);
}

static int loop, file;

static void makes_a_loop(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	loop = epoll_create1(0);
	file = eventfd(0, EFD_NONBLOCK);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, file, &event));
}

static void *writes_when_it_sleeps(void *nothing)
{
	uint64_t one = 1;

	passes_some_time();
	CHECK(write(file, &one, sizeof(one)) == sizeof(one));
	return nothing;
}

static void loops_masked(void)
{
	struct epoll_event event;
	uint64_t count;
	int64_t start;

	receives();
	makes_a_loop();
	uintr_mask();
	/* What is pending is not slept on, though nobody will send again. */
	uintr_send(own_index);
	FAILS(uintr_epoll_wait(loop, &event, 1, -1), EINTR);
	CHECK(!handled && !uintr_unmasked());
	uintr_unmask();
	await(1);
	uintr_mask();
	/* epoll_wait(2) would sleep on. */
	sends_to_me_asleep();
	FAILS(uintr_epoll_wait(loop, &event, 1, -1), EINTR);
	CHECK(handled == 1);
	uintr_unmask();
	await(2);
	uintr_mask();
	on_thread(writes_when_it_sleeps, NULL);
	CHECK(uintr_epoll_wait(loop, &event, 1, -1) == 1 && event.events == EPOLLIN);
	/* Both: what can be read is told first, and then, when it was, the other. */
	uintr_send(own_index);
	CHECK(uintr_epoll_wait(loop, &event, 1, -1) == 1);
	CHECK(uintr_wait_fd(file, -1, 0) == 1);
	CHECK(read(file, &count, sizeof(count)) == sizeof(count));
	FAILS(uintr_epoll_wait(loop, &event, 1, -1), EINTR);
	CHECK(uintr_wait_fd(file, -1, 0) == 0);
	CHECK(handled == 2);
	uintr_unmask();
	await(3);
	uintr_mask();
	CHECK(uintr_epoll_wait(loop, &event, 1, 0) == 0);
	start = now();
	CHECK(uintr_epoll_wait(loop, &event, 1, 20) == 0 && now() >= start + 20000000);
	FAILS(uintr_wait_fd(file, start, 0), ETIMEDOUT);
	CHECK(handled == 3 && !uintr_unmasked());
}

static void loops_with_wrong_arguments(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct epoll_event event;

	FAILS(uintr_wait_fd(0, -1, 0), EINVAL);
	receives();
	makes_a_loop();
	uintr_mask();
	FAILS(uintr_wait_fd(file, -1, 1), EINVAL);
	FAILS(uintr_wait_fd(-1, -1, 0), EBADF);
	FAILS(uintr_wait_fd(1000, -1, 0), EBADF);
	FAILS(uintr_epoll_wait(1000, &event, 1, -1), EBADF);
	FAILS(uintr_epoll_wait(file, &event, 1, -1), EINVAL);
	FAILS(uintr_epoll_wait(loop, &event, 0, -1), EINVAL);
	sigaction(SIGALRM, &action, NULL);
	ualarm(100000, 100000);
	FAILS(uintr_epoll_wait(loop, &event, 1, -1), EINTR);
	CHECK(!handled);
	/* Unmasked the handler runs within. */
	ualarm(0, 0);
	uintr_unmask();
	sends_to_me_asleep();
	CHECK(uintr_wait_fd(file, -1, 0) == 0 || errno == EINTR);
	await(1);
	CHECK(uintr_unmasked());
}

const struct item waits[] = {
	{ "waiting", waits_for, 0 },
	{ "waiting unmasked, the handler runs", waits_unmasked, 0 },
	{ "read(2) goes on behind the handler", goes_on_with_what_it_slept_in, 0 },
	{ "read(2), poll(2) and pause(2) end with EINTR if asked for", is_interrupted_if_it_asked, 0 },
	{ "nanosleep(2) and epoll_wait(2) end with EINTR", is_interrupted_in_any_case, 0 },
	{ "epoll_wait(2) goes on behind the handler if asked for, or that is refused", goes_on_with_a_loop_if_it_asked, 0 },
	{ "a masked loop is woken, for what is sent and for what can be read", loops_masked, 0 },
	{ "a masked loop is told what is wrong, and of signals", loops_with_wrong_arguments, 0 },
	{ "who is masked sleeps on", sleeps_on_while_masked, 0 },
	{ "who waits sleeps on where another vector's last descriptor is closed", sleeps_on_behind_a_last_close, 0 },
	{ "a wait ends in time whatever a signal's handler does to the flag", ends_in_time_whatever_a_handler_does_to_the_flag, 0 },
	{ 0 },
};
