// SPDX-License-Identifier: MIT OR Apache-2.0
/* The kernel as sender: what is written to an eventfd, by programs and by the kernel, comes as a vector. */
#include "shared.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

enum { KNOCK = 11 };

static int event;

static void is_given_an_eventfd(void)
{
	receives();
	event = eventfd(0, EFD_NONBLOCK);
	CHECK(event >= 0 && uintr_vector_eventfd(KNOCK, event, 0) == 0);
}

static void writes(int fd)
{
	CHECK(eventfd_write(fd, 1) == 0);
}

/* Each once the last was handled. */
static void *writes_for_each(void *nothing)
{
	for (int i = 0; i < 1000; i++) {
		await(i);
		writes(event);
	}
	return nothing;
}

static void comes_to_who_runs(void)
{
	pthread_t other;

	is_given_an_eventfd();
	other = on_thread(writes_for_each, NULL);
	/* Without a call. */
	while (handled < 1000)
		;
	CHECK(!pthread_join(other, NULL));
	CHECK(handled == 1000 && last_vector == KNOCK && uintr_unmasked());
}

static void comes_to_who_writes(void)
{
	is_given_an_eventfd();
	for (int i = 1; i <= 100; i++) {
		writes(event);
		await(i);
	}
}

static void writes_one(void)
{
	writes(event);
}

static void ends_a_wait(void)
{
	is_given_an_eventfd();
	uintr_mask();
	once_i_sleep(writes_one);
	while (uintr_wait_until(-1, 0))
		CHECK(errno == EINTR);
	CHECK(handled == 0);
	uintr_unmask();
	await(1);
}

static void ends_a_sleep(void)
{
	is_given_an_eventfd();
	once_i_sleep(writes_one);
	FAILS(nanosleep(&(struct timespec){ 1000, 0 }, NULL), EINTR);
	await(1);
}

static void was_written_before(void)
{
	receives();
	event = eventfd(3, EFD_NONBLOCK);
	CHECK(uintr_vector_eventfd(KNOCK, event, 0) == 0);
	await(1);
	passes_some_time();
	CHECK(handled == 1);
}

/*
 * By signals a thread sends, which may be late, but not out of order: behind @mark's vector there
 * is nothing more of before.
 */
static void has_heard_all_before(int mark)
{
	last_vector = -1;
	writes(mark);
	while (last_vector != KNOCK - 1)
		sched_yield();
	uintr_mask();
	uintr_unmask();
}

static void keeps_its_count(void)
{
	int before, mark = eventfd(0, 0);
	eventfd_t count;

	is_given_an_eventfd();
	CHECK(uintr_vector_eventfd(KNOCK - 1, mark, 0) == 0);
	uintr_mask();
	for (int i = 0; i < 3; i++)
		writes(event);
	while (uintr_wait_until(-1, 0))
		CHECK(errno == EINTR);
	CHECK(handled == 0);
	uintr_unmask();
	has_heard_all_before(mark);
	before = handled;
	CHECK(before >= 2 && before <= 4 && eventfd_read(event, &count) == 0 && count == 3);
	/* It is no write when somebody has read. */
	has_heard_all_before(mark);
	CHECK(handled == before + 1);
	writes(event);
	await(before + 2);
}

static void has_one_sender(void)
{
	int other = eventfd(0, 0), descriptor;

	is_given_an_eventfd();
	FAILS(uintr_vector_eventfd(KNOCK, other, 0), EBUSY);
	FAILS(uintr_vector_fd(KNOCK, 0), EBUSY);
	FAILS(uintr_vector_eventfd(5, other, 0), EBUSY);
	/* One eventfd may be several vectors'. */
	CHECK(uintr_vector_eventfd(KNOCK + 1, event, 0) == 0);
	writes(event);
	await(2);
	CHECK(uintr_revoke(KNOCK, 0) == 0);
	FAILS(uintr_revoke(KNOCK, 0), EINVAL);
	CHECK(uintr_revoke(KNOCK + 1, 0) == 0);
	writes(event);
	passes_some_time();
	CHECK(handled == 2);
	/* The vector is free, for either. */
	CHECK(uintr_vector_eventfd(KNOCK, other, 0) == 0);
	writes(other);
	await(3);
	CHECK(uintr_revoke(KNOCK, 0) == 0);
	descriptor = uintr_vector_fd(KNOCK, 0);
	CHECK(descriptor >= 0);
	FAILS(uintr_vector_eventfd(KNOCK, other, 0), EBUSY);
}

