// SPDX-License-Identifier: MIT OR Apache-2.0
/* Receivers without a handler: what is sent to them is read and polled. */
#include "shared.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/timerfd.h>

#define ROUNDS		200

static long polled(void)
{
	struct uintr_receive args = { .flags = UINTR_POLLED };

	return call(device, UINTR_RECEIVE, (uintptr_t)&args);
}

/* Vector 5 of a receiver without a handler, to which index 0 sends. */
static void is_polled(unsigned long flags)
{
	receiver = polled();
	CHECK(receiver >= 0);
	vector = call(receiver, UINTR_VECTOR, 5 | flags);
	CHECK(vector >= 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
}

static uint64_t read_of(int file)
{
	uint64_t number = 0;

	CHECK(read(file, &number, sizeof(number)) == sizeof(number));
	return number;
}

static bool empty(int file)
{
	uint64_t number;

	return read(file, &number, sizeof(number)) == -1 && errno == EAGAIN;
}

static volatile int heard;

/* Once the receiving thread sleeps, and again when it has heard of that; its sleeps have nothing else to end them. */
static void *sends_to_sleeper_each_time(void *times)
{
	for (long i = 0; i < (long)times; i++) {
		await_state(receiving_thread, 'S');
		_senduipi(0);
		while (heard <= i)
			__builtin_ia32_pause();
	}
	return NULL;
}

static void goes_off(long times)
{
	heard = 0;
	receiving_thread = gettid();
	on_thread(sends_to_sleeper_each_time, (void *)times);
}

static void hears(void)
{
	heard++;
	goes_on();
}

static int loop_with(int file, uint32_t events)
{
	int loop = epoll_create1(0);

	CHECK(loop >= 0);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, file, &(struct epoll_event){ .events = events, .data.fd = file }));
	return loop;
}

/* What the loop says, with a time-out in ms. */
static int ready(int loop, int timeout)
{
	struct epoll_event event = { 0 };
	int n = epoll_wait(loop, &event, 1, timeout);

	CHECK(n < 1 || event.events == EPOLLIN || event.events == (EPOLLIN | EPOLLHUP) || event.events == EPOLLHUP);
	return n;
}

static void reads(void)
{
	uint64_t number;

	is_polled(UINTR_NONBLOCK);
	CHECK(empty(vector));
	CHECK(read(vector, &number, 7) == -1 && errno == EINVAL);
	CHECK(write(vector, &number, 8) == -1 && errno == EINVAL);
	/* Nobody looks: two that are sent are one. */
	_senduipi(0);
	_senduipi(0);
	CHECK(read_of(vector) == 1 && empty(vector));
	CHECK(!fcntl(vector, F_SETFL, 0));
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(read_of(vector) == 1);
		hears();
	}
}

/* An edge for each notice, also where nobody reads; and the count of them. */
static void is_told_by_edges(void)
{
	int loop;

	is_polled(UINTR_NONBLOCK);
	loop = loop_with(vector, EPOLLIN | EPOLLET);
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(ready(loop, -1) == 1);
		hears();
	}
	CHECK(ready(loop, 0) == 0);
	CHECK(read_of(vector) == ROUNDS && empty(vector));
}

static void is_a_semaphore(void)
{
	int loop;

	is_polled(UINTR_NONBLOCK | UINTR_SEMAPHORE);
	loop = loop_with(vector, EPOLLIN | EPOLLET);
	for (int i = 0; i < 3; i++) {
		_senduipi(0);
		CHECK(ready(loop, -1) == 1);
	}
	for (int i = 0; i < 3; i++)
		CHECK(read_of(vector) == 1);
	CHECK(empty(vector));
}

