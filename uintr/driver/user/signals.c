// SPDX-License-Identifier: MIT OR Apache-2.0
/* Receivers whose user interrupts are made of signals: how they begin and end, and their signal. signals.h has the protocol. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "signals-receiver.h"

__thread struct receiver *uintr_signals_own;
static struct receiver *receivers;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
/* Whether system calls end with EINTR, of all receivers; as long as there are any. */
static int interrupts;
static struct sigaction previous_urg;

/* ---- the signal ---- */

void uintr_signals_empties_bell(const struct receiver *receiver)
{
	char bytes[512];

	/* All that lies there: a sender takes a full queue for one that rings. Others may fill it as fast as it is emptied, but ring then. */
	for (int i = 0; i < 1024; i++)
		if (bare_call(SYS_recvfrom, receiver->bell, (long)bytes, sizeof(bytes), MSG_DONTWAIT, 0, 0) < (long)sizeof(bytes))
			return;
}

static void on_signal(int signal, siginfo_t *info, void *about)
{
	struct receiver *receiver = uintr_signals_own;
	int error = errno;

	if (receiver) {
		uintr_signals_ticks(receiver);
		/* Who is about to poll the bell would sleep in front of what this took. */
		if (mode_of(receiver) == POLLING)
			receiver->bell_rung = 1;
		else
			uintr_signals_empties_bell(receiver);
		uintr_moment(BEHIND_THE_BELL);
		/* See @signals. */
		if ((info->si_code <= 0 && info->si_code != SI_TIMER) || (info->si_code > 0 && info->si_fd != receiver->bell) || receiver->signals++ % 64 == 0)
			uintr_signals_revokes_closed(receiver);
		if (mode_of(receiver) == OPEN) {
			if (receiver->handler.uiret) {
				uintr_signals_delivers(receiver, about);
			} else {
				receiver->in_signal++;
				uintr_signals_runs(receiver);
				if (uintr_signals_own == receiver)
					receiver->in_signal--;
			}
		}
	}
	errno = error;
	/* Those of the program, which may have been merged with ours. */
	if (previous_urg.sa_flags & SA_SIGINFO)
		previous_urg.sa_sigaction(signal, info, about);
	else if (previous_urg.sa_handler != SIG_DFL && previous_urg.sa_handler != SIG_IGN)
		previous_urg.sa_handler(signal);
}

/* ---- the process ---- */

static int start(char *why, size_t size)
{
	/* What it is asked is wrong: any kernel that has the call says so. */
	if (syscall(SYS_futex_waitv, NULL, 0, 0, NULL, CLOCK_MONOTONIC) && errno == ENOSYS) {
		snprintf(why, size, "this kernel has no futex_waitv(2) (Linux 5.16)");
		return -1;
	}
	return 0;
}

static void before_fork(void)
{
	pthread_mutex_lock(&list_lock);
	uintr_signals_lock_watched();
	uintr_signals_lock();
}

static void in_parent(void)
{
	uintr_signals_unlock();
	uintr_signals_unlock_watched();
	pthread_mutex_unlock(&list_lock);
}

/* The pages are not in the child (MADV_DONTFORK); @receiver's own memory is. */
static void in_child(void)
{
	uintr_signals_own = NULL;
	while (receivers) {
		struct receiver *receiver = receivers;

		receivers = receiver->next;
		for (uint64_t open = receiver->live | receiver->gone; open; open &= ~bit(highest(open)))
			close(receiver->end[highest(open)]);
		close(receiver->bell);
		close(receiver->bell_given);
		close(receiver->status_given);
		frees_in_child(receiver);
	}
	uintr_signals_forget();
	uintr_signals_forget_watched();
	pthread_mutex_unlock(&list_lock);
}

/* ---- receiving ---- */

/* Under @list_lock, for the first receiver and where system calls are to go on otherwise than for those before. */
static int takes_signals(int interrupting)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | (interrupting ? 0 : SA_RESTART) }, before;

	if (receivers && interrupts != interrupting)
		return refuse(ENOTSUP);
	if (receivers)
		return 0;
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGURG, &action, &before))
		return -1;
	if (!(before.sa_flags & SA_SIGINFO && before.sa_sigaction == on_signal))
		previous_urg = before;
	interrupts = interrupting;
	return 0;
}

static void frees(struct receiver *receiver)
{
	if (receiver->has_timer)
		timer_delete(receiver->timer);
	if (receiver->bell >= 0)
		close(receiver->bell);
	if (receiver->bell_given >= 0)
		close(receiver->bell_given);
	if (receiver->status) {
		munmap(receiver->status, PAGE);
		close(receiver->status_given);
	}
	free(receiver);
}

/* Without its place in the list. NULL with errno. */
static struct receiver *makes(const struct handler *handler)
{
	struct receiver *receiver = calloc(1, sizeof(*receiver));
	int ends[2] = { -1, -1 }, error;

	if (!receiver)
		return NULL;
	receiver->handler = *handler;
	receiver->bell = receiver->bell_given = -1;
	receiver->status = uintr_signals_page("uintr-status", F_SEAL_FUTURE_WRITE, &receiver->status_given);
	if (receiver->status && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		receiver->bell = ends[0];
		receiver->bell_given = ends[1];
		if (!uintr_signals_tells_this_thread(receiver->bell))
			return receiver;
	}
	error = errno;
	frees(receiver);
	errno = error;
	return NULL;
}

