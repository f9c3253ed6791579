// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frees what has no reference left, once nobody can be using it: threads when the
 * interrupts that refer to them are over, tables when nobody looks them up. References are dropped in interrupts and probes, where on PREEMPT_RT
 * nothing can be freed.
 */
#include <linux/cpu.h>
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

static void nothing(void *data)
{
}

/*
 * Every SENDUIPI that has begun through a table that @concerns is true of is over. A
 * CPU that runs user code is quiet for RCU, in the middle of an instruction too; an
 * interrupt comes behind it (H13). All other CPUs are left alone: anybody may ask for
 * this. @concerns is called with CPUs kept on-line, and may only compare its table.
 */
void let_sends_end(bool (*concerns)(struct table *there, void *what), void *what)
{
	cpumask_var_t wait;
	struct table *there;
	int cpu;

	/* Without memory each in its turn. */
	bool together = zalloc_cpumask_var(&wait, GFP_KERNEL | __GFP_NOWARN);

	/* Pairs with table_armed(). */
	smp_mb();
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		there = READ_ONCE(*per_cpu_ptr(&armed, cpu));
		if (!there || !concerns(there, what))
			continue;
		if (together)
			cpumask_set_cpu(cpu, wait);
		else
			smp_call_function_single(cpu, nothing, NULL, 1);
	}
	if (together) {
		on_each_cpu_mask(wait, nothing, NULL, true);
		free_cpumask_var(wait);
	}
	cpus_read_unlock();
}

static void reap(struct work_struct *work)
{
	struct llist_node *their_threads = llist_del_all(&dead_threads);
	struct llist_node *their_tables = llist_del_all(&dead_tables);
	struct llist_node *their_receivers = llist_del_all(&dead_receivers);
	struct receiver *receiver, *next_receiver;
	struct thread *thread, *next_thread;
	struct table *table, *next_table;

	/*
	 * Interrupts refer to threads, look-ups to tables. A receiver has no reference
	 * left, so no connection: each was given back behind the end of all sends through
	 * its table, or with the table, which no CPU has then. So no SENDUIPI has its UPID.
	 */
	if (their_threads || their_tables)
		synchronize_rcu();
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

/* At most once a tick, for it waits for a grace period. */
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
