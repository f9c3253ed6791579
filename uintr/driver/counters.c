// SPDX-License-Identifier: GPL-2.0-only
/* What is known of each receiver, in debugfs: uintr/receivers, a line each. */
#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "driver.h"

static LIST_HEAD(receivers);
static DEFINE_MUTEX(lock);
static unsigned int number;

void counters_add(struct receiver *receiver)
{
	mutex_lock(&lock);
	receiver->number = ++number;
	list_add_tail(&receiver->others, &receivers);
	mutex_unlock(&lock);
}

void counters_remove(struct receiver *receiver)
{
	mutex_lock(&lock);
	list_del(&receiver->others);
	mutex_unlock(&lock);
}

static void show_polled(struct seq_file *file, struct receiver *receiver)
{
	struct polled *polled = receiver->polled;
	struct polled_counters c;
	bool armed;
	u64 left = 0;
	int i;

	mutex_lock(&receiver->lock);
	raw_spin_lock_irq(&polled->lock);
	c = polled->counters;
	armed = polled->armed_on;
	for (i = 0; i < UINTR_VECTORS; i++)
		left += receiver->vectors[i] ? receiver->vectors[i]->count : 0;
	raw_spin_unlock_irq(&polled->lock);
	mutex_unlock(&receiver->lock);
	seq_printf(file, "polled %u low %016llx pir %llx is_armed %d ended %d armed %llu rested %llu interrupts %llu noticed %llu picked %llu noted %llu read %llu dropped %llu left %llu looks %llu throttled %llu",
		   receiver->number, READ_ONCE(receiver->upid.low), READ_ONCE(receiver->upid.pir), armed, polled->ended,
		   c.armed, c.rested, c.interrupts, c.noticed, c.picked, c.noted, c.read, c.dropped, left, c.looks, c.throttled);
}

static void show_sends(struct seq_file *file, struct sends *s)
{
	if (count_sends)
		seq_printf(file, " posted %lld merged %lld notified %lld woke %lld covered %lld suppressed %lld",
			   atomic64_read(&s->posted), atomic64_read(&s->merged), atomic64_read(&s->notified),
			   atomic64_read(&s->woke), atomic64_read(&s->covered), atomic64_read(&s->suppressed));
	seq_putc(file, '\n');
}

/* While a receiver runs its figures are those of some moment. */
static void show_thread(struct seq_file *file, struct receiver *receiver)
{
	struct counters *c = &receiver->counters;
	struct thread *thread;

	mutex_lock(&receiver->lock);
	thread = receiver->thread;
	seq_printf(file, "receiver %u thread %d low %016llx pir %llx uirr %llx uif %d armed %d asleep %d",
		   receiver->number, thread ? task_pid_vnr(thread->task) : 0,
		   READ_ONCE(receiver->upid.low), READ_ONCE(receiver->upid.pir),
		   thread ? thread->uirr : 0, thread && thread->uif, thread && thread->armed,
		   thread && READ_ONCE(thread->asleep_on));
	mutex_unlock(&receiver->lock);
	seq_printf(file, " out %llu in %llu undelivered %llu overtaken %llu found %llu noticed %llu collected %llu coalesced %llu",
		   c->out, c->in, c->undelivered, c->overtaken, c->found, c->noticed, c->collected, c->coalesced);
	seq_printf(file, " slept %llu woken %llu rose %llu met %llu late %llu caught %llu calls %llu",
		   c->slept, c->woken, c->rose, c->met, c->late, c->caught, c->calls);
	seq_printf(file, " ticks %llu waits %llu served %llu readable %llu timed_out %llu signalled %llu",
		   c->ticks, c->waits, c->served, c->readable, c->timed_out, c->signalled);
}

static int receivers_show(struct seq_file *file, void *data)
{
	struct receiver *receiver;

	mutex_lock(&lock);
	list_for_each_entry(receiver, &receivers, others) {
		if (receiver->polled)
			show_polled(file, receiver);
		else
			show_thread(file, receiver);
		show_sends(file, &receiver->sends);
	}
	mutex_unlock(&lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(receivers);

static struct dentry *folder;

int counters_start(void)
{
	folder = debugfs_create_dir("uintr", NULL);
	debugfs_create_file("receivers", 0400, folder, NULL, &receivers_fops);
	return 0;
}

void counters_stop(void)
{
	debugfs_remove_recursive(folder);
}