static void is_told_by_level(void)
{
	int loop;

	is_polled(UINTR_NONBLOCK);
	loop = loop_with(vector, EPOLLIN);
	CHECK(ready(loop, 0) == 0);
	_senduipi(0);
	for (int i = 0; i < 3; i++)
		CHECK(ready(loop, -1) == 1);
	CHECK(read_of(vector) == 1);
	CHECK(ready(loop, 0) == 0);
	/* Sent before the loop knew of it, and before anybody could be interrupted. */
	CHECK(!epoll_ctl(loop, EPOLL_CTL_DEL, vector, NULL));
	_senduipi(0);
	_senduipi(0);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, vector, &(struct epoll_event){ .events = EPOLLIN, .data.fd = vector }));
	CHECK(ready(loop, -1) == 1);
	CHECK(read_of(vector) >= 1 && empty(vector));
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(ready(loop, -1) == 1);
		CHECK(read_of(vector) == 1);
		hears();
	}
}

static void is_told_once(void)
{
	int loop;

	is_polled(UINTR_NONBLOCK);
	loop = loop_with(vector, EPOLLIN | EPOLLONESHOT);
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(ready(loop, -1) == 1);
		CHECK(ready(loop, 0) == 0);
		CHECK(read_of(vector) == 1);
		CHECK(!epoll_ctl(loop, EPOLL_CTL_MOD, vector, &(struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT, .data.fd = vector }));
		hears();
	}
	/* Sent while it is not asked for. */
	_senduipi(0);
	CHECK(ready(loop, -1) == 1);
	_senduipi(0);
	CHECK(ready(loop, 0) == 0);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_MOD, vector, &(struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT, .data.fd = vector }));
	CHECK(ready(loop, -1) == 1);
}

static volatile int taken;
static _Atomic int tellers;

