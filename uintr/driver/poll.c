// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receivers without a handler: what is sent to them is read and polled through their
 * vectors' descriptors, by any thread of any process. The protocol, its names and its
 * rules are those of uintr/model/src/model/polled.rs.
 *
 * No CPU takes their notifications, for they are no thread's: NV is always WAKE. At
 * rest SN is set, and senders only post. Who may have to sleep arms the receiver: onto
 * a list, SN clear. An interrupt that finds nobody queued for what it brings puts it
 * to rest again.
 *
 * The interrupt comes in the middle of anything, so it takes raw locks alone: it
 * counts, and notes which queues are to be woken. An irq_work wakes them, on
 * PREEMPT_RT in a thread, where the queues' locks may sleep.
 *
 * Interrupts of a vector of this class come before the timer's, and a sender needs one
 * instruction for each: so they have a share of a CPU's time. When it is used up, SN is
 * set for all that are armed there, until a timer clears it and looks.
 *
 * Locks, outermost first: sleepers.lock, polled.lock. Whoever has one wakes nobody.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/version.h>

#include "driver.h"
#include "trace.h"

#define READABLE	(EPOLLIN | EPOLLRDNORM)

/*
 * A quarter of a CPU, renewed each millisecond: at 2 us an interrupt and all that it
 * leads to, 125 notices in each, more than a loop that answers every one can take. Who
 * is throttled hears a millisecond late.
 */
#define WINDOW_NS	NSEC_PER_MSEC
#define SHARE_NS	(WINDOW_NS / 4)
/* The way into an interrupt and out of it, which no clock of ours sees. */
#define ENTRY_NS	500

static u64 bit_of(const struct vector *vector)
{
	return BIT_ULL(vector->number);
}

/* Nothing that is sent now is read. */
static bool over(struct vector *vector)
{
	return READ_ONCE(vector->revoked) || READ_ONCE(vector->receiver->polled->ended);
}

/* Clears the vector's request; whether there was one. */
static bool take_request(struct receiver *receiver, unsigned int number)
{
	return test_and_clear_bit(number, (unsigned long *)&receiver->upid.pir);
}

/* Called with both locks. From now on senders only post. */
static void rest(struct polled *polled)
{
	u64 low = suppress(polled->receiver);

	list_del(&polled->armed);
	polled->armed_on = NULL;
	polled->throttled = false;
	polled->counters.rested++;
	trace_uintr_polled_rest(polled, polled->steps++, -1, low, 0);
}

/* Called with both locks: wakes these vectors' queues, soon. */
static void note(struct polled *polled, struct sleepers *list, u64 requests)
{
	atomic64_or(requests, &polled->note);
	delay();
	/* Pairs with wake_noted(): either that finds this note, or it can be queued again. */
	if (test_and_set_bit(0, &polled->noted))
		return;
	/* Its descriptor holds it: polled_end() comes behind these locks. */
	kref_get(&polled->receiver->refs);
	llist_add(&polled->noted_as, &list->noted);
	irq_work_queue(&list->wake_noted);
}

/*
 * Called with both locks, behind clearing ON: takes what was posted and counts it.
 * Returns the vectors whose queues are to be woken.
 */
static u64 collect(struct polled *polled, u64 *requests)
{
	struct receiver *receiver = polled->receiver;
	u64 left, waking = 0;
	struct vector *vector;

	*requests = xchg(&receiver->upid.pir, 0);
	delay();
	for (left = *requests; left; left &= left - 1) {
		vector = receiver->vectors[__ffs64(left)];
		if (!vector) {
			polled->counters.dropped++;
			continue;
		}
		vector->count++;
		/* Who queues later wants it later, under this lock. */
		if (waitqueue_active(&vector->queue))
			waking |= bit_of(vector);
		else
			polled->wanted &= ~bit_of(vector);
	}
	polled->counters.noticed += hweight64(*requests);
	polled->counters.noted += hweight64(waking);
	return waking;
}

/* Called with both locks: what follows from what was collected. */
static void conclude(struct polled *polled, struct sleepers *list, u64 waking)
{
	delay();
	if (!polled->wanted)
		rest(polled);
	if (waking)
		note(polled, list, waking);
}

/* Called with @list locked. */
static void notice(struct polled *polled, struct sleepers *list)
{
	struct receiver *receiver = polled->receiver;
	u64 requests, waking;
	u64 low;

	raw_spin_lock(&polled->lock);
	low = READ_ONCE(receiver->upid.low);
	/* ON first: whoever posts behind what is taken next interrupts again. Locked, so a full barrier. */
	clear_bit(0, (unsigned long *)&receiver->upid.low);
	delay();
	waking = collect(polled, &requests);
	polled->counters.interrupts++;
	trace_uintr_polled_notice(polled, polled->steps++, list->cpu, low, requests);
	conclude(polled, list, waking);
	raw_spin_unlock(&polled->lock);
}

