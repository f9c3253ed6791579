// SPDX-License-Identifier: GPL-2.0-only
/* A receiver's vectors: the right to send one of them, as a descriptor. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/anon_inodes.h>
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

	receiver_put(vector->receiver);
	kmem_cache_free(vectors, vector);
}

/* Where it may sleep. */
void vector_put(struct vector *vector)
{
	kref_put(&vector->refs, vector_release);
}

/*
 * With the receiver locked: no entry names it any more. Whether one did: then a
 * SENDUIPI that had read it may be under way, until let_sends_end().
 */
bool vector_revoke(struct vector *vector)
{
	struct connection *connection;

	vector->receiver->vectors[vector->number] = NULL;
	vector->revoked = true;
	list_for_each_entry(connection, &vector->connections, others)
		WRITE_ONCE(*connection->entry, 0);
	wake_up_poll(&vector->hangup, EPOLLHUP);
	return !list_empty(&vector->connections);
}

static int vector_close(struct inode *inode, struct file *file)
{
	struct vector *vector = file->private_data;
	struct receiver *receiver = vector->receiver;
	bool connected = false;

	mutex_lock(&receiver->lock);
	if (!vector->revoked)
		connected = vector_revoke(vector);
	mutex_unlock(&receiver->lock);
	if (connected)
		let_sends_end(NULL);
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

	poll_wait(file, &vector->hangup, table);
	return READ_ONCE(vector->revoked) || !READ_ONCE(vector->receiver->thread) ? EPOLLHUP : 0;
}

static const struct file_operations vector_fops = {
	.owner = THIS_MODULE,
	.release = vector_close,
	.unlocked_ioctl = vector_ioctl,
	.poll = vector_poll,
	.llseek = noop_llseek,
};

long vector_new(struct receiver *receiver, unsigned long number)
{
	struct vector *vector;
	long fd;

	if (number >= UINTR_VECTORS)
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
	INIT_LIST_HEAD(&vector->connections);
	init_waitqueue_head(&vector->hangup);

	mutex_lock(&receiver->lock);
	if (!receiver->thread)
		fd = -ESHUTDOWN;
	else if (receiver->vectors[number])
		fd = -EBUSY;
	else
		fd = 0;
	if (!fd) {
		vector->revoked = false;
		receiver->vectors[number] = vector;
	}
	mutex_unlock(&receiver->lock);
	if (!fd) {
		delay();
		fd = anon_inode_getfd("[uintr-vector]", &vector_fops, vector, O_RDWR | O_CLOEXEC);
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
