/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * User interrupts: what /dev/uintr and its descriptors understand.
 *
 * Whoever holds a descriptor has the right that goes with it. A receiver's
 * descriptor makes and revokes vectors, and its last close ends the receiver: by
 * another thread as soon as the receiver's can run; a system call it sleeps in goes
 * on as behind SIGSTOP and SIGCONT, but UINTR_WAIT holds the descriptor, and
 * there the close counts when it returns. A vector's descriptor lets a process
 * send that vector to that receiver, and can be passed over a socket; its last close
 * revokes what was connected by it. All are made close-on-exec.
 *
 * A receiver is a thread. What a process may send to, its threads share, later
 * ones too. A child of fork has nothing but the descriptors; exec and exit end
 * everything.
 *
 * A user interrupt does not abort a restartable sequence (rseq(2)) as a signal
 * does, and no migration in its handler is seen there: shut UIF around such
 * sequences, and beside libraries that have some.
 *
 * A thread that runs a virtual CPU (KVM_RUN) must not be a receiver: what comes while the
 * guest runs waits until that call is next switched out.
 *
 * UIF, the CPU's flag that lets user interrupts through, is shut when a receiver
 * is made: STUI opens it. Errors are the usual negative errno values; programs of
 * 32 bits have none of these calls, ENOTTY.
 */
#ifndef _UAPI_LINUX_UINTR_H
#define _UAPI_LINUX_UINTR_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define UINTR_DEVICE		"/dev/uintr"

/* User vectors of a receiver; the highest is delivered first. */
#define UINTR_VECTORS		64
/* What a process may be connected to at a time. */
#define UINTR_CONNECTIONS	256

/*
 * A system call in which the receiver slept when a user interrupt came fails
 * with EINTR after the handler ran, as after a signal without SA_RESTART. Else
 * read(2), waitpid(2), pause(2) and their like go on; those that fail with EINTR
 * in any case are nanosleep(2), poll(2), timed futex(2) and others that the kernel
 * would go on with by restart_syscall(2), epoll_wait(2), io_uring_enter(2): but see
 * UINTR_RESUMES.
 */
#define UINTR_INTERRUPTS	(1u << 0)
/*
 * Signal handlers run with the UIF of what they interrupt. Else it is shut for
 * them, and what it was comes back when they return.
 */
#define UINTR_IN_SIGNALS	(1u << 1)
/*
 * The reverse of UINTR_INTERRUPTS: poll(2), epoll_wait(2), epoll_pwait(2) and epoll_pwait2(2) go on too
 * where they have no time-out, unless a signal's handler ran as well. With a time-out
 * they fail with EINTR, for what is left of it is not known. EINVAL with
 * UINTR_INTERRUPTS.
 */
#define UINTR_RESUMES		(1u << 2)
/*
 * No handler and no thread: a receiver whose vectors are read and polled, through
 * their descriptors, by any thread of any process that has them. @handler, @stack and
 * @stack_size are 0, and so are other flags. It lives until the last close of its
 * descriptor, whoever made it, and a thread may make any number.
 *
 * What is sent to such a vector is read(2) as of an eventfd: eight bytes, how often it
 * was noticed since the last read, or 1 each time if the vector was made with
 * UINTR_SEMAPHORE. A vector is one bit of the receiver's, so that a count is of what was
 * noticed, at most of what was sent and at least 1 behind any send: what is sent
 * twice before anybody, or the kernel, looked is one. It blocks while there is nothing, unless
 * O_NONBLOCK is set (EAGAIN); once the vector was revoked, or the receiver has ended,
 * it gives what was sent before, and then 0, the end of the file. poll(2), select(2),
 * epoll(7) in all its modes, and io_uring's polls find it readable (POLLIN) as long as a
 * read would give something; each notice is an edge.
 *
 * As long as somebody polls it, each send that finds no interrupt under way interrupts the
 * CPU where it was armed. Interrupts may take a quarter of a CPU's time: where senders do not
 * pause, what they send to receivers that are armed there is noticed up to a millisecond later.
 *
 * A descriptor of such a vector lets its holder read, and not only send. With a
 * handler what is sent is the handler's alone: read(2) is EINVAL, and poll(2) tells
 * POLLHUP only.
 */
#define UINTR_POLLED		(1u << 3)

struct uintr_receive {
	/* Where delivery jumps to; a function that ends with UIRET. 0 with UINTR_POLLED. */
	__u64 handler;
	/*
	 * Lowest address and size of the stack for the handler, which has to keep
	 * UIF shut. Size 0: the interrupted stack, below the ABI's red zone.
	 */
	__u64 stack;
	__u64 stack_size;
	__u32 flags;
	__u32 reserved;		/* 0 */
};

/*
 * On /dev/uintr: let the calling thread receive. Returns the receiver's
 * descriptor.
 * EAGAIN: the user has as many receivers as the module's parameter
 * receivers_per_user lets them. EBUSY: the thread receives already. EFAULT: no address of user space. EINVAL: a
 * flag that is not known or does not go with the rest, or a stack below UINTR_STACK_LEAST bytes.
 */
#define UINTR_RECEIVE		_IOW(0xf7, 1, struct uintr_receive)
#define UINTR_STACK_LEAST	2048

/*
 * On /dev/uintr: forget the connection with this index; the argument is the
 * index. EINVAL: the process has no such connection.
 */
