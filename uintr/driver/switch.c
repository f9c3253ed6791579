// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread's way off its CPU and back: the protocol that the checked model in
 * uintr/model proves, with its names.
 *
 * A thread's state is in the MSRs while it runs and in struct thread while it does
 * not; preempt notifiers move it, with interrupts off. A receiver that runs is
 * notified by the CPU. One that is preempted has SN set, and what was posted is
 * found at its return. One that sleeps where a signal would wake it is put on a
 * list of its CPU, and its UPID names WAKE, whose interrupt wakes it: in
 * UINTR_WAIT as any wake-up does, in another system call as a signal does.
 *
 * Locks, outermost first: run queue, sleepers.lock. Whoever has sleepers.lock wakes
 * nobody.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <asm/syscall.h>

#include "driver.h"
#define CREATE_TRACE_POINTS
#include "trace.h"

static DEFINE_PER_CPU(struct sleepers, sleepers) = {
	.lock = __RAW_SPIN_LOCK_UNLOCKED(sleepers.lock),
};

static struct kmem_cache *threads;

#ifdef UINTR_DELAYS
static DEFINE_PER_CPU(u32, lot);

void delay(void)
{
	u32 number = raw_cpu_read(lot) + 1;

	/* xorshift32; interrupts or migration may come between, which is as good a lot. */
	number ^= number << 13;
	number ^= number >> 17;
	number ^= number << 5;
	raw_cpu_write(lot, number);
	if (number % 4 == 0)
		ndelay(number / 4 % 20000);
}
#endif

/*
 * Sends what comes from now on to @vector of @cpu. ON stays: what it stands for has
 * yet to be looked at. Returns the low half before.
 */
u64 readdress(struct uintr_upid *upid, u8 vector, int cpu)
{
	u64 low = READ_ONCE(upid->low);

	/* A full barrier; pairs with SENDUIPI's locked update (H9). */
	while (!try_cmpxchg64(&upid->low, &low, upid_address(vector, cpu) | (low & UPID_ON)))
		;
	return low;
}

/*
 * The same, and takes what came before. ON is cleared before PIR is read: whoever
 * posts after the read sends an interrupt. One that is still on its way finds
 * nothing left, which does no harm (H2, H3).
 */
static u64 collect(struct uintr_upid *upid, u8 vector, int cpu, u64 *low)
{
	*low = xchg(&upid->low, upid_address(vector, cpu));
	delay();
	return xchg(&upid->pir, 0);
}

/* From now on senders only post. Returns the low half before. */
u64 suppress(struct receiver *receiver)
{
	u64 low = READ_ONCE(receiver->upid.low);

	while (!try_cmpxchg64(&receiver->upid.low, &low, low | UPID_SN))
		;
	return low;
}

/* From here on senders only post: whatever of the thread's state was in the CPU is in @thread. */
void disarm(struct thread *thread)
{
	struct receiver *receiver = thread->receiver;
	u64 low;

	if (!thread->armed)
		return;
	if (receiver) {
		low = suppress(receiver);
		delay();
	}
	/* UINV goes before UIRR is read (H10). */
	wrmsrq(MSR_UINTR_MISC, 0);
	delay();
	rdmsrq(MSR_UINTR_RR, thread->uirr);
	/* UIF is the CPU's, and no MSR has it (H1). */
	thread->uif = testui();
	msrs_clear();
	table_armed(NULL);
	thread->armed = false;
	if (!receiver)
		return;
	receiver->counters.out++;
	receiver->counters.undelivered += !!thread->uirr;
	receiver->counters.overtaken += low & UPID_ON;
	trace_uintr_out(receiver, receiver->steps++, -1, low, 0, thread->uirr, thread->uif);
}

/* The other way round. Interrupts are off, so that no notification is taken before UINV is there. */
void arm(struct thread *thread)
{
	struct receiver *receiver = thread->receiver;
	u64 misc = 0, low, requests;

	table_armed(thread->table);
	if (thread->table && !count_sends) {
		wrmsrq(MSR_UINTR_TT, (u64)thread->table->uitt | TT_ENABLE);
		misc = UINTR_CONNECTIONS - 1;	/* the last index, not the number (H11) */
	}
	if (receiver) {
		requests = collect(&receiver->upid, NOTIFY, smp_processor_id(), &low);
		delay();
		receiver->counters.in++;
		receiver->counters.found += !!requests;
		receiver->counters.noticed += low & UPID_ON;
		receiver->counters.collected += hweight64(requests);
		receiver->counters.coalesced += hweight64(requests & thread->uirr);
		thread->uirr |= requests;
		trace_uintr_in(receiver, receiver->steps++, smp_processor_id(), low, requests,
			       thread->uirr, thread->uif);
		wrmsrq(MSR_UINTR_HANDLER, receiver->handler);
		wrmsrq(MSR_UINTR_STACKADJUST, receiver->stack_adjust);
		wrmsrq(MSR_UINTR_PD, (u64)&receiver->upid);
		wrmsrq(MSR_UINTR_RR, thread->uirr);
		misc |= MISC_UINV(NOTIFY);
	}
	wrmsrq(MSR_UINTR_MISC, misc);
	/* A thread without a part runs STUI as it likes, and leaves the CPU's UIF as it was (H8). */
	if (thread->uif)
		stui();
	else
		clui();
	thread->armed = true;
}