/* One of several loops that ask for the same. */
static void *loops(void *events)
{
	int loop = loop_with(vector, (uintptr_t)events);
	uint64_t number;

	tellers++;
	for (;;) {
		CHECK(ready(loop, -1) == 1);
		if (read(vector, &number, sizeof(number)) == sizeof(number))
			__atomic_fetch_add(&taken, number, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void is_told_in_several(uint32_t events)
{
	is_polled(UINTR_NONBLOCK);
	for (int i = 0; i < 3; i++)
		on_thread(loops, (void *)(uintptr_t)events);
	while (tellers < 3)
		__builtin_ia32_pause();
	for (int i = 0; i < ROUNDS; i++) {
		_senduipi(0);
		while (taken <= i)
			sched_yield();
		CHECK(taken == i + 1);
		goes_on();
	}
}

static void is_told_in_several_loops(void)
{
	is_told_in_several(EPOLLIN);
}

static void is_told_in_several_exclusive_loops(void)
{
	is_told_in_several(EPOLLIN | EPOLLEXCLUSIVE);
}

static void is_nested(void)
{
	int inner, outer;

	is_polled(UINTR_NONBLOCK);
	inner = loop_with(vector, EPOLLIN | EPOLLET);
	outer = loop_with(inner, EPOLLIN);
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(ready(outer, -1) == 1);
		CHECK(ready(inner, 0) == 1);
		CHECK(ready(outer, 0) == 0);
		hears();
	}
	CHECK(read_of(vector) == ROUNDS);
}

static void is_polled_and_selected(void)
{
	struct pollfd poll_of = { 0 };
	fd_set set;

	is_polled(UINTR_NONBLOCK);
	poll_of = (struct pollfd){ vector, POLLIN, 0 };
	CHECK(poll(&poll_of, 1, 0) == 0);
	goes_off(2 * ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(poll(&poll_of, 1, -1) == 1 && poll_of.revents == POLLIN);
		CHECK(read_of(vector) == 1);
		hears();
		FD_ZERO(&set);
		FD_SET(vector, &set);
		CHECK(select(vector + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(vector, &set));
		CHECK(read_of(vector) == 1);
		hears();
	}
}

/* ---- io_uring ---- */

static struct {
	int file;
	unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} ring;

static void makes_a_ring(void)
{
	struct io_uring_params params = { 0 };
	char *queues;

	ring.file = syscall(SYS_io_uring_setup, 8, &params);
	if (ring.file < 0 && errno == ENOSYS)
		skip("this kernel has no io_uring");
	CHECK(ring.file >= 0 && (params.features & IORING_FEAT_SINGLE_MMAP));
	queues = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, ring.file, IORING_OFF_SQ_RING);
	ring.sqes = mmap(NULL, 8 * sizeof(*ring.sqes), PROT_READ | PROT_WRITE, MAP_SHARED, ring.file, IORING_OFF_SQES);
	CHECK(queues != MAP_FAILED && ring.sqes != MAP_FAILED);
	ring.sq_tail = (void *)(queues + params.sq_off.tail);
	ring.sq_mask = (void *)(queues + params.sq_off.ring_mask);
	ring.sq_array = (void *)(queues + params.sq_off.array);
	ring.cq_head = (void *)(queues + params.cq_off.head);
	ring.cq_tail = (void *)(queues + params.cq_off.tail);
	ring.cq_mask = (void *)(queues + params.cq_off.ring_mask);
	ring.cqes = (void *)(queues + params.cq_off.cqes);
}

static void submits(const struct io_uring_sqe *entry)
{
	unsigned int tail = *ring.sq_tail;

	ring.sqes[tail & *ring.sq_mask] = *entry;
	ring.sq_array[tail & *ring.sq_mask] = tail & *ring.sq_mask;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
	CHECK(syscall(SYS_io_uring_enter, ring.file, 1, 0, 0, NULL, 0) == 1);
}

/* Of the last entry. */
static uint64_t completed;

/* What the next entry says. */
static int completes(uint32_t *flags)
{
	const struct io_uring_cqe *entry;
	int result;

	while (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == *ring.cq_head)
		CHECK(syscall(SYS_io_uring_enter, ring.file, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0 || errno == EINTR);
	entry = &ring.cqes[*ring.cq_head & *ring.cq_mask];
	result = entry->res;
	*flags = entry->flags;
	completed = entry->user_data;
	__atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
	return result;
}

static void is_polled_by_io_uring(void)
{
	struct io_uring_sqe entry = { .opcode = IORING_OP_POLL_ADD, .poll32_events = POLLIN };

	makes_a_ring();
	is_polled(UINTR_NONBLOCK);
	entry.fd = vector;
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		submits(&entry);
		CHECK(completes(&(uint32_t){ 0 }) == POLLIN);
		CHECK(read_of(vector) == 1);
		hears();
	}
}

/* Told of each, and reads none. */
static void is_polled_by_io_uring_for_good(void)
{
	struct io_uring_sqe entry = { .opcode = IORING_OP_POLL_ADD, .poll32_events = POLLIN, .len = IORING_POLL_ADD_MULTI };

	makes_a_ring();
	is_polled(UINTR_NONBLOCK);
	entry.fd = vector;
	submits(&entry);
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t flags;

		CHECK(completes(&flags) == POLLIN && (flags & IORING_CQE_F_MORE));
		hears();
	}
	CHECK(read_of(vector) == ROUNDS);
}

/* Taken back while something is sent: what was told, and what was not, is there. */
static void is_polled_by_io_uring_until_cancelled(void)
{
	struct io_uring_sqe polls = { .opcode = IORING_OP_POLL_ADD, .poll32_events = POLLIN, .len = IORING_POLL_ADD_MULTI, .user_data = 1 };
	struct io_uring_sqe cancels = { .opcode = IORING_OP_ASYNC_CANCEL, .fd = -1, .addr = 1, .user_data = 2 };

	makes_a_ring();
	is_polled(UINTR_NONBLOCK);
	polls.fd = vector;
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		bool ended = false, taken_back = false;

		submits(&polls);
		submits(&cancels);
		while (!ended || !taken_back) {
			uint32_t flags;
			int result = completes(&flags);

			if (completed == 2) {
				CHECK(result == 0 || result == -EALREADY || result == -ENOENT);
				taken_back = true;
			} else {
				CHECK(result == POLLIN || result == -ECANCELED);
				ended = !(flags & IORING_CQE_F_MORE);
			}
		}
		CHECK(poll(&(struct pollfd){ vector, POLLIN, 0 }, 1, -1) == 1);
		CHECK(read_of(vector) == 1);
		hears();
	}
}

