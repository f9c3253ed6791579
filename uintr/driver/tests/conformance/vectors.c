// SPDX-License-Identifier: MIT OR Apache-2.0
/* Descriptors, connections, and wrong calls. */
#include "shared.h"
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include "../../user/signals.h"

static void sends_an_index_that_is_not_connected(void)
{
	receives();
	uintr_send(1);
}

static void sends_beyond_the_table(void)
{
	receives();
	uintr_send(UINTR_CONNECTIONS);
}

static void revokes(void)
{
	struct pollfd end;

	receives();
	FAILS(uintr_revoke(6, 0), EINVAL);
	uintr_mask();
	uintr_send(own_index);
	CHECK(uintr_revoke(5, 0) == 0);
	FAILS(uintr_revoke(5, 0), EINVAL);
	end = (struct pollfd){ .fd = vector };
	CHECK(poll(&end, 1, -1) == 1 && end.revents & POLLHUP);
	FAILS(uintr_register_sender(vector, 0), ESHUTDOWN);
	/* What was sent before is delivered. */
	uintr_unmask();
	await(1);
	/* The number is free for another descriptor, which is not the old one's. */
	vector = uintr_vector_fd(5, 0);
	CHECK(vector >= 0 && uintr_register_sender(vector, 0) == 1);
	uintr_send(1);
	await(2);
	uintr_send(own_index);
}

static void is_revoked_by_its_last_close(void)
{
	receives();
	close(dup(vector));
	uintr_send(own_index);
	await(1);
	close(vector);
	uintr_send(own_index);
}

static void connects_as_often_as_it_can(void)
{
	int files[UINTR_VECTORS], before;

	receives();
	for (int i = 0; i < UINTR_VECTORS; i++) {
		files[i] = i == 5 ? vector : uintr_vector_fd(i, 0);
		CHECK(files[i] >= 0);
	}
	for (int i = 1; i < UINTR_CONNECTIONS; i++)
		CHECK(uintr_register_sender(files[i % UINTR_VECTORS], 0) == i);
	FAILS(uintr_register_sender(vector, 0), ENOSPC);
	for (int i = 0; i < UINTR_CONNECTIONS; i++) {
		uintr_send(i);
		await(i + 1);
		CHECK(last_vector == (i ? i % UINTR_VECTORS : 5));
	}
	CHECK(uintr_unregister_sender(77, 0) == 0);
	FAILS(uintr_unregister_sender(77, 0), EINVAL);
	CHECK(uintr_register_sender(vector, 0) == 77);
	uintr_send(77);
	await(UINTR_CONNECTIONS + 1);
	CHECK(last_vector == 5);
	CHECK(uintr_revoke(9, 0) == 0);
	before = open_descriptors();
	FAILS(uintr_register_self(9, 0), ENOSPC);
	CHECK(open_descriptors() == before);
}

static void refuses_what_is_wrong(void)
{
	int pair[2];

	receives();
	FAILS(uintr_vector_fd(0, 1), EINVAL);
	FAILS(uintr_vector_fd(UINTR_VECTORS, 0), ENOSPC);
	FAILS(uintr_vector_fd(-1ull, 0), ENOSPC);
	FAILS(uintr_vector_fd(5, 0), EBUSY);
	FAILS(uintr_revoke(UINTR_VECTORS, 0), EINVAL);
	FAILS(uintr_register_sender(-1, 0), EBADF);
	FAILS(uintr_register_sender(vector, 1), EINVAL);
	FAILS(uintr_register_sender(eventfd(0, 0), 0), EOPNOTSUPP);
	FAILS(uintr_register_sender(memfd_create("other", 0), 0), EOPNOTSUPP);
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	FAILS(uintr_register_sender(pair[0], 0), EOPNOTSUPP);
	CHECK(send(pair[1], "nonsense", 8, 0) == 8);
	FAILS(uintr_register_sender(pair[0], 0), EOPNOTSUPP);
	gives(pair[1], 1);
	FAILS(uintr_register_sender(pair[0], 0), EOPNOTSUPP);
	FAILS(uintr_unregister_sender(-1, 0), EINVAL);
	FAILS(uintr_unregister_sender(UINTR_CONNECTIONS, 0), EINVAL);
	FAILS(uintr_poll_fd(1), EINVAL);
	FAILS(uintr_wait(1000000001, 0), EINVAL);
	uintr_send(own_index);
	await(1);
}