/* Whether the calling thread has a request that was not delivered. */
bool pending(struct thread *thread)
{
	u64 requests;

	local_irq_disable();
	rdmsrq(MSR_UINTR_RR, requests);
	requests |= READ_ONCE(thread->receiver->upid.pir);
	local_irq_enable();
	return requests;
}

/* Runs @head in the thread, on its way to user mode, unless that is under way. */
bool thread_work(struct thread *thread, int work, struct callback_head *head,
		 enum task_work_notify_mode mode)
{
	if (test_and_set_bit(work, &thread->works))
		return false;
	if (!kref_get_unless_zero(&thread->refs))
		return false;
	if (!task_work_add(thread->task, head, mode))
		return true;
	/* It exits. */
	clear_bit(work, &thread->works);
	thread_put(thread);
	return false;
}

/* Only a sleep that a signal would end: whoever waits for something else may have good reason. */
static void wake_interruptible(struct task_struct *task)
{
	struct wait_queue_entry waiting = { .private = task };

	default_wake_function(&waiting, TASK_INTERRUPTIBLE, 0, NULL);
}

/* Ends the thread's sleep. */
static void wake(struct thread *thread)
{
#ifdef UINTR_FORGETS
	/* A fault that tests/storm must find. */
	static atomic_t wakes;

	if (atomic_inc_return(&wakes) % 100 == 0)
		return;
#endif
	if (READ_ONCE(thread->waiting))
		wake_interruptible(thread->task);
	else
		thread_work(thread, WORK_INTERRUPTED, &thread->interrupted, TWA_SIGNAL);
}

static void late(struct irq_work *work)
{
	struct thread *thread = container_of(work, struct thread, late);

	wake(thread);
	thread_put(thread);
}

/* For the list's lock held: what the trace events show of a sleeper. */
#define TRACE_SLEEPER(event, thread, low) \
	trace_uintr_##event((thread)->receiver, (thread)->receiver->steps++, \
			    (thread)->asleep_on->cpu, low, \
			    READ_ONCE((thread)->receiver->upid.pir), (thread)->uirr, (thread)->uif)

/* Called with the list locked. SN is set until the way back clears it; ON and PIR stay for that way to find. */
static u64 take_off(struct thread *thread)
{
	u64 low = suppress(thread->receiver);

	delay();
	list_del(&thread->sleeping);
	return low;
}

/* The last thing that is done with a sleeper: it may go on. */
static void let_go(struct thread *thread)
{
	/* Pairs with get_up(): SN is set before the thread can clear it. */
	smp_store_release(&thread->asleep_on, NULL);
}

/* Called with @list locked. Whether there is nothing yet: onto the list, address, look, in this order (H4, H5). */
static bool put_on(struct thread *thread, struct sleepers *list)
{
	struct uintr_upid *upid = &thread->receiver->upid;
	u64 before, low, pir;

	list_add(&thread->sleeping, &list->list);
	WRITE_ONCE(thread->asleep_on, list);
	delay();
	before = readdress(upid, WAKE, list->cpu);
	delay();
	pir = READ_ONCE(upid->pir);
	low = READ_ONCE(upid->low);
	if (!thread->uirr && !pir && !(low & UPID_ON)) {
		thread->receiver->counters.slept++;
		TRACE_SLEEPER(sleep, thread, low);
		return true;
	}
	thread->receiver->counters.late++;
	low = take_off(thread);
	thread->receiver->counters.caught += low & ~before & UPID_ON;
	TRACE_SLEEPER(late, thread, low);
	let_go(thread);
	return false;
}

/* Locks the list that sleepers go on: this CPU's, or another's if this one goes off-line. */
struct sleepers *open_list(void)
{
	struct sleepers *list = this_cpu_ptr(&sleepers);
	int cpu;

	raw_spin_lock(&list->lock);
	if (likely(list->open))
		return list;
	raw_spin_unlock(&list->lock);
	for (;;) {
		for_each_online_cpu(cpu) {
			list = per_cpu_ptr(&sleepers, cpu);
			raw_spin_lock(&list->lock);
			if (list->open)
				return list;
			raw_spin_unlock(&list->lock);
		}
	}
}

