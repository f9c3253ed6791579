/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * User interrupts: a function of a thread runs between any two of its instructions because
 * another thread, of this process or another, sent it a number from 0 to 63. By the CPU's own
 * means, where it has them and the driver of uintr/driver is loaded; or, if that is asked
 * for, by signals, with the same names, descriptors and outcomes.
 *
 * The names are those of Intel's RFC, and some that it lacks. A call that fails returns -1 and
 * sets errno. uintr(3) is the manual page. Link with libuintr (uintr/driver/user).
 */
#ifndef UINTR_H
#define UINTR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- which of the two, once for a process ---- */

#define UINTR_HARDWARE		1	/* SENDUIPI, and the driver */
#define UINTR_SIGNALS		2	/* signals, shared memory and sockets: Linux 5.16 or later */

/*
 * Chooses what user interrupts are made of, among those that @backends allows (0: both), hardware
 * first. Returns the choice, which is for good. Who calls anything else first gets what the
 * environment's UINTR_BACKEND says (hardware, signals, any), and without it hardware alone:
 * nothing is emulated that was not asked for.
 * ENOSYS: there is none of them; uintr_backend_reason() says why. EBUSY: another one was chosen
 * before. EINVAL: unknown bits, or UINTR_BACKEND is none of these words.
 */
int uintr_start(unsigned int backends);
/* What uintr_start() would return, with its errors and reasons; nothing is chosen. */
int uintr_can_start(unsigned int backends);
/* The choice, or 0 as long as there is none. */
int uintr_backend(void);
/* A line for people: the choice, and why. Never NULL. */
const char *uintr_backend_reason(void);
/*
 * The signal that carries an emulated interrupt, 0 with hardware. It must not be blocked or given another handler. With
 * hardware no handler runs within a signal's; by signals that takes this one in the sa_mask of the program's own.
 */
int uintr_signal(void);

/* ---- receiving with a handler ---- */

/* Of a receiver; the highest is delivered first. */
#define UINTR_VECTORS		64

/* Other system calls in which the thread sleeps end with EINTR. The RFC's two ways to do it are one here. */
#define UINTR_HANDLER_FLAG_WAITING_NONE		0x0
#define UINTR_HANDLER_FLAG_WAITING_RECEIVER	0x1000
#define UINTR_HANDLER_FLAG_WAITING_SENDER	0x2000
#define UINTR_HANDLER_FLAG_WAITING_ANY		(UINTR_HANDLER_FLAG_WAITING_SENDER | UINTR_HANDLER_FLAG_WAITING_RECEIVER)

/*
 * The reverse: poll(2), epoll_wait(2), epoll_pwait(2) and epoll_pwait2(2), which fail with EINTR behind every handler else, go on too
 * where they have no time-out. By the hardware alone: no kernel goes on with them behind a signal's handler.
 */
#define UINTR_HANDLER_FLAG_RESUMES		0x10000

/*
 * Makes the calling thread a receiver; it is masked until uintr_unmask(). @handler is an ordinary
 * function, around which all registers are kept (APX's too; but AMX tiles: it must leave those alone), in a frame of the size that those
 * need which the thread uses. It runs masked, on the
 * interrupted stack below the red zone, may call what a signal's handler may, and returns.
 * EBUSY: the thread has a handler. EFAULT: none was given, or no address of user space. EINVAL: an unknown
 * flag, or two that exclude each other. EAGAIN: the user has as many receivers as the driver allows. EMFILE: no descriptors are left.
 * ENOTSUP: by signals either all receivers of a process have their system calls end with EINTR, or none has; and none has
 * UINTR_HANDLER_FLAG_RESUMES.
 */
int uintr_handle(void (*handler)(unsigned int vector, void *argument), void *argument, unsigned int flags);
/* The RFC's: @handler has the attributes interrupt and target("general-regs-only"), and ends by UIRET. ENOTSUP: no x86-64. */
int uintr_register_handler(const void *handler, unsigned int flags);
/*
 * The end of either, as is the thread's; no handler runs behind it, whoever has descriptors of it yet. What was not handled by then is gone. EINVAL: there is none. EBUSY: in a handler that
 * returns, which may have interrupted a call that looks at the receiver; one that ends by UIRET must not, and is not stopped.
 */
int uintr_unregister_handler(unsigned int flags);

