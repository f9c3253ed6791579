// SPDX-License-Identifier: GPL-2.0-only
/*
 * User interrupts for threads that are bound to one CPU, on a stock kernel: a
 * measuring aid, so that SENDUIPI and eventfd can be timed in one run. It is no
 * driver: see "What it refuses" below.
 *
 * How it works. The kernel knows nothing of user interrupts, so a thread's state
 * is in the MSRs while the thread runs and in struct party while it does not;
 * preempt notifiers move it. Notifications use the two vectors that the kernel
 * reserves for KVM's posted interrupts. Vector NOTIFY finds a running receiver:
 * the CPU takes it for a notification. Where it finds another thread, the
 * kernel's own handler ends it and counts it (PIN in /proc/interrupts), and the
 * receiver's return looks at PIR. Vector WAKE addresses a blocked receiver: KVM
 * lets a module handle it, and ours wakes the receiver.
 *
 * Everything that changes a thread's state runs on its CPU with interrupts off.
 *
 * What it refuses, with a line in the kernel's log: a CPU without user
 * interrupts; page-table isolation, for UPID and UITT lie in kernel memory; a
 * CPU on which KVM could own both vectors; a kernel that uses XSAVE component
 * 14, or MSRs that are in use; threads that may run on several CPUs. A thread
 * that is moved in spite of that, or whose CPU goes off-line, is killed.
 *
 * What the program has to see to: signals. A signal's handler runs with the UIF
 * of what it interrupts, so a program blocks signals or uses CLUI (H12).
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpuhotplug.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/tracepoint.h>
#include <asm/apic.h>
#include <asm/cpufeature.h>
#include <asm/irq.h>
#include <asm/irq_vectors.h>
#include <asm/msr.h>
#include <asm/processor.h>
#include <asm/special_insns.h>
#include <asm/tlbflush.h>

#include "senduipi.h"

/* Intel SDM volume 3, chapter "User Interrupts"; none of it is in 6.1's headers. */
#define CPUID_7_EDX_UINTR	BIT(5)
#define CR4_UINTR		BIT(25)
#define XFEATURE_14_UINTR	BIT_ULL(14)

#define MSR_UINTR_RR		0x985
#define MSR_UINTR_HANDLER	0x986
#define MSR_UINTR_STACKADJUST	0x987
#define MSR_UINTR_MISC		0x988
#define MSR_UINTR_PD		0x989
#define MSR_UINTR_TT		0x98a

#define MISC_UINV(vector)	((u64)(vector) << 32)
#define TT_ENABLE		BIT_ULL(0)

#define UPID_ON			BIT_ULL(0)
#define UPID_SN_BIT		1
#define UPID_SN			BIT_ULL(UPID_SN_BIT)
#define UPID_NV(vector)		((u64)(vector) << 16)
#define UPID_NDST(id)		((u64)(id) << 32)

#define UITT_VALID		BIT_ULL(0)
#define UITT_UV(vector)		((u64)(vector) << 8)

/* The System V ABI lets a function use this much below its stack pointer. */
#define RED_ZONE		128

#define NOTIFY			POSTED_INTR_VECTOR
#define WAKE			POSTED_INTR_WAKEUP_VECTOR

/* More than the two that a measurement needs, and few enough for a page. */
#define UITT_ENTRIES		16

struct uintr_upid {
	u64 low;	/* ON, SN, NV, NDST */
	u64 pir;
} __aligned(64);

struct uitt_entry {
	u64 low;	/* valid, user vector */
	u64 upid;
} __aligned(16);

/* What senders hold on to; one page, so that the UPID is aligned. */
struct receiver {
	struct uintr_upid upid;
	struct kref refs;	/* the file, the receiving thread, each UITT entry (H13) */
	unsigned long handler;
};

/* A thread's part: from its first call until LEAVE, exec or exit; one page. */
struct party {
	struct uitt_entry uitt[UITT_ENTRIES];
	struct receiver *targets[UITT_ENTRIES];
	unsigned int entries;

	struct receiver *receiver;	/* NULL: it only sends */
	u64 uirr;			/* while it is not armed */
	bool uif;			/* likewise */
	bool armed;			/* its state is in the MSRs of its CPU */
	bool waiting;			/* WAKE finds it, not NOTIFY */

