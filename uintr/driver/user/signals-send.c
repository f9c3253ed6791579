// SPDX-License-Identifier: MIT OR Apache-2.0
/* The senders' side of user interrupts made of signals: signals.h has the protocol. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "signals.h"

/* Of @uses: it may be sent; it holds something. Below them who is about to send, and one as long as it is connected. */
#define CONNECTED	(1u << 31)
#define OCCUPIED	(1u << 30)

static struct connection connections[UINTR_CONNECTIONS];
/* Of who connects and disconnects. */
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
/* Whether this process was ever connected to anything. */
static uint32_t ever;

/* ---- connecting ---- */

/* A page of another process: nobody may shorten it under us. */
static void *maps(int memory, int protection)
{
	int seals = fcntl(memory, F_GET_SEALS);
	struct stat about;
	void *page;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(memory, &about) || about.st_size != PAGE) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	page = mmap(NULL, PAGE, protection, MAP_SHARED, memory, 0);
	if (page == MAP_FAILED)
		return NULL;
	madvise(page, PAGE, MADV_DONTFORK);
	return page;
}

static void empties(struct connection *connection)
{
	/* Called from handlers too: system calls alone. */
	if (connection->post) {
		bare_call(SYS_munmap, (long)connection->post, PAGE, 0, 0, 0, 0);
		bare_call(SYS_munmap, (long)connection->status, PAGE, 0, 0, 0, 0);
	}
	bare_call(SYS_close, connection->bell, 0, 0, 0, 0, 0);
}

static int connects_to_card(int fd, struct connection *connection)
{
	int descriptors[MESSAGE_DESCRIPTORS], error;
	struct pollfd receiver = { .fd = fd };
	struct card card;

	if (uintr_message_peek(fd, &card, sizeof(card), descriptors, CARD_DESCRIPTORS, CARD_DESCRIPTORS) < 0)
		return -1;
	if (card.magic != CARD_MAGIC || card.vector >= UINTR_VECTORS) {
		uintr_message_close(descriptors, CARD_DESCRIPTORS);
		return refuse(EOPNOTSUPP);
	}
	*connection = (struct connection){ .vector = card.vector, .generation = card.generation, .bell = descriptors[CARD_BELL] };
	connection->status = maps(descriptors[CARD_STATUS], PROT_READ);
	connection->post = connection->status ? maps(descriptors[CARD_POST], PROT_READ | PROT_WRITE) : NULL;
	error = errno;
	uintr_message_close(descriptors, CARD_BELL);
	if (connection->post && poll(&receiver, 1, 0) == 1 && receiver.revents & POLLHUP)
		error = ESHUTDOWN;
	else if (connection->post)
		return 0;
	if (connection->status && !connection->post)
		munmap((void *)connection->status, PAGE);
	if (connection->post)
		empties(connection);
	else
		close(connection->bell);
	return refuse(error);
}

/* Of the eventfds those that uintr_poll_fd() made have a mark; an anonymous inode has no type. */
static int connects_to_eventfd(int fd, struct connection *connection)
{
	struct stat about;

	if (fstat(fd, &about))
		return -1;
	if (about.st_mode & S_IFMT || fcntl(fd, F_GETSIG) != SIGURG)
		return refuse(EOPNOTSUPP);
	*connection = (struct connection){ .bell = fcntl(fd, F_DUPFD_CLOEXEC, 0) };
	return connection->bell < 0 ? -1 : 0;
}

int uintr_signals_connect(int fd)
{
	struct connection made;
	struct stat about;
	struct held held;
	int index;

	if (fstat(fd, &about))
		return -1;
	if (S_ISSOCK(about.st_mode) ? connects_to_card(fd, &made) : connects_to_eventfd(fd, &made))
		return -1;
	uintr_locks(&table, &held);
	for (index = 0; index < UINTR_CONNECTIONS && __atomic_load_n(&connections[index].uses, __ATOMIC_ACQUIRE); index++)
		;
	if (index < UINTR_CONNECTIONS) {
		connections[index] = made;
		__atomic_store_n(&ever, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&connections[index].uses, CONNECTED | OCCUPIED | 1, __ATOMIC_RELEASE);
	}
	uintr_unlocks(&table, &held);
	if (index == UINTR_CONNECTIONS) {
		empties(&made);
		return refuse(ENOSPC);
	}
	return index;
}

/* Whoever is last empties it, the disconnecting thread or one that was sending. */
static void lets_go(struct connection *connection)
{
	if (__atomic_sub_fetch(&connection->uses, 1, __ATOMIC_ACQ_REL) == OCCUPIED) {
		empties(connection);
		__atomic_store_n(&connection->uses, 0, __ATOMIC_RELEASE);
	}
}

