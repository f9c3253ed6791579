// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frees what has no reference left, once nobody can be using it: threads when the
 * interrupts that refer to them are over, UPIDs when the SENDUIPI that had read an
 * entry is. References are dropped in interrupts and probes, where on PREEMPT_RT
 * nothing can be freed.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "driver.h"

static LLIST_HEAD(dead_receivers);
static LLIST_HEAD(dead_tables);
static LLIST_HEAD(dead_threads);

static struct workqueue_struct *reaper;

static void nothing(void *data)
{
}

/*
 * Every SENDUIPI that has begun is over. A CPU that runs user code is quiet for RCU,
 * in the middle of an instruction too; an interrupt comes behind it (H13).
 */
void let_sends_end(void)
{
	on_each_cpu(nothing, NULL, 1);
}

static void reap(struct work_struct *work)
{
	struct llist_node *their_threads = llist_del_all(&dead_threads);
	struct llist_node *their_tables = llist_del_all(&dead_tables);
	struct llist_node *their_receivers = llist_del_all(&dead_receivers);
	struct receiver *receiver, *next_receiver;
	struct thread *thread, *next_thread;
	struct table *table, *next_table;

	/* Interrupts refer to threads, look-ups to tables. */
	if (their_threads || their_tables)
		synchronize_rcu();
	if (their_receivers)
		let_sends_end();
	llist_for_each_entry(table, their_tables, dead)
		WARN_ON_ONCE(!poll_state_synchronize_rcu(table->grace));
	llist_for_each_entry(thread, their_threads, dead)
		WARN_ON_ONCE(!poll_state_synchronize_rcu(thread->grace));
	llist_for_each_entry_safe(receiver, next_receiver, their_receivers, dead)
		receiver_free(receiver);
	llist_for_each_entry_safe(table, next_table, their_tables, dead)
		table_free(table);
	llist_for_each_entry_safe(thread, next_thread, their_threads, dead)
		thread_free(thread);
}

static DECLARE_WORK(reaping, reap);

void reap_receiver(struct receiver *receiver)
{
	llist_add(&receiver->dead, &dead_receivers);
	queue_work(reaper, &reaping);
}

void reap_table(struct table *table)
{
	table->grace = get_state_synchronize_rcu();
	llist_add(&table->dead, &dead_tables);
	queue_work(reaper, &reaping);
}

void reap_thread(struct thread *thread)
{
	thread->grace = get_state_synchronize_rcu();
	llist_add(&thread->dead, &dead_threads);
	queue_work(reaper, &reaping);
}

int reaper_start(void)
{
	reaper = alloc_workqueue("uintr", WQ_UNBOUND, 1);
	return reaper ? 0 : -ENOMEM;
}

/* What it frees may leave more to free. */
void reaper_stop(void)
{
	destroy_workqueue(reaper);
}