static void revokes_what_was_given(unsigned int number, void *argument)
{
	handler(number, argument);
	CHECK(!uintr_revoke(KNOCK, 0) || errno == EINVAL);
	FAILS(uintr_unregister_handler(0), EBUSY);
}

/* Handlers that come in the middle of it, and revoke. */
static void is_revoked_while_it_is_given(void)
{
	pthread_t sender;
	int before;

	begins();
	event = eventfd(1, EFD_NONBLOCK);
	CHECK(uintr_handle(revokes_what_was_given, NULL, 0) == 0);
	own_index = uintr_register_self(5, 0);
	uintr_unmask();
	/* The first makes what stays. */
	CHECK(uintr_vector_eventfd(KNOCK, event, 0) == 0);
	await(1);
	before = open_descriptors();
	sender = on_thread(sends_until_enough, NULL);
	for (int i = 0; i < 300 || handled < 300; i++) {
		CHECK(uintr_vector_eventfd(KNOCK, event, 0) == 0);
		CHECK(!uintr_revoke(KNOCK, 0) || errno == EINVAL);
	}
	enough = true;
	CHECK(!pthread_join(sender, NULL));
	/* Nothing is left of any, and the vector is free. */
	CHECK(open_descriptors() == before);
	uintr_mask();
	CHECK(uintr_vector_eventfd(KNOCK, event, 0) == 0);
	FAILS(uintr_vector_eventfd(KNOCK, event, 0), EBUSY);
}

static void in_a_child(void)
{
	int before = handled;

	/* It is nobody's vector here, and the parent's yet. */
	writes(event);
	passes_some_time();
	CHECK(handled == before);
	begins();
	CHECK(uintr_handle(handler, NULL, 0) == 0 && uintr_vector_eventfd(KNOCK, event, 0) == 0);
}

static void lives_as_long_as_its_vector(void)
{
	int other, before;

	is_given_an_eventfd();
	CHECK(ends_well(on_child(in_a_child)));
	await(1);
	/* Whoever closes what. */
	other = dup(event);
	close(event);
	passes_some_time();
	handled = 0;
	writes(other);
	await(1);
	CHECK(uintr_unregister_handler(0) == 0);
	writes(other);
	CHECK(uintr_handle(handler, NULL, 0) == 0);
	uintr_unmask();
	writes(other);
	passes_some_time();
	CHECK(handled == 1);
	/* Nothing is left of it: the first makes what stays. */
	before = open_descriptors();
	for (int i = 0; i < 100; i++)
		CHECK(uintr_vector_eventfd(KNOCK, other, 0) == 0 && uintr_revoke(KNOCK, 0) == 0);
	CHECK(open_descriptors() == before);
}

static void serves_as_many_as_there_are(void)
{
	int events[UINTR_VECTORS];

	receives();
	uintr_revoke(5, 0);
	for (int i = 0; i < UINTR_VECTORS; i++) {
		events[i] = eventfd(0, 0);
		CHECK(uintr_vector_eventfd(i, events[i], 0) == 0);
	}
	for (int i = 0; i < UINTR_VECTORS; i++) {
		writes(events[i]);
		await(i + 1);
		CHECK(last_vector == i);
	}
}

static void *ends_a_receiver(void *nothing)
{
	for (int i = 0; i < 100; i++) {
		CHECK(uintr_handle(handler, NULL, 0) == 0 && uintr_vector_eventfd(KNOCK, event, 0) == 0);
		uintr_unmask();
		sched_yield();
		if (i & 1)
			CHECK(uintr_revoke(KNOCK, 0) == 0);
		CHECK(uintr_unregister_handler(0) == 0);
	}
	return nothing;
}

/* Threads that end as receivers, and in the middle of everything, while somebody writes. */
static void ends_under_writes(void)
{
	pthread_t threads[4];
	volatile bool *end = shared(1);
	pid_t writer;

	begins();
	event = eventfd(0, EFD_NONBLOCK);
	writer = forks();
	while (!writer && !*end)
		writes(event);
	if (!writer)
		_exit(0);
	for (int i = 0; i < 4; i++)
		threads[i] = on_thread(ends_a_receiver, NULL);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	*end = true;
	CHECK(ends_well(writer));
}