int uintr_signals_disconnect(unsigned int index)
{
	uint32_t before = __atomic_fetch_and(&connections[index].uses, ~CONNECTED, __ATOMIC_ACQ_REL);

	if (!(before & CONNECTED))
		return refuse(EINVAL);
	lets_go(&connections[index]);
	return 0;
}

void uintr_signals_lock(void)
{
	pthread_mutex_lock(&table);
}

void uintr_signals_unlock(void)
{
	pthread_mutex_unlock(&table);
}

/* In a child of fork, which has the descriptors and not the pages. */
void uintr_signals_forget(void)
{
	for (int i = 0; i < UINTR_CONNECTIONS; i++) {
		if (connections[i].uses)
			close(connections[i].bell);
		connections[i].uses = 0;
	}
	ever = 0;
	pthread_mutex_unlock(&table);
}

int uintr_signals_connect_apart(int fd, struct connection *connection)
{
	return connects_to_card(fd, connection);
}

void uintr_signals_disconnect_apart(struct connection *connection)
{
	empties(connection);
}

/* ---- sending: from handlers too, which may have to keep all but the general registers ---- */

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC target("general-regs-only")
#endif

static int takes_hold(struct connection *connection)
{
	uint32_t uses = __atomic_load_n(&connection->uses, __ATOMIC_RELAXED);

	do {
		if (!(uses & CONNECTED))
			return 0;
	} while (!__atomic_compare_exchange_n(&connection->uses, &uses, uses + 1, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return 1;
}

/* As SENDUIPI without a table, and with an entry that is not valid. */
static void is_an_invalid_instruction(void)
{
#ifdef __x86_64__
	__asm__ volatile("ud2");
#else
	bare_call(SYS_tgkill, getpid(), bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGILL, 0, 0, 0);
#endif
}

static void is_a_wrong_address(void)
{
	/* In no half of the address space. */
	*(volatile char *)(1ul << 62) = 0;
}

/* For tests to find: one of a hundred that must be told is not. */
static int forgets(uint32_t mode)
{
#ifdef UINTR_FORGETS
	static unsigned int rings;

	return (mode == OPEN || mode == WAITING || mode == POLLING) && ++rings % 100 == 0;
#else
	(void)mode;
	return 0;
#endif
}

/* Whether it was posted, or need not be: false, if it was revoked. */
static int posts(struct connection *connection)
{
	uint32_t before, rung, mode;

	/* The order of the two is of no weight: who ended revoked nothing. */
	if (__atomic_load_n(&connection->status->mode, __ATOMIC_RELAXED) == ENDED)
		return 1;
	if (__atomic_load_n(&connection->status->generation[connection->vector], __ATOMIC_RELAXED) != connection->generation)
		return 0;
	uintr_moment(BEFORE_THE_POST);
	/* A full fence, also where nothing changes: what was stored before is seen by who takes it. */
	before = __atomic_fetch_or(connection->post, POSTED, __ATOMIC_SEQ_CST);
	uintr_moment(BEHIND_THE_POST);
	if (before & RUNG)
		return 1;
	mode = __atomic_load_n(&connection->status->mode, __ATOMIC_SEQ_CST);
	if (forgets(mode))
		return 1;
	uintr_moment(BEFORE_THE_RING);
	switch (mode) {
	case OPEN:
	case POLLING:
		/* EAGAIN: a byte lies there, and the receiver's signal handler looks behind taking it. EPIPE: it has ended. */
		for (;;) {
			long result = bare_call(SYS_sendto, connection->bell, (long)"", 1, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);

			if (result != -ENOBUFS && result != -ENOMEM && result != -EINTR)
				break;
			bare_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
		}
		break;
	case WAITING:
		/* All: another sender that waits there would take the only one. */
		bare_call(SYS_futex, (long)connection->post, FUTEX_WAKE, INT_MAX, 0, 0, 0);
		break;
	default:
		return 1;
	}
	uintr_moment(BEHIND_THE_RING);
	rung = before | POSTED;
	__atomic_compare_exchange_n(connection->post, &rung, rung | RUNG, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	return 1;
}

void uintr_signals_send(uint64_t index)
{
	struct connection *connection = &connections[index < UINTR_CONNECTIONS ? index : 0];
	static const uint64_t one = 1;
	int done = 1;

	if (!__atomic_load_n(&ever, __ATOMIC_RELAXED)) {
		is_an_invalid_instruction();
		return;
	}
	if (index >= UINTR_CONNECTIONS || !takes_hold(connection)) {
		is_a_wrong_address();
		return;
	}
	if (connection->post)
		done = posts(connection);
	else
		while (bare_call(SYS_write, connection->bell, (long)&one, sizeof(one), 0, 0, 0) == -EINTR)
			;
	lets_go(connection);
	if (!done)
		is_a_wrong_address();
}

/* Nothing where its vector was revoked just now. */
void uintr_signals_send_apart(struct connection *connection)
{
	posts(connection);
}

#ifdef __x86_64__
#pragma GCC pop_options
#endif
