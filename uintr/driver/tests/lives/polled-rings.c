// SPDX-License-Identifier: MIT OR Apache-2.0
/* Receivers without a handler, polled and read by io_uring. */
#include "polled.h"

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

const struct life polled_rings[] = {
	{ .name = "io_uring polls once", .run = is_polled_by_io_uring },
	{ .name = "io_uring polls for good", .run = is_polled_by_io_uring_for_good },
	{ .name = "io_uring polls for good, and is cancelled in traffic", .run = is_polled_by_io_uring_until_cancelled },
	{ .name = "io_uring reads", .run = is_read_by_io_uring },
	{ 0 },
};