static void is_read_by_io_uring(void)
{
	uint64_t number = 0;
	struct io_uring_sqe entry = { .opcode = IORING_OP_READ, .addr = (uintptr_t)&number, .len = sizeof(number) };

	makes_a_ring();
	is_polled(0);
	entry.fd = vector;
	goes_off(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		submits(&entry);
		CHECK(completes(&(uint32_t){ 0 }) == sizeof(number) && number == 1);
		hears();
	}
}

/* ---- who has it ---- */

static void ends_what_is_polled(void)
{
	struct pollfd poll_of;
	int copy, loop;

	is_polled(0);
	loop = loop_with(vector, EPOLLIN);
	copy = dup(vector);
	close(vector);
	_senduipi(0);
	CHECK(ready(loop, -1) == 1);
	/* What was sent before the end can be read behind it. */
	CHECK(call(receiver, UINTR_REVOKE, 5) == 0);
	poll_of = (struct pollfd){ copy, POLLIN, 0 };
	CHECK(poll(&poll_of, 1, -1) == 1 && poll_of.revents == (POLLIN | POLLHUP));
	CHECK(read_of(copy) == 1);
	CHECK(read(copy, &(uint64_t){ 0 }, 8) == 0);
	CHECK(poll(&poll_of, 1, -1) == 1 && poll_of.revents == POLLHUP);
	CHECK(call(copy, UINTR_CONNECT, 0) == -ESHUTDOWN);
	/* Another has the number, and nothing of the first. */
	CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
	vector = call(receiver, UINTR_VECTOR, 5 | UINTR_NONBLOCK);
	CHECK(vector >= 0 && empty(vector));
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
	_senduipi(0);
	CHECK(read_of(vector) == 1);
	/* The receiver ends: who sends is told, and does no harm; what was sent before can be read. */
	_senduipi(0);
	close(receiver);
	poll_of = (struct pollfd){ vector, 0, 0 };
	CHECK(poll(&poll_of, 1, -1) == 1 && poll_of.revents == POLLHUP);
	_senduipi(0);
	CHECK(read_of(vector) == 1);
	CHECK(read(vector, &(uint64_t){ 0 }, 8) == 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == -ESHUTDOWN);
}

static void *closes_when_asleep(void *file)
{
	await_state(receiving_thread, 'S');
	close((long)file);
	return NULL;
}

static void ends_under_a_reader(void)
{
	uint64_t number;

	is_polled(0);
	receiving_thread = gettid();
	on_thread(closes_when_asleep, (void *)(long)receiver);
	CHECK(read(vector, &number, sizeof(number)) == 0);
}

static void *makes_one(void *nothing)
{
	is_polled(0);
	__atomic_store_n(&tellers, 1, __ATOMIC_SEQ_CST);
	return nothing;
}

/* It is no thread's: its maker may end, and another process may read. */
static void outlives_its_maker(void)
{
	pthread_t maker;
	pid_t child, ended;
	int status;

	CHECK(!pthread_create(&maker, NULL, makes_one, NULL) && !pthread_join(maker, NULL));
	child = fork();
	if (!child) {
		alarm(LOST_AFTER);
		for (int i = 0; i < 2; i++)
			CHECK(read_of(vector) >= 1);
		_exit(0);
	}
	await_state(child, 'S');
	/* Posts may meet, in one read. */
	while (!(ended = waitpid(child, &status, WNOHANG))) {
		_senduipi(0);
		usleep(1000);
	}
	CHECK(ended == child && status == 0);
}

