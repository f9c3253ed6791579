// SPDX-License-Identifier: MIT OR Apache-2.0
/* A thread's timer, by signals. */
#define _GNU_SOURCE
#include <sys/socket.h>
#include "signals-receiver.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id	_sigev_un._tid
#endif

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* By the clock, and not by whose signal it is: the timer's may have been merged with another. */
void uintr_signals_ticks(struct receiver *receiver)
{
	uint64_t now;

	if (!receiver->due || (now = clock_now()) < receiver->due)
		return;
	receiver->due = receiver->period ? receiver->due + ((now - receiver->due) / receiver->period + 1) * receiver->period : 0;
	__atomic_fetch_or(&receiver->late, bit(receiver->timer_vector), __ATOMIC_RELAXED);
	if (mode_of(receiver) == POLLING)
		/* As a sender rings: who is about to poll must find it. */
		bare_call(SYS_sendto, receiver->bell_given, (long)"", 1, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
	else if (mode_of(receiver) == WAITING)
		/* The wait, which would go on behind this handler, looks at this first. */
		shuts(receiver);
}

int uintr_signals_timer(unsigned int vector, uint64_t first, uint64_t period)
{
	struct sigevent told = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG };
	struct itimerspec times = { { period / 1000000000, period % 1000000000 }, { first / 1000000000, first % 1000000000 } };
	struct receiver *receiver = uintr_signals_own;

	if (!receiver)
		return refuse(EINVAL);
	if (!receiver->has_timer) {
		if (!first)
			return 0;
		told.sigev_notify_thread_id = bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
		if (timer_create(CLOCK_MONOTONIC, &told, &receiver->timer))
			return -1;
		receiver->has_timer = 1;
	}
	/* A signal that is under way finds no time, or the new one. */
	__atomic_store_n(&receiver->due, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	receiver->timer_vector = vector;
	receiver->period = period;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&receiver->due, first ? clock_now() + first : 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!first)
		times = (struct itimerspec){ 0 };
	/* Behind the clock's reading: no signal comes before its time, which would be the only one. */
	return timer_settime(receiver->timer, 0, &times, NULL);
}
