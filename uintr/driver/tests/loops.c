// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Notifications by the million to receivers without a handler, in every shape in which
 * a program may wait for them, from two processes, while all threads change CPUs and
 * others compete for them. A sender writes a number, then sends, and waits until the
 * number was seen: a lost notification is one whose number is never seen, for nothing
 * else ends a wait (with --timeouts 1 some give up now and then, which tries the way
 * out of the queues; then the next look makes up for what is lost). With --burst 1
 * every post is noticed alone, and what was read, or counted, is exactly what was
 * sent. --count is of all together, --each of every shape. Run as root where the driver is loaded: its own account comes from debugfs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86gprintrin.h>

#include <linux/io_uring.h>
#include <linux/uintr.h>

#include "traffic.h"

#define MOST	32
static struct {
	long count, each, copies, senders, load, seed, burst, timeouts, moves, lost_after;
} want = { .count = 20000, .copies = 1, .senders = 3, .load = 2, .seed = 1, .burst = 1, .timeouts = 0, .moves = 1, .lost_after = 120 };

static struct shared {
	/* Of each receiver; a vector for each sender, the highest numbers. */
	struct lane {
		_Alignas(64) atomic_ulong sent;
		_Alignas(64) atomic_ulong seen;
		atomic_ulong got;
	} lanes[MOST][MOST];
	_Alignas(64) atomic_long posted, running;
	atomic_int tids[2 * MOST];
	atomic_bool end;
	atomic_ulong waits, gave_up, handled, moved;
} *shared;

static int vectors[MOST][MOST], receivers, device;

/* ---- those who wait ---- */

struct waiter {
	int own;	/* whose lanes */
	int loop, outer;
	uint64_t value;	/* for io_uring */
	struct {
		int file;
		unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
		struct io_uring_sqe *sqes;
		struct io_uring_cqe *cqes;
	} ring;
};

struct shape {
	const char *name;
	/* Asks for each of its vectors, before the first wait. */
	void (*starts)(struct waiter *waiter);
	/* Sleeps until something was sent, or for @timeout ms; calls told() for what was. */
	void (*waits)(struct waiter *waiter, int timeout);
	/* Reads what it is told of. */
	bool reads;
	/* Two threads wait for the same. */
	bool twice;
	uint32_t events;
	unsigned long flags;
	/* Its thread has a handler beside, to which a sender sends as well. */
	bool handles;
};

static const struct shape shapes[];
static const struct shape *shape_of[MOST];

/* Reads first and looks then: what comes behind the look tells again. */
static void told(struct waiter *waiter, int lane, long got)
{
	struct lane *own = &shared->lanes[waiter->own][lane];
	unsigned long sent, seen;
	uint64_t value;

	if (!got && shape_of[waiter->own]->reads) {
		if (read(vectors[waiter->own][lane], &value, sizeof(value)) == sizeof(value))
			got = value;
		else if (errno != EAGAIN)
			fail("read: %s", strerror(errno));
	}
	own->got += got;
	sent = atomic_load_explicit(&own->sent, memory_order_acquire);
	/* Another thread may have seen more. */
	seen = own->seen;
	while (seen < sent && !atomic_compare_exchange_weak(&own->seen, &seen, sent))
		;
}

static void asks_epoll(struct waiter *waiter)
{
	waiter->loop = waiter->outer = epoll_create1(0);
	for (int s = 0; s < want.senders; s++)
		if (epoll_ctl(waiter->loop, EPOLL_CTL_ADD, vectors[waiter->own][s],
			      &(struct epoll_event){ .events = shape_of[waiter->own]->events, .data.u32 = s }))
			fail("epoll_ctl: %s", strerror(errno));
}

static void asks_nested(struct waiter *waiter)
{
	asks_epoll(waiter);
	waiter->outer = epoll_create1(0);
	if (epoll_ctl(waiter->outer, EPOLL_CTL_ADD, waiter->loop, &(struct epoll_event){ .events = EPOLLIN }))
		fail("epoll_ctl: %s", strerror(errno));
}

static void waits_epoll(struct waiter *waiter, int timeout)
{
	struct epoll_event events[MOST], *event = events;
	int n = epoll_wait(waiter->outer, events, MOST, timeout);

	if (n > 0 && waiter->outer != waiter->loop)
		n = epoll_wait(waiter->loop, events, MOST, 0);
	if (n < 0 && errno != EINTR)
		fail("epoll_wait: %s", strerror(errno));
	shared->gave_up += !n;
	for (; n-- > 0; event++) {
		told(waiter, event->data.u32, 0);
		event->events = shape_of[waiter->own]->events;
		if (event->events & EPOLLONESHOT)
			epoll_ctl(waiter->loop, EPOLL_CTL_MOD, vectors[waiter->own][event->data.u32], event);
	}
}