	struct task_struct *task;
	int cpu;
	struct preempt_notifier notifier;
	struct list_head others;
	struct list_head sleeping;
};

/* Receivers in WAIT, by CPU. The lock is taken in hard interrupts (H25). */
struct sleepers {
	raw_spinlock_t lock;
	struct list_head list;
};

static DEFINE_PER_CPU(struct sleepers, sleepers);

static LIST_HEAD(parties);
static DEFINE_SPINLOCK(parties_lock);

static unsigned int threads;
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "threads with a part in user interrupts");
static unsigned int receivers;
module_param(receivers, uint, 0444);
MODULE_PARM_DESC(receivers, "UPIDs that somebody still refers to");

static const u32 msrs[] = {
	MSR_UINTR_MISC, MSR_UINTR_PD, MSR_UINTR_TT,
	MSR_UINTR_RR, MSR_UINTR_HANDLER, MSR_UINTR_STACKADJUST,
};

static bool testui(void)
{
	bool uif;

	asm volatile("testui" : "=@ccc" (uif) : : "memory");
	return uif;
}

static void clui(void)
{
	asm volatile("clui" : : : "memory");
}

static void stui(void)
{
	asm volatile("stui" : : : "memory");
}

/* The low half of a UPID without ON and SN: who is told, and how (H27). */
static u64 address_of(u8 vector, int cpu)
{
	u32 id = cpu_physical_id(cpu);

	return UPID_NV(vector) | UPID_NDST(x2apic_mode ? id : id << 8);
}

/*
 * Send what comes from now on to @vector, and take what came before. ON is
 * cleared before PIR is read: whoever posts after the read sends an interrupt.
 * One that is still on its way finds nothing left, which does no harm (H2, H3).
 */
static u64 redirect(struct uintr_upid *upid, u8 vector, int cpu)
{
	/* Full barriers; they pair with SENDUIPI's locked update (H9). */
	xchg(&upid->low, address_of(vector, cpu));
	return xchg(&upid->pir, 0);
}

/* From here on senders only post: whatever of @party's state was in the CPU is in @party. */
static void disarm(struct party *party)
{
	int i;

	if (!party->armed)
		return;
	if (party->receiver)
		set_bit(UPID_SN_BIT, (unsigned long *)&party->receiver->upid.low);
	/* UINV goes with it, before UIRR is read (H10). */
	wrmsrl(MSR_UINTR_MISC, 0);
	rdmsrl(MSR_UINTR_RR, party->uirr);
	/* UIF is the CPU's, and no MSR has it (H1). */
	party->uif = testui();
	clui();
	/* The next thread inherits nothing (H8). */
	for (i = 0; i < ARRAY_SIZE(msrs); i++)
		wrmsrl(msrs[i], 0);
	party->armed = false;
}

static void arm(struct party *party)
{
	struct receiver *receiver = party->receiver;
	u64 misc = 0;

	/* Nothing here was proven for threads that move. */
	if (smp_processor_id() != party->cpu) {
		pr_err("%s[%d] was moved from CPU %d: killed\n",
		       current->comm, current->pid, party->cpu);
		send_sig(SIGKILL, current, 1);
		return;
	}
	if (party->entries) {
		wrmsrl(MSR_UINTR_TT, (u64)party->uitt | TT_ENABLE);
		misc = party->entries - 1;	/* the last index, not the number (H11) */
	}
	if (receiver) {
		party->uirr |= redirect(&receiver->upid, NOTIFY, party->cpu);
		wrmsrl(MSR_UINTR_HANDLER, receiver->handler);
		wrmsrl(MSR_UINTR_STACKADJUST, RED_ZONE);
		wrmsrl(MSR_UINTR_PD, (u64)&receiver->upid);
		wrmsrl(MSR_UINTR_RR, party->uirr);
		misc |= MISC_UINV(NOTIFY);
	}
	/* Interrupts are off: no notification was taken while UINV was 0. */
	wrmsrl(MSR_UINTR_MISC, misc);
	if (party->uif)
		stui();
	party->armed = true;
}

static void switched_in(struct preempt_notifier *notifier, int cpu)
{
	struct party *party = container_of(notifier, struct party, notifier);
	unsigned long flags;

	local_irq_save(flags);
	if (!party->waiting)
		arm(party);
	local_irq_restore(flags);
}

