/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For programs that were written for Intel's kernel, version 1 or 2 of its RFC: compiled with `-include uintr-rfc.h` they
 * make its system calls by the functions of uintr.h, and its instructions too, which a CPU without them cannot run.
 */
#ifndef UINTR_RFC_H
#define UINTR_RFC_H

#include <stdarg.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <x86gprintrin.h>
#include "uintr.h"

#define _senduipi(index)	uintr_send(index)
#define _clui()			uintr_mask()
#define _stui()			uintr_unmask()
#define _testui()		uintr_unmasked()

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
		return uintr_ipi_fd(of[0]);
	}
	return syscall(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}

#define syscall(...)	uintr_syscall(__VA_ARGS__, 0l, 0l, 0l, 0l, 0l, 0l)

#ifndef UIPI_SET_TARGET_TABLE
#define UIPI_SET_TARGET_TABLE	_IO('u', 0)
#endif

/* Always with an argument behind the request. */
static inline int uintr_ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	long argument;

	if (request == _IO('u', 0))
		return uintr_use_ipi_fd(fd, 0);
	va_start(list, request);
	argument = va_arg(list, long);
	va_end(list);
	return ioctl(fd, request, argument);
}

#define ioctl(...)	uintr_ioctl(__VA_ARGS__, 0l)

#endif
