// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The RFC's table that others send through. It is a socket in whose queue one message lies for good: the indices of this process's
 * connections to its own vectors, and the vectors' descriptors. Whoever is given the socket peeks.
 */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend.h"
#include "message.h"
#include "uintr.h"

#define TABLE_MAGIC	0x31697475u	/* "uti1" */

struct table {
	uint32_t magic, count;
	uint8_t index[MESSAGE_DESCRIPTORS];
};

/* By index: the descriptor of an own vector, plus one. */
static int kept[UINTR_CONNECTIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Nobody else has this descriptor. The bare call: close(3) is a place where a thread may be cancelled, and it would end with the lock. */
static void closes(int index)
{
	if (kept[index])
		syscall(SYS_close, kept[index] - 1);
	kept[index] = 0;
}

void uintr_ipi_keep(int index, int fd)
{
	struct held held;

	uintr_locks(&lock, &held);
	kept[index] = fd + 1;
	uintr_unlocks(&lock, &held);
}

void uintr_ipi_forget(int index)
{
	struct held held;

	uintr_locks(&lock, &held);
	closes(index);
	uintr_unlocks(&lock, &held);
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
	for (int index = 0; index < UINTR_CONNECTIONS; index++)
		closes(index);
	pthread_mutex_unlock(&lock);
}

static int gives(int end)
{
	struct table table = { .magic = TABLE_MAGIC };
	int descriptors[MESSAGE_DESCRIPTORS];

	for (int index = 0; index < UINTR_CONNECTIONS; index++) {
		if (!kept[index])
			continue;
		if (table.count == MESSAGE_DESCRIPTORS)
			return refuse(ENOSPC);
		table.index[table.count] = index;
		descriptors[table.count++] = kept[index] - 1;
	}
	if (!table.count)
		return refuse(ENOENT);
	return uintr_message_put(end, &table, sizeof(table), descriptors, table.count);
}

int uintr_ipi_fd(unsigned int flags)
{
	int ends[2], result, error;
	struct held held;

	if (flags)
		return refuse(EINVAL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	uintr_locks(&lock, &held);
	result = gives(ends[0]);
	error = errno;
	uintr_unlocks(&lock, &held);
	close(ends[0]);
	if (!result)
		return ends[1];
	close(ends[1]);
	return refuse(error);
}

/* Whether it says what such a table says: each index once, in order. */
static int is_whole(const struct table *table, uint32_t count)
{
	if (table->magic != TABLE_MAGIC || table->count != count)
		return 0;
	for (uint32_t i = 1; i < count; i++)
		if (table->index[i] <= table->index[i - 1])
			return 0;
	return 1;
}

int uintr_use_ipi_fd(int fd, unsigned int flags)
{
	int descriptors[MESSAGE_DESCRIPTORS], count, made = 0, error = 0;
	struct table table;

	if (flags)
		return refuse(EINVAL);
	count = uintr_message_peek(fd, &table, sizeof(table), descriptors, 1, MESSAGE_DESCRIPTORS);
	if (count < 0)
		return -1;
	if (!is_whole(&table, count))
		error = EOPNOTSUPP;
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
	uintr_message_close(descriptors, count);
	return error ? refuse(error) : 0;
}
