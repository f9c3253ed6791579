// SPDX-License-Identifier: MIT OR Apache-2.0
/* Threads and processes that end, fork and execute other programs. */
#include "shared.h"

static int link_ends[2];

static void *lives_shortly(void *nothing)
{
	int file, index;

	CHECK(uintr_handle(handler, NULL, 0) == 0);
	file = uintr_vector_fd(1, 0);
	index = uintr_register_sender(file, 0);
	CHECK(file >= 0 && index >= 0);
	uintr_unmask();
	uintr_send(index);
	CHECK(uintr_unregister_sender(index, 0) == 0);
	CHECK(!close(file));
	return nothing;
}

static void keeps_nothing_of_a_thread(void)
{
	int before;

	receives();
	before = open_descriptors();
	for (int i = 0; i < 100; i++)
		CHECK(!pthread_join(on_thread(lives_shortly, NULL), NULL));
	CHECK(open_descriptors() == before);
}

static volatile int file_of_other = -1;
static volatile bool may_end;

static void *ends_when_told(void *nothing)
{
	CHECK(uintr_handle(handler, NULL, 0) == 0);
	file_of_other = uintr_vector_fd(1, 0);
	uintr_unmask();
	while (!may_end)
		sched_yield();
	return nothing;
}

static void is_told_of_a_threads_end(void)
{
	struct pollfd end;
	pthread_t thread;

	begins();
	thread = on_thread(ends_when_told, NULL);
	while (file_of_other < 0)
		sched_yield();
	end = (struct pollfd){ .fd = file_of_other };
	CHECK(uintr_register_sender(file_of_other, 0) == 0);
	CHECK(poll(&end, 1, 0) == 0);
	may_end = true;
	CHECK(poll(&end, 1, -1) == 1 && end.revents & POLLHUP);
	for (int i = 0; i < 1000; i++)
		uintr_send(0);
	CHECK(!pthread_join(thread, NULL));
	FAILS(uintr_register_sender(file_of_other, 0), ESHUTDOWN);
}

static void is_killed_soon(void)
{
	receives();
	gives(link_ends[1], vector);
	for (;;)
		pause();
}

/* In the middle of a sender's traffic. */
static void is_told_of_a_processs_end(void)
{
	begins();
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, link_ends));
	for (int i = 0; i < 30; i++) {
		pid_t child = on_child(is_killed_soon);
		struct pollfd end = { .fd = takes(link_ends[0]) };
		int index = uintr_register_sender(end.fd, 0);

		CHECK(index == 0);
		for (int k = 0; k < 100 * i; k++)
			uintr_send(index);
		CHECK(!kill(child, SIGKILL));
		while (poll(&end, 1, 0) == 0)
			uintr_send(index);
		CHECK(end.revents & POLLHUP && waitpid(child, NULL, 0) == child);
		CHECK(uintr_unregister_sender(index, 0) == 0 && !close(end.fd));
	}
}

static void executes_another_program(void)
{
	receives();
	gives(link_ends[1], vector);
	execl("/proc/self/exe", "conformance", "--after-exec", NULL);
	_exit(9);
}

/* Its descriptors tell at once, though the process lives on. */
static void is_told_of_an_exec(void)
{
	begins();
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link_ends));
	for (int i = 0; i < 20; i++) {
		pid_t child = on_child(executes_another_program);
		struct pollfd end = { .fd = takes(link_ends[0]) };
		int index = uintr_register_sender(end.fd, 0);

		/* It may have executed it by now. */
		CHECK(index == 0 || errno == ESHUTDOWN);
		while (poll(&end, 1, 0) == 0)
			if (index == 0)
				uintr_send(index);
		/* What was under way to it has ended nobody. */
		passes_some_time();
		CHECK(waitpid(child, NULL, WNOHANG) == 0);
		CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
		CHECK(index < 0 || uintr_unregister_sender(index, 0) == 0);
		CHECK(!close(end.fd));
	}
}

