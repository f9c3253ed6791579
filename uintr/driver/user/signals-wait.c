// SPDX-License-Identifier: MIT OR Apache-2.0
/* Waiting for what is sent by signals: on the words, or on descriptors beside the bell. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include "signals-receiver.h"

/* Of CLOCK_MONOTONIC; futex_waitv(2) takes it on every architecture so. */
struct time64 {
	int64_t seconds, nanoseconds;
};

#ifndef SYS_futex_waitv
#define SYS_futex_waitv		449
#endif
#ifndef FUTEX_32
#define FUTEX_32		2
struct futex_waitv {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};
#endif

/* Sleeps as long as no word changes. */
static int sleeps(struct receiver *receiver, const struct time64 *deadline)
{
	struct futex_waitv words[UINTR_VECTORS + 1];
	unsigned int count = 0;

	/* Where there is nothing to come, one that stays. */
	words[count++] = (struct futex_waitv){ .val = WAITING, .uaddr = (uintptr_t)&receiver->status->mode, .flags = FUTEX_32 };
	for (uint64_t live = receiver->live; live; live &= ~bit(highest(live))) {
		uint32_t *word = receiver->post[highest(live)], value = __atomic_load_n(word, __ATOMIC_RELAXED);

		if (value & POSTED)
			return 0;
		words[count++] = (struct futex_waitv){ .val = value, .uaddr = (uintptr_t)word, .flags = FUTEX_32 };
	}
	uintr_moment(BEFORE_THE_SLEEP);
	return syscall(SYS_futex_waitv, words, count, 0, deadline, CLOCK_MONOTONIC);
}

/* Shut as the receiver was before, @masked, in which a signal's handler empties the bell; as it may not have done meanwhile. */
static void stops_polling(struct receiver *receiver, enum mode masked)
{
	receiver->masked = masked;
	shuts(receiver);
	if (receiver->bell_rung) {
		receiver->bell_rung = 0;
		uintr_signals_empties_bell(receiver);
	}
}

static struct timespec time_left(int64_t deadline)
{
	struct timespec now;
	int64_t left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left = deadline - (now.tv_sec * 1000000000ll + now.tv_nsec);
	return left <= 0 ? (struct timespec){ 0 } : (struct timespec){ left / 1000000000, left % 1000000000 };
}

/* Whether @fd can be read (1), or something is pending (0). */
static int polls(struct receiver *receiver, int fd, int64_t deadline)
{
	struct pollfd both[] = { { .fd = fd, .events = POLLIN }, { .fd = receiver->bell, .events = POLLIN } };
	enum mode masked = receiver->masked;

	for (;;) {
		struct timespec left = { 0 };
		int found, count, error;

		receiver->masked = POLLING;
		sets(receiver, POLLING);
		uintr_moment(BEHIND_WAITING);
		found = pending(receiver);
		if (!found && deadline >= 0)
			left = time_left(deadline);
		uintr_moment(BEFORE_THE_SLEEP);
		count = ppoll(both, 2, !found && deadline < 0 ? NULL : &left, NULL);
		error = errno;
		stops_polling(receiver, masked);
		if (count > 0 && both[0].revents)
			return both[0].revents & POLLNVAL ? refuse(EBADF) : 1;
		if (pending(receiver))
			return 0;
		if (count < 0)
			return refuse(error);
		if (!count && !found)
			return refuse(ETIMEDOUT);
		/* The bell's byte was of what a handler has taken. */
	}
}

static int sleeps_until(struct receiver *receiver, int64_t deadline)
{
	struct time64 until = { deadline / 1000000000, deadline % 1000000000 };
	int error = 0;

	while (!error) {
		/* Each time: a signal's handler may have masked or unmasked. */
		sets(receiver, WAITING);
		uintr_moment(BEHIND_WAITING);
		if (pending(receiver))
			break;
		if (sleeps(receiver, deadline < 0 ? NULL : &until) < 0 && errno != EAGAIN)
			error = errno;
	}
	return !error || pending(receiver) ? 0 : refuse(error);
}

int uintr_signals_wait_until(int fd, int64_t deadline)
{
	struct receiver *receiver = uintr_signals_own;
	int was_open, result, error;

	if (!receiver)
		return refuse(EINVAL);
	was_open = mode_of(receiver) == OPEN;
	shuts(receiver);
	uintr_moment(BEFORE_WAITING);
	result = fd < 0 ? sleeps_until(receiver, deadline) : polls(receiver, fd, deadline);
	error = errno;
	uintr_moment(BEHIND_THE_WAIT);
	shuts(receiver);
	if (was_open)
		uintr_signals_unmask();
	errno = error;
	return result;
}