/* Called with interrupts off. */
static void switched_out(struct preempt_notifier *notifier, struct task_struct *next)
{
	disarm(container_of(notifier, struct party, notifier));
}

static struct preempt_ops preempt_ops = {
	.sched_in = switched_in,
	.sched_out = switched_out,
};

/* The handler of WAKE, in hard interrupts. A spurious one wakes nobody. */
static void wake(void)
{
	struct sleepers *here = this_cpu_ptr(&sleepers);
	struct party *party;

	raw_spin_lock(&here->lock);
	list_for_each_entry(party, &here->list, sleeping) {
		if (READ_ONCE(party->receiver->upid.low) & UPID_ON)
			wake_up_process(party->task);
	}
	raw_spin_unlock(&here->lock);
}

static void receiver_free(struct kref *refs)
{
	free_page((unsigned long)container_of(refs, struct receiver, refs));
	spin_lock(&parties_lock);
	receivers--;
	spin_unlock(&parties_lock);
}

static void receiver_put(struct receiver *receiver)
{
	if (receiver)
		kref_put(&receiver->refs, receiver_free);
}

static struct receiver *receiver_new(unsigned long handler)
{
	struct receiver *receiver = (void *)get_zeroed_page(GFP_KERNEL);

	BUILD_BUG_ON(sizeof(*receiver) > PAGE_SIZE);
	if (!receiver)
		return NULL;
	receiver->upid.low = UPID_SN;
	receiver->handler = handler;
	kref_init(&receiver->refs);
	spin_lock(&parties_lock);
	receivers++;
	spin_unlock(&parties_lock);
	return receiver;
}

/* The calling thread's part, or NULL. Only the thread itself makes and ends it. */
static struct party *own_party(void)
{
	struct party *party, *own = NULL;

	spin_lock(&parties_lock);
	list_for_each_entry(party, &parties, others) {
		if (party->task == current)
			own = party;
	}
	spin_unlock(&parties_lock);
	return own;
}

/* The calling thread's part; makes one if there is none. */
static struct party *join(void)
{
	struct party *party = own_party();

	if (party)
		return party;
	if (current->nr_cpus_allowed != 1) {
		pr_notice("%s[%d] may run on %d CPUs: refused, bind it to one first\n",
			  current->comm, current->pid, current->nr_cpus_allowed);
		return ERR_PTR(-EINVAL);
	}
	BUILD_BUG_ON(sizeof(*party) > PAGE_SIZE);
	party = (void *)get_zeroed_page(GFP_KERNEL);
	if (!party)
		return ERR_PTR(-ENOMEM);
	party->task = current;
	preempt_notifier_init(&party->notifier, &preempt_ops);
	/* The thread may outlive its files; its notifier must not outlive us. */
	__module_get(THIS_MODULE);

	local_irq_disable();
	party->cpu = smp_processor_id();
	preempt_notifier_register(&party->notifier);
	arm(party);
	local_irq_enable();

	spin_lock(&parties_lock);
	list_add(&party->others, &parties);
	threads++;
	spin_unlock(&parties_lock);
	return party;
}

/* Ends the calling thread's part; may be called with preemption off. */
static void leave(struct party *party)
{
	unsigned long flags;
	int i;

	spin_lock(&parties_lock);
	list_del(&party->others);
	threads--;
	spin_unlock(&parties_lock);

	local_irq_save(flags);
	/* SN stays set: senders that are left post into memory and tell nobody (H14). */
	disarm(party);
	preempt_notifier_unregister(&party->notifier);
	local_irq_restore(flags);

	for (i = 0; i < party->entries; i++)
		receiver_put(party->targets[i]);
	receiver_put(party->receiver);
	free_page((unsigned long)party);
	module_put(THIS_MODULE);
}

static long receive(struct file *file, unsigned long handler)
{
	struct receiver *receiver;
	struct party *party;

	if (!handler || handler >= TASK_SIZE_MAX)
		return -EFAULT;
	party = join();
	if (IS_ERR(party))
		return PTR_ERR(party);
	if (party->receiver)
		return -EBUSY;
	receiver = receiver_new(handler);
	if (!receiver)
		return -ENOMEM;
	/* Pairs with the load in connect(): a receiver that is seen is complete. */
	if (cmpxchg(&file->private_data, NULL, receiver)) {
		receiver_put(receiver);
		return -EBUSY;
	}
	kref_get(&receiver->refs);

	local_irq_disable();
	disarm(party);
	party->receiver = receiver;
	arm(party);
	local_irq_enable();
	return 0;
}