/* Makes one, gives it away, and reads in a loop until it is killed. */
static void polls_until_killed(int socket)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	uint64_t number;
	int loop;

	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	is_polled(UINTR_NONBLOCK);
	loop = loop_with(vector, EPOLLIN);
	*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &vector, sizeof(int));
	CHECK(sendmsg(socket, &message, 0) == 1);
	for (;;) {
		CHECK(ready(loop, -1) == 1);
		CHECK(read(vector, &number, sizeof(number)) == sizeof(number) || errno == EAGAIN);
		CHECK(write(socket, &byte, 1) == 1);
	}
}

static void is_killed_in_traffic(void)
{
	for (int round = 0; round < 50; round++) {
		char byte, space[CMSG_SPACE(sizeof(int))] = { 0 };
		struct iovec data = { &byte, 1 };
		struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
		int ends[2], theirs;
		pid_t child;
		long index;

		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		child = fork();
		if (!child)
			polls_until_killed(ends[1]);
		CHECK(child > 0 && recvmsg(ends[0], &message, 0) == 1);
		memcpy(&theirs, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
		index = call(theirs, UINTR_CONNECT, 0);
		CHECK(index >= 0);
		for (int i = 0; i < round; i++) {
			_senduipi(index);
			CHECK(read(ends[0], &byte, 1) == 1);
		}
		for (int i = 0; i < 100; i++) {
			if (i == 50)
				CHECK(!kill(child, SIGKILL));
			_senduipi(index);
		}
		/* Told of it, and may go on for all that. */
		CHECK(poll(&(struct pollfd){ theirs, 0, 0 }, 1, -1) == 1);
		CHECK(killed_by(status_of(child), SIGKILL));
		_senduipi(index);
		CHECK(call(device, UINTR_DISCONNECT, index) == 0);
		close(theirs);
		close(ends[0]);
		close(ends[1]);
		goes_on();
	}
}

static void many_in_one_loop(void)
{
	enum { MANY = 100 };
	int files[MANY], loop = epoll_create1(0);

	for (int i = 0; i < MANY; i++) {
		long own = polled();

		CHECK(own >= 0);
		files[i] = call(own, UINTR_VECTOR, i % UINTR_VECTORS | UINTR_NONBLOCK);
		CHECK(files[i] >= 0 && call(files[i], UINTR_CONNECT, 0) == i);
		CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, files[i], &(struct epoll_event){ .events = EPOLLIN, .data.u32 = i }));
	}
	for (int i = 0; i < 5 * MANY; i++) {
		struct epoll_event event;
		unsigned int which = i * 37 % MANY;

		_senduipi(which);
		CHECK(epoll_wait(loop, &event, 1, -1) == 1 && event.data.u32 == which);
		CHECK(read_of(files[which]) == 1);
		goes_on();
	}
}

static void all_vectors_of_one(void)
{
	int files[UINTR_VECTORS], loop = epoll_create1(0);
	struct epoll_event events[UINTR_VECTORS];
	uint64_t seen = 0;

	receiver = polled();
	for (int i = 0; i < UINTR_VECTORS; i++) {
		files[i] = call(receiver, UINTR_VECTOR, i | UINTR_NONBLOCK);
		CHECK(files[i] >= 0 && call(files[i], UINTR_CONNECT, 0) == i);
		CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, files[i], &(struct epoll_event){ .events = EPOLLIN | EPOLLET, .data.u32 = i }));
	}
	for (int i = 0; i < UINTR_VECTORS; i++)
		_senduipi(i);
	while (~seen) {
		int n = epoll_wait(loop, events, UINTR_VECTORS, -1);

		CHECK(n > 0);
		while (n--)
			seen |= 1ull << events[n].data.u32;
	}
	for (int i = 0; i < UINTR_VECTORS; i++)
		CHECK(read_of(files[i]) == 1 && empty(files[i]));
}

