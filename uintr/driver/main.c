// SPDX-License-Identifier: GPL-2.0-only
/*
 * User interrupts for ordinary threads on kernels that know nothing of them: the
 * device, and the hooks that everything else hangs on. See README.md for how it
 * works and why it is safe.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/binfmts.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "driver.h"

static long uintr_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct uintr_receive receive;

	switch (command) {
	case UINTR_RECEIVE:
		if (copy_from_user(&receive, (void __user *)argument, sizeof(receive)))
			return -EFAULT;
		return receiver_new(&receive);
	case UINTR_DISCONNECT:
		return table_disconnect(argument);
	}
	return -ENOTTY;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = uintr_ioctl,
	.llseek = noop_llseek,
};

/*
 * Not for everybody: who may send can take a quarter of a CPU in interrupts that the
 * scheduler charges to nobody. README.md says how a group is given it.
 */
static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KBUILD_MODNAME,
	.fops = &fops,
	.mode = 0660,
};

/*
 * The end of a thread, by whatever: called by the thread itself, which will not
 * return to user mode, or not to the program it was.
 */
static void ends(void)
{
	struct thread *thread = own_thread();

	if (thread)
		thread_leave(thread);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
static void on_exit(void *data, struct task_struct *task, bool group_dead)
#else
static void on_exit(void *data, struct task_struct *task)
#endif
{
	ends();
	if (!atomic_read(&task->signal->live))
		table_process_ends();
}

static void on_exec(void *data, struct task_struct *task, pid_t old, struct linux_binprm *program)
{
	ends();
	table_process_ends();
}

/* The trace points are not exported by name. */
static struct hook {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint;
} hooks[] = {
	{ "x86_platform_ipi_entry", switch_hook },
	{ "signal_deliver", signal_hook },
	{ "sched_process_exit", on_exit },
	{ "sched_process_exec", on_exec },
};

static void find_hook(struct tracepoint *tracepoint, void *data)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (!strcmp(tracepoint->name, hooks[i].name))
			hooks[i].tracepoint = tracepoint;
	}
}

static void unhook(int number)
{
	while (number--)
		tracepoint_probe_unregister(hooks[number].tracepoint, hooks[number].probe, NULL);
	/* A probe may be at its end, its reference to us given up already. */
	tracepoint_synchronize_unregister();
}

static void hooks_stop(void)
{
	unhook(ARRAY_SIZE(hooks));
	sleepers_stop();
	preempt_notifier_dec();
}

static int hooks_start(void)
{
	int i, error;

	for_each_kernel_tracepoint(find_hook, NULL);
	preempt_notifier_inc();
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		error = -ENOENT;
		if (hooks[i].tracepoint)
			error = tracepoint_probe_register(hooks[i].tracepoint, hooks[i].probe, NULL);
		if (error) {
			pr_err("no trace point %s: %d\n", hooks[i].name, error);
			unhook(i);
			preempt_notifier_dec();
			return error;
		}
	}
	return 0;
}

static int device_start(void)
{
	return misc_register(&device);
}

static void device_stop(void)
{
	misc_deregister(&device);
}

/* In this order, and back. */
static const struct part {
	int (*start)(void);
	void (*stop)(void);
} parts[] = {
	{ cpus_start, cpus_stop },
	{ threads_start, threads_stop },
	{ accounts_start, accounts_stop },
	{ receivers_start, receivers_stop },
	{ vectors_start, vectors_stop },
	{ tables_start, tables_stop },
	{ reaper_start, reaper_stop },
	{ hooks_start, hooks_stop },
	{ signals_start, signals_stop },
	{ counters_start, counters_stop },
	{ device_start, device_stop },
};

static void stop(int number)
{
	while (number--)
		parts[number].stop();
}

static int __init uintr_init(void)
{
	int i, error;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		error = parts[i].start();
		if (error) {
			stop(i);
			return error;
		}
	}
	return 0;
}

static void __exit uintr_exit(void)
{
	/* Threads that left may be at the end of work that we gave them. */
	synchronize_rcu_tasks();
	stop(ARRAY_SIZE(parts));
}

module_init(uintr_init);
module_exit(uintr_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Intel user interrupts for ordinary threads");