/* Called with @list locked: senders only post to those that are armed there. Whether the timer is to be started. */
static bool throttle(struct sleepers *list)
{
	bool starts = list_empty(&list->throttled) && !list_empty(&list->polled);
	struct polled *polled, *next;
	u64 low;

	list_for_each_entry_safe(polled, next, &list->polled, armed) {
		raw_spin_lock(&polled->lock);
		low = suppress(polled->receiver);
		list_move(&polled->armed, &list->throttled);
		polled->throttled = true;
		polled->counters.throttled++;
		trace_uintr_polled_throttle(polled, polled->steps++, list->cpu, low, 0);
		raw_spin_unlock(&polled->lock);
	}
	return starts;
}

static void start_timer(struct sleepers *list)
{
	hrtimer_start(&list->unthrottle, ns_to_ktime(WINDOW_NS), HRTIMER_MODE_REL_PINNED_HARD);
}

/* What began at @began, by local_clock(), was the list's interrupts' doing. With interrupts off. */
void polled_charge(struct sleepers *list, u64 began)
{
	u64 now = local_clock();
	unsigned long flags;
	bool starts = false;

	raw_spin_lock_irqsave(&list->lock, flags);
	if (now - list->window >= WINDOW_NS) {
		list->window = now;
		list->spent = 0;
	}
	list->spent += now - began + ENTRY_NS;
	if (list->spent > SHARE_NS)
		starts = throttle(list);
	raw_spin_unlock_irqrestore(&list->lock, flags);
	if (starts)
		start_timer(list);
}

/* In hard interrupts, on whatever CPU: those that are throttled may be interrupted for again. */
static enum hrtimer_restart unthrottle(struct hrtimer *timer)
{
	struct sleepers *list = container_of(timer, struct sleepers, unthrottle);
	struct polled *polled, *next;
	u64 low, requests, waking;
	unsigned long flags;

	raw_spin_lock_irqsave(&list->lock, flags);
	list->window = local_clock();
	list->spent = 0;
	list_for_each_entry_safe(polled, next, &list->throttled, armed) {
		raw_spin_lock(&polled->lock);
		list_move(&polled->armed, &list->polled);
		polled->throttled = false;
		/* A full barrier; pairs with SENDUIPI's locked update. What was posted meanwhile is looked at next. */
		low = xchg(&polled->receiver->upid.low, upid_address(WAKE, list->cpu));
		delay();
		waking = collect(polled, &requests);
		trace_uintr_polled_unthrottle(polled, polled->steps++, list->cpu, low, requests);
		conclude(polled, list, waking);
		raw_spin_unlock(&polled->lock);
	}
	raw_spin_unlock_irqrestore(&list->lock, flags);
	return HRTIMER_NORESTART;
}

/* The handler of WAKE, in hard interrupts. */
void polled_notice(struct sleepers *list)
{
	struct polled *polled, *next;
	unsigned long flags;

	raw_spin_lock_irqsave(&list->lock, flags);
	list_for_each_entry_safe(polled, next, &list->polled, armed) {
		if (READ_ONCE(polled->receiver->upid.low) & UPID_ON)
			notice(polled, list);
	}
	raw_spin_unlock_irqrestore(&list->lock, flags);
}

static void wake_queue(struct polled *polled, unsigned int number)
{
	struct vector *vector;
	unsigned long flags;

	raw_spin_lock_irqsave(&polled->lock, flags);
	vector = polled->receiver->vectors[number];
	if (vector && !kref_get_unless_zero(&vector->refs))
		vector = NULL;
	raw_spin_unlock_irqrestore(&polled->lock, flags);
	if (!vector)
		return;
	wake_up_poll(&vector->queue, READABLE);
	vector_put(vector);
}

#ifdef UINTR_FORGETS
/* A fault that tests/loops must find. */
static atomic_t wakes;
#endif

static void wake_noted(struct irq_work *work)
{
	struct sleepers *list = container_of(work, struct sleepers, wake_noted);
	struct polled *polled, *next;
	u64 began = local_clock(), waking;

	llist_for_each_entry_safe(polled, next, llist_del_all(&list->noted), noted_as) {
		delay();
		/* First it may be queued again, then the note is taken. */
		clear_bit(0, &polled->noted);
		smp_mb__after_atomic();
		delay();
		waking = atomic64_xchg(&polled->note, 0);
#ifdef UINTR_FORGETS
		if (atomic_inc_return(&wakes) % 100 == 0)
			waking = 0;
#endif
		for (; waking; waking &= waking - 1)
			wake_queue(polled, __ffs64(waking));
		receiver_put(polled->receiver);
	}
	/* On PREEMPT_RT it is a thread's time, of which the scheduler has the account. */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		polled_charge(list, began);
}

