/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the suite and the cases of the RFC share: a check, threads, and processes with descriptors passed between them. */
#ifndef UINTR_TESTS_OTHERS_H
#define UINTR_TESTS_OTHERS_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often the program's handler ran. */
extern volatile int handled;

#define CHECK(statement) \
	do { \
		if (!(statement)) { \
			printf("# %s:%d: %s (errno %d, handled %d)\n", __FILE__, __LINE__, #statement, errno, handled); \
			fflush(stdout); \
			_exit(1); \
		} \
	} while (0)
#define FAILS(call, error)	CHECK((call) == -1 && errno == (error))

static inline pthread_t on_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, run, argument));
	return thread;
}

/* As fork(2); the child ends with its parent. */
static inline pid_t forks(void)
{
	pid_t parent = getpid(), child = fork();

	CHECK(child >= 0);
	/* Nobody spins on for a case that was given up. */
	if (!child && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
		_exit(1);
	return child;
}

static inline bool ends_well(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && status == 0;
}

static inline void gives(int socket, int file)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };

	*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &file, sizeof(int));
	CHECK(sendmsg(socket, &message, 0) == 1);
}

static inline int takes(int socket)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	int file;

	CHECK(recvmsg(socket, &message, 0) == 1);
	memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return file;
}

#endif
