// SPDX-License-Identifier: MIT OR Apache-2.0
/* The receivers' side of user interrupts made of signals: signals.h has the protocol. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <ucontext.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include "signals.h"

/* Of CLOCK_MONOTONIC; futex_waitv(2) takes it on every architecture so. */
struct time64 {
	int64_t seconds, nanoseconds;
};

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id	_sigev_un._tid
#endif
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

static __thread struct receiver *own __attribute__((tls_model("initial-exec")));
static struct receiver *receivers;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
/* Whether system calls end with EINTR, of all receivers; as long as there are any. */
static int interrupts;
static struct sigaction previous_urg;

/* ---- taking what was posted ---- */

static uint64_t bit(unsigned int vector)
{
	return 1ull << vector;
}

static unsigned int highest(uint64_t bits)
{
	return 63 - __builtin_clzll(bits);
}

static int pending(const struct receiver *receiver)
{
	if (receiver->late)
		return 1;
	for (uint64_t live = receiver->live; live; live &= ~bit(highest(live)))
		if (__atomic_load_n(receiver->post[highest(live)], __ATOMIC_RELAXED) & POSTED)
			return 1;
	return 0;
}

/* The word of @vector as it was; from now on it is empty. */
static uint32_t empties(struct receiver *receiver, unsigned int vector)
{
	return __atomic_exchange_n(receiver->post[vector], ++receiver->taken[vector] * TAKEN_ONCE, __ATOMIC_SEQ_CST);
}

/* The highest vector that was posted, or -1. */
static int takes(struct receiver *receiver)
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