/*
 * Somebody is in the vector's queue and may sleep if there is nothing: arms the
 * receiver, unless it is. Returns with polled->lock, behind which is looked.
 */
static void want(struct vector *vector, unsigned long *flags)
{
	struct receiver *receiver = vector->receiver;
	struct polled *polled = receiver->polled;
	struct sleepers *list;
	u64 low;

	raw_spin_lock_irqsave(&polled->lock, *flags);
	if (over(vector))
		return;
	polled->wanted |= bit_of(vector);
	if (polled->armed_on)
		return;
	/* A list's lock comes first. */
	raw_spin_unlock(&polled->lock);
	delay();
	list = open_list();
	raw_spin_lock(&polled->lock);
	/* Else somebody was faster. */
	if (!polled->armed_on && !polled->ended) {
		list_add(&polled->armed, &list->polled);
		polled->armed_on = list;
		delay();
		/* A full barrier; pairs with SENDUIPI's locked update. What ON stood for is looked at next. */
		low = xchg(&receiver->upid.low, upid_address(WAKE, list->cpu));
		polled->counters.armed++;
		trace_uintr_polled_arm(polled, polled->steps++, list->cpu, low, READ_ONCE(receiver->upid.pir));
		delay();
	}
	raw_spin_unlock(&list->lock);
}

/* Called with polled->lock: what a read gives, and whether it is for the reader to wake the others. */
static u64 take(struct vector *vector, bool *tells)
{
	struct polled *polled = vector->receiver->polled;
	u64 number = vector->semaphore ? !!vector->count : vector->count;

	vector->count -= number;
	/* The interrupt will not find it; other vectors' requests are left to it. */
	if (!(vector->semaphore && number) && !over(vector) && take_request(vector->receiver, vector->number)) {
		number++;
		*tells = true;
		polled->counters.picked++;
		trace_uintr_polled_take(polled, polled->steps++, -1, READ_ONCE(vector->receiver->upid.low), bit_of(vector));
	}
	polled->counters.read += number;
	return number;
}

/* In the queue, or about to look once more from there. */
static u64 take_or_want(struct vector *vector, bool *tells)
{
	unsigned long flags;
	u64 number;

	want(vector, &flags);
	number = take(vector, tells);
	raw_spin_unlock_irqrestore(&vector->receiver->polled->lock, flags);
	return number;
}

/* As eventfd's: eight bytes, how often it was noticed since the last read, or 1 of a semaphore. */
ssize_t polled_read(struct vector *vector, struct iov_iter *to, bool waits)
{
	struct polled *polled = vector->receiver->polled;
	bool tells = false;
	unsigned long flags;
	int error = 0;
	u64 number;

	if (iov_iter_count(to) < sizeof(number))
		return -EINVAL;
	raw_spin_lock_irqsave(&polled->lock, flags);
	number = take(vector, &tells);
	raw_spin_unlock_irqrestore(&polled->lock, flags);
	if (!number && !over(vector)) {
		if (!waits)
			return -EAGAIN;
		error = wait_event_interruptible(vector->queue,
						 (number = take_or_want(vector, &tells)) || over(vector));
	}
	/* The end came between: what was counted before it is still given. */
	if (!number && !error) {
		raw_spin_lock_irqsave(&polled->lock, flags);
		number = take(vector, &tells);
		raw_spin_unlock_irqrestore(&polled->lock, flags);
	}
	if (tells)
		wake_up_poll(&vector->queue, READABLE);
	if (!number)
		return error;
	return copy_to_iter(&number, sizeof(number), to) == sizeof(number) ? sizeof(number) : -EFAULT;
}

/* Behind poll_wait(). The request is left for the interrupt, which tells everybody. */
__poll_t polled_poll(struct vector *vector, __poll_t events)
{
	struct receiver *receiver = vector->receiver;
	struct polled *polled = receiver->polled;
	unsigned long flags;
	bool readable;

	/* Who waits for the end alone, as senders do, does not arm it. */
	if (!(events & READABLE))
		return 0;
	want(vector, &flags);
	readable = vector->count || (!over(vector) && (READ_ONCE(receiver->upid.pir) & bit_of(vector)));
	polled->counters.looks++;
	raw_spin_unlock_irqrestore(&polled->lock, flags);
	return readable ? READABLE : 0;
}

