// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The RFC's table that others send through. It is a socket in whose queue one message lies for good: the indices of this process's
 * connections to its own vectors, and the vectors' descriptors. Whoever is given the socket peeks.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend.h"
#include "uintr.h"

#define TABLE_MAGIC	0x31697475u	/* "uti1" */
/* SCM_MAX_FD of the kernel's. */
#define MOST		253

struct table {
	uint32_t magic, count;
	uint8_t index[MOST];
};

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(MOST * sizeof(int))];
};

/* By index: the descriptor of an own vector, plus one. */
static int kept[UINTR_CONNECTIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void uintr_ipi_keep(int index, int fd)
{
	pthread_mutex_lock(&lock);
	kept[index] = fd + 1;
	pthread_mutex_unlock(&lock);
}

void uintr_ipi_forget(int index)
{
	uintr_ipi_keep(index, -1);
}

void uintr_ipi_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void uintr_ipi_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* It is connected to nothing. */
void uintr_ipi_in_child(void)
{
	memset(kept, 0, sizeof(kept));
	pthread_mutex_unlock(&lock);
}

static int gives(int end)
{
	struct table table = { .magic = TABLE_MAGIC };
	struct iovec data = { &table, sizeof(table) };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control };
	int descriptors[MOST];

	for (int index = 0; index < UINTR_CONNECTIONS; index++) {
		if (!kept[index])
			continue;
		if (table.count == MOST)
			return refuse(ENOSPC);
		table.index[table.count] = index;
		descriptors[table.count++] = kept[index] - 1;
	}
	if (!table.count)
		return refuse(ENOENT);
	control.header = (struct cmsghdr){ CMSG_LEN(table.count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), descriptors, table.count * sizeof(int));
	message.msg_controllen = CMSG_SPACE(table.count * sizeof(int));
	return sendmsg(end, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(table) ? 0 : -1;
}

int uintr_ipi_fd(unsigned int flags)
{
	int ends[2], result, error;

	if (flags)
		return refuse(EINVAL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	pthread_mutex_lock(&lock);
	result = gives(ends[0]);
	error = errno;
	pthread_mutex_unlock(&lock);
	close(ends[0]);
	if (!result)
		return ends[1];
	close(ends[1]);
	return refuse(error);
}

/* What another process says is looked at, whatever it is. The number of descriptors that came, which are the caller's. */
static int takes(int fd, struct table *table, int descriptors[MOST])
{
	struct iovec data = { table, sizeof(*table) };
	union control control;
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t size = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = size < 0 ? NULL : CMSG_FIRSTHDR(&message);
	int count = 0;

	if (size < 0)
		return refuse(errno == EBADF || errno == EMFILE ? errno : EOPNOTSUPP);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(descriptors, CMSG_DATA(header), count * sizeof(int));
	}
	errno = 0;
	if (message.msg_flags & MSG_CTRUNC)
		errno = EMFILE;
	else if (size != sizeof(*table) || table->magic != TABLE_MAGIC || !count || table->count != (uint32_t)count)
		errno = EOPNOTSUPP;
	/* Each index once, in order. */
	for (int i = 1; i < count && !errno; i++)
		if (table->index[i] <= table->index[i - 1])
			errno = EOPNOTSUPP;
	return count;
}

int uintr_use_ipi_fd(int fd, unsigned int flags)
{
	int descriptors[MOST], count, made = 0, error = 0;
	struct table table;

	if (flags)
		return refuse(EINVAL);
	count = takes(fd, &table, descriptors);
	if (count < 0)
		return -1;
	error = errno;
	/* Each gets the lowest index that is free: those between are taken for a moment. */
	for (int i = 0; i < count && !error; made++) {
		int index = uintr_register_sender(descriptors[i], 0);

		if (index < 0)
			error = errno;
		else if (index != made)
			error = EBUSY, uintr_unregister_sender(index, 0);
		else if (index == table.index[i])
			i++;
	}
	made -= error != 0;
	for (int index = 0, i = 0; index < made; index++) {
		if (!error && index == table.index[i])
			i++;
		else
			uintr_unregister_sender(index, 0);
	}
	for (int i = 0; i < count; i++)
		close(descriptors[i]);
	return error ? refuse(error) : 0;
}
