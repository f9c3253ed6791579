// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frees what has no reference left, once nobody can be using it: threads when the
 * interrupts that refer to them are over, UPIDs when the SENDUIPI that had read an
 * entry is. References are dropped in interrupts and probes, where on PREEMPT_RT
 * nothing can be freed.
 */
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "driver.h"

static LLIST_HEAD(dead_receivers);
static LLIST_HEAD(dead_tables);
static LLIST_HEAD(dead_threads);

static struct workqueue_struct *reaper;

/* What SENDUIPI reads on each CPU. */
static DEFINE_PER_CPU(struct table *, armed);

/* With interrupts off: before the CPU has @table, and after it had one. */
void table_armed(struct table *table)
{
	__this_cpu_write(armed, table);
	/*
	 * Pairs with let_sends_end(): either that sees the table here, or what it waits
	 * behind is seen by each SENDUIPI to come.
	 */
	smp_mb();
}

static bool may_send(int cpu, void *table)
{
	struct table *there = READ_ONCE(*per_cpu_ptr(&armed, cpu));

	return there && (!table || there == table);
}

static void nothing(void *data)
{
}

/*
 * Every SENDUIPI through @table, or through any if that is NULL, that has begun is
 * over. A CPU that runs user code is quiet for RCU, in the middle of an instruction
 * too; an interrupt comes behind it (H13). CPUs where nobody can send are left
 * alone: anybody may ask for this.
 */
void let_sends_end(struct table *table)
{
	smp_mb();
	on_each_cpu_cond(may_send, nothing, table, 1);
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
		let_sends_end(NULL);
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

static DECLARE_DELAYED_WORK(reaping, reap);

/* At most once a tick, for it waits for all CPUs that can send. */
static void reap_soon(void)
{
	queue_delayed_work(reaper, &reaping, 1);
}

void reap_receiver(struct receiver *receiver)
{
	llist_add(&receiver->dead, &dead_receivers);
	reap_soon();
}

void reap_table(struct table *table)
{
	table->grace = get_state_synchronize_rcu();
	llist_add(&table->dead, &dead_tables);
	reap_soon();
}

void reap_thread(struct thread *thread)
{
	thread->grace = get_state_synchronize_rcu();
	llist_add(&thread->dead, &dead_threads);
	reap_soon();
}

int reaper_start(void)
{
	reaper = alloc_workqueue("uintr", WQ_UNBOUND, 1);
	return reaper ? 0 : -ENOMEM;
}

/* What it frees may leave more to free. */
void reaper_stop(void)
{
	while (flush_delayed_work(&reaping))
		;
	destroy_workqueue(reaper);
}