/*
 * A descriptor for @vector of the calling thread, close-on-exec. Whoever holds it may connect to it: it can be passed
 * over a socket, and children inherit it. poll(2) tells POLLHUP when the receiver has ended (ask for no other events);
 * its last close revokes the vector.
 * EINVAL: the thread has no handler. ENOSPC: not below UINTR_VECTORS. EBUSY: the vector has one.
 */
int uintr_vector_fd(uint64_t vector, unsigned int flags);
int uintr_create_fd(uint64_t vector, unsigned int flags);
/*
 * What is written to the eventfd @eventfd sends @vector to the calling thread: whoever writes, the kernel too, which does it for an
 * io_uring(7) at each completion once the eventfd is registered there. What was written before is sent at once. The vector keeps it open until
 * uintr_revoke() or the receiver's end, and has no descriptor besides. Its count stays for those who read it. By signals a thread of
 * the library's own waits for it first, and what somebody else has read before that thread looks is not sent; the first call of a process
 * begins that thread, and is not for a handler.
 * EBADF: no descriptor. EINVAL: no eventfd's; the thread has no handler. ENOSPC: not below UINTR_VECTORS. EBUSY: the vector has a descriptor or an eventfd.
 */
int uintr_vector_eventfd(uint64_t vector, int eventfd, unsigned int flags);
/*
 * Nobody may send this vector of the calling thread any more, whoever holds its descriptor or writes to its eventfd. EINVAL: it has
 * neither.
 */
int uintr_revoke(uint64_t vector, unsigned int flags);

/*
 * Sleeps until an interrupt is pending (0). ETIMEDOUT: @deadline has passed, nanoseconds of
 * CLOCK_MONOTONIC; negative: none. EINTR: a signal's handler ran. It is called masked, behind a
 * look at what is waited for, and unmasked afterwards, where the handler runs: nothing can come between.
 */
int uintr_wait_until(int64_t deadline, unsigned int flags);
/*
 * As that, and 1 as soon as @fd can be read, also where an interrupt is pending too: what pselect(2) is beside signals. @fd may be
 * an epoll(7) or an io_uring(7). POLLIN, POLLHUP and POLLERR count. EBADF: it is no descriptor.
 */
int uintr_wait_fd(int fd, int64_t deadline, unsigned int flags);
struct epoll_event;
/*
 * epoll_wait(2) that an interrupt ends with EINTR although the thread is masked. Called masked, behind a look at what handlers leave,
 * and unmasked afterwards, where the handler runs. Where events are there they are told first. Other threads that wait on the same @epoll
 * may be woken for an event that is one's alone. EINTR may come without a reason, as from a signal's handler.
 */
int uintr_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout);
/* The RFC's: EINTR if one is pending, or a signal came; 0 after @usec, at most 1,000,000,000 (EINVAL). */
int uintr_wait(uint64_t usec, unsigned int flags);
/*
 * The handler runs on the @size bytes from @stack upwards, at least UINTR_STACK_LEAST, and stays masked. NULL: the
 * interrupted stack again. ENOTSUP: by signals on no x86-64.
 */
int uintr_alt_stack(void *stack, size_t size, unsigned int flags);
#define UINTR_STACK_LEAST	2048	/* for a handler that ends by UIRET */
#define UINTR_HANDLE_STACK_LEAST 8192	/* for one that returns */

/*
 * Sends @vector to the calling thread @first nanoseconds from now and then each @period, 0: once, without a descriptor and
 * in place of what was set before; @first 0: no more. What falls due before the last was handled is one with it. The running thread is
 * interrupted as by any sender: a user-level scheduler takes turns so.
 * EINVAL: the thread has no handler; not below UINTR_VECTORS; a time that is not 0 and less than UINTR_TIMER_LEAST.
 */
int uintr_timer(uint64_t vector, uint64_t first, uint64_t period);
#define UINTR_TIMER_LEAST	10000

/* ---- receiving without a handler: read, poll, epoll ---- */

#define UINTR_SEMAPHORE		(1u << 8)	/* read gives 1 each time */
#define UINTR_NONBLOCK		(1u << 9)	/* as O_NONBLOCK */

/*
 * A vector that is no thread's: read(2) gives eight bytes, how often it was noticed since the last, and poll(2), select(2),
 * epoll(7) and io_uring find it readable as long as that would be something. It is connected and sent to as any other. It ends
 * with the process that made it: with hardware that is POLLHUP and the end of the file, by signals (an eventfd) nobody is told.
 */