static int handle(const struct handler *handler, unsigned int flags)
{
	int interrupting = !!(flags & UINTR_HANDLER_FLAG_WAITING_ANY);
	struct receiver *receiver;
	struct held held;
	sigset_t ours;

	if (uintr_signals_own)
		return refuse(EBUSY);
	if (flags & UINTR_HANDLER_FLAG_RESUMES)
		return refuse(ENOTSUP);
	/* As the driver: no address of user space. */
	if (handler->uiret && (uintptr_t)handler->uiret >> 63)
		return refuse(EFAULT);
	receiver = makes(handler);
	if (!receiver)
		return -1;
	uintr_locks(&list_lock, &held);
	if (takes_signals(interrupting) || (handler->uiret && uintr_signals_takes_uiret())) {
		int error = errno;

		uintr_unlocks(&list_lock, &held);
		frees(receiver);
		return refuse(error);
	}
	receiver->next = receivers;
	if (receivers)
		receivers->previous = receiver;
	receivers = receiver;
	uintr_unlocks(&list_lock, &held);
	uintr_signals_own = receiver;
	sigemptyset(&ours);
	sigaddset(&ours, SIGURG);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	return 0;
}

static int unhandle(void)
{
	struct receiver *receiver = uintr_signals_own;
	struct held held;

	if (!receiver)
		return refuse(EINVAL);
	/* No signal looks at it from here on. */
	uintr_signals_own = NULL;
	sets(receiver, ENDED);
	if (receiver->watched)
		uintr_signals_unwatch(receiver, receiver->watched);
	uintr_locks(&list_lock, &held);
	if (receiver->next)
		receiver->next->previous = receiver->previous;
	if (receiver->previous)
		receiver->previous->next = receiver->next;
	else
		receivers = receiver->next;
	uintr_unlocks(&list_lock, &held);
	for (uint64_t open = receiver->live | receiver->gone; open; open &= ~bit(highest(open)))
		close(receiver->end[highest(open)]);
	for (uint64_t mapped = receiver->mapped; mapped; mapped &= ~bit(highest(mapped)))
		munmap(receiver->post[highest(mapped)], PAGE);
	frees(receiver);
	return 0;
}

static int alt_stack(void *stack, size_t size)
{
	size_t least;

	if (!uintr_signals_own)
		return refuse(EINVAL);
	least = uintr_signals_own->handler.uiret ? UINTR_STACK_LEAST : UINTR_HANDLE_STACK_LEAST;
	if (stack && size < least)
		return refuse(EINVAL);
#ifdef __x86_64__
	uintr_signals_own->stack_top = stack ? (uintptr_t)stack + size : 0;
	return 0;
#else
	return stack ? refuse(ENOTSUP) : 0;
#endif
}

static int poll_fd(int semaphore, int nonblock)
{
	int fd = eventfd(0, EFD_CLOEXEC | (semaphore ? EFD_SEMAPHORE : 0) | (nonblock ? EFD_NONBLOCK : 0));

	/* The mark by which it is told from others: eventfds send no signals. */
	if (fd >= 0)
		fcntl(fd, F_SETSIG, SIGURG);
	return fd;
}

/* ---- the flag ---- */

static void mask(void)
{
	if (uintr_signals_own)
		shuts(uintr_signals_own);
}

void uintr_signals_unmask(void)
{
	struct receiver *receiver = uintr_signals_own;
	unsigned long ours = 1ul << (SIGURG - 1);

	if (!receiver)
		return;
	/* In a handler that a signal runs: what comes now interrupts it. */
	if (receiver->in_signal)
		bare_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&ours, 0, sizeof(ours), 0, 0);
	uintr_moment(BEFORE_OPENING);
	sets(receiver, OPEN);
	uintr_moment(BEHIND_OPENING);
	if (!pending(receiver))
		return;
	if (receiver->handler.uiret) {
		bare_call(SYS_tgkill, bare_call(SYS_getpid, 0, 0, 0, 0, 0, 0), bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGURG, 0, 0, 0);
	} else {
		uintr_signals_runs(receiver);
		/* Its handler may have left this stack, and a handler that a signal ran have come back to it: nobody returns from that signal here. */
		if (uintr_signals_own == receiver && receiver->in_signal)
			bare_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&ours, 0, sizeof(ours), 0, 0);
	}
}

static int unmasked(void)
{
	return uintr_signals_own && mode_of(uintr_signals_own) == OPEN;
}

const struct backend uintr_signals = {
	.start = start, .can_start = start, .handle = handle, .unhandle = unhandle, .vector_fd = uintr_signals_vector_fd, .eventfd = uintr_signals_takes_eventfd, .revoke = uintr_signals_revoke, .wait_until = uintr_signals_wait_until,
	.timer = uintr_signals_timer, .alt_stack = alt_stack, .poll_fd = poll_fd, .connect = uintr_signals_connect, .disconnect = uintr_signals_disconnect,
	.before_fork = before_fork, .in_parent = in_parent, .in_child = in_child,
	.send = uintr_signals_send, .mask = mask, .unmask = uintr_signals_unmask, .unmasked = unmasked,
};
