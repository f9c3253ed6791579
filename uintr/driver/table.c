// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a process may send to: its UITT, which its threads share. A thread has it in
 * its MSRs from the moment it connects something or first uses SENDUIPI: that is an
 * invalid instruction, upon which the thread is given the table and tries again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "driver.h"

static struct kmem_cache *tables;
static struct rhashtable processes;

static const struct rhashtable_params by_process = {
	.head_offset = offsetof(struct table, node),
	.key_offset = offsetof(struct table, process),
	.key_len = sizeof_field(struct table, process),
	.automatic_shrinking = true,
};

static void table_release(struct kref *refs)
{
	reap_table(container_of(refs, struct table, refs));
}

/* In any context. */
void table_put(struct table *table)
{
	kref_put(&table->refs, table_release);
}

/* By the reaper: no thread has it. */
void table_free(struct table *table)
{
	struct receiver *receiver;
	struct vector *vector;
	int i;

	for (i = 0; i < UINTR_CONNECTIONS; i++) {
		vector = table->connections[i].vector;
		if (!vector)
			continue;
		receiver = vector->receiver;
		mutex_lock(&receiver->lock);
		list_del(&table->connections[i].others);
		mutex_unlock(&receiver->lock);
		vector_put(vector);
	}
	free_page((unsigned long)table->uitt);
	mutex_destroy(&table->lock);
	kmem_cache_free(tables, table);
	module_put(THIS_MODULE);
}

/* The process's table, held, or NULL. */
static struct table *table_find(void)
{
	struct signal_struct *process = current->signal;
	struct table *table;

	rcu_read_lock();
	table = rhashtable_lookup(&processes, &process, by_process);
	if (table && !kref_get_unless_zero(&table->refs))
		table = NULL;
	rcu_read_unlock();
	return table;
}

static struct table *table_new(void)
{
	struct table *table, *other;
	int i;

	BUILD_BUG_ON(UINTR_CONNECTIONS * sizeof(struct uitt_entry) != PAGE_SIZE);
	table = kmem_cache_zalloc(tables, GFP_KERNEL_ACCOUNT);
	if (!table)
		return ERR_PTR(-ENOMEM);
	table->uitt = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!table->uitt) {
		kmem_cache_free(tables, table);
		return ERR_PTR(-ENOMEM);
	}
	for (i = 0; i < UINTR_CONNECTIONS; i++) {
		table->uitt[i].upid = (u64)&nobody.upid;
		table->connections[i].entry = &table->uitt[i].low;
		table->connections[i].table = table;
	}
	/* Of the process, and the caller's. */
	kref_init(&table->refs);
	kref_get(&table->refs);
	mutex_init(&table->lock);
	table->process = current->signal;
	__module_get(THIS_MODULE);
	other = rhashtable_lookup_get_insert_fast(&processes, &table->node, by_process);
	if (!other)
		return table;
	/* Another thread was faster, or there is no memory. */
	table_put(table);
	table_put(table);
	return IS_ERR(other) ? other : table_find();
}

/* The table goes into the MSRs of the calling thread; the reference to it is passed. */
static void table_give(struct thread *thread, struct table *table)
{
	unsigned long flags;

	local_irq_save(flags);
	disarm(thread);
	thread->table = table;
	arm(thread);
	local_irq_restore(flags);
}

long table_connect(struct vector *vector)
{
	struct receiver *receiver = vector->receiver;
	struct connection *connection;
	struct thread *thread;
	struct table *table;
	long index;

	thread = thread_join(GFP_KERNEL_ACCOUNT);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	if (!thread->table) {
		table = table_find();
		if (!table)
			table = table_new();
		if (IS_ERR_OR_NULL(table))
			return table ? PTR_ERR(table) : -ESRCH;
		table_give(thread, table);
	}
	table = thread->table;

	mutex_lock(&table->lock);
	for (index = 0; index < UINTR_CONNECTIONS; index++) {
		if (!table->connections[index].vector)
			break;
	}
	if (index == UINTR_CONNECTIONS) {
		index = -ENOSPC;
		goto unlock;
	}
	connection = &table->connections[index];
	mutex_lock(&receiver->lock);
	if (!receiver_lives(receiver) || vector->revoked) {
		index = -ESHUTDOWN;
	} else {
		kref_get(&vector->refs);
		connection->vector = vector;
		list_add(&connection->others, &vector->connections);
		table->uitt[index].upid = (u64)&receiver->upid;
		/* Whoever reads that it is valid before the other half finds that. */
		smp_store_release(connection->entry, UITT_VALID | UITT_UV(vector->number));
	}
	mutex_unlock(&receiver->lock);
unlock:
	mutex_unlock(&table->lock);
	return index;
}

static bool same(struct table *there, void *table)
{
	return there == table;
}

long table_disconnect(unsigned long index)
{
	struct connection *connection;
	struct vector *vector;
	struct table *table;

	if (index >= UINTR_CONNECTIONS)
		return -EINVAL;
	index = array_index_nospec(index, UINTR_CONNECTIONS);
	/* The process's, whichever of its threads made or used it. */
	table = table_find();
	if (!table)
		return -EINVAL;
	connection = &table->connections[index];
	mutex_lock(&table->lock);
	vector = connection->vector;
	if (vector) {
		mutex_lock(&vector->receiver->lock);
		WRITE_ONCE(*connection->entry, 0);
		WRITE_ONCE(table->uitt[index].upid, (u64)&nobody.upid);
		list_del(&connection->others);
		mutex_unlock(&vector->receiver->lock);
		/* No half of this one is left with anybody when the next takes its place. */
		let_sends_end(same, table);
		connection->vector = NULL;
	}
	mutex_unlock(&table->lock);
	if (vector)
		vector_put(vector);
	table_put(table);
	return vector ? 0 : -EINVAL;
}

/* An invalid instruction of a thread: whether it was one without the table of its process. */
bool table_adopt(void)
{
	struct thread *thread = own_thread();
	struct table *table;

	if (thread && thread->table)
		return false;
	table = table_find();
	if (!table)
		return false;
	thread = thread_join(GFP_ATOMIC | __GFP_ACCOUNT);
	if (IS_ERR(thread)) {
		table_put(table);
		return false;
	}
	table_give(thread, table);
	return true;
}

/* By the last thread of a process, or by the one that executes another program. */
void table_process_ends(void)
{
	struct table *table = table_find();

	if (!table)
		return;
	if (!rhashtable_remove_fast(&processes, &table->node, by_process))
		table_put(table);
	table_put(table);
}

int tables_start(void)
{
	tables = kmem_cache_create("uintr_table", sizeof(struct table), __alignof__(struct table), SLAB_ACCOUNT, NULL);
	if (!tables)
		return -ENOMEM;
	return rhashtable_init(&processes, &by_process);
}

void tables_stop(void)
{
	rhashtable_destroy(&processes);
	kmem_cache_destroy(tables);
}