static void sets(struct receiver *receiver, enum mode mode)
{
	/* Before any look at the words. */
	__atomic_store_n(&receiver->status->mode, mode, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Nothing of this thread's is to be seen by another thread earlier, and a signal's handler runs on this one. */
static void shuts(struct receiver *receiver)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&receiver->status->mode, receiver->masked, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static enum mode mode_of(const struct receiver *receiver)
{
	return __atomic_load_n(&receiver->status->mode, __ATOMIC_RELAXED);
}

/* ---- handlers ---- */

static void calls(const struct receiver *receiver, unsigned int vector)
{
	void (*function)(unsigned int, void *) = receiver->handler.function;
	void *argument = receiver->handler.argument;
	int error = errno;

	uintr_handlers_running++;
#ifdef __x86_64__
	if (receiver->stack_top) {
		uintptr_t top = receiver->stack_top & ~15ul;

		__asm__ volatile(
			"movq %%rsp, %%rbx\n\t"
			"movq %[top], %%rsp\n\t"
			"callq *%[function]\n\t"
			"movq %%rbx, %%rsp"
			: "+D"(vector), "+S"(argument), [top] "+r"(top), [function] "+r"(function)
			:
			: "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			  "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc");
	} else
#endif
		function(vector, argument);
	uintr_handlers_running--;
	errno = error;
}

/* Runs handlers that return, for all there is, and leaves the receiver open. */
static void runs(struct receiver *receiver)
{
	do {
		int vector;

		shuts(receiver);
		while ((vector = takes(receiver)) >= 0) {
			calls(receiver, vector);
			/* It may have opened it, or returned in a child that it made. */
			if (own != receiver)
				return;
			shuts(receiver);
		}
		uintr_moment(BEFORE_OPENING);
		sets(receiver, OPEN);
		uintr_moment(BEHIND_OPENING);
	} while (pending(receiver));
}

#ifdef __x86_64__

/* What UIRET takes from the frame: CF PF AF ZF SF TF DF OF NT RF AC ID. */
#define UIRET_FLAGS	0x254dd5
#define RED_ZONE	128
#define TRAP_FLAG	(1 << 8)
#define RESUME_FLAG	(1 << 16)

/* A CPU that has UIRET executes it here too, once a driver has switched it on, and it returns without our knowing. */
static int cpu_has_uiret;
static struct sigaction previous_ill;
extern char uintr_returned[] __attribute__((visibility("hidden")));
__asm__(
	".text\n"
	".globl uintr_returned\n"
	".hidden uintr_returned\n"
	".type uintr_returned, @function\n"
	"uintr_returned:\n"
	"	ud2\n"
	".size uintr_returned, . - uintr_returned\n");

/* Has the thread go on in the handler that ends by UIRET, with the frame that the CPU would have pushed; open before and shut behind it. */
static void delivers(struct receiver *receiver, ucontext_t *context)
{
	greg_t *registers = context->uc_mcontext.gregs;
	uint64_t *frame;
	int vector;

	shuts(receiver);
	vector = takes(receiver);
	while (vector < 0) {
		uintr_moment(BEFORE_OPENING);
		sets(receiver, OPEN);
		uintr_moment(BEHIND_OPENING);
		if (!pending(receiver))
			return;
		shuts(receiver);
		vector = takes(receiver);
	}
	frame = (uint64_t *)((receiver->stack_top ? receiver->stack_top : (uintptr_t)registers[REG_RSP] - RED_ZONE) & ~15ul);
	if (cpu_has_uiret) {
		/* The frame is told by the one above it, which leads to an instruction that is invalid everywhere. */
		frame -= 4;
		frame[0] = registers[REG_RIP];
		frame[1] = registers[REG_EFL];
		frame[2] = registers[REG_RSP];
		registers[REG_RSP] = (greg_t)frame;
		registers[REG_RIP] = (greg_t)uintr_returned;
	}
	frame -= 4;
	frame[0] = vector;
	frame[1] = registers[REG_RIP];
	frame[2] = registers[REG_EFL];
	frame[3] = registers[REG_RSP];
	registers[REG_RSP] = (greg_t)frame;
	registers[REG_EFL] &= ~(TRAP_FLAG | RESUME_FLAG);
	registers[REG_RIP] = (greg_t)receiver->handler.uiret;
}

/* Whether @address has UIRET. What lies there was just fetched: but of an instruction that is none, maybe two bytes only. */
static int is_uiret(const unsigned char *address)
{
	return address[0] == 0xf3 && address[1] == 0x0f && address[2] == 0x01 && address[3] == 0xec;
}

/* UIRET, which is an invalid instruction as long as no driver has switched it on, and where one that was none leads to. */
static void on_illegal(int signal, siginfo_t *info, void *about)
{
	ucontext_t *context = about;
	greg_t *registers = context->uc_mcontext.gregs;
	int error = errno;

	if (own && own->handler.uiret && (registers[REG_RIP] == (greg_t)uintr_returned || is_uiret((void *)registers[REG_RIP]))) {
		do {
			uint64_t *frame = (uint64_t *)registers[REG_RSP];

			registers[REG_RIP] = frame[0];
			registers[REG_EFL] = (registers[REG_EFL] & ~UIRET_FLAGS) | (frame[1] & UIRET_FLAGS);
			registers[REG_RSP] = frame[2];
		} while (registers[REG_RIP] == (greg_t)uintr_returned);
		uintr_moment(BEFORE_OPENING);
		sets(own, OPEN);
		uintr_moment(BEHIND_OPENING);
		if (pending(own))
			delivers(own, context);
		errno = error;
		return;
	}
	if (previous_ill.sa_flags & SA_SIGINFO) {
		previous_ill.sa_sigaction(signal, info, about);
	} else if (previous_ill.sa_handler != SIG_DFL && previous_ill.sa_handler != SIG_IGN) {
		previous_ill.sa_handler(signal);
	} else {
		/* The instruction is tried again, and is what it would have been. */
		sigaction(SIGILL, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	}
}

#else

static void delivers(struct receiver *receiver, ucontext_t *context)
{
	(void)receiver, (void)context;
}

#endif

/* ---- descriptors of vectors ---- */

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

static void revokes_closed(struct receiver *receiver)
{
	for (uint64_t live = receiver->live; live; live &= ~bit(highest(live)))
		if (hung_up(receiver, highest(live)))
			revokes(receiver, highest(live));
}

/* ---- the signal ---- */

static void empties_bell(const struct receiver *receiver)
{
	char bytes[512];

	/* All that lies there: a sender takes a full queue for one that rings. Others may fill it as fast as it is emptied, but ring then. */
	for (int i = 0; i < 1024; i++)
		if (bare_call(SYS_recvfrom, receiver->bell, (long)bytes, sizeof(bytes), MSG_DONTWAIT, 0, 0) < (long)sizeof(bytes))
			return;
}

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* By the clock, and not by whose signal it is: the timer's may have been merged with another. */
static void ticks(struct receiver *receiver)
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

static void on_signal(int signal, siginfo_t *info, void *about)
{
	struct receiver *receiver = own;
	int error = errno;

	if (receiver) {
		ticks(receiver);
		/* Who is about to poll the bell would sleep in front of what this took. */
		if (mode_of(receiver) == POLLING)
			receiver->bell_rung = 1;
		else
			empties_bell(receiver);
		uintr_moment(BEHIND_THE_BELL);
		/* See @signals. */
		if ((info->si_code <= 0 && info->si_code != SI_TIMER) || (info->si_code > 0 && info->si_fd != receiver->bell) || receiver->signals++ % 64 == 0)
			revokes_closed(receiver);
		if (mode_of(receiver) == OPEN) {
			if (receiver->handler.uiret) {
				delivers(receiver, about);
			} else {
				receiver->in_signal++;
				runs(receiver);
				if (own == receiver)
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
	own = NULL;
	while (receivers) {
		struct receiver *receiver = receivers;

		receivers = receiver->next;
		for (uint64_t open = receiver->live | receiver->gone; open; open &= ~bit(highest(open)))
			close(receiver->end[highest(open)]);
		close(receiver->bell);
		close(receiver->bell_given);
		close(receiver->status_given);
		free(receiver);
	}
	uintr_signals_forget();
	uintr_signals_forget_watched();
	pthread_mutex_unlock(&list_lock);
}

/* ---- receiving ---- */

/* A page of memory that others may map, with these seals and those that keep its size. NULL with errno. */
static void *page(const char *name, int seals, int *memory)
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
static int tells_this_thread(int socket)
{
	struct f_owner_ex thread = { F_OWNER_TID, syscall(SYS_gettid) };

	return fcntl(socket, F_SETOWN_EX, &thread) || fcntl(socket, F_SETSIG, SIGURG) || fcntl(socket, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
}

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

static int takes_uiret(void)
{
#ifdef __x86_64__
	struct sigaction action = { .sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO }, before;
	unsigned int a, b, c, d;

	sigemptyset(&action.sa_mask);
	/* Between UIRET and where it returns to nothing is delivered. */
	sigaddset(&action.sa_mask, SIGURG);
	if (sigaction(SIGILL, NULL, &before))
		return -1;
	cpu_has_uiret = __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & 1 << 5;
	if (before.sa_flags & SA_SIGINFO && before.sa_sigaction == on_illegal)
		return 0;
	previous_ill = before;
	return sigaction(SIGILL, &action, NULL);
#else
	return refuse(ENOTSUP);
#endif
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
	receiver->status = page("uintr-status", F_SEAL_FUTURE_WRITE, &receiver->status_given);
	if (receiver->status && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		receiver->bell = ends[0];
		receiver->bell_given = ends[1];
		if (!tells_this_thread(receiver->bell))
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
	sigset_t ours;

	if (own)
		return refuse(EBUSY);
	if (flags & UINTR_HANDLER_FLAG_RESUMES)
		return refuse(ENOTSUP);
	/* As the driver: no address of user space. */
	if (handler->uiret && (uintptr_t)handler->uiret >> 63)
		return refuse(EFAULT);
	receiver = makes(handler);
	if (!receiver)
		return -1;
	pthread_mutex_lock(&list_lock);
	if (takes_signals(interrupting) || (handler->uiret && takes_uiret())) {
		int error = errno;

		pthread_mutex_unlock(&list_lock);
		frees(receiver);
		return refuse(error);
	}
	receiver->next = receivers;
	if (receivers)
		receivers->previous = receiver;
	receivers = receiver;
	pthread_mutex_unlock(&list_lock);
	own = receiver;
	sigemptyset(&ours);
	sigaddset(&ours, SIGURG);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	return 0;
}

static int unhandle(void)
{
	struct receiver *receiver = own;

	if (!receiver)
		return refuse(EINVAL);
	/* No signal looks at it from here on. */
	own = NULL;
	sets(receiver, ENDED);
	if (receiver->watched)
		uintr_signals_unwatch(receiver, receiver->watched);
	pthread_mutex_lock(&list_lock);
	if (receiver->next)
		receiver->next->previous = receiver->previous;
	if (receiver->previous)
		receiver->previous->next = receiver->next;
	else
		receivers = receiver->next;
	pthread_mutex_unlock(&list_lock);
	for (uint64_t open = receiver->live | receiver->gone; open; open &= ~bit(highest(open)))
		close(receiver->end[highest(open)]);
	for (uint64_t mapped = receiver->mapped; mapped; mapped &= ~bit(highest(mapped)))
		munmap(receiver->post[highest(mapped)], PAGE);
	frees(receiver);
	return 0;
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

static int vector_fd(unsigned int vector)
{
	struct receiver *receiver = own;
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
	word = page("uintr-vector", 0, &memory);
	if (!word)
		return -1;
	card.generation = receiver->status->generation[vector] + 1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) || tells_this_thread(ends[0]) ||
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

static int takes_back(unsigned int vector)
{
	struct receiver *receiver = own;

	if (!receiver || !(receiver->live & bit(vector)))
		return refuse(EINVAL);
	revokes(receiver, vector);
	if (__atomic_fetch_and(&receiver->watched, ~bit(vector), __ATOMIC_RELAXED) & bit(vector))
		uintr_signals_unwatch(receiver, bit(vector));
	closes(receiver, vector);
	return 0;
}

static int takes_eventfd(unsigned int vector, int eventfd)
{
	int end, failed, error;
	sigset_t before;

	/* A handler that revokes, or ends the receiver, finds nothing of it or all. */
	blocks_signals(&before);
	end = vector_fd(vector);
	failed = end < 0 || uintr_signals_watch(eventfd, end, own, vector);
	error = errno;
	if (!failed)
		__atomic_fetch_or(&own->watched, bit(vector), __ATOMIC_RELAXED);
	if (failed && end >= 0) {
		takes_back(vector);
		close(end);
	}
	sets_signals(&before);
	return failed ? refuse(error) : 0;
}

static int timer(unsigned int vector, uint64_t first, uint64_t period)
{
	struct sigevent told = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG };
	struct itimerspec times = { { period / 1000000000, period % 1000000000 }, { first / 1000000000, first % 1000000000 } };
	struct receiver *receiver = own;

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

static int alt_stack(void *stack, size_t size)
{
	size_t least;

	if (!own)
		return refuse(EINVAL);
	least = own->handler.uiret ? UINTR_STACK_LEAST : UINTR_HANDLE_STACK_LEAST;
	if (stack && size < least)
		return refuse(EINVAL);
#ifdef __x86_64__
	own->stack_top = stack ? (uintptr_t)stack + size : 0;
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
	if (own)
		shuts(own);
}

static void unmask(void)
{
	struct receiver *receiver = own;
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
		runs(receiver);
		/* Its handler may have left this stack, and a handler that a signal ran have come back to it: nobody returns from that signal here. */
		if (own == receiver && receiver->in_signal)
			bare_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&ours, 0, sizeof(ours), 0, 0);
	}
}

static int unmasked(void)
{
	return own && mode_of(own) == OPEN;
}

/* ---- waiting ---- */

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
		empties_bell(receiver);
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

static int wait_until(int fd, int64_t deadline)
{
	struct receiver *receiver = own;
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
		unmask();
	errno = error;
	return result;
}

const struct backend uintr_signals = {
	.start = start, .can_start = start, .handle = handle, .unhandle = unhandle, .vector_fd = vector_fd, .eventfd = takes_eventfd, .revoke = takes_back, .wait_until = wait_until,
	.timer = timer, .alt_stack = alt_stack, .poll_fd = poll_fd, .connect = uintr_signals_connect, .disconnect = uintr_signals_disconnect,
	.before_fork = before_fork, .in_parent = in_parent, .in_child = in_child,
	.send = uintr_signals_send, .mask = mask, .unmask = unmask, .unmasked = unmasked,
};
