/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * User interrupts by the names of Intel's RFC, on /dev/uintr. Programs written for
 * that kernel, version 1 or 2 of it, compile unchanged with `-include uintr.h`: their system
 * calls by number come here too. uintr(3) is its manual page.
 */
#ifndef UINTR_H
#define UINTR_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <linux/uintr.h>

/* Other system calls in which the thread sleeps end with EINTR. The RFC's two ways to do it are one here. */
#define UINTR_HANDLER_FLAG_WAITING_NONE		0x0
#define UINTR_HANDLER_FLAG_WAITING_RECEIVER	0x1000
#define UINTR_HANDLER_FLAG_WAITING_SENDER	0x2000
#define UINTR_HANDLER_FLAG_WAITING_ANY		(UINTR_HANDLER_FLAG_WAITING_SENDER | UINTR_HANDLER_FLAG_WAITING_RECEIVER)

#define UINTR_WAIT_MOST_USEC	1000000000ull

/* The calling thread's receiver, a descriptor; and the process that made it, for a child of fork has none. */
struct uintr_own {
	int receiver;
	pid_t process;
};

/* One for all files of a program that include this: plus one, and 0 for none. */
__attribute__((weak)) int uintr_device_opened;
__attribute__((weak)) __thread struct uintr_own uintr_thread = { -1, 0 };