/* ---- a loop as programs have it ---- */

static int pair[2];

static void *asks(void *nothing)
{
	char byte = 'a';

	for (int i = 0; i < ROUNDS; i++) {
		_senduipi(0);
		CHECK(write(pair[1], &byte, 1) == 1);
		CHECK(read(pair[1], &byte, 1) == 1);
		while (heard <= i)
			sched_yield();
	}
	return nothing;
}

static void serves_a_timer_and_a_socket_beside(void)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), loop, ticks = 0, answers = 0;

	is_polled(UINTR_NONBLOCK);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK(!timerfd_settime(timer, 0, &(struct itimerspec){ { 0, 1000000 }, { 0, 1000000 } }, NULL));
	loop = loop_with(vector, EPOLLIN);
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, timer, &(struct epoll_event){ .events = EPOLLIN, .data.fd = timer }));
	CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, pair[0], &(struct epoll_event){ .events = EPOLLIN, .data.fd = pair[0] }));
	on_thread(asks, NULL);
	while (heard < ROUNDS || ticks < 5 || answers < ROUNDS) {
		struct epoll_event event;
		char byte;

		CHECK(epoll_wait(loop, &event, 1, -1) == 1);
		if (event.data.fd == vector) {
			CHECK(read_of(vector) == 1);
			hears();
		} else if (event.data.fd == timer) {
			ticks += read_of(timer);
		} else {
			CHECK(read(pair[0], &byte, 1) == 1 && write(pair[0], &byte, 1) == 1);
			answers++;
		}
	}
}

/* ---- a loop whose thread has a handler too ---- */

static int other;

/* To the handler, and then to the loop, each once it sleeps. */
static void *sends_to_both(void *nothing)
{
	await_state(receiving_thread, 'S');
	_senduipi(0);
	await(1);
	await_state(receiving_thread, 'S');
	_senduipi(1);
	return nothing;
}

static int loop_beside_a_handler(uint32_t flags)
{
	long own = polled();

	CHECK(own >= 0);
	receives_with(flags);
	other = call(own, UINTR_VECTOR, 9 | UINTR_NONBLOCK);
	CHECK(other >= 0 && call(other, UINTR_CONNECT, 0) == 1);
	receiving_thread = gettid();
	return loop_with(other, EPOLLIN);
}

static void has_a_handler_that_ends_the_wait(void)
{
	int loop = loop_beside_a_handler(0);

	on_thread(sends_to_both, NULL);
	CHECK(ready(loop, -1) == -1 && errno == EINTR && handled == 1);
	CHECK(ready(loop, -1) == 1 && handled == 1);
	CHECK(read_of(other) == 1 && empty(other));
}

static void has_a_handler_behind_which_the_wait_goes_on(void)
{
	int loop = loop_beside_a_handler(UINTR_RESUMES);
	struct pollfd poll_of = { other, POLLIN, 0 };
	sigset_t none;

	on_thread(sends_to_both, NULL);
	CHECK(ready(loop, -1) == 1 && handled == 1);
	CHECK(read_of(other) == 1 && empty(other));
	handled = 0;
	on_thread(sends_to_both, NULL);
	CHECK(poll(&poll_of, 1, -1) == 1 && handled == 1);
	CHECK(read_of(other) == 1);
	sigemptyset(&none);
	handled = 0;
	on_thread(sends_to_both, NULL);
	CHECK(epoll_pwait(loop, &(struct epoll_event){ 0 }, 1, -1, &none) == 1 && handled == 1);
	CHECK(read_of(other) == 1);
	/* What is left of a time-out nobody knows. */
	handled = 0;
	on_thread(sends_to_both, NULL);
	CHECK(ready(loop, 1000 * LOST_AFTER) == -1 && errno == EINTR && handled == 1);
	CHECK(ready(loop, 1000 * LOST_AFTER) == 1);
}