static void has_no_connection(void)
{
	signal(SIGILL, SIG_DFL);
	uintr_send(own_index);
}

static void connects_for_itself(void)
{
	/* The parent's thread is no receiver of the child's. */
	CHECK(!uintr_unmasked());
	FAILS(uintr_vector_fd(6, 0), EINVAL);
	CHECK(uintr_register_sender(vector, 0) == 0);
	uintr_send(0);
	CHECK(uintr_handle(handler, NULL, 0) == 0);
	CHECK(uintr_register_self(7, 0) == 1);
	uintr_unmask();
	uintr_send(1);
	await(1);
	CHECK(last_vector == 7);
}

static void leaves_a_child_nothing_but_descriptors(void)
{
	pid_t child;
	int status;

	receives();
	child = on_child(has_no_connection);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGILL);
	child = on_child(connects_for_itself);
	await(1);
	CHECK(ends_well(child));
	CHECK(handled == 1 && last_vector == 5);
	uintr_send(own_index);
	await(2);
}

static void lives_on(void)
{
	for (;;)
		pause();
}

/* The child that it made has no part in the receiver. */
static void ends_though_a_child_lives_on(void)
{
	struct pollfd end;
	pid_t child;

	receives();
	child = on_child(lives_on);
	end = (struct pollfd){ .fd = vector };
	CHECK(poll(&end, 1, 0) == 0);
	/* The child may not have come so far yet that it lets go. */
	CHECK(uintr_unregister_handler(0) == 0);
	CHECK(poll(&end, 1, -1) == 1 && end.revents & POLLHUP);
	uintr_send(own_index);
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
}

static volatile bool child_is_there, child_may_end;

/* The child has all descriptors, and this process's memory, until it executes or ends. */
static void *makes_a_child_that_does_not_execute_yet(void *nothing)
{
	pid_t child = vfork();

	if (!child) {
		child_is_there = true;
		while (!child_may_end)
			sched_yield();
		_exit(0);
	}
	CHECK(child > 0 && ends_well(child));
	return nothing;
}

static volatile bool may_stop;
static volatile uint64_t sent;

static void *sends_to_another_until_told(void *file)
{
	int index = uintr_register_sender((intptr_t)file, 0);

	CHECK(index >= 0);
	for (; !may_stop; sent++)
		uintr_send(index);
	CHECK(uintr_unregister_sender(index, 0) == 0);
	return NULL;
}

/* No handler runs behind the end, however long a child keeps what it inherited. */
static void ends_though_a_child_has_yet_to_execute(void)
{
	pthread_t child, sender;

	for (int i = 0; i < times / 40; i++) {
		uint64_t before;
		int seen;

		if (i)
			CHECK(uintr_handle(handler, NULL, 0) == 0 && (vector = uintr_vector_fd(5, 0)) >= 0);
		else
			receives();
		child_is_there = child_may_end = may_stop = false;
		sender = on_thread(sends_to_another_until_told, (void *)(intptr_t)vector);
		child = on_thread(makes_a_child_that_does_not_execute_yet, NULL);
		uintr_unmask();
		seen = handled;
		await(seen + 1);
		while (!child_is_there)
			sched_yield();
		CHECK(uintr_unregister_handler(0) == 0);
		seen = handled;
		before = sent;
		while (sent < before + 100)
			sched_yield();
		CHECK(handled == seen);
		may_stop = child_may_end = true;
		CHECK(!pthread_join(child, NULL) && !pthread_join(sender, NULL));
		CHECK(!close(vector));
	}
}

static bool sends;

static void sends_behind_the_making_of_a_child(void)
{
	if (sends)
		uintr_send(own_index);
	sends = false;
}

static void forks_itself(unsigned int number, void *argument)
{
	pid_t child = forks();

	if (!child)
		_exit(0);
	CHECK(ends_well(child));
	handler(number, argument);
}

/*
 * Before the library does: what is called in the parent is called in this order, and the library's
 * locks are held yet.
 */
