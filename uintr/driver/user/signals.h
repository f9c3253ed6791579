/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a receiver and its senders share where user interrupts are made of signals.
 *
 * A vector's descriptor is one end of a pair of sockets, in whose queue a card lies for good, with three descriptors.
 * Everybody who is given the end peeks at the card and takes those:
 *   post    a page that this vector's senders write: one word
 *   status  a page that the receiver alone can write (F_SEAL_FUTURE_WRITE)
 *   bell    a socket whose other end has the kernel signal the receiver's thread (O_ASYNC)
 * Of the pair's end that is passed nobody else has a copy: when the last is closed, the other tells the receiver, which
 * revokes the vector. The other end dies with the receiver's process: POLLHUP for whoever holds the first.
 *
 * Why the kernel signals, and no sender: it needs no right over the receiver but the descriptor, and F_SETOWN_EX holds the
 * thread itself, not a number that another may have by then.
 *
 * A word:    bit 0 POSTED; bit 1 RUNG: who posts need not ring any more; above, how often it was taken.
 * A sender:  sets POSTED; reads the mode; rings as that says; sets RUNG if nobody has taken the word meanwhile. One that
 *            is killed before it rang leaves RUNG clear, so that the next rings.
 * Receiver:  sets the mode; looks at the words. Each side writes before it reads (both full fences), so that
 *            a sender that saw the old mode has posted before the look.
 */
#ifndef UINTR_SIGNALS_H
#define UINTR_SIGNALS_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend.h"
#include "message.h"
#include "uintr.h"

#define PAGE		4096
#define CARD_MAGIC	0x31637675u	/* "uvc1" */

#define POSTED		1u
#define RUNG		2u
#define TAKEN_ONCE	4u

enum mode {
	SHUT,		/* UIF is shut: who posts does not ring */
	OPEN,		/* a byte for the bell, and so a signal */
	WAITING,	/* in uintr_wait(): a futex on the word */
	ENDED,
	POLLING,	/* in uintr_wait_fd(): a byte for the bell, which it polls */
};

struct status {
	uint32_t mode;
	/* Of each vector how often it was given a descriptor or revoked: odd while it has one. */
	uint32_t generation[UINTR_VECTORS];
};

struct card {
	uint32_t magic, vector, generation;
};

enum card_descriptors { CARD_POST, CARD_STATUS, CARD_BELL, CARD_DESCRIPTORS };

/* Between two steps, where user/tests/moments.c lets others act, or dies. */
enum moment {
	/* Of a sender. */
	BEFORE_THE_POST, BEHIND_THE_POST, BEFORE_THE_RING, BEHIND_THE_RING,
	/* Of a receiver: it is shut, and about to open; it has opened, and is about to look. */
	BEFORE_OPENING, BEHIND_OPENING,
	/* It has emptied its bell, and is about to look. */
	BEHIND_THE_BELL,
	/* It is about to say that it waits; has said so; has found nothing, and is about to sleep; has found something. */
	BEFORE_WAITING, BEHIND_WAITING, BEFORE_THE_SLEEP, BEHIND_THE_WAIT,
	MOMENTS,
};

#ifdef UINTR_MOMENTS
void uintr_moment(enum moment moment);
#else
static inline void uintr_moment(enum moment moment)
{
	(void)moment;
}
#endif

/*
 * System calls that leave errno alone, use no register that a UIRET handler has to keep, and are no place where a
 * thread may be cancelled.
 */
static inline long bare_call(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return result;
#else
	int error = errno;
	long result = syscall(number, a, b, c, d, e, f);

	if (result < 0)
		result = -errno;
	errno = error;
	return result;
#endif
}

struct receiver;

struct connection {
	/* signals-send.c's, of one that has an index. */
	uint32_t uses;
	uint32_t vector, generation;
	/* NULL: @bell is the eventfd of a vector that is polled. */
	uint32_t *post;
	const struct status *status;
	int bell;
};

/* signals-eventfd.c, for signals.c, with all signals blocked; the first has taken @end, if it returns 0 */
int uintr_signals_watch(int eventfd, int end, const struct receiver *receiver, unsigned int vector);
void uintr_signals_unwatch(const struct receiver *receiver, uint64_t vectors);
void uintr_signals_lock_watched(void);
void uintr_signals_unlock_watched(void);
void uintr_signals_forget_watched(void);

/* signals-send.c, for signals.c */
int uintr_signals_connect(int fd);
int uintr_signals_disconnect(unsigned int index);
void uintr_signals_send(uint64_t index);
void uintr_signals_lock(void);
void uintr_signals_unlock(void);
void uintr_signals_forget(void);
/* and for signals-eventfd.c: a connection that has no index */
int uintr_signals_connect_apart(int fd, struct connection *connection);
void uintr_signals_disconnect_apart(struct connection *connection);
void uintr_signals_send_apart(struct connection *connection);

#endif