static void *signals_sleeper(void *nothing)
{
	await_state(receiving_thread, 'S');
	CHECK(!syscall(SYS_tgkill, getpid(), receiving_thread, SIGUSR1));
	return nothing;
}

/* A signal ends it all the same. */
static void goes_on_but_for_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	int loop = loop_beside_a_handler(UINTR_RESUMES);

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	on_thread(signals_sleeper, NULL);
	CHECK(ready(loop, -1) == -1 && errno == EINTR && handled == 0);
}

static void is_polled_wrongly(void)
{
	struct uintr_receive args = { .flags = UINTR_POLLED, .handler = (uintptr_t)handler };

	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args.handler = 0;
	args.flags = UINTR_POLLED | UINTR_INTERRUPTS;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args.flags = UINTR_POLLED;
	args.stack = 4096;
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	args = (struct uintr_receive){ .handler = (uintptr_t)handler, .flags = UINTR_INTERRUPTS | UINTR_RESUMES };
	CHECK(call(device, UINTR_RECEIVE, (uintptr_t)&args) == -EINVAL);
	is_polled(0);
	CHECK(wait_until(receiver, 0) == -EPERM);
	CHECK(call(receiver, UINTR_VECTOR, 5) == -EBUSY);
	CHECK(call(receiver, UINTR_VECTOR, 64) == -EINVAL);
	CHECK(call(receiver, UINTR_VECTOR, 1ul << 10) == -EINVAL);
	CHECK(read(receiver, &(uint64_t){ 0 }, 8) == -1 && errno == EINVAL);
	/* With a handler it is the handler's. */
	receiver = receive(0);
	CHECK(receiver >= 0);
	CHECK(call(receiver, UINTR_VECTOR, 5 | UINTR_SEMAPHORE) == -EINVAL);
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(vector >= 0 && read(vector, &(uint64_t){ 0 }, 8) == -1 && errno == EINVAL);
	CHECK(poll(&(struct pollfd){ vector, POLLIN, 0 }, 1, 0) == 0);
}

#define FLOODED		64

static volatile bool flood_ends;
static volatile uint64_t flooded, worked;

static void *floods(void *on)
{
	runs_on((long)on);
	for (; !flood_ends; flooded++)
		for (int index = 0; index < FLOODED; index++)
			_senduipi(index);
	return NULL;
}

/* Keeps the CPU from being idle, where it would need no tick. */
static void *works(void *on)
{
	runs_on((long)on);
	while (!flood_ends)
		worked++;
	return NULL;
}

/* Timer interrupts of a CPU so far. */
static long ticks_of(int cpu)
{
	char line[4096], *next = NULL;
	FILE *file = fopen("/proc/interrupts", "r");
	long ticks = -1;

	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, "LOC:");

		if (!at)
			continue;
		for (at += 4; cpu >= 0; at = next, cpu--)
			ticks = strtol(at, &next, 10);
	}
	fclose(file);
	CHECK(ticks >= 0);
	return ticks;
}

/* How often receivers were throttled, as only root is told; 0 where nobody is. */
static unsigned long throttled(void)
{
	static const char path[] = "/sys/kernel/debug/uintr/receivers";
	unsigned long all = 0;
	char line[1024];
	FILE *file;

	if (geteuid())
		return 1;
	file = fopen(path, "r");
	if (!file)
		skip("there is no /sys/kernel/debug/uintr/receivers");
	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, " throttled ");

		all += at ? strtoul(at + strlen(" throttled "), NULL, 10) : 0;
	}
	fclose(file);
	return all;
}

/*
 * A sender needs one instruction for each interrupt, whose vector comes before the
 * timer's: the CPU whose loop it keeps busy goes on, and none that it sends last is lost.
 */