#define UINTR_DISCONNECT	_IO(0xf7, 2)

/*
 * On a receiver's descriptor: a descriptor for one vector; the argument is its
 * number, of a UINTR_POLLED receiver with UINTR_SEMAPHORE or UINTR_NONBLOCK added.
 * EINVAL: not below UINTR_VECTORS. EBUSY: the vector has one already, or an eventfd.
 * ESHUTDOWN: the receiver has ended.
 */
#define UINTR_VECTOR		_IO(0xf7, 3)
#define UINTR_SEMAPHORE		(1ul << 8)
#define UINTR_NONBLOCK		(1ul << 9)	/* as O_NONBLOCK */

/*
 * On a receiver's descriptor: nobody may send this vector any more, whoever holds
 * its descriptor; the argument is its number. What was sent before is still
 * delivered; nothing is sent once this, or the last close of the vector's
 * descriptor, has returned. EINVAL: it has no descriptor and no eventfd.
 */
#define UINTR_REVOKE		_IO(0xf7, 4)

struct uintr_wait {
	/* CLOCK_MONOTONIC as the caller reads it, nanoseconds; negative: none. In the past: do not sleep. */
	__s64 deadline;
	__u32 flags;		/* 0, or UINTR_WAIT_FILE */
	__s32 file;		/* with UINTR_WAIT_FILE; else 0 */
};

/*
 * On a receiver's descriptor, by its thread: sleep until a user interrupt is
 * pending; return 0 at once if one is. Call it with UIF shut and open UIF
 * afterwards: the handler then runs, and not between the caller's look at its own
 * condition and the sleep.
 * With UINTR_WAIT_FILE: until that, or until @file can be read, of which 1 tells, also
 * where both is so: what pselect(2) is beside signals. @file may be an epoll(7).
 * It is readable as poll(2) says it: POLLIN, POLLHUP or POLLERR.
 * ETIMEDOUT: the deadline passed. EINTR: a signal's handler ran. EPERM: another
 * thread's receiver. ESHUTDOWN: the receiver has ended. EBADF: @file is none.
 */
#define UINTR_WAIT_FILE		(1u << 0)
#define UINTR_WAIT		_IOW(0xf7, 5, struct uintr_wait)

/*
 * On a receiver's descriptor, by its thread: another stack for the handler, as in
 * UINTR_RECEIVE; only @stack and @stack_size are looked at.
 */
#define UINTR_STACK		_IOW(0xf7, 6, struct uintr_receive)

/*
 * On a vector's descriptor: let the calling process send. Returns the index that
 * SENDUIPI takes.
 * ENOSPC: UINTR_CONNECTIONS are there already. ESHUTDOWN: the receiver has ended,
 * or the vector was revoked.
 *
 * SENDUIPI to a receiver that has ended does nothing; poll(2) tells POLLHUP on
 * the vector's descriptor. SENDUIPI of a revoked vector is SIGSEGV.
 */
#define UINTR_CONNECT		_IO(0xf7, 7)

/*
 * On a receiver's descriptor, by its thread, the argument being 0: end the receiver,
 * whoever else has its descriptor, such as a child between its making and its exec. No
 * user interrupt is delivered once it has returned.
 * EPERM: another thread's receiver. ESHUTDOWN: it has ended.
 */
#define UINTR_END		_IO(0xf7, 8)

struct uintr_timer {
	__u64 first;		/* nanoseconds from now; 0: no more, whatever was set before */
	__u64 period;		/* nanoseconds from each to the next; 0: once */
	__u32 vector;
	__u32 reserved;		/* 0 */
};

/*
 * On a receiver's descriptor, by its thread: send @vector to it at these times, as a sender would,
 * in place of those that were set before. The vector need not have a descriptor. What falls due before the one
 * before it was delivered, or while the thread waits for a CPU, is one.
 * EINVAL: not below UINTR_VECTORS, or a time that is not 0 and less than UINTR_TIMER_LEAST.
 * EPERM: another thread's receiver. ESHUTDOWN: the receiver has ended.
 */
#define UINTR_TIMER		_IOW(0xf7, 9, struct uintr_timer)
#define UINTR_TIMER_LEAST	10000

struct uintr_eventfd {
	__s32 eventfd;
	__u32 vector;
};

/*
 * On a receiver's descriptor: what is written to @eventfd sends @vector to it, as a sender would, from now on and
 * what was written before as well: whoever writes, the kernel itself where an io_uring(7) has the eventfd registered. The
 * receiver keeps it, open or closed by whom it was made, until UINTR_REVOKE of the vector or its own end. Its count
 * stays for those who read it. The vector has a descriptor or an eventfd, and not both; an eventfd may be any number of receivers'
 * and vectors', for each of which a write takes the writer the time of a send.
 * EBADF: @eventfd is no descriptor. EINVAL: it is no eventfd's; not below UINTR_VECTORS; the receiver is a UINTR_POLLED one.
 * EBUSY: the vector has a descriptor or an eventfd. ESHUTDOWN: the receiver has ended.
 */
#define UINTR_EVENTFD		_IOW(0xf7, 10, struct uintr_eventfd)

/*
 * In uc_flags of a signal's frame: UIF was open when the signal came, and
 * rt_sigreturn(2) opens it; rt_sigreturn(2) sets UIF.
 */
#define UC_UIF_OPEN		(1ull << 62)
#define UC_UIF			(1ull << 63)

#endif