/* The device, of the process; a child of fork has it too. Negative: none, with errno. */
static inline int uintr_device(void)
{
	int mine, none = 0, opened = __atomic_load_n(&uintr_device_opened, __ATOMIC_ACQUIRE);

	if (opened)
		return opened - 1;
	mine = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC);
	if (mine < 0) {
		/* As a kernel that has no such calls. */
		errno = errno == ENOENT || errno == ENODEV ? ENOSYS : errno;
		return -1;
	}
	if (__atomic_compare_exchange_n(&uintr_device_opened, &none, mine + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return mine;
	/* Another thread was faster. */
	close(mine);
	return none - 1;
}

static inline struct uintr_own *uintr_own(void)
{
	if (uintr_thread.receiver >= 0 && uintr_thread.process != getpid()) {
		close(uintr_thread.receiver);
		uintr_thread.receiver = -1;
	}
	return &uintr_thread;
}

static inline int uintr_refuse(int error)
{
	errno = error;
	return -1;
}

static inline int uintr_register_handler(const void *handler, unsigned int flags)
{
	struct uintr_receive receive = { .handler = (uintptr_t)handler };
	struct uintr_own *own = uintr_own();
	int device;

	if (flags & ~UINTR_HANDLER_FLAG_WAITING_ANY)
		return uintr_refuse(EINVAL);
	if (!handler)
		return uintr_refuse(EFAULT);
	if (own->receiver >= 0)
		return uintr_refuse(EBUSY);
	device = uintr_device();
	if (device < 0)
		return -1;
	if (flags)
		receive.flags = UINTR_INTERRUPTS;
	own->receiver = ioctl(device, UINTR_RECEIVE, &receive);
	own->process = getpid();
	return own->receiver < 0 ? -1 : 0;
}

static inline int uintr_unregister_handler(unsigned int flags)
{
	struct uintr_own *own = uintr_own();

	if (flags || own->receiver < 0)
		return uintr_refuse(EINVAL);
	close(own->receiver);
	own->receiver = -1;
	return 0;
}

static inline int uintr_vector_fd(uint64_t vector, unsigned int flags)
{
	struct uintr_own *own = uintr_own();

	if (flags || own->receiver < 0)
		return uintr_refuse(EINVAL);
	if (vector >= UINTR_VECTORS)
		return uintr_refuse(ENOSPC);
	return ioctl(own->receiver, UINTR_VECTOR, vector);
}

/* Of version 1. */
static inline int uintr_create_fd(uint64_t vector, unsigned int flags)
{
	return uintr_vector_fd(vector, flags);
}

static inline int uintr_register_sender(int vector_fd, unsigned int flags)
{
	int index;

	if (flags)
		return uintr_refuse(EINVAL);
	index = ioctl(vector_fd, UINTR_CONNECT, 0);
	/* Another kind of descriptor. */
	return index < 0 && errno == ENOTTY ? uintr_refuse(EOPNOTSUPP) : index;
}

static inline int uintr_unregister_sender(int index, unsigned int flags)
{
	int device = uintr_device();

	if (flags)
		return uintr_refuse(EINVAL);
	return device < 0 ? -1 : ioctl(device, UINTR_DISCONNECT, (unsigned long)index);
}

/* A vector that the calling process sends to this thread: the index for _senduipi(). Its descriptor stays open. */
static inline int uintr_register_self(uint64_t vector, unsigned int flags)
{
	int descriptor = uintr_vector_fd(vector, flags), index;

	if (descriptor < 0)
		return -1;
	index = uintr_register_sender(descriptor, 0);
	if (index < 0)
		close(descriptor);
	return index;
}

static inline int uintr_wait(uint64_t usec, unsigned int flags)
{
	struct uintr_own *own = uintr_own();
	struct uintr_wait wait = { 0 };
	struct timespec now;

	if (flags || usec > UINTR_WAIT_MOST_USEC || own->receiver < 0)
		return uintr_refuse(EINVAL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	wait.deadline = now.tv_sec * 1000000000ll + now.tv_nsec + (int64_t)usec * 1000;
	if (!ioctl(own->receiver, UINTR_WAIT, &wait))
		return uintr_refuse(EINTR);
	return errno == ETIMEDOUT ? 0 : -1;
}

static inline int uintr_alt_stack(void *stack, size_t size, unsigned int flags)
{
	struct uintr_receive receive = { .stack = (uintptr_t)stack, .stack_size = stack ? size : 0 };
	struct uintr_own *own = uintr_own();

	if (flags || own->receiver < 0)
		return uintr_refuse(EINVAL);
	return ioctl(own->receiver, UINTR_STACK, &receive);
}

/*
 * System calls by number, for programs that have the RFC's macros: those that take their
 * numbers from here if they are defined, and with -DUINTR_RFC_FIRST=471 (or 449, whatever they
 * say uintr_register_handler is) those that define them all the same.
 */
#ifndef UINTR_RFC_FIRST
#define UINTR_RFC_FIRST			0x75690000
#define __NR_uintr_register_handler	(UINTR_RFC_FIRST + 0)
#define __NR_uintr_unregister_handler	(UINTR_RFC_FIRST + 1)
#define __NR_uintr_vector_fd		(UINTR_RFC_FIRST + 2)
#define __NR_uintr_create_fd		(UINTR_RFC_FIRST + 2)
#define __NR_uintr_register_sender	(UINTR_RFC_FIRST + 3)
#define __NR_uintr_unregister_sender	(UINTR_RFC_FIRST + 4)
#define __NR_uintr_wait			(UINTR_RFC_FIRST + 5)
#define __NR_uintr_register_self	(UINTR_RFC_FIRST + 6)
#define __NR_uintr_alt_stack		(UINTR_RFC_FIRST + 7)
#define __NR_uintr_ipi_fd		(UINTR_RFC_FIRST + 8)
#endif

/* Always with six arguments behind the number. */
static inline long uintr_syscall(long number, ...)
{
	long of[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		of[i] = va_arg(list, long);
	va_end(list);
	switch (number - UINTR_RFC_FIRST) {
	case 0:
		return uintr_register_handler((const void *)of[0], of[1]);
	case 1:
		return uintr_unregister_handler(of[0]);
	case 2:
		return uintr_vector_fd((int)of[0], of[1]);
	case 3:
		return uintr_register_sender(of[0], of[1]);
	case 4:
		return uintr_unregister_sender(of[0], of[1]);
	case 5:
		return uintr_wait((unsigned int)of[0], of[1]);
	case 6:
		return uintr_register_self((int)of[0], of[1]);
	case 7:
		return uintr_alt_stack((void *)of[0], of[1], of[2]);
	case 8:
		/* A table that others send through: a descriptor for each vector is what there is here. */
		return uintr_refuse(ENOSYS);
	}
	return syscall(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}

#define syscall(...)	uintr_syscall(__VA_ARGS__, 0l, 0l, 0l, 0l, 0l, 0l)

#endif