static long connect(struct file *file, unsigned long vector)
{
	struct receiver *receiver = smp_load_acquire(&file->private_data);
	struct party *party;
	long index;

	if (!receiver)
		return -ENOTCONN;
	if (vector > 63)
		return -EINVAL;
	party = join();
	if (IS_ERR(party))
		return PTR_ERR(party);
	index = party->entries;
	if (index == UITT_ENTRIES)
		return -ENOSPC;
	kref_get(&receiver->refs);

	local_irq_disable();
	disarm(party);
	party->targets[index] = receiver;
	party->uitt[index].upid = (u64)&receiver->upid;
	party->uitt[index].low = UITT_VALID | UITT_UV(vector);
	party->entries++;
	arm(party);
	local_irq_enable();
	return index;
}

/*
 * Arm, look, sleep only if nothing is there (H4, H5): a post before redirect()
 * is in its result or PIR, one after it sends WAKE, whose handler finds us on the
 * list with our state set to sleep.
 */
static long wait(void)
{
	struct party *party = own_party();
	struct sleepers *here;
	struct uintr_upid *upid;
	long slept = 0;

	if (!party || !party->receiver)
		return -ENOTCONN;
	upid = &party->receiver->upid;

	local_irq_disable();
	disarm(party);
	party->waiting = true;
	here = this_cpu_ptr(&sleepers);
	raw_spin_lock(&here->lock);
	list_add(&party->sleeping, &here->list);
	raw_spin_unlock(&here->lock);
	party->uirr |= redirect(upid, WAKE, party->cpu);
	local_irq_enable();

	for (;;) {
		/* A full barrier; pairs with wake_up_process() in wake(). */
		set_current_state(TASK_INTERRUPTIBLE);
		if (party->uirr || READ_ONCE(upid->pir) || signal_pending(current))
			break;
		schedule();
		slept++;
	}
	__set_current_state(TASK_RUNNING);

	local_irq_disable();
	set_bit(UPID_SN_BIT, (unsigned long *)&upid->low);
	raw_spin_lock(&here->lock);
	list_del(&party->sleeping);
	raw_spin_unlock(&here->lock);
	party->waiting = false;
	arm(party);
	local_irq_enable();
	return party->uirr ? slept : -EINTR;
}

static long senduipi_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct party *party;

	switch (command) {
	case SENDUIPI_RECEIVE:
		return receive(file, argument);
	case SENDUIPI_CONNECT:
		return connect(file, argument);
	case SENDUIPI_WAIT:
		return wait();
	case SENDUIPI_LEAVE:
		party = own_party();
		if (!party)
			return -ENOTCONN;
		leave(party);
		return 0;
	}
	return -ENOTTY;
}

static int senduipi_open(struct inode *inode, struct file *file)
{
	/* The misc device leaves itself there. */
	file->private_data = NULL;
	return 0;
}

static int senduipi_release(struct inode *inode, struct file *file)
{
	receiver_put(file->private_data);
	return 0;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = senduipi_open,
	.release = senduipi_release,
	.unlocked_ioctl = senduipi_ioctl,
};

/* For root alone: a receiver that sleeps can be woken as often as a sender likes. */
static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KBUILD_MODNAME,
	.fops = &fops,
	.mode = 0600,
};

/*
 * The end of a thread, by whatever: called by the thread itself, which will not
 * return to user mode, or not to the program it was.
 */
static void ended(void)
{
	struct party *party = own_party();

	if (party)
		leave(party);
}

static void on_exit(void *data, struct task_struct *task)
{
	ended();
}

static void on_exec(void *data, struct task_struct *task, pid_t old, struct linux_binprm *binprm)
{
	ended();
}

/* The tracepoints are not exported by name. */
static struct hook {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint;
} hooks[] = {
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

static int hook(void)
{
	int i, error;

	for_each_kernel_tracepoint(find_hook, NULL);
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		error = -ENOENT;
		if (hooks[i].tracepoint)
			error = tracepoint_probe_register(hooks[i].tracepoint, hooks[i].probe, NULL);
		if (error) {
			pr_err("no tracepoint %s: %d\n", hooks[i].name, error);
			unhook(i);
			return error;
		}
	}
	return 0;
}