static int ends_of_socket[2];

static void takes_and_sends(void)
{
	int index;

	begins();
	index = uintr_register_sender(takes(ends_of_socket[1]), 0);
	CHECK(index == 0);
	uintr_send(index);
}

static void another_users(void)
{
	CHECK(!setresgid(4711, 4711, 4711) && !setresuid(4711, 4711, 4711));
	takes_and_sends();
}

/* The process that made the vector is another one than any that sends. */
static void passes_over_a_socket(void)
{
	pid_t child;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends_of_socket));
	child = on_child(takes_and_sends);
	receives();
	gives(ends_of_socket[0], vector);
	await(1);
	CHECK(ends_well(child));
}

static void needs_no_right_but_the_descriptor(void)
{
	pid_t child;

	if (geteuid())
		skip("only root may be another user");
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends_of_socket));
	child = on_child(another_users);
	receives();
	gives(ends_of_socket[0], vector);
	await(1);
	CHECK(ends_well(child));
}

static void *is_another_receiver(void *argument)
{
	int *file = argument;
	volatile int seen = 0;

	CHECK(uintr_handle(handler, (void *)&seen, 0) == 0);
	__atomic_store_n(file, uintr_vector_fd(9, 0), __ATOMIC_RELEASE);
	uintr_unmask();
	while (seen < 100)
		sched_yield();
	return NULL;
}