static void a_flood_leaves_the_cpu_its_tick(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET }, told[FLOODED];
	int loop = epoll_create1(0), files[FLOODED], seen = 0;
	uint64_t before, number;
	long ticks;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 3)
		skip("there are fewer than three CPUs");
	CHECK(loop >= 0);
	runs_on(1);
	for (int i = 0; i < FLOODED; i++) {
		int each = polled();

		CHECK(each >= 0);
		files[i] = call(each, UINTR_VECTOR, 5 | UINTR_NONBLOCK);
		CHECK(files[i] >= 0 && call(files[i], UINTR_CONNECT, 0) == i);
		event.data.fd = i;
		CHECK(!epoll_ctl(loop, EPOLL_CTL_ADD, files[i], &event));
	}
	runs_on(0);
	on_thread(works, (void *)1);
	on_thread(floods, (void *)2);
	while (flooded < 1000)
		sched_yield();
	ticks = ticks_of(1);
	before = worked;
	while (flooded < 5000 || ticks_of(1) < ticks + 100 || worked == before || !throttled())
		sched_yield();
	flood_ends = true;
	/* Everything that was sent was noticed before this is over, or is noticed now. */
	for (int i = 0; i < FLOODED; i++)
		while (read(files[i], &number, sizeof(number)) == sizeof(number))
			;
	while (epoll_wait(loop, told, FLOODED, 0) > 0)
		;
	for (int i = 0; i < FLOODED; i++)
		_senduipi(i);
	while (seen < FLOODED) {
		int n = epoll_wait(loop, told, FLOODED, -1);

		CHECK(n > 0);
		for (int i = 0; i < n; i++)
			seen += read(files[told[i].data.fd], &number, sizeof(number)) == sizeof(number);
	}
}

const struct life polls[] = {
	{ .name = "read(2) of a vector, blocking and not", .run = reads },
	{ .name = "epoll by edges, which are counted", .run = is_told_by_edges },
	{ .name = "a vector is a semaphore", .run = is_a_semaphore },
	{ .name = "epoll by level", .run = is_told_by_level },
	{ .name = "epoll once", .run = is_told_once },
	{ .name = "one vector in several loops", .run = is_told_in_several_loops },
	{ .name = "one vector in several loops, exclusive", .run = is_told_in_several_exclusive_loops },
	{ .name = "a loop in a loop", .run = is_nested },
	{ .name = "poll(2) and select(2)", .run = is_polled_and_selected },
	{ .name = "io_uring polls once", .run = is_polled_by_io_uring },
	{ .name = "io_uring polls for good", .run = is_polled_by_io_uring_for_good },
	{ .name = "io_uring polls for good, and is cancelled in traffic", .run = is_polled_by_io_uring_until_cancelled },
	{ .name = "io_uring reads", .run = is_read_by_io_uring },
	{ .name = "a vector that is polled is revoked, and its receiver ends", .run = ends_what_is_polled },
	{ .name = "a receiver ends under its reader", .run = ends_under_a_reader },
	{ .name = "who made it may end, and a child may read", .run = outlives_its_maker },
	{ .name = "who polls is killed in traffic", .run = is_killed_in_traffic },
	{ .name = "a hundred receivers in one loop", .run = many_in_one_loop },
	{ .name = "64 vectors of one receiver in one loop", .run = all_vectors_of_one },
	{ .name = "a loop with a timer and a socket", .run = serves_a_timer_and_a_socket_beside },
	{ .name = "a handler ends the wait of a loop", .run = has_a_handler_that_ends_the_wait },
	{ .name = "a loop goes on behind a handler if asked for", .run = has_a_handler_behind_which_the_wait_goes_on },
	{ .name = "a signal ends the wait of a loop that goes on", .run = goes_on_but_for_signals },
	{ .name = "a flood leaves the CPU its tick", .run = a_flood_leaves_the_cpu_its_tick },
	{ .name = "wrong calls of what is polled", .run = is_polled_wrongly },
	{ 0 },
};