/* The run queue is locked, so nobody can be woken from here. */
static void go_to_sleep(struct thread *thread)
{
	struct sleepers *list = open_list();
	bool asleep = put_on(thread, list);

	raw_spin_unlock(&list->lock);
	if (asleep)
		return;
	kref_get(&thread->refs);
	if (!irq_work_queue(&thread->late))
		thread_put(thread);
}

static void get_up(struct thread *thread)
{
	struct sleepers *list;
	u64 low;

	while ((list = smp_load_acquire(&thread->asleep_on))) {
		raw_spin_lock(&list->lock);
		/* Else it was woken, or moved to another list. */
		if (thread->asleep_on == list) {
			low = take_off(thread);
			thread->receiver->counters.rose++;
			thread->receiver->counters.met += low & UPID_ON;
			TRACE_SLEEPER(rise, thread, low);
			let_go(thread);
		}
		raw_spin_unlock(&list->lock);
	}
}

static void switched_in(struct preempt_notifier *notifier, int cpu)
{
	struct thread *thread = container_of(notifier, struct thread, notifier);
	unsigned long flags;

	local_irq_save(flags);
	get_up(thread);
	if (thread->ticks.used)
		ticks_in(thread);
	arm(thread);
	local_irq_restore(flags);
}

/* Whether what is sent wakes the thread, which has its CPU yet and is about to lose it. */
static bool sleeps_reachable(struct thread *thread)
{
	if (!thread->receiver || !(READ_ONCE(current->__state) & TASK_INTERRUPTIBLE))
		return false;
	/* Who is frozen by its cgroup would go back to sleep at once, and a core is dumped to its end. */
	if ((READ_ONCE(current->jobctl) & JOBCTL_TRAP_FREEZE) || (current->flags & PF_SIGNALED))
		return false;
	/*
	 * Who waits for a page has no system call that could end, and would fault again at
	 * once: userfaultfd(2) may be late with the handler's own stack.
	 */
	if (syscall_get_nr(current, current_pt_regs()) == -1)
		return false;
	/* A receiver that has shut UIF is interrupted where it asks for it. */
	return thread->uif || thread->waiting;
}

/* Called with interrupts off. */
static void switched_out(struct preempt_notifier *notifier, struct task_struct *next)
{
	struct thread *thread = container_of(notifier, struct thread, notifier);

	disarm(thread);
	if (sleeps_reachable(thread))
		go_to_sleep(thread);
	else if (thread->ticks.next)
		ticks_out(thread);
}

static struct preempt_ops preempt_ops = {
	.sched_in = switched_in,
	.sched_out = switched_out,
};

/* Called with the list locked; wake() comes behind that. */
static void rouse(struct thread *thread)
{
	u64 low = take_off(thread);

	thread->receiver->counters.woken++;
	TRACE_SLEEPER(wake, thread, low);
	let_go(thread);
}

/* So many sleepers are woken at a time; the rest is found by looking again. */
#define BATCH	16

static void wake_sleepers(struct sleepers *list)
{
	struct thread *thread, *next, *woken[BATCH];
	unsigned long flags;
	int i, n;

	do {
		n = 0;
		raw_spin_lock_irqsave(&list->lock, flags);
		list_for_each_entry_safe(thread, next, &list->list, sleeping) {
			if (!(READ_ONCE(thread->receiver->upid.low) & UPID_ON))
				continue;
			kref_get(&thread->refs);
			woken[n++] = thread;
			rouse(thread);
			if (n == BATCH)
				break;
		}
		raw_spin_unlock_irqrestore(&list->lock, flags);
		for (i = 0; i < n; i++) {
			delay();
			wake(woken[i]);
			thread_put(woken[i]);
		}
	} while (n == BATCH);
}

/*
 * Of a thread that sleeps, or slept, whose UPID has ON: it is woken, wherever it is listed now,
 * and nobody else is looked at: many timers may run out in one interrupt.
 */
void wake_of(struct thread *thread)
{
	struct sleepers *list;
	unsigned long flags;
	bool listed = false;

	/* Who is on none is on its way to a CPU, where ON is looked at, or was told so by the last look. */
	while (!listed && (list = smp_load_acquire(&thread->asleep_on))) {
		raw_spin_lock_irqsave(&list->lock, flags);
		/* Else it was woken, or moved to another list. */
		listed = thread->asleep_on == list;
		if (listed)
			rouse(thread);
		raw_spin_unlock_irqrestore(&list->lock, flags);
	}
	delay();
	if (listed)
		wake(thread);
}