/* By a kill, in the middle of anything. */
static void dies_under_writes(void)
{
	volatile bool *ready = shared(1);

	begins();
	event = eventfd(0, EFD_NONBLOCK);
	for (int i = 0; i < 20; i++) {
		pid_t child = forks();

		if (!child) {
			CHECK(uintr_handle(handler, NULL, 0) == 0 && uintr_vector_eventfd(KNOCK, event, 0) == 0);
			uintr_unmask();
			*ready = true;
			for (;;)
				sched_yield();
		}
		while (!*ready)
			sched_yield();
		*ready = false;
		for (int j = 0; j < 1000; j++) {
			writes(event);
			if (j == 40 * i)
				kill(child, SIGKILL);
		}
		CHECK(waitpid(child, NULL, 0) == child);
	}
}

/* A read of a pipe that completes when somebody writes there; the ring's eventfd is the vector's. */
static void comes_of_a_completion(void)
{
	struct io_uring_params params = { 0 };
	struct io_uring_sqe *entries;
	unsigned int *tail, *array, *head;
	int ring, line[2];
	char *queues, byte;

	is_given_an_eventfd();
	ring = syscall(SYS_io_uring_setup, 4, &params);
	if (ring < 0 && (errno == ENOSYS || errno == EPERM))
		skip("there is no io_uring here");
	CHECK(ring >= 0 && !pipe(line) && params.features & IORING_FEAT_SINGLE_MMAP);
	CHECK(!syscall(SYS_io_uring_register, ring, IORING_REGISTER_EVENTFD, &event, 1));
	queues = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	entries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	CHECK(queues != MAP_FAILED && entries != MAP_FAILED);
	tail = (void *)(queues + params.sq_off.tail);
	array = (void *)(queues + params.sq_off.array);
	head = (void *)(queues + params.cq_off.head);
	for (int i = 0; i < 100; i++) {
		entries[0] = (struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = line[0], .addr = (uintptr_t)&byte, .len = 1 };
		array[*tail % params.sq_entries] = 0;
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
		/* The handler may run within the call. */
		while (syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) != 1)
			CHECK(errno == EINTR);
		CHECK(handled == i && write(line[1], "", 1) == 1);
		await(i + 1);
		CHECK(last_vector == KNOCK);
		/* One that finds no room is told to nobody. */
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	}
}

static void is_wrong(void)
{
	event = eventfd(0, 0);
	FAILS(uintr_vector_eventfd(KNOCK, event, 0), EINVAL);
	begins();
	FAILS(uintr_vector_eventfd(KNOCK, event, 0), EINVAL);
	receives();
	FAILS(uintr_vector_eventfd(UINTR_VECTORS, event, 0), ENOSPC);
	FAILS(uintr_vector_eventfd(KNOCK, event, 1), EINVAL);
	FAILS(uintr_vector_eventfd(KNOCK, -1, 0), EBADF);
	FAILS(uintr_vector_eventfd(KNOCK, 1000000, 0), EBADF);
	FAILS(uintr_vector_eventfd(KNOCK, open("/dev/null", O_RDWR), 0), EINVAL);
	FAILS(uintr_vector_eventfd(KNOCK, vector, 0), EINVAL);
	/* Each left the vector as it was. */
	CHECK(uintr_vector_fd(KNOCK, 0) >= 0);
	CHECK(handled == 0);
}

const struct item eventfds[] = {
	{ "what is written to an eventfd comes to who runs", comes_to_who_runs, 0 },
	{ "what a thread writes to its own eventfd comes", comes_to_who_writes, 0 },
	{ "what is written to an eventfd ends a wait", ends_a_wait, 0 },
	{ "what is written to an eventfd ends a sleep", ends_a_sleep, 0 },
	{ "what was written before is sent, once", was_written_before, 0 },
	{ "an eventfd keeps its count for those who read it", keeps_its_count, 0 },
	{ "a vector has a descriptor or one eventfd, until it is revoked", has_one_sender, 0 },
	{ "an eventfd sends as long as its vector is there, and to no child", lives_as_long_as_its_vector, 0 },
	{ "a handler revokes while an eventfd is given, and nothing is left", is_revoked_while_it_is_given, 0 },
	{ "each vector may have an eventfd", serves_as_many_as_there_are, 0 },
	{ "receivers end while their eventfd is written to", ends_under_writes, 0 },
	{ "processes die while their eventfd is written to", dies_under_writes, 0 },
	{ "a completion of io_uring comes", comes_of_a_completion, 0 },
	{ "who gives an eventfd is told what is wrong", is_wrong, 0 },
	{ 0 },
};
