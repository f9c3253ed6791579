// SPDX-License-Identifier: MIT OR Apache-2.0
/* What senders are given of a receiver by signals: a vector's pages and sockets, and their end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "signals-receiver.h"

/* Takes @vector back: nobody's posts count any more. */
static void revokes(struct receiver *receiver, unsigned int vector)
{
	/* Once: a signal may come here while the thread does. */
	if (!(__atomic_fetch_and(&receiver->live, ~bit(vector), __ATOMIC_RELAXED) & bit(vector)))
		return;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&receiver->status->generation[vector], receiver->status->generation[vector] + 1, __ATOMIC_RELEASE);
	if (empties(receiver, vector) & POSTED)
		__atomic_fetch_or(&receiver->late, bit(vector), __ATOMIC_RELAXED);
	__atomic_fetch_or(&receiver->gone, bit(vector), __ATOMIC_RELAXED);
}

/* Behind revokes(), by the thread itself. */
static void closes(struct receiver *receiver, unsigned int vector)
{
	if (__atomic_fetch_and(&receiver->gone, ~bit(vector), __ATOMIC_RELAXED) & bit(vector))
		close(receiver->end[vector]);
}

static int hung_up(const struct receiver *receiver, unsigned int vector)
{
	struct pollfd end = { .fd = receiver->end[vector] };
	static const struct timespec at_once;

	return bare_call(SYS_ppoll, (long)&end, 1, (long)&at_once, 0, 0, 0) == 1 && end.revents & POLLHUP;
}

void uintr_signals_revokes_closed(struct receiver *receiver)
{
	for (uint64_t live = receiver->live; live; live &= ~bit(highest(live)))
		if (hung_up(receiver, highest(live)))
			revokes(receiver, highest(live));
}

/* A page of memory that others may map, with these seals and those that keep its size. NULL with errno. */
void *uintr_signals_page(const char *name, int seals, int *memory)
{
	void *made = MAP_FAILED;

	*memory = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*memory < 0)
		return NULL;
	if (!ftruncate(*memory, PAGE))
		made = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *memory, 0);
	/* Behind the one mapping that may write. */
	if (made == MAP_FAILED || fcntl(*memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | seals)) {
		int error = errno;

		if (made != MAP_FAILED)
			munmap(made, PAGE);
		close(*memory);
		errno = error;
		return NULL;
	}
	madvise(made, PAGE, MADV_DONTFORK);
	return made;
}

/* Has what arrives at, or closes the other end of, this socket signal the calling thread. */
int uintr_signals_tells_this_thread(int socket)
{
	struct f_owner_ex thread = { F_OWNER_TID, syscall(SYS_gettid) };

	return fcntl(socket, F_SETOWN_EX, &thread) || fcntl(socket, F_SETSIG, SIGURG) || fcntl(socket, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
}

/* Puts the page at @word where that of @vector was, if there was one: nobody finds nothing there in between. Whether it could. */
static int stays(struct receiver *receiver, unsigned int vector, uint32_t *word)
{
	if (receiver->mapped & bit(vector))
		return mremap(word, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, receiver->post[vector]) != MAP_FAILED;
	receiver->post[vector] = word;
	receiver->mapped |= bit(vector);
	return 1;
}

int uintr_signals_vector_fd(unsigned int vector)
{
	struct receiver *receiver = uintr_signals_own;
	int memory = -1, ends[2] = { -1, -1 }, error;
	struct card card = { .magic = CARD_MAGIC, .vector = vector };
	uint32_t *word;

	if (!receiver)
		return refuse(EINVAL);
	if (vector >= UINTR_VECTORS)
		return refuse(ENOSPC);
	if (receiver->live & bit(vector) && !hung_up(receiver, vector))
		return refuse(EBUSY);
	if (receiver->live & bit(vector))
		revokes(receiver, vector);
	closes(receiver, vector);
	word = uintr_signals_page("uintr-vector", 0, &memory);
	if (!word)
		return -1;
	card.generation = receiver->status->generation[vector] + 1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) || uintr_signals_tells_this_thread(ends[0]) ||
	    uintr_message_put(ends[0], &card, sizeof(card), (int[]){ memory, receiver->status_given, receiver->bell_given }, CARD_DESCRIPTORS) ||
	    !stays(receiver, vector, word)) {
		error = errno;
		munmap(word, PAGE);
		close(memory);
		if (ends[0] >= 0)
			close(ends[0]), close(ends[1]);
		return refuse(error);
	}
	close(memory);
	receiver->end[vector] = ends[0];
	receiver->taken[vector] = 0;
	__atomic_store_n(&receiver->status->generation[vector], card.generation, __ATOMIC_RELEASE);
	/* From here on a signal's handler looks at them. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_fetch_or(&receiver->live, bit(vector), __ATOMIC_RELAXED);
	return ends[1];
}

int uintr_signals_revoke(unsigned int vector)
{
	struct receiver *receiver = uintr_signals_own;

	if (!receiver || !(receiver->live & bit(vector)))
		return refuse(EINVAL);
	revokes(receiver, vector);
	if (__atomic_fetch_and(&receiver->watched, ~bit(vector), __ATOMIC_RELAXED) & bit(vector))
		uintr_signals_unwatch(receiver, bit(vector));
	closes(receiver, vector);
	return 0;
}

int uintr_signals_takes_eventfd(unsigned int vector, int eventfd)
{
	int end, failed, error;
	struct held held;

	/* A handler that revokes, or ends the receiver, finds nothing of it or all. */
	uintr_holds_off(&held);
	end = uintr_signals_vector_fd(vector);
	failed = end < 0 || uintr_signals_watch(eventfd, end, uintr_signals_own, vector);
	error = errno;
	if (!failed)
		__atomic_fetch_or(&uintr_signals_own->watched, bit(vector), __ATOMIC_RELAXED);
	if (failed && end >= 0) {
		uintr_signals_revoke(vector);
		close(end);
	}
	uintr_lets_come(&held);
	return failed ? refuse(error) : 0;
}