/* The handler of WAKE, in hard interrupts. A spurious one wakes nobody. */
void switch_hook(void *data, int vector)
{
	struct sleepers *list = this_cpu_ptr(&sleepers);
	u64 began;

	if (vector != WAKE)
		return;
	began = local_clock();
	wake_sleepers(list);
	polled_notice(list);
	polled_charge(list, began);
}

void sleepers_open(int cpu)
{
	struct sleepers *list = per_cpu_ptr(&sleepers, cpu);
	unsigned long flags;

	raw_spin_lock_irqsave(&list->lock, flags);
	if (!list->list.next) {
		INIT_LIST_HEAD(&list->list);
		polled_open(list);
	}
	list->cpu = cpu;
	list->open = true;
	raw_spin_unlock_irqrestore(&list->lock, flags);
}

/* No interrupt comes any more: what they gave to do is over. */
void sleepers_stop(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		/* Else it never came. */
		if (per_cpu_ptr(&sleepers, cpu)->list.next)
			polled_stop(per_cpu_ptr(&sleepers, cpu));
	}
}

/* @cpu goes off-line: its sleepers are told through this one from now on, those at once whom an interrupt there may have been for. */
void sleepers_move(int cpu)
{
	struct sleepers *from = per_cpu_ptr(&sleepers, cpu), *to = NULL;
	struct thread *thread;
	unsigned long flags;

	local_irq_save(flags);
	raw_spin_lock(&from->lock);
	from->open = false;
	raw_spin_unlock(&from->lock);
	to = open_list();
	raw_spin_lock_nested(&from->lock, SINGLE_DEPTH_NESTING);
	while ((thread = list_first_entry_or_null(&from->list, struct thread, sleeping))) {
		list_move(&thread->sleeping, &to->list);
		WRITE_ONCE(thread->asleep_on, to);
		readdress(&thread->receiver->upid, WAKE, to->cpu);
	}
	polled_move(from, to);
	raw_spin_unlock(&from->lock);
	raw_spin_unlock(&to->lock);
	local_irq_restore(flags);
	wake_sleepers(to);
	polled_notice(to);
}

/* The calling thread's part, or NULL; only the thread itself makes and ends it. */
struct thread *own_thread(void)
{
	struct preempt_notifier *notifier;

	/* It has one or two: KVM is the other one that uses them. */
	hlist_for_each_entry(notifier, &current->preempt_notifiers, link) {
		if (notifier->ops == &preempt_ops)
			return container_of(notifier, struct thread, notifier);
	}
	return NULL;
}

/* The calling thread's part; makes one if there is none. */
struct thread *thread_join(gfp_t gfp)
{
	struct thread *thread = own_thread();

	if (thread)
		return thread;
	thread = kmem_cache_zalloc(threads, gfp);
	if (!thread)
		return ERR_PTR(-ENOMEM);
	/* It may outlive the thread's descriptors; its notifier must not outlive us. */
	__module_get(THIS_MODULE);
	kref_init(&thread->refs);
	thread->task = get_task_struct(current);
	thread->late = IRQ_WORK_INIT_HARD(late);
	init_task_work(&thread->interrupted, interrupted);
	init_task_work(&thread->framed, framed);
	init_task_work(&thread->returned, returned);
	init_task_work(&thread->ended, receiver_ended);
	ticks_init(thread);
	preempt_notifier_init(&thread->notifier, &preempt_ops);

	preempt_disable();
	preempt_notifier_register(&thread->notifier);
	preempt_enable();
	return thread;
}

/* Ends the calling thread's part; may be called with preemption off. */
void thread_leave(struct thread *thread)
{
	unsigned long flags;

	ticks_stop(thread);
	local_irq_save(flags);
	/* SN stays set: senders that are left post into memory and tell nobody (H14). */
	disarm(thread);
	preempt_notifier_unregister(&thread->notifier);
	thread->left = true;
	local_irq_restore(flags);
	thread_put(thread);
}

static void thread_release(struct kref *refs)
{
	reap_thread(container_of(refs, struct thread, refs));
}

/* In any context. */
void thread_put(struct thread *thread)
{
	kref_put(&thread->refs, thread_release);
}

/* By the reaper. */
void thread_free(struct thread *thread)
{
	if (thread->receiver) {
		receiver_end(thread->receiver);
		receiver_put(thread->receiver);
	}
	if (thread->table)
		table_put(thread->table);
	put_task_struct(thread->task);
	kmem_cache_free(threads, thread);
	module_put(THIS_MODULE);
}

int threads_start(void)
{
	threads = kmem_cache_create("uintr_thread", sizeof(struct thread), __alignof__(struct thread), SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN, NULL);
	return threads ? 0 : -ENOMEM;
}

void threads_stop(void)
{
	kmem_cache_destroy(threads);
}
