// SPDX-License-Identifier: GPL-2.0-only
/* Receivers: their descriptors, and UINTR_WAIT. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/file.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>

#include "driver.h"

/* The System V ABI lets a function use this much below its stack pointer. */
#define RED_ZONE	128

static struct kmem_cache *receivers;
static const struct file_operations receiver_fops;

/* What UISTACKADJUST takes for @args, or a negative error (H22). */
static s64 stack_adjust(const struct uintr_receive *args)
{
	u64 top;

	if (!args->stack_size)
		return args->stack ? -EINVAL : RED_ZONE;
	if (args->stack_size < UINTR_STACK_LEAST)
		return -EINVAL;
	if (check_add_overflow(args->stack, args->stack_size, &top) || top > TASK_SIZE_MAX)
		return -EFAULT;
	/* Delivery aligns the stack; bit 0 says that this is an address. */
	return (top & ~15ull) | 1;
}

static void receiver_release(struct kref *refs)
{
	reap_receiver(container_of(refs, struct receiver, refs));
}

/* In any context. */
void receiver_put(struct receiver *receiver)
{
	kref_put(&receiver->refs, receiver_release);
}

/* By the reaper, when no CPU uses the UPID any more. */
void receiver_free(struct receiver *receiver)
{
	counters_remove(receiver);
	/* One that was never given out. */
	if (receiver->account)
		account_give(receiver->account);
	mutex_destroy(&receiver->lock);
	kfree(receiver->polled);
	kmem_cache_free(receivers, receiver);
}

/* Whether what is sent to it reaches anybody. */
bool receiver_lives(struct receiver *receiver)
{
	return receiver->polled ? !READ_ONCE(receiver->polled->ended) : !!READ_ONCE(receiver->thread);
}

/* Nobody is interrupted any more; who sends is told by POLLHUP. */
void receiver_end(struct receiver *receiver)
{
	int i;

	mutex_lock(&receiver->lock);
	if (receiver->polled)
		polled_end(receiver->polled);
	receiver->thread = NULL;
	for (i = 0; i < UINTR_VECTORS; i++) {
		source_end(receiver, i);
		if (receiver->vectors[i])
			wake_up_poll(&receiver->vectors[i]->queue, EPOLLHUP);
	}
	/* It sleeps no more; its memory may be kept by others, and is not its user's to count. */
	account_give(receiver->account);
	receiver->account = NULL;
	mutex_unlock(&receiver->lock);
}

/* By the calling thread, which receives no more from here on. */
static void leave_receiver(struct thread *thread)
{
	struct receiver *receiver = thread->receiver;

	ticks_stop(thread);
	local_irq_disable();
	disarm(thread);
	thread->receiver = NULL;
	thread->uirr = 0;
	thread->uif = false;
	arm(thread);
	local_irq_enable();
	receiver_end(receiver);
	receiver_put(receiver);
}

/* In the receiver's thread, after the last close of its descriptor. */
void receiver_ended(struct callback_head *head)
{
	struct thread *thread = container_of(head, struct thread, ended);

	clear_bit(WORK_ENDED, &thread->works);
	/* Exit and exec see to it themselves. */
	if (!thread->left && thread->receiver)
		leave_receiver(thread);
	thread_put(thread);
}

/* Its thread ends it, whoever has its descriptor. */
static long receiver_leave(struct receiver *receiver)
{
	struct thread *thread = own_thread();

	if (!thread || thread->receiver != receiver)
		return receiver_lives(receiver) ? -EPERM : -ESHUTDOWN;
	leave_receiver(thread);
	return 0;
}

/* Whether the caller may have such a receiver, or a negative error. */
static s64 wrong(const struct uintr_receive *args)
{
	s64 adjust = stack_adjust(args);

	if (args->reserved || (args->flags & ~(UINTR_INTERRUPTS | UINTR_IN_SIGNALS | UINTR_RESUMES | UINTR_POLLED)))
		return -EINVAL;
	if ((args->flags & UINTR_INTERRUPTS) && (args->flags & UINTR_RESUMES))
		return -EINVAL;
	if (args->flags & UINTR_POLLED)
		return args->flags != UINTR_POLLED || args->handler || args->stack || args->stack_size ? -EINVAL : 0;
	if (adjust < 0)
		return adjust;
	return !args->handler || args->handler >= TASK_SIZE_MAX ? -EFAULT : 0;
}

