/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A receiver of signals.h's protocol as its own thread sees it: for the files signals*.c of the receivers' side. */
#ifndef UINTR_SIGNALS_RECEIVER_H
#define UINTR_SIGNALS_RECEIVER_H

#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include "signals.h"

struct receiver {
	struct receiver *next, *previous;
	struct handler handler;
	/* Shared with senders: the receiver writes this one, */
	struct status *status;
	/* and those they write. */
	uint32_t *post[UINTR_VECTORS];
	/* How often each was taken, whatever somebody writes there. */
	uint32_t taken[UINTR_VECTORS];
	/* Which there are; of which @post is there: a page stays as long as the receiver, since a signal may have interrupted a look at it. */
	uint64_t live, mapped;
	/* Those of @live that an eventfd has. */
	uint64_t watched;
	/* Revoked in a signal, with an @end still to be closed, which the thread may be looking at. */
	uint64_t gone;
	/* Requests of vectors that were revoked before they were handled, and of the timer. */
	uint64_t late;
	/* Our ends: of each vector, of the bell; and what senders are given of both. */
	int end[UINTR_VECTORS], bell, bell_given, status_given;
	/* Signals that did not come from the bell are rare, and merge with those that did: then a hang-up is noticed late. */
	unsigned int signals;
	/* Where the handler runs, exclusive; 0: where it interrupts. */
	uintptr_t stack_top;
	int in_signal;
	/* The timer, from when @has_timer; CLOCK_MONOTONIC, 0: not set. What has come is in @late. */
	int has_timer;
	timer_t timer;
	uint64_t due, period;
	unsigned int timer_vector;
	/* What it is when it is shut: SHUT; or POLLING, and who posts rings all the same. */
	enum mode masked;
	/* A signal's handler has left bytes in the bell, for a poll to find. */
	int bell_rung;
};

/* The calling thread's. */
extern __thread struct receiver *uintr_signals_own __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* signals.c: a signal's handler, or the thread itself, takes the bytes; the flag is opened. */
void uintr_signals_empties_bell(const struct receiver *receiver);
void uintr_signals_unmask(void);

/* signals-handlers.c: runs what was posted; has the thread go on in a handler that ends by UIRET; takes SIGILL for that. */
void uintr_signals_runs(struct receiver *receiver);
void uintr_signals_delivers(struct receiver *receiver, ucontext_t *context);
int uintr_signals_takes_uiret(void);

/* signals-vectors.c: memory and sockets that senders are given, and vectors */
void *uintr_signals_page(const char *name, int seals, int *memory);
int uintr_signals_tells_this_thread(int socket);
void uintr_signals_revokes_closed(struct receiver *receiver);
int uintr_signals_vector_fd(unsigned int vector);
int uintr_signals_revoke(unsigned int vector);
int uintr_signals_takes_eventfd(unsigned int vector, int eventfd);

/* signals-timer.c: what is due by now is posted */
void uintr_signals_ticks(struct receiver *receiver);
int uintr_signals_timer(unsigned int vector, uint64_t first, uint64_t period);

/* signals-wait.c */
int uintr_signals_wait_until(int fd, int64_t deadline);

/* ---- taking what was posted ---- */

static inline uint64_t bit(unsigned int vector)
{
	return 1ull << vector;
}

static inline unsigned int highest(uint64_t bits)
{
	return 63 - __builtin_clzll(bits);
}

static inline int pending(const struct receiver *receiver)
{
	if (receiver->late)
		return 1;
	for (uint64_t live = receiver->live; live; live &= ~bit(highest(live)))
		if (__atomic_load_n(receiver->post[highest(live)], __ATOMIC_RELAXED) & POSTED)
			return 1;
	return 0;
}

/* The word of @vector as it was; from now on it is empty. */
static inline uint32_t empties(struct receiver *receiver, unsigned int vector)
{
	return __atomic_exchange_n(receiver->post[vector], ++receiver->taken[vector] * TAKEN_ONCE, __ATOMIC_SEQ_CST);
}

/* The highest vector that was posted, or -1. */
static inline int takes(struct receiver *receiver)
{
	for (uint64_t maybe = receiver->live | receiver->late; maybe; maybe &= ~bit(highest(maybe))) {
		unsigned int vector = highest(maybe);

		if (receiver->late & bit(vector)) {
			__atomic_fetch_and(&receiver->late, ~bit(vector), __ATOMIC_RELAXED);
			return vector;
		}
		if (__atomic_load_n(receiver->post[vector], __ATOMIC_RELAXED) & POSTED && empties(receiver, vector) & POSTED)
			return vector;
	}
	return -1;
}

static inline void sets(struct receiver *receiver, enum mode mode)
{
	/* Before any look at the words. */
	__atomic_store_n(&receiver->status->mode, mode, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Nothing of this thread's is to be seen by another thread earlier, and a signal's handler runs on this one. */
static inline void shuts(struct receiver *receiver)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&receiver->status->mode, receiver->masked, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline enum mode mode_of(const struct receiver *receiver)
{
	return __atomic_load_n(&receiver->status->mode, __ATOMIC_RELAXED);
}

#endif