static void waits_poll(struct waiter *waiter, int timeout)
{
	struct pollfd files[MOST];

	for (int s = 0; s < want.senders; s++)
		files[s] = (struct pollfd){ vectors[waiter->own][s], POLLIN, 0 };
	shared->gave_up += !poll(files, want.senders, timeout);
	for (int s = 0; s < want.senders; s++)
		if (files[s].revents)
			told(waiter, s, 0);
}

static void waits_select(struct waiter *waiter, int timeout)
{
	struct timeval time = { 0, 1000 * timeout };
	fd_set set;
	int n;

	FD_ZERO(&set);
	for (int s = 0; s < want.senders; s++)
		FD_SET(vectors[waiter->own][s], &set);
	n = select(FD_SETSIZE, &set, NULL, NULL, timeout < 0 ? NULL : &time);
	if (n < 0)
		fail("select: %s", strerror(errno));
	shared->gave_up += !n;
	for (int s = 0; n && s < want.senders; s++)
		if (FD_ISSET(vectors[waiter->own][s], &set))
			told(waiter, s, 0);
}

/* Of one vector, its first; nobody sends it the others. */
static void waits_read(struct waiter *waiter, int timeout)
{
	uint64_t value;

	(void)timeout;
	if (read(vectors[waiter->own][0], &value, sizeof(value)) != sizeof(value))
		fail("read: %s", strerror(errno));
	told(waiter, 0, value);
}

static void submits(struct waiter *waiter, int opcode, int lane, unsigned int length, uint64_t address)
{
	unsigned int tail = *waiter->ring.sq_tail, at = tail & *waiter->ring.sq_mask;
	struct io_uring_sqe entry = { .opcode = opcode, .fd = vectors[waiter->own][lane], .len = length, .addr = address, .user_data = lane };

	if (opcode == IORING_OP_POLL_ADD)
		entry.poll32_events = POLLIN;
	waiter->ring.sqes[at] = entry;
	waiter->ring.sq_array[at] = at;
	__atomic_store_n(waiter->ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, waiter->ring.file, 1, 0, 0, NULL, 0) != 1)
		fail("io_uring_enter: %s", strerror(errno));
}

static void asks_ring(struct waiter *waiter)
{
	struct io_uring_params params = { 0 };
	char *queues;

	waiter->ring.file = syscall(SYS_io_uring_setup, 64, &params);
	if (waiter->ring.file < 0)
		fail("io_uring_setup: %s", strerror(errno));
	queues = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, waiter->ring.file, IORING_OFF_SQ_RING);
	waiter->ring.sqes = mmap(NULL, 64 * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, waiter->ring.file, IORING_OFF_SQES);
	if (queues == MAP_FAILED || waiter->ring.sqes == MAP_FAILED)
		fail("io_uring: %s", strerror(errno));
	waiter->ring.sq_tail = (void *)(queues + params.sq_off.tail);
	waiter->ring.sq_mask = (void *)(queues + params.sq_off.ring_mask);
	waiter->ring.sq_array = (void *)(queues + params.sq_off.array);
	waiter->ring.cq_head = (void *)(queues + params.cq_off.head);
	waiter->ring.cq_tail = (void *)(queues + params.cq_off.tail);
	waiter->ring.cq_mask = (void *)(queues + params.cq_off.ring_mask);
	waiter->ring.cqes = (void *)(queues + params.cq_off.cqes);
}

static void asks_ring_once(struct waiter *waiter)
{
	asks_ring(waiter);
	for (int s = 0; s < want.senders; s++)
		submits(waiter, IORING_OP_POLL_ADD, s, 0, 0);
}

static void asks_ring_for_good(struct waiter *waiter)
{
	asks_ring(waiter);
	for (int s = 0; s < want.senders; s++)
		submits(waiter, IORING_OP_POLL_ADD, s, IORING_POLL_ADD_MULTI, 0);
}

static void asks_ring_to_read(struct waiter *waiter)
{
	asks_ring(waiter);
	submits(waiter, IORING_OP_READ, 0, sizeof(waiter->value), (uintptr_t)&waiter->value);
}

