// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread's timer: the kernel sends to its receiver, as SENDUIPI would, and the running thread is
 * interrupted in user mode without a signal.
 *
 * The hrtimer is queued while the thread has a CPU, on that CPU, and while it sleeps where it can be
 * reached. For who is preempted, or sleeps with UIF shut, it is not: what is due is posted at the return. So nobody
 * has a CPU interrupted but by the thread that has it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/version.h>

#include "driver.h"

/* SENDUIPI's locked update. Whether somebody is to be told, and the low half. */
static bool post(struct receiver *receiver, unsigned int vector, u64 *low)
{
	set_bit(vector, (unsigned long *)&receiver->upid.pir);
	*low = READ_ONCE(receiver->upid.low);
	do {
		if (*low & (UPID_ON | UPID_SN))
			return false;
	} while (!try_cmpxchg64(&receiver->upid.low, low, *low | UPID_ON));
	return true;
}

/* What the CPU does with a notification: ON first (H2), and UIRR is added to. */
static void take(struct receiver *receiver)
{
	u64 requests;

	clear_bit(0, (unsigned long *)&receiver->upid.low);
	smp_mb__after_atomic();
	requests = xchg(&receiver->upid.pir, 0);
	if (requests) {
		u64 before;

		rdmsrq(MSR_UINTR_RR, before);
		wrmsrq(MSR_UINTR_RR, before | requests);
	}
}

/* The next time is behind now; what fell between is one. */
static void forward(struct ticks *ticks)
{
	if (!ticks->period) {
		ticks->next = 0;
		return;
	}
	ticks->next = ktime_add_ns(ticks->next, ticks->period);
	if (ticks->next <= ktime_get())
		ticks->next = ktime_add_ns(ktime_get(), ticks->period);
}

/* In hard interrupts, on the CPU that the thread has or on which it went to sleep. */
static enum hrtimer_restart expires(struct hrtimer *timer)
{
	struct ticks *ticks = container_of(timer, struct ticks, timer);
	struct thread *thread = container_of(ticks, struct thread, ticks);
	struct receiver *receiver = thread->receiver;
	u64 low;

	if (!receiver || !ticks->next)
		return HRTIMER_NORESTART;
	receiver->counters.ticks++;
	if (current == thread->task && thread->armed) {
		if (post(receiver, ticks->vector, &low))
			take(receiver);
		forward(ticks);
		if (!ticks->next)
			return HRTIMER_NORESTART;
		hrtimer_set_expires(timer, ticks->next);
		return HRTIMER_RESTART;
	}
	/* It sleeps: its return goes on with the time. */
	forward(ticks);
	if (post(receiver, ticks->vector, &low))
		wake_of(thread);
	return HRTIMER_NORESTART;
}

/* On its way to a CPU, before it is armed: what was due is found there. */
void ticks_in(struct thread *thread)
{
	struct ticks *ticks = &thread->ticks;

	/* It may have been woken by the timer, which is at its end then, on another CPU. */
	hrtimer_cancel(&ticks->timer);
	if (ticks->next && ticks->next <= ktime_get()) {
		set_bit(ticks->vector, (unsigned long *)&thread->receiver->upid.pir);
		thread->receiver->counters.ticks++;
		forward(ticks);
	}
	if (ticks->next)
		hrtimer_start(&ticks->timer, ticks->next, HRTIMER_MODE_ABS_PINNED_HARD);
}

/* On its way off, and not to a sleep in which it can be reached. */
void ticks_out(struct thread *thread)
{
	hrtimer_try_to_cancel(&thread->ticks.timer);
}

/* By the thread, which receives no more, or has it set. */
void ticks_stop(struct thread *thread)
{
	unsigned long flags;

	/* No switch starts it from here on, */
	local_irq_save(flags);
	thread->ticks.next = 0;
	local_irq_restore(flags);
	/* and it starts itself no more. */
	hrtimer_cancel(&thread->ticks.timer);
}

void ticks_init(struct thread *thread)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&thread->ticks.timer, expires, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
#else
	hrtimer_init(&thread->ticks.timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	thread->ticks.timer.function = expires;
#endif
}

long receiver_timer(struct receiver *receiver, const struct uintr_timer *args)
{
	struct thread *thread = own_thread();
	struct ticks *ticks;

	if (args->reserved || args->vector >= UINTR_VECTORS || args->first > KTIME_MAX / 2 || args->period > KTIME_MAX / 2)
		return -EINVAL;
	if (args->first && (args->first < UINTR_TIMER_LEAST || (args->period && args->period < UINTR_TIMER_LEAST)))
		return -EINVAL;
	if (!thread || thread->receiver != receiver)
		return receiver_lives(receiver) ? -EPERM : -ESHUTDOWN;
	ticks_stop(thread);
	if (!args->first)
		return 0;
	ticks = &thread->ticks;
	local_irq_disable();
	ticks->used = true;
	ticks->vector = array_index_nospec(args->vector, UINTR_VECTORS);
	ticks->period = args->period;
	ticks->next = ktime_add_ns(ktime_get(), args->first);
	hrtimer_start(&ticks->timer, ticks->next, HRTIMER_MODE_ABS_PINNED_HARD);
	local_irq_enable();
	return 0;
}
