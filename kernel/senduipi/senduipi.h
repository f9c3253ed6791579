/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What /dev/senduipi understands. Each call is about the calling thread, which
 * has to be bound to one CPU. Errors are the usual negative errno values.
 *
 * A file names at most one receiver, for as long as it is open: whoever has the
 * file may connect to that receiver. A thread's own part ends with LEAVE, exec
 * or its exit, however that comes about, and not with the file.
 */
#ifndef SENDUIPI_H
#define SENDUIPI_H

#include <linux/ioctl.h>

/*
 * Let the calling thread receive; the argument is the address of its handler.
 * The file then names this receiver. UIF is clear: STUI opens.
 * EBUSY: the file names one already, or the thread receives already.
 * EFAULT: no address of user space. EINVAL: the thread is not bound to one CPU.
 */
#define SENDUIPI_RECEIVE _IO('U', 1)

/*
 * Let the calling thread send to the receiver that the file names; the argument
 * is the user vector, 0 to 63. Returns the index that SENDUIPI takes.
 * ENOTCONN: the file names none. EINVAL: no such vector, or the thread is not
 * bound to one CPU. ENOSPC: the thread's table is full.
 */
#define SENDUIPI_CONNECT _IO('U', 2)

/*
 * Block until a user interrupt is pending; return at once if one is. Call it
 * with UIF clear and open UIF afterwards: the handler then runs, and not between
 * the caller's look at its own condition and the sleep. Returns how many times
 * the thread slept.
 * EINTR: a signal came. ENOTCONN: the thread does not receive.
 */
#define SENDUIPI_WAIT    _IO('U', 3)

/* End the calling thread's part. ENOTCONN: it has none. */
#define SENDUIPI_LEAVE   _IO('U', 4)

#endif