static void waits_ring(struct waiter *waiter, int timeout)
{
	const struct shape *shape = shape_of[waiter->own];
	struct io_uring_cqe *entry;
	uint64_t lane;
	bool more;
	int result;

	(void)timeout;
	while (__atomic_load_n(waiter->ring.cq_tail, __ATOMIC_ACQUIRE) == *waiter->ring.cq_head)
		if (syscall(SYS_io_uring_enter, waiter->ring.file, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR)
			fail("io_uring_enter: %s", strerror(errno));
	entry = &waiter->ring.cqes[*waiter->ring.cq_head & *waiter->ring.cq_mask];
	lane = entry->user_data;
	result = entry->res;
	more = entry->flags & IORING_CQE_F_MORE;
	__atomic_store_n(waiter->ring.cq_head, *waiter->ring.cq_head + 1, __ATOMIC_RELEASE);
	if (result < 0)
		fail("io_uring: %s", strerror(-result));
	told(waiter, lane, shape->starts == asks_ring_to_read ? (long)waiter->value : 0);
	if (more)
		return;
	if (shape->starts == asks_ring_to_read)
		submits(waiter, IORING_OP_READ, 0, sizeof(waiter->value), (uintptr_t)&waiter->value);
	else
		submits(waiter, IORING_OP_POLL_ADD, lane, shape->starts == asks_ring_for_good ? IORING_POLL_ADD_MULTI : 0, 0);
}

static const struct shape shapes[] = {
	{ "epoll-level", asks_epoll, waits_epoll, .reads = true, .events = EPOLLIN },
	{ "epoll-edge", asks_epoll, waits_epoll, .reads = true, .events = EPOLLIN | EPOLLET },
	{ "epoll-edge-unread", asks_epoll, waits_epoll, .events = EPOLLIN | EPOLLET },
	{ "epoll-oneshot", asks_epoll, waits_epoll, .reads = true, .events = EPOLLIN | EPOLLONESHOT },
	{ "epoll-exclusive", asks_epoll, waits_epoll, .reads = true, .twice = true, .events = EPOLLIN | EPOLLEXCLUSIVE },
	{ "epoll-two-loops", asks_epoll, waits_epoll, .reads = true, .twice = true, .events = EPOLLIN },
	{ "epoll-nested", asks_nested, waits_epoll, .reads = true, .events = EPOLLIN },
	{ "epoll-semaphore", asks_epoll, waits_epoll, .reads = true, .events = EPOLLIN, .flags = UINTR_SEMAPHORE },
	{ "epoll-and-handler", asks_epoll, waits_epoll, .reads = true, .events = EPOLLIN, .handles = true },
	{ "poll", NULL, waits_poll, .reads = true },
	{ "select", NULL, waits_select, .reads = true },
	{ "read", NULL, waits_read, .reads = true },
	{ "read-twice", NULL, waits_read, .reads = true, .twice = true },
	/* The last three, where the kernel has it. */
	{ "io_uring-poll", asks_ring_once, waits_ring, .reads = true },
	{ "io_uring-multishot", asks_ring_for_good, waits_ring, .reads = false },
	{ "io_uring-read", asks_ring_to_read, waits_ring, .reads = true },
};
static int shapes_here = sizeof(shapes) / sizeof(*shapes);
#define RING_SHAPES	3

static bool one_lane(const struct shape *shape)
{
	return shape->waits == waits_read || shape->starts == asks_ring_to_read;
}

static int own_vector = -1;
static volatile unsigned long handled;

__attribute__((interrupt, target("general-regs-only")))
static void handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	(void)vector;
	handled++;
}

static void *waits(void *number)
{
	struct waiter waiter = { .own = (long)number % MOST };
	const struct shape *shape = shape_of[waiter.own];

	begin(want.seed, (long)number);
	shared->tids[waiter.own] = gettid();
	if (shape->handles) {
		struct uintr_receive args = { .handler = (uintptr_t)handler, .flags = UINTR_RESUMES };
		int receiver = ioctl(device, UINTR_RECEIVE, &args);

		own_vector = ioctl(receiver, UINTR_VECTOR, 0);
		if (own_vector < 0)
			fail("UINTR_RECEIVE: %s", strerror(errno));
		_stui();
	}
	if (shape->starts)
		shape->starts(&waiter);
	shared->running++;
	while (!shared->end) {
		switch (lot(16)) {
		case 0:
			for (volatile uint64_t i = lot(20000); i; i--)
				;
			break;
		case 1:
			sched_yield();
			break;
		case 2:
			if (want.moves && lot(16) == 0)
				shared->moved += move(0);
			break;
		default:
			shared->waits++;
			shape->waits(&waiter, want.timeouts && lot(2) ? (int)lot(4) : -1);
		}
	}
	return NULL;
}

