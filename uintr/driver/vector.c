// SPDX-License-Identifier: GPL-2.0-only
/* A receiver's vectors: the right to send one of them, as a descriptor; and to read it, where no handler does. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "driver.h"

static struct kmem_cache *vectors;
static const struct file_operations vector_fops;

static void vector_release(struct kref *refs)
{
	struct vector *vector = container_of(refs, struct vector, refs);

	if (vector->receiver->polled)
		polled_forget(vector);
	receiver_put(vector->receiver);
	kmem_cache_free(vectors, vector);
}

/* In any context but under raw locks. */
void vector_put(struct vector *vector)
{
	kref_put(&vector->refs, vector_release);
}

/* Whether a process has a connection to it; @table may be gone. With the receiver locked. */
static bool connects(struct vector *vector, struct table *table)
{
	struct connection *connection;

	list_for_each_entry(connection, &vector->connections, others) {
		if (connection->table == table)
			return true;
	}
	return false;
}

static bool may_send(struct table *there, void *vector)
{
	return connects(vector, there);
}

/*
 * With the receiver locked: no entry names it any more, and each SENDUIPI that had
 * read one is over. Only CPUs where a process runs that was connected are waited
 * for: nobody else's time is the caller's to take.
 */
void vector_revoke(struct vector *vector)
{
	struct connection *connection;

	if (vector->receiver->polled) {
		polled_displace(vector);
	} else {
		vector->receiver->vectors[vector->number] = NULL;
		vector->revoked = true;
	}
	list_for_each_entry(connection, &vector->connections, others)
		WRITE_ONCE(*connection->entry, 0);
	let_sends_end(may_send, vector);
	wake_up_poll(&vector->queue, EPOLLHUP);
}

static int vector_close(struct inode *inode, struct file *file)
{
	struct vector *vector = file->private_data;
	struct receiver *receiver = vector->receiver;

	mutex_lock(&receiver->lock);
	if (!vector->revoked)
		vector_revoke(vector);
	mutex_unlock(&receiver->lock);
	vector_put(vector);
	return 0;
}

static long vector_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	if (command == UINTR_CONNECT)
		return argument ? -EINVAL : table_connect(file->private_data);
	return -ENOTTY;
}

static __poll_t vector_poll(struct file *file, poll_table *table)
{
	struct vector *vector = file->private_data;
	__poll_t events = 0;

	poll_wait(file, &vector->queue, table);
	if (vector->receiver->polled)
		events = polled_poll(vector, poll_requested_events(table));
	if (READ_ONCE(vector->revoked) || !receiver_lives(vector->receiver))
		events |= EPOLLHUP;
	return events;
}

static ssize_t vector_read(struct kiocb *call, struct iov_iter *to)
{
	struct vector *vector = call->ki_filp->private_data;

	/* What a handler is sent is the handler's. */
	if (!vector->receiver->polled)
		return -EINVAL;
	return polled_read(vector, to, !(call->ki_flags & IOCB_NOWAIT) && !(call->ki_filp->f_flags & O_NONBLOCK));
}

static const struct file_operations vector_fops = {
	.owner = THIS_MODULE,
	.release = vector_close,
	.read_iter = vector_read,
	.unlocked_ioctl = vector_ioctl,
	.poll = vector_poll,
	.llseek = noop_llseek,
};

/* The descriptor of @vector, to which the reference to it is passed, or a negative error. */
static long vector_open(struct vector *vector, int flags)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;

	if (fd < 0)
		return fd;
	file = anon_inode_getfile("[uintr-vector]", &vector_fops, vector, O_RDWR | flags);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	/* A read that must not wait does not. */
	if (vector->receiver->polled)
		file->f_mode |= FMODE_NOWAIT;
	fd_install(fd, file);
	return fd;
}

long vector_new(struct receiver *receiver, unsigned long argument)
{
	unsigned long flags = argument & (UINTR_SEMAPHORE | UINTR_NONBLOCK), number = argument & ~flags;
	struct vector *vector;
	long fd;

	if (number >= UINTR_VECTORS || (flags && !receiver->polled))
		return -EINVAL;
	number = array_index_nospec(number, UINTR_VECTORS);
	vector = kmem_cache_zalloc(vectors, GFP_KERNEL_ACCOUNT);
	if (!vector)
		return -ENOMEM;
	kref_init(&vector->refs);
	kref_get(&receiver->refs);
	vector->receiver = receiver;
	vector->number = number;
	vector->revoked = true;
	vector->semaphore = flags & UINTR_SEMAPHORE;
	INIT_LIST_HEAD(&vector->connections);
	init_waitqueue_head(&vector->queue);

	mutex_lock(&receiver->lock);
	if (!receiver_lives(receiver))
		fd = -ESHUTDOWN;
	else if (receiver->vectors[number] || receiver->sources[number])
		fd = -EBUSY;
	else
		fd = 0;
	if (!fd) {
		vector->revoked = false;
		if (receiver->polled)
			polled_place(vector);
		else
			receiver->vectors[number] = vector;
	}
	mutex_unlock(&receiver->lock);
	if (!fd) {
		delay();
		fd = vector_open(vector, flags & UINTR_NONBLOCK ? O_NONBLOCK : 0);
		if (fd >= 0)
			return fd;
		mutex_lock(&receiver->lock);
		/* Else UINTR_REVOKE was faster, and the number may be another's. */
		if (!vector->revoked)
			vector_revoke(vector);
		mutex_unlock(&receiver->lock);
	}
	vector_put(vector);
	return fd;
}

int vectors_start(void)
{
	vectors = kmem_cache_create("uintr_vector", sizeof(struct vector), __alignof__(struct vector), SLAB_ACCOUNT, NULL);
	return vectors ? 0 : -ENOMEM;
}

void vectors_stop(void)
{
	kmem_cache_destroy(vectors);
}
