// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel as sender: what is written to an eventfd, by a program or by the kernel itself (a completion of
 * io_uring), sends a vector to a receiver. A write takes SENDUIPI's steps, and is to the model one sender more.
 *
 * The receiver's number holds the eventfd's file, so that nothing of it goes before its last entry in a queue does; an
 * eventfd holds nothing, so that no circle is made. Of eventfds alone: their wake-ups come with the queue
 * locked and nowhere else, and nobody takes the queue away under its entries.
 *
 * Locks, outermost first: receiver.lock, the eventfd's queue. What is done in the queue's wake-up takes none.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "driver.h"

/* An eventfd in the place of a vector's descriptor; from UINTR_EVENTFD until the vector is revoked or its receiver ends. */
struct source {
	struct receiver *receiver;	/* whose end ends this */
	unsigned int number;
	struct file *file;		/* held */
	wait_queue_head_t *queue;
	wait_queue_entry_t entry;
	poll_table table;
};

static void sends(struct source *source)
{
	unsigned long flags;

	/* As within an instruction: nobody comes between the post and the notification. */
	local_irq_save(flags);
	send(source->receiver, source->number);
	local_irq_restore(flags);
}

/* With the queue locked, in any context that may write to an eventfd: a hard interrupt's too. */
static int written(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	/* Else somebody has read it, or closes what we hold. */
	if (key_to_poll(key) & EPOLLIN)
		sends(container_of(entry, struct source, entry));
	/* Nobody was woken in another's place. */
	return 0;
}

static void enters(struct file *file, wait_queue_head_t *queue, poll_table *table)
{
	struct source *source = container_of(table, struct source, table);

	source->queue = queue;
	add_wait_queue(queue, &source->entry);
}

static struct source *source_make(struct receiver *receiver, unsigned int number, int fd)
{
	struct eventfd_ctx *eventfd;
	struct source *source;
	struct file *file = fget(fd);

	if (!file)
		return ERR_PTR(-EBADF);
	eventfd = eventfd_ctx_fileget(file);
	if (IS_ERR(eventfd)) {
		fput(file);
		return ERR_CAST(eventfd);
	}
	/* The file has it as long as we have the file. */
	eventfd_ctx_put(eventfd);
	source = kzalloc(sizeof(*source), GFP_KERNEL_ACCOUNT);
	if (!source) {
		fput(file);
		return ERR_PTR(-ENOMEM);
	}
	source->receiver = receiver;
	source->number = number;
	source->file = file;
	init_waitqueue_func_entry(&source->entry, written);
	init_poll_funcptr(&source->table, enters);
	return source;
}

static void source_free(struct source *source)
{
	/* Behind this no write finds us, and none is in the middle of it. */
	if (source->queue)
		remove_wait_queue(source->queue, &source->entry);
	fput(source->file);
	kfree(source);
}

/* With the receiver locked. Whether the vector had an eventfd; it has none any more. */
bool source_end(struct receiver *receiver, unsigned int number)
{
	struct source *source = receiver->sources[number];

	receiver->sources[number] = NULL;
	if (source)
		source_free(source);
	return source;
}

long receiver_eventfd(struct receiver *receiver, const struct uintr_eventfd *args)
{
	struct source *source;
	unsigned int number;
	long error = 0;

	if (args->vector >= UINTR_VECTORS || receiver->polled)
		return -EINVAL;
	number = array_index_nospec(args->vector, UINTR_VECTORS);
	source = source_make(receiver, number, args->eventfd);
	if (IS_ERR(source))
		return PTR_ERR(source);
	mutex_lock(&receiver->lock);
	if (!receiver_lives(receiver)) {
		error = -ESHUTDOWN;
	} else if (receiver->sources[number] || receiver->vectors[number]) {
		error = -EBUSY;
	} else {
		receiver->sources[number] = source;
		/* Into the queue, then a look: what was written before is sent as well. */
		if (vfs_poll(source->file, &source->table) & EPOLLIN)
			sends(source);
	}
	mutex_unlock(&receiver->lock);
	if (error)
		source_free(source);
	return error;
}
