// SPDX-License-Identifier: GPL-2.0-only
/*
 * User interrupts and signals (H12), system calls, and invalid instructions.
 *
 * A signal's handler runs with UIF shut, and rt_sigreturn(2) brings back what UIF
 * was: the signal's trace point shuts it; on the way to user mode, when the frame
 * is there, what it was goes into uc_flags of the frame; a probe of rt_sigreturn(2)
 * remembers where the frame is, and on the way to user mode UIF is set from it. So
 * nested signals, other stacks and a handler that copies its context find UIF where
 * they find the rest.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <asm/processor.h>
#include <asm/sigframe.h>
#include <asm/syscall.h>
#include <asm/trapnr.h>

#include "driver.h"

/* Whether a system call that a signal ends has no time-out, so that it can begin anew with its arguments. */
static bool waits_forever(struct pt_regs *regs)
{
	switch (syscall_get_nr(current, regs)) {
	case __NR_poll:
		return (int)regs->dx < 0;
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
		return (int)regs->r10 < 0;
	case __NR_epoll_pwait2:
		return !regs->r10;
	}
	return false;
}

/*
 * A system call that sleeps was ended by TIF_NOTIFY_SIGNAL, and the kernel is about
 * to start it anew, after the handler, whose interrupt is delivered first.
 */
void interrupted(struct callback_head *head)
{
	struct thread *thread = container_of(head, struct thread, interrupted);
	struct pt_regs *regs = current_pt_regs();

	clear_bit(WORK_INTERRUPTED, &thread->works);
	if (thread->left || !thread->receiver)
		goto put;
	thread->receiver->counters.calls++;
	/*
	 * io_uring_enter(2) runs this where it sleeps, and sleeps on unless there is what
	 * looks like a signal. The way to user mode finds that there is none.
	 */
	if (pending(thread))
		set_thread_flag(TIF_SIGPENDING);
	if (syscall_get_nr(current, regs) == -1)
		goto put;
	switch (syscall_get_error(current, regs)) {
	case -EINTR:
		/* Should a signal's handler run too, it is EINTR after all. */
		if ((thread->receiver->flags & UINTR_RESUMES) && waits_forever(regs))
			regs->ax = -ERESTARTNOHAND;
		break;
	case -ERESTARTSYS:
	case -ERESTARTNOHAND:
		if (!(thread->receiver->flags & UINTR_INTERRUPTS))
			break;
		fallthrough;
	case -ERESTART_RESTARTBLOCK:
		/* A thread has one block: a call that the handler makes may overwrite it. */
		regs->ax = -EINTR;
		if ((thread->receiver->flags & UINTR_RESUMES) && waits_forever(regs))
			regs->ax = -ERESTARTNOHAND;
	}
put:
	thread_put(thread);
}

/* A signal is about to be delivered, in its thread. */
void signal_hook(void *data, int signal, struct kernel_siginfo *info, struct k_sigaction *action)
{
	struct thread *thread = own_thread();
	unsigned long handler = (unsigned long)action->sa.sa_handler;

	if (!thread || !thread->receiver || (thread->receiver->flags & UINTR_IN_SIGNALS))
		return;
	if (handler == (unsigned long)SIG_IGN || handler == (unsigned long)SIG_DFL)
		return;
	thread->signal_uif = testui();
	clui();
	thread->signal = signal;
	thread->signal_handler = handler;
	thread_work(thread, WORK_FRAMED, &thread->framed, TWA_RESUME);
}

/* The frame is there, if it could be written. The kernel runs this before it takes the next signal. */
void framed(struct callback_head *head)
{
	struct thread *thread = container_of(head, struct thread, framed);
	struct pt_regs *regs = current_pt_regs();
	struct rt_sigframe __user *frame = (void __user *)regs->sp;
	unsigned long flags;

	clear_bit(WORK_FRAMED, &thread->works);
	if (thread->left || !thread->receiver)
		goto put;
	if (regs->ip != thread->signal_handler || regs->di != thread->signal ||
	    regs->dx != (unsigned long)&frame->uc) {
		/* There is no frame: SIGSEGV comes next, and finds UIF as this signal did. */
		if (thread->signal_uif)
			stui();
		goto put;
	}
	if (get_user(flags, &frame->uc.uc_flags))
		goto put;
	flags |= UC_UIF;
	if (thread->signal_uif)
		flags |= UC_UIF_OPEN;
	/* Else somebody unmapped the stack: the handler's first push faults. */
	if (put_user(flags, &frame->uc.uc_flags))
		pr_debug("no frame\n");
put:
	thread_put(thread);
}

/* rt_sigreturn(2) begins. */
static int sigreturn_hook(struct kprobe *probe, struct pt_regs *regs)
{
	struct thread *thread = own_thread();

	if (thread && thread->receiver) {
		thread->frame = current_pt_regs()->sp - sizeof(long);
		thread_work(thread, WORK_RETURNED, &thread->returned, TWA_RESUME);
	}
	return 0;
}

void returned(struct callback_head *head)
{
	struct thread *thread = container_of(head, struct thread, returned);
	struct rt_sigframe __user *frame = (void __user *)thread->frame;
	unsigned long flags;

	clear_bit(WORK_RETURNED, &thread->works);
	if (!thread->left && thread->receiver && !get_user(flags, &frame->uc.uc_flags) &&
	    (flags & UC_UIF)) {
		if (flags & UC_UIF_OPEN)
			stui();
		else
			clui();
	}
	thread_put(thread);
}

static struct kprobe sigreturn = {
	.symbol_name = "__x64_sys_rt_sigreturn",
	.pre_handler = sigreturn_hook,
};

static int trap_hook(struct notifier_block *block, unsigned long event, void *data)
{
	struct die_args *args = data;
	bool adopted;

	if (event != DIE_TRAP || args->trapnr != X86_TRAP_UD || !user_mode(args->regs))
		return NOTIFY_DONE;
	/* User mode has interrupts on; with them off nothing can be allocated on PREEMPT_RT. */
	local_irq_enable();
	adopted = table_adopt();
	local_irq_disable();
	if (!adopted && count_sends)
		adopted = send_counted(args->regs);
	return adopted ? NOTIFY_STOP : NOTIFY_DONE;
}

static struct notifier_block traps = {
	.notifier_call = trap_hook,
};

int signals_start(void)
{
	int error = register_kprobe(&sigreturn);

	if (error) {
		pr_err("no probe of %s: %d\n", sigreturn.symbol_name, error);
		return error;
	}
	error = register_die_notifier(&traps);
	if (error)
		unregister_kprobe(&sigreturn);
	return error;
}

void signals_stop(void)
{
	unregister_die_notifier(&traps);
	unregister_kprobe(&sigreturn);
}