static struct receiver *receiver_make(const struct uintr_receive *args)
{
	struct account *account = account_take();
	struct receiver *receiver;

	if (IS_ERR(account))
		return ERR_CAST(account);
	receiver = kmem_cache_zalloc(receivers, GFP_KERNEL_ACCOUNT);
	if (!receiver) {
		account_give(account);
		return ERR_PTR(-ENOMEM);
	}
	receiver->account = account;
	receiver->upid.low = UPID_SN;
	receiver->flags = args->flags;
	kref_init(&receiver->refs);
	mutex_init(&receiver->lock);
	if (args->flags & UINTR_POLLED) {
		receiver->polled = polled_make(receiver);
		if (!receiver->polled) {
			account_give(account);
			kmem_cache_free(receivers, receiver);
			return ERR_PTR(-ENOMEM);
		}
	} else {
		receiver->handler = args->handler;
		receiver->stack_adjust = stack_adjust(args);
	}
	counters_add(receiver);
	return receiver;
}

long receiver_new(const struct uintr_receive *args)
{
	struct thread *thread = NULL;
	struct receiver *receiver;
	struct file *file;
	long error = wrong(args);
	int fd;

	if (error)
		return error;
	if (!(args->flags & UINTR_POLLED)) {
		thread = thread_join(GFP_KERNEL_ACCOUNT);
		if (IS_ERR(thread))
			return PTR_ERR(thread);
		if (thread->receiver)
			return -EBUSY;
	}
	receiver = receiver_make(args);
	if (IS_ERR(receiver))
		return PTR_ERR(receiver);
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		receiver_put(receiver);
		return fd;
	}
	file = anon_inode_getfile("[uintr-receiver]", &receiver_fops, receiver, O_RDWR);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		receiver_put(receiver);
		return PTR_ERR(file);
	}
	if (thread) {
		/* The thread's reference beside the descriptor's. */
		kref_get(&receiver->refs);
		receiver->thread = thread;
		local_irq_disable();
		disarm(thread);
		thread->receiver = receiver;
		thread->uif = false;
		arm(thread);
		local_irq_enable();
	}
	fd_install(fd, file);
	return fd;
}

/* When it is what the caller's clock calls @deadline: in a time namespace that is another. */
static ktime_t host_time(ktime_t deadline)
{
	struct timespec64 offset = { };
	ktime_t time;

	timens_add_monotonic(&offset);
	if (check_sub_overflow(deadline, timespec64_to_ktime(offset), &time))
		return KTIME_MAX;
	/* Before the machine started it is over. */
	return max(time, (ktime_t)0);
}

#define READABLE	(EPOLLIN | EPOLLHUP | EPOLLERR)

/* Whether @queues's file can be read. The first time it goes into the file's queue, and looks behind that. */
static bool readable(struct file *file, struct poll_wqueues *queues)
{
	/* A full barrier, before the look: what comes behind that is seen in @triggered. */
	smp_store_mb(queues->triggered, 0);
	queues->pt._key = READABLE;
	if (vfs_poll(file, &queues->pt) & READABLE)
		return true;
	queues->pt._qproc = NULL;
	return false;
}

/* Until a request is pending (0), or @file, if there is one, can be read (1). */
static long sleep_until(struct thread *thread, s64 until, struct file *file, struct poll_wqueues *queues)
{
	ktime_t deadline = until < 0 ? 0 : host_time(until);
	bool timed_out = false;
	long result;

	for (;;) {
		/* It may sleep itself, and for what no request is to end. */
		result = 1;
		if (file && readable(file, queues))
			break;
		result = queues->error;
		if (file && result)
			break;
		WRITE_ONCE(thread->waiting, true);
		/*
		 * A full barrier; pairs with wake(), and with what wakes the file's queue. A
		 * request that comes after the look is found by go_to_sleep().
		 */
		set_current_state(TASK_INTERRUPTIBLE);
		result = 0;
		if (pending(thread))
			break;
		result = -ERESTARTNOHAND;
		if (signal_pending(current))
			break;
		result = -ETIMEDOUT;
		if (timed_out)
			break;
		if (!file || !READ_ONCE(queues->triggered)) {
			if (until < 0)
				schedule();
			else
				timed_out = !schedule_hrtimeout(&deadline, HRTIMER_MODE_ABS);
		}
		__set_current_state(TASK_RUNNING);
		WRITE_ONCE(thread->waiting, false);
	}
	__set_current_state(TASK_RUNNING);
	WRITE_ONCE(thread->waiting, false);
	return result;
}