/* ---- senders ---- */

static void await(int r, int s, unsigned long number)
{
	struct lane *lane = &shared->lanes[r][s];
	if (!comes_to(&lane->seen, number, s % 2, want.lost_after))
		fail("LOST: %s, sender %d: %lu sent, %lu seen", shape_of[r]->name, s, number, lane->seen);
}

static atomic_long senders_left;

/* With --each: whether @r is to be sent more. */
static bool wants(int r)
{
	unsigned long sent = 0;

	for (int s = 0; want.each && s < want.senders; s++)
		sent += atomic_load_explicit(&shared->lanes[r][s].sent, memory_order_relaxed);
	return !want.each || sent < (unsigned long)want.each;
}

static bool goes_on(int s)
{
	if (!want.each)
		return atomic_load_explicit(&shared->posted, memory_order_relaxed) < want.count;
	for (int r = 0; r < receivers; r++)
		if (wants(r) && !(s && one_lane(shape_of[r])))
			return true;
	return false;
}

static void *sends(void *argument)
{
	int s = (long)argument, index[MOST], to_handler = -1;

	begin(want.seed, MOST + s);
	shared->tids[MOST + s] = gettid();
	for (int r = 0; r < receivers; r++) {
		index[r] = ioctl(vectors[r][s], UINTR_CONNECT, 0);
		if (index[r] < 0)
			fail("UINTR_CONNECT: %s", strerror(errno));
	}
	if (own_vector >= 0)
		to_handler = ioctl(own_vector, UINTR_CONNECT, 0);
	while (goes_on(s)) {
		int first = lot(receivers), rounds = lot(2) ? receivers : 1;
		unsigned long last[MOST] = { 0 };
		long posts = 0;

		for (int i = 0; i < rounds; i++) {
			int r = (first + i) % receivers;
			struct lane *lane = &shared->lanes[r][s];

			if ((s && one_lane(shape_of[r])) || !wants(r))
				continue;
			for (long burst = 1 + lot(want.burst); burst; burst--, posts++) {
				last[r] = lane->sent + 1;
				atomic_store_explicit(&lane->sent, last[r], memory_order_release);
				_senduipi(index[r]);
			}
			if (shape_of[r]->handles && to_handler >= 0 && lot(4) == 0)
				_senduipi(to_handler);
		}
		atomic_fetch_add_explicit(&shared->posted, posts, memory_order_relaxed);
		for (int r = 0; r < receivers; r++)
			await(r, s, last[r]);
		if (want.moves && lot(64) == 0)
			shared->moved += move(0);
		if (lot(64) == 0)
			usleep(lot(10000));
	}
	senders_left--;
	return NULL;
}

static void *competes(void *number)
{
	begin(want.seed, 3 * MOST + (long)number);
	for (;;)
		compete();
	return NULL;
}

static void *disturbs(void *nothing)
{
	begin(want.seed, 4 * MOST);
	for (;;) {
		int tid = shared->tids[lot(2) ? lot(receivers) : MOST + lot(want.senders)];

		if (tid && want.moves)
			shared->moved += move(tid);
		usleep(lot(4000));
	}
	return nothing;
}

/* ---- what is left ---- */

static int audit(void)
{
	FILE *file = open_receivers();
	char line[4096];
	int wrong = 0, n = 0;

	while (fgets(line, sizeof(line), file)) {
		bool good;

		if (strncmp(line, "polled ", 7))
			continue;
#define IS(name) figure(line, name, 10)
		good = !figure(line, "pir", 16) && IS("armed") == IS("rested") + IS("is_armed") &&
			IS("noticed") + IS("picked") == IS("read") + IS("dropped") + IS("left");
		if (strstr(line, " posted "))
			good = good && IS("posted") == IS("merged") + IS("noticed") + IS("picked") &&
				IS("posted") == IS("notified") + IS("woke") + IS("covered") + IS("suppressed") && !IS("notified");
		printf("%s%s %s", good ? "" : "WRONG: ", n < receivers ? shape_of[n]->name : "?", line);
		wrong += !good;
		n++;
	}
	fclose(file);
	if (n != receivers)
		fail("debugfs shows %d receivers of %d", n, receivers);
	return wrong;
}