int uintr_poll_fd(unsigned int flags);

/* ---- sending ---- */

/*
 * Lets the calling process, all its threads, send what @fd stands for. Returns the index for uintr_send(). The process
 * need not keep @fd, as long as anybody does. A child of fork connects for itself.
 * EBADF, EOPNOTSUPP: no vector's, or one of the other backend. ESHUTDOWN: the receiver has ended, or the vector was revoked.
 * ENOSPC: UINTR_CONNECTIONS are there.
 */
int uintr_register_sender(int fd, unsigned int flags);
/* As that for @count descriptors, whose indices go to @indices: all of them, or none and the error of the first that could not. */
int uintr_register_senders(const int *fds, uint64_t *indices, size_t count, unsigned int flags);
/* EINVAL: there is no such index. */
int uintr_unregister_sender(int index, unsigned int flags);
/* Both for a vector of the calling thread, whose descriptor stays open. */
int uintr_register_self(uint64_t vector, unsigned int flags);
#define UINTR_CONNECTIONS	256

/*
 * The RFC's table that others send through: a descriptor, close-on-exec, of what this process is connected to by
 * uintr_register_self() as of now; what it is connected to by a descriptor is passed on by that. Whoever is given it, and is connected
 * to nothing yet, has the same connections by the same indices once it has called uintr_use_ipi_fd(). The vectors count as open
 * as long as somebody holds it.
 * ENOENT: there are none. ENOSPC: there are more than 253, which a socket passes at once. Of the second: EBUSY: connected already.
 * EOPNOTSUPP: no such descriptor. As uintr_register_sender(), and then it is connected to nothing.
 */
int uintr_ipi_fd(unsigned int flags);
int uintr_use_ipi_fd(int fd, unsigned int flags);

/* The same four as below, for languages that cannot inline C. */
void uintr_send_call(uint64_t index);
void uintr_mask_call(void);
void uintr_unmask_call(void);
int uintr_unmasked_call(void);

/* The library's: uintr_backend() reads it too. */
extern int uintr_chosen;

/*
 * Sends: one instruction behind one test, with hardware. Nothing, if the receiver has ended. SIGILL in a process without a
 * connection, SIGSEGV with an index that is not connected or whose vector was revoked, by signals as well.
 */
static inline void uintr_send(uint64_t index)
{
#ifdef __x86_64__
	if (__builtin_expect(uintr_chosen == UINTR_HARDWARE, 1)) {
		__asm__ volatile(".byte 0xf3, 0x0f, 0xc7, 0xf0 # senduipi %%rax" : : "a"(index) : "memory");
		return;
	}
#endif
	uintr_send_call(index);
}

/* Sends to each of @count indices, in their order. */
static inline void uintr_send_set(const uint64_t *indices, size_t count)
{
	for (size_t i = 0; i < count; i++)
		uintr_send(indices[i]);
}

/* The calling thread's flag UIF. Shut, it keeps what comes for later: CLUI. */
static inline void uintr_mask(void)
{
#ifdef __x86_64__
	if (__builtin_expect(uintr_chosen == UINTR_HARDWARE, 1)) {
		__asm__ volatile(".byte 0xf3, 0x0f, 0x01, 0xee # clui" : : : "memory");
		return;
	}
#endif
	uintr_mask_call();
}

/* Open, it lets the handler run, for what has come as well: STUI. */
static inline void uintr_unmask(void)
{
#ifdef __x86_64__
	if (__builtin_expect(uintr_chosen == UINTR_HARDWARE, 1)) {
		__asm__ volatile(".byte 0xf3, 0x0f, 0x01, 0xef # stui" : : : "memory");
		return;
	}
#endif
	uintr_unmask_call();
}

/* 1 if it is open: TESTUI. */
static inline int uintr_unmasked(void)
{
#ifdef __x86_64__
	if (__builtin_expect(uintr_chosen == UINTR_HARDWARE, 1)) {
		unsigned char open;

		__asm__ volatile(".byte 0xf3, 0x0f, 0x01, 0xed # testui\n\tsetc %0" : "=r"(open) : : "memory", "cc");
		return open;
	}
#endif
	return uintr_unmasked_call();
}

#ifdef __cplusplus
}
#endif

#endif