static long receiver_wait(struct receiver *receiver, const struct uintr_wait *args)
{
	struct thread *thread = own_thread();
	struct poll_wqueues queues;
	struct file *file = NULL;
	long result;

	if ((args->flags & ~UINTR_WAIT_FILE) || (!args->flags && args->file))
		return -EINVAL;
	if (!thread || thread->receiver != receiver)
		return receiver_lives(receiver) ? -EPERM : -ESHUTDOWN;
	if (args->flags & UINTR_WAIT_FILE) {
		file = fget(args->file);
		if (!file)
			return -EBADF;
	}
	receiver->counters.waits++;
	poll_initwait(&queues);
	result = sleep_until(thread, args->deadline, file, &queues);
	poll_freewait(&queues);
	if (file)
		fput(file);
	receiver->counters.served += !result;
	receiver->counters.readable += result == 1;
	receiver->counters.timed_out += result == -ETIMEDOUT;
	receiver->counters.signalled += result == -ERESTARTNOHAND;
	return result;
}

static long receiver_stack(struct receiver *receiver, const struct uintr_receive *args)
{
	struct thread *thread = own_thread();
	s64 adjust = stack_adjust(args);

	if (adjust < 0)
		return adjust;
	if (!thread || thread->receiver != receiver)
		return receiver_lives(receiver) ? -EPERM : -ESHUTDOWN;
	local_irq_disable();
	receiver->stack_adjust = adjust;
	wrmsrq(MSR_UINTR_STACKADJUST, adjust);
	local_irq_enable();
	return 0;
}

static long receiver_revoke(struct receiver *receiver, unsigned long number)
{
	struct vector *vector;
	bool had;

	if (number >= UINTR_VECTORS)
		return -EINVAL;
	number = array_index_nospec(number, UINTR_VECTORS);
	mutex_lock(&receiver->lock);
	vector = receiver->vectors[number];
	had = vector || source_end(receiver, number);
	if (vector)
		vector_revoke(vector);
	mutex_unlock(&receiver->lock);
	return had ? 0 : -EINVAL;
}

static long receiver_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct receiver *receiver = file->private_data;
	struct uintr_receive stack;
	struct uintr_eventfd eventfd;
	struct uintr_timer timer;
	struct uintr_wait wait;

	switch (command) {
	case UINTR_VECTOR:
		return vector_new(receiver, argument);
	case UINTR_REVOKE:
		return receiver_revoke(receiver, argument);
	case UINTR_WAIT:
		if (copy_from_user(&wait, (void __user *)argument, sizeof(wait)))
			return -EFAULT;
		return receiver_wait(receiver, &wait);
	case UINTR_STACK:
		if (copy_from_user(&stack, (void __user *)argument, sizeof(stack)))
			return -EFAULT;
		return receiver_stack(receiver, &stack);
	case UINTR_TIMER:
		if (copy_from_user(&timer, (void __user *)argument, sizeof(timer)))
			return -EFAULT;
		return receiver_timer(receiver, &timer);
	case UINTR_EVENTFD:
		if (copy_from_user(&eventfd, (void __user *)argument, sizeof(eventfd)))
			return -EFAULT;
		return receiver_eventfd(receiver, &eventfd);
	case UINTR_END:
		return argument ? -EINVAL : receiver_leave(receiver);
	}
	return -ENOTTY;
}

static int receiver_close(struct inode *inode, struct file *file)
{
	struct receiver *receiver = file->private_data;

	if (receiver->polled) {
		receiver_end(receiver);
	} else {
		mutex_lock(&receiver->lock);
		if (receiver->thread)
			/* It may be asleep in a system call. */
			thread_work(receiver->thread, WORK_ENDED, &receiver->thread->ended, TWA_SIGNAL);
		mutex_unlock(&receiver->lock);
	}
	receiver_put(receiver);
	return 0;
}

static const struct file_operations receiver_fops = {
	.owner = THIS_MODULE,
	.release = receiver_close,
	.unlocked_ioctl = receiver_ioctl,
	.llseek = noop_llseek,
};

int receivers_start(void)
{
	receivers = kmem_cache_create("uintr_receiver", sizeof(struct receiver), __alignof__(struct receiver), SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN, NULL);
	return receivers ? 0 : -ENOMEM;
}

void receivers_stop(void)
{
	kmem_cache_destroy(receivers);
}