/* Each with a handler of its own; whoever connected, all may send. */
static void has_many_receivers(void)
{
	static int files[16];
	pthread_t threads[16];

	begins();
	for (int i = 0; i < 16; i++) {
		files[i] = -1;
		threads[i] = on_thread(is_another_receiver, &files[i]);
	}
	for (int i = 0; i < 16; i++) {
		while (__atomic_load_n(&files[i], __ATOMIC_ACQUIRE) < 0)
			sched_yield();
		CHECK(uintr_register_sender(files[i], 0) == i);
	}
	for (int turn = 0; turn < 100; turn++) {
		for (int i = 0; i < 16; i++)
			uintr_send(i);
		while (handled < 16 * (turn + 1) && !usleep(100))
			;
	}
	for (int i = 0; i < 16; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

/* ---- what a peer may have made up, where a vector's descriptor is a socket ---- */

static int memory(off_t size, int seals)
{
	int file = memfd_create("forged", MFD_ALLOW_SEALING);

	CHECK(file >= 0 && !ftruncate(file, size) && !fcntl(file, F_ADD_SEALS, seals));
	return file;
}

/* A descriptor of a vector that @card says it is. */
static int forges(struct card card, int post, int status, int bell)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(CARD_DESCRIPTORS * sizeof(int))];
	} control = { .header = { CMSG_LEN(CARD_DESCRIPTORS * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec data = { &card, sizeof(card) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int pair[2];

	memcpy(CMSG_DATA(&control.header), (int[]){ post, status, bell }, CARD_DESCRIPTORS * sizeof(int));
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) && sendmsg(pair[0], &message, 0) == sizeof(card));
	return pair[1];
}

static void takes_nothing_forged(void)
{
	struct card card = { CARD_MAGIC, 3, 1 };
	int good, bell = eventfd(0, 0), index;

	if (backend != UINTR_SIGNALS)
		skip("the driver's descriptors cannot be forged");
	begins();
	good = memory(PAGE, F_SEAL_SHRINK);
	/* What could be shortened under us, is too short, or no memory at all. */
	FAILS(uintr_register_sender(forges(card, memory(PAGE, 0), good, bell), 0), EOPNOTSUPP);
	FAILS(uintr_register_sender(forges(card, good, memory(PAGE, 0), bell), 0), EOPNOTSUPP);
	FAILS(uintr_register_sender(forges(card, memory(PAGE - 1, F_SEAL_SHRINK), good, bell), 0), EOPNOTSUPP);
	FAILS(uintr_register_sender(forges(card, bell, good, bell), 0), EOPNOTSUPP);
	FAILS(uintr_register_sender(forges((struct card){ CARD_MAGIC, UINTR_VECTORS, 1 }, good, good, bell), 0), EOPNOTSUPP);
	/* All is there, and no receiver: its words are what they like, and no send waits or ends anybody. */
	index = uintr_register_sender(forges((struct card){ CARD_MAGIC, 3, 0 }, good, memory(PAGE, F_SEAL_SHRINK), bell), 0);
	CHECK(index == 0);
	for (int mode = 0; mode < 6; mode++)
		uintr_send(index);
}

static void takes_no_forged_table(void)
{
	struct {
		uint32_t magic, count;
		uint8_t index[253];
	} table = { 0x31697475u, 2, { 4, 4 } };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = { .header = { CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec data = { &table, sizeof(table) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int files[2], pair[2];

	begins();
	CHECK(uintr_handle(handler, NULL, 0) == 0);
	files[0] = uintr_vector_fd(1, 0);
	files[1] = eventfd(0, 0);
	CHECK(files[0] >= 0 && files[1] >= 0);
	memcpy(CMSG_DATA(&control.header), files, sizeof(files));
	/* An index twice; more than came; no vector; nothing at all; no socket. */
	for (int i = 0; i < 4; i++) {
		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
		if (i == 1)
			table.index[1] = 255, table.count = 3;
		if (i == 2)
			table.count = 2;
		if (i == 3)
			data.iov_len = 8;
		CHECK(sendmsg(pair[0], &message, 0) == (ssize_t)data.iov_len);
		FAILS(uintr_use_ipi_fd(pair[1], 0), EOPNOTSUPP);
	}
	FAILS(uintr_use_ipi_fd(files[1], 0), EOPNOTSUPP);
	FAILS(uintr_use_ipi_fd(-1, 0), EBADF);
	/* It is connected to nothing still. */
	CHECK(uintr_register_sender(files[0], 0) == 0);
}

/* A message of @size with four descriptors, from a socket that, if asked, also says who sends. */
static int forges_with_more(const void *data, size_t size, int tells)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control = { .header = { CMSG_LEN(4 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec part = { (void *)data, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int pair[2];

	memcpy(CMSG_DATA(&control.header), (int[]){ 0, 1, 2, 2 }, 4 * sizeof(int));
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) && !setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &tells, sizeof(tells)));
	CHECK(sendmsg(pair[0], &message, 0) == (ssize_t)size);
	return pair[1];
}

static void keeps_no_descriptor_of_what_it_refuses(void)
{
	struct {
		uint32_t magic, count;
		uint8_t index[253];
	} table = { 0x31697475u, 4, { 1, 2, 3, 3 } };
	struct card card = { CARD_MAGIC, 3, 1 };
	int files[2], before;

	begins();
	CHECK(uintr_handle(handler, NULL, 0) == 0);
	for (int tells = 0; tells < 2; tells++) {
		files[0] = forges_with_more(&card, sizeof(card), tells);
		files[1] = forges_with_more(&table, sizeof(table), tells);
		before = open_descriptors();
		FAILS(uintr_register_sender(files[0], 0), EOPNOTSUPP);
		FAILS(uintr_use_ipi_fd(files[1], 0), EOPNOTSUPP);
		CHECK(open_descriptors() == before);
	}
}

/* One that may do nothing else. */
static void sends_without_system_calls(void)
{
	pid_t child;

	if (backend != UINTR_HARDWARE)
		skip("by signals a send makes system calls");
	receives();
	child = forks();
	if (!child) {
		int index = uintr_register_sender(vector, 0);

		CHECK(index >= 0);
		CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
		uintr_send(index);
		syscall(SYS_exit, 0);
	}
	await(1);
	CHECK(ends_well(child));
}

static void floods(void)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(CARD_DESCRIPTORS * sizeof(int))];
	} control;
	char bytes[4096] = { 0 };
	struct iovec data = { bytes, sizeof(bytes) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int descriptors[CARD_DESCRIPTORS];

	CHECK(recvmsg(vector, &message, MSG_PEEK) == sizeof(struct card));
	memcpy(descriptors, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(descriptors));
	for (;;)
		send(descriptors[CARD_BELL], bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void survives_a_flood(void)
{
	pid_t child;

	if (backend != UINTR_SIGNALS)
		skip("there is no bell");
	receives();
	child = on_child(floods);
	for (int i = 1; i <= 2000; i++) {
		uintr_send(own_index);
		await(i);
	}
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	CHECK(handled == 2000);
}

static volatile int to_close;

static void *closes_each(void *nothing)
{
	for (;;) {
		int file = to_close;

		if (file > 0) {
			CHECK(!close(file));
			to_close = 0;
		} else {
			sched_yield();
		}
	}
	return nothing;
}

/* What the thread was looking at was taken away under it. */
static void is_closed_by_another_thread_at_any_moment(void)
{
	receives();
	on_thread(closes_each, NULL);
	/* On an emulated CPU each takes some hundred times as long. */
	for (int i = 0; i < (backend == UINTR_SIGNALS ? times * 5 : times / 40); i++) {
		int file = uintr_vector_fd(6, 0);

		CHECK(file >= 0 || errno == EBUSY);
		to_close = file > 0 ? file : 0;
		for (int turns = 1; to_close; turns++) {
			uintr_mask();
			uintr_unmask();
			/* Where they share a CPU the other would be waited for until this one's time there is over. */
			if (turns % 1000 == 0)
				sched_yield();
		}
	}
}

static volatile uint64_t came;

static void notes_the_vector(unsigned int number, void *argument)
{
	came |= 1ull << number;
	handler(number, argument);
}

static void connects_many_and_sends_to_a_set(void)
{
	int fds[UINTR_VECTORS];
	uint64_t indices[UINTR_VECTORS];

	begins();
	CHECK(uintr_handle(notes_the_vector, NULL, 0) == 0);
	for (int i = 0; i < UINTR_VECTORS; i++)
		CHECK((fds[i] = uintr_vector_fd(i, 0)) >= 0);
	CHECK(uintr_register_senders(fds, indices, 0, 0) == 0);
	FAILS(uintr_register_senders(fds, indices, 1, 1), EINVAL);
	/* All or none: the next have the same indices. */
	CHECK(!close(fds[40]));
	FAILS(uintr_register_senders(fds, indices, UINTR_VECTORS, 0), EBADF);
	while ((fds[40] = uintr_vector_fd(40, 0)) < 0)
		CHECK(errno == EBUSY);
	CHECK(uintr_register_senders(fds, indices, UINTR_VECTORS, 0) == 0);
	for (int i = 0; i < UINTR_VECTORS; i++)
		CHECK(indices[i] == (uint64_t)i);
	uintr_unmask();
	uintr_send_set(indices + 10, 50);
	await(50);
	CHECK(came == ((1ull << 50) - 1) << 10 && handled == 50);
}

const struct item vectors[] = {
	{ "an index that is not connected is a wrong address", sends_an_index_that_is_not_connected, SIGSEGV },
	{ "an index beyond the table is a wrong address", sends_beyond_the_table, SIGSEGV },
	{ "a vector is revoked, and its senders' addresses are wrong", revokes, SIGSEGV },
	{ "the last close revokes a vector", is_revoked_by_its_last_close, SIGSEGV },
	{ "256 connections and no more", connects_as_often_as_it_can, 0 },
	{ "many are connected at once, or none, and a set is sent to", connects_many_and_sends_to_a_set, 0 },
	{ "wrong calls", refuses_what_is_wrong, 0 },
	{ "a vector passes over a socket", passes_over_a_socket, 0 },
	{ "another user's process may send that has the descriptor", needs_no_right_but_the_descriptor, 0 },
	{ "a forged descriptor is refused, or harmless", takes_nothing_forged, 0 },
	{ "a forged table is refused", takes_no_forged_table, 0 },
	{ "of a forged message with more descriptors none stays open", keeps_no_descriptor_of_what_it_refuses, 0 },
	{ "a sender is confined to no system calls", sends_without_system_calls, 0 },
	{ "a flood of nonsense is survived", survives_a_flood, 0 },
	{ "many receivers of a process", has_many_receivers, 0 },
	{ "another thread closes a vector's last descriptor at any moment", is_closed_by_another_thread_at_any_moment, 0 },
	{ 0 },
};