/* With the receiver locked: the vector has its number, and what was posted under it to one before is nobody's. */
void polled_place(struct vector *vector)
{
	struct receiver *receiver = vector->receiver;
	struct polled *polled = receiver->polled;
	unsigned long flags;

	raw_spin_lock_irqsave(&polled->lock, flags);
	if (take_request(receiver, vector->number)) {
		polled->counters.picked++;
		polled->counters.dropped++;
	}
	receiver->vectors[vector->number] = vector;
	raw_spin_unlock_irqrestore(&polled->lock, flags);
}

/* With the receiver locked: the number is free. What was posted can still be read. */
void polled_displace(struct vector *vector)
{
	struct receiver *receiver = vector->receiver;
	struct polled *polled = receiver->polled;
	unsigned long flags;

	raw_spin_lock_irqsave(&polled->lock, flags);
	if (take_request(receiver, vector->number)) {
		polled->counters.picked++;
		vector->count++;
	}
	receiver->vectors[vector->number] = NULL;
	polled->wanted &= ~bit_of(vector);
	WRITE_ONCE(vector->revoked, true);
	raw_spin_unlock_irqrestore(&polled->lock, flags);
}

/* Nobody has the vector any more; in any context. */
void polled_forget(struct vector *vector)
{
	struct polled *polled = vector->receiver->polled;
	unsigned long flags;

	raw_spin_lock_irqsave(&polled->lock, flags);
	polled->counters.dropped += vector->count;
	raw_spin_unlock_irqrestore(&polled->lock, flags);
}

/* With the receiver locked: nobody is interrupted for it any more. What was posted can still be read. */
void polled_end(struct polled *polled)
{
	struct sleepers *list, *next;
	struct vector *vector;
	unsigned long flags;
	u64 requests;

	raw_spin_lock_irqsave(&polled->lock, flags);
	WRITE_ONCE(polled->ended, true);
	for (requests = xchg(&polled->receiver->upid.pir, 0); requests; requests &= requests - 1) {
		vector = polled->receiver->vectors[__ffs64(requests)];
		polled->counters.picked++;
		if (vector)
			vector->count++;
		else
			polled->counters.dropped++;
	}
	list = polled->armed_on;
	raw_spin_unlock_irqrestore(&polled->lock, flags);
	while (list) {
		raw_spin_lock_irqsave(&list->lock, flags);
		raw_spin_lock(&polled->lock);
		/* Else it was put to rest, or moved. */
		if (polled->armed_on == list)
			rest(polled);
		next = polled->armed_on;
		raw_spin_unlock(&polled->lock);
		raw_spin_unlock_irqrestore(&list->lock, flags);
		list = next;
	}
}

/* Called with both lists locked; who has ON is noticed behind it. */
void polled_move(struct sleepers *from, struct sleepers *to)
{
	struct polled *polled, *next;
	bool starts = list_empty(&to->throttled) && !list_empty(&from->throttled);

	list_for_each_entry_safe(polled, next, &from->polled, armed) {
		raw_spin_lock(&polled->lock);
		list_move(&polled->armed, &to->polled);
		polled->armed_on = to;
		readdress(&polled->receiver->upid, WAKE, to->cpu);
		raw_spin_unlock(&polled->lock);
	}
	/* Their SN stays; the other list's timer names its CPU. */
	list_for_each_entry_safe(polled, next, &from->throttled, armed) {
		raw_spin_lock(&polled->lock);
		list_move(&polled->armed, &to->throttled);
		polled->armed_on = to;
		raw_spin_unlock(&polled->lock);
	}
	if (starts)
		start_timer(to);
}

struct polled *polled_make(struct receiver *receiver)
{
	struct polled *polled = kzalloc(sizeof(*polled), GFP_KERNEL_ACCOUNT);

	if (!polled)
		return NULL;
	polled->receiver = receiver;
	raw_spin_lock_init(&polled->lock);
	return polled;
}

void polled_open(struct sleepers *list)
{
	INIT_LIST_HEAD(&list->polled);
	INIT_LIST_HEAD(&list->throttled);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&list->unthrottle, unthrottle, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(&list->unthrottle, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	list->unthrottle.function = unthrottle;
#endif
	init_llist_head(&list->noted);
	init_irq_work(&list->wake_noted, wake_noted);
}

/* No receiver is left, and no interrupt comes any more. */
void polled_stop(struct sleepers *list)
{
	hrtimer_cancel(&list->unthrottle);
	irq_work_sync(&list->wake_noted);
}