/* The MSR of this CPU that is not zero, or 0. */
static u32 msr_in_use(void)
{
	u64 value;
	int i;

	for (i = 0; i < ARRAY_SIZE(msrs); i++) {
		rdmsrl(msrs[i], value);
		if (value)
			return msrs[i];
	}
	return 0;
}

static int cpu_comes(unsigned int cpu)
{
	unsigned long flags;
	u32 msr = msr_in_use();

	if (msr || (native_read_cr4() & CR4_UINTR)) {
		pr_err("CPU %u: somebody uses user interrupts already (CR4 %lx, MSR %x)\n",
		       cpu, native_read_cr4(), msr);
		return -EBUSY;
	}
	local_irq_save(flags);
	/* The kernel's other writes start from the copy that this keeps (H17). */
	cr4_update_irqsoff(CR4_UINTR, 0);
	clui();
	local_irq_restore(flags);
	return 0;
}

/*
 * Threads bound to a CPU that goes off-line are moved. Those that run find out in
 * arm(); those that sleep would sleep for ever, for WAKE is sent to this CPU.
 */
static int cpu_goes(unsigned int cpu)
{
	struct party *party;
	unsigned long flags;

	spin_lock(&parties_lock);
	list_for_each_entry(party, &parties, others) {
		if (party->cpu == cpu)
			send_sig(SIGKILL, party->task, 1);
	}
	spin_unlock(&parties_lock);
	local_irq_save(flags);
	/* Whoever had a part has taken its state along. */
	WARN_ON(msr_in_use() || testui());
	cr4_update_irqsoff(0, CR4_UINTR);
	local_irq_restore(flags);
	return 0;
}

static u32 cpuid_7_edx(void)
{
	u32 eax, ebx, ecx, edx;

	cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	return edx;
}

static int refuse(void)
{
	u64 xss = 0;

	if (boot_cpu_data.cpuid_level < 7 || !(cpuid_7_edx() & CPUID_7_EDX_UINTR)) {
		pr_err("this CPU has no user interrupts (CPUID 7.0, EDX bit 5)\n");
		return -ENODEV;
	}
	if (boot_cpu_has(X86_FEATURE_PTI)) {
		pr_err("page-table isolation hides UPIDs from user mode; boot with nopti\n");
		return -EOPNOTSUPP;
	}
	if (boot_cpu_has(X86_FEATURE_VMX)) {
		pr_err("KVM may own vectors %x and %x; switch VMX off\n", NOTIFY, WAKE);
		return -EBUSY;
	}
	if (boot_cpu_has(X86_FEATURE_XSAVES))
		rdmsrl(MSR_IA32_XSS, xss);
	if (xss & XFEATURE_14_UINTR) {
		pr_err("this kernel keeps the state of user interrupts itself\n");
		return -EBUSY;
	}
	return 0;
}

static enum cpuhp_state cpus;

static int __init senduipi_init(void)
{
	int cpu, error = refuse();

	if (error)
		return error;
	for_each_possible_cpu(cpu) {
		raw_spin_lock_init(&per_cpu(sleepers, cpu).lock);
		INIT_LIST_HEAD(&per_cpu(sleepers, cpu).list);
	}
	error = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "senduipi:online", cpu_comes, cpu_goes);
	if (error < 0)
		return error;
	cpus = error;
	preempt_notifier_inc();
	kvm_set_posted_intr_wakeup_handler(wake);
	error = hook();
	if (error)
		goto unwind;
	error = misc_register(&device);
	if (!error)
		return 0;
	unhook(ARRAY_SIZE(hooks));
unwind:
	kvm_set_posted_intr_wakeup_handler(NULL);
	synchronize_rcu();
	preempt_notifier_dec();
	cpuhp_remove_state(cpus);
	return error;
}

static void __exit senduipi_exit(void)
{
	misc_deregister(&device);
	unhook(ARRAY_SIZE(hooks));
	kvm_set_posted_intr_wakeup_handler(NULL);
	/* The handler may be at work on another CPU. */
	synchronize_rcu();
	preempt_notifier_dec();
	cpuhp_remove_state(cpus);
}

module_init(senduipi_init);
module_exit(senduipi_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("User interrupts for bound threads, to measure wake-ups with");