static const struct option options[] = {
	{ "--count", &want.count }, { "--each", &want.each }, { "--copies", &want.copies }, { "--senders", &want.senders }, { "--load", &want.load },
	{ "--seed", &want.seed }, { "--burst", &want.burst }, { "--timeouts", &want.timeouts }, { "--moves", &want.moves },
	{ "--lost-after", &want.lost_after },
	{ 0 },
};

/* What each shape was told in all is what it was sent. */
static int compare(void)
{
	int wrong = 0;

	for (int r = 0; r < receivers; r++) {
		unsigned long sent = 0, got = 0;

		for (int s = 0; s < want.senders; s++) {
			uint64_t value;

			sent += shared->lanes[r][s].sent;
			got += shared->lanes[r][s].got;
			if (!shape_of[r]->reads && read(vectors[r][s], &value, sizeof(value)) == sizeof(value))
				got += value;
		}
		printf("%-20s %lu sent, %lu noticed\n", shape_of[r]->name, sent, got);
		wrong += !sent || got > sent || (want.burst == 1 && got != sent);
	}
	return wrong;
}

int main(int argc, char **argv)
{
	long waiters = 0;
	pthread_t thread;
	int64_t start;
	pid_t child;
	int status;

	setlinebuf(stdout);
	read_options(argc - 1, argv + 1, options);
	if (syscall(SYS_io_uring_setup, 0, NULL) < 0 && errno == ENOSYS) {
		printf("this kernel has no io_uring: three shapes are left out\n");
		shapes_here -= RING_SHAPES;
	}
	receivers = shapes_here * want.copies;
	if (want.copies < 1 || receivers > MOST || want.senders < 1 || want.senders > 8)
		fail("1 to %d copies, 1 to 8 senders", MOST / shapes_here);
	device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (device < 0 || shared == MAP_FAILED)
		fail("%s: %s", UINTR_DEVICE, strerror(errno));
	for (int r = 0; r < receivers; r++) {
		struct uintr_receive args = { .flags = UINTR_POLLED };
		int receiver = ioctl(device, UINTR_RECEIVE, &args);

		shape_of[r] = &shapes[r % shapes_here];
		for (int s = 0; s < want.senders; s++) {
			unsigned long flags = shape_of[r]->flags | (shape_of[r]->waits == waits_read ? 0 : UINTR_NONBLOCK);

			/* With O_NONBLOCK io_uring fails where it is to wait. */
			if (shape_of[r]->starts == asks_ring_to_read)
				flags = 0;
			vectors[r][s] = ioctl(receiver, UINTR_VECTOR, (63 - s) | flags);
			if (vectors[r][s] < 0)
				fail("UINTR_VECTOR: %s", strerror(errno));
		}
	}
	for (long r = 0; r < receivers; r++)
		for (int i = 0; i <= shape_of[r]->twice; i++, waiters++)
			pthread_create(&thread, NULL, waits, (void *)(r + i * MOST));
	while (shared->running < waiters)
		usleep(1000);
	start = now();
	senders_left = want.senders - want.senders / 2;
	/* Half of the senders have nothing but the descriptors in common with the receivers. */
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		senders_left = want.senders / 2;
		for (long s = 1; s < want.senders; s += 2)
			pthread_create(&thread, NULL, sends, (void *)s);
		while (senders_left)
			usleep(1000);
		_exit(0);
	}
	for (long s = 0; s < want.senders; s += 2)
		pthread_create(&thread, NULL, sends, (void *)s);
	for (long l = 0; l < want.load; l++)
		pthread_create(&thread, NULL, competes, (void *)l);
	pthread_create(&thread, NULL, disturbs, NULL);
	for (long ticks = 1; senders_left; ticks++) {
		usleep(100000);
		if (waitpid(child, &status, WNOHANG) == child) {
			if (status)
				fail("the other process ended with status %#x", status);
			child = 0;
		}
		if (ticks % 300 == 0)
			printf("%ld of %ld after %ld s\n", shared->posted, want.each ? want.each * receivers : want.count, (now() - start) / 1000000000);
	}
	if (child && (waitpid(child, &status, 0) != child || status))
		fail("the other process ended with status %#x", status);
	status = compare();
	printf("%ld posted, %lu waits, %lu gave up, %lu moves, %lu handled beside\n",
	       shared->posted, shared->waits, shared->gave_up, shared->moved, handled);
	status += audit();
	if (status)
		fail("that is wrong");
	printf("none lost, in %d shapes\n", shapes_here);
	return 0;
}