__attribute__((constructor(101))) static void sends_in_forks(void)
{
	CHECK(!pthread_atfork(NULL, sends_behind_the_making_of_a_child, NULL));
}

/* A handler that forks waits for no lock that the fork holds which it interrupted. */
static void forks_in_a_handler_that_came_in_a_fork(void)
{
	begins();
	CHECK(uintr_handle(forks_itself, NULL, 0) == 0);
	own_index = uintr_register_self(5, 0);
	CHECK(own_index >= 0);
	uintr_unmask();
	for (int i = 1; i <= 20; i++) {
		pid_t child;

		sends = true;
		child = forks();
		if (!child)
			_exit(0);
		CHECK(ends_well(child));
		await(i);
		CHECK(uintr_unmasked());
	}
	CHECK(handled == 20);
}

static void *asks_what_it_could_start(void *nothing)
{
	while (!enough)
		CHECK(uintr_can_start(backend) == (int)backend);
	return nothing;
}

/* No child is left with a lock that a thread held which it does not have. */
static void forks_while_another_thread_asks(void)
{
	pthread_t asking = on_thread(asks_what_it_could_start, NULL);

	for (int i = 0; i < 100; i++)
		CHECK(ends_well(on_child(begins)));
	enough = true;
	CHECK(!pthread_join(asking, NULL));
}

static volatile uint64_t *turns;

static void sends_until_killed(void)
{
	CHECK(uintr_register_sender(vector, 0) == 0);
	for (;; ++*turns)
		uintr_send(0);
}

/* Wherever a sender was when it was killed, the others' still come. */
static void survives_killed_senders(void)
{
	turns = shared(4096);
	receives();
	for (int i = 0; i < 100; i++) {
		uint64_t before = *turns;
		pid_t child = on_child(sends_until_killed);
		int seen;

		while (*turns < before + 10 + i)
			sched_yield();
		CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
		uintr_mask();
		seen = handled;
		uintr_send(own_index);
		CHECK(uintr_wait_until(-1, 0) == 0);
		uintr_unmask();
		await(seen + 1);
	}
}

static void *unregisters_and_is_cancelled(void *index)
{
	pthread_cancel(pthread_self());
	uintr_unregister_sender((intptr_t)index, 0);
	pthread_testcancel();
	return NULL;
}

/* A thread that ends in a call takes no lock with it. */
static void is_cancelled_while_it_unregisters(void)
{
	pthread_t thread;
	void *result;

	receives();
	uintr_unmask();
	CHECK(!pthread_create(&thread, NULL, unregisters_and_is_cancelled, (void *)(intptr_t)uintr_register_self(4, 0)));
	CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED);
	own_index = uintr_register_self(4, 0);
	CHECK(own_index >= 0);
	uintr_send(own_index);
	await(1);
	CHECK(last_vector == 4);
}

const struct item ends[] = {
	{ "nothing is kept of a thread that has ended", keeps_nothing_of_a_thread, 0 },
	{ "a vector tells the end of its thread", is_told_of_a_threads_end, 0 },
	{ "a vector tells that its process was killed", is_told_of_a_processs_end, 0 },
	{ "a receiver executes another program in traffic", is_told_of_an_exec, 0 },
	{ "a child has nothing but descriptors", leaves_a_child_nothing_but_descriptors, 0 },
	{ "a receiver ends though a child of its process lives on", ends_though_a_child_lives_on, 0 },
	{ "a receiver ends though a child has yet to execute", ends_though_a_child_has_yet_to_execute, 0 },
	{ "a handler that comes in the middle of a fork may fork", forks_in_a_handler_that_came_in_a_fork, 0 },
	{ "a child begins that was made while another thread asked", forks_while_another_thread_asks, 0 },
	{ "a thread is cancelled while it unregisters", is_cancelled_while_it_unregisters, 0 },
	{ "senders are killed anywhere", survives_killed_senders, 0 },
	{ 0 },
};
