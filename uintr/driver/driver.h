/* SPDX-License-Identifier: GPL-2.0-only */
/* What the driver's parts share. */
#ifndef UINTR_DRIVER_H
#define UINTR_DRIVER_H

#include <linux/bitmap.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/types.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <asm/irq_vectors.h>
#include <asm/msr.h>

#include <linux/uintr.h>

/* Since 6.16 the old name is gone. */
#ifndef rdmsrq
#define rdmsrq(msr, value)	rdmsrl(msr, value)
#define wrmsrq(msr, value)	wrmsrl(msr, value)
#endif

/* Intel SDM volume 3, chapter "User Interrupts"; none of it is in the kernel's headers. */
#define MSR_UINTR_RR		0x985
#define MSR_UINTR_HANDLER	0x986
#define MSR_UINTR_STACKADJUST	0x987
#define MSR_UINTR_MISC		0x988
#define MSR_UINTR_PD		0x989
#define MSR_UINTR_TT		0x98a

#define MISC_UINV(vector)	((u64)(vector) << 32)
#define TT_ENABLE		BIT_ULL(0)

#define UPID_ON			BIT_ULL(0)
#define UPID_SN			BIT_ULL(1)
#define UPID_NV(vector)		((u64)(vector) << 16)
#define UPID_NDST(id)		((u64)(id) << 32)

#define UITT_VALID		BIT_ULL(0)
#define UITT_UV(vector)		((u64)(vector) << 8)

/*
 * The vector that finds a running receiver: where it finds another thread, the
 * kernel's handler ends it and counts it, NPI in /proc/interrupts. KVM's nested
 * guests use it in the same way: whoever gets one too many only looks once more.
 */
#define NOTIFY			POSTED_INTR_NESTED_VECTOR
/*
 * The vector that reaches a sleeping receiver through the kernel: its handler ends
 * it and passes a trace point, which is ours. Only SGI UV machines have another use
 * for it.
 */
#define WAKE			X86_PLATFORM_IPI_VECTOR

struct uintr_upid {
	u64 low;	/* ON, SN, NV, NDST */
	u64 pir;
} __aligned(64);

struct uitt_entry {
	u64 low;	/* valid, user vector */
	u64 upid;
} __aligned(16);

/*
 * What happened to a receiver, for debugfs. Posts and deliveries are the CPUs'
 * doing, and no kernel sees them: struct sends, of the parameter count_sends, has
 * the posts.
 */
struct counters {
	u64 out, in;		/* in = out, + 1 while it has a CPU */
	u64 undelivered;	/* of out: with a request that the CPU had taken */
	u64 overtaken;		/* of out: a notification was under way to it */
	u64 found;		/* of in: with requests in PIR */
	u64 noticed;		/* of in: with ON = overtaken + woken + met + caught */
	u64 collected;		/* those requests */
	u64 coalesced;		/* of collected: the CPU had taken the same vector */
	u64 slept;		/* = woken + rose, + 1 while it sleeps */
	u64 woken;		/* by WAKE */
	u64 rose;		/* by something else, perhaps a time-out */
	u64 met;		/* of rose: a notification was under way */
	u64 late;		/* did not sleep: the last look found a request */
	u64 caught;		/* of late: notified since it was put on the list */
	u64 calls;		/* other system calls that a request ended */
	u64 ticks;		/* times that its timer sent */
	u64 waits;		/* = served + readable + timed_out + signalled + those without memory, + 1 in a wait */
	u64 served, readable, timed_out, signalled;
};

/* The same of one without a handler; under polled->lock. */
struct polled_counters {
	u64 armed, rested;	/* armed = rested, + 1 while it is */
	u64 interrupts;		/* with ON */
	u64 noticed;		/* requests that they brought */
	u64 picked;		/* requests that were taken from PIR by reads, and when vectors came and went */
	u64 noted;		/* of noticed: for vectors that somebody waited on */
	u64 read;		/* noticed + picked = read + dropped + what the vectors' counts hold, the revoked ones' too */
	u64 dropped;		/* of vectors that are gone */
	u64 looks;		/* poll(2) and its like */
	u64 throttled;		/* times that SN was set although somebody waited */
};

/* What was sent to a receiver: all of it if the parameter count_sends is set, else what eventfds sent. */
struct sends {
	atomic64_t posted;	/* = notified + woke + covered + suppressed */
	atomic64_t merged;	/* of posted: PIR had the vector already */
	atomic64_t notified;	/* with NOTIFY */
	atomic64_t woke;	/* with WAKE = woken + met + caught */
	atomic64_t covered;	/* by ON: a notification was under way */
	atomic64_t suppressed;	/* by SN */
};

/*
 * A thread's UPID and what goes with it. Held by its descriptor, its thread, its
 * vectors: and by them by each entry that names it (H13).
 */
struct receiver {
	struct uintr_upid upid;
	struct polled *polled;		/* NULL: it has a handler and a thread */

	struct kref refs;
	struct account *account;
	unsigned int number;
	struct list_head others;	/* for debugfs */
	struct counters counters;	/* the thread's own, or under its list's lock */
	u64 steps;			/* likewise */
	struct sends sends;
	u64 handler;
	u64 stack_adjust;
	u32 flags;

	struct mutex lock;		/* of what follows */
	struct thread *thread;		/* NULL: it has ended, or is polled */
	struct vector *vectors[UINTR_VECTORS];	/* of one that is polled, also under polled->lock */
	struct source *sources[UINTR_VECTORS];	/* NULL where vectors is not; of eventfd.c */

	struct llist_node dead;
};

/* What a receiver without a handler has instead of a thread. */
struct polled {
	struct receiver *receiver;
	raw_spinlock_t lock;		/* taken in hard interrupts */
	struct sleepers *armed_on;	/* changes under that list's lock too. NULL: at rest */
	struct list_head armed;
	bool throttled;			/* armed, but SN is set until its list's timer runs */
	u64 wanted;			/* vectors that somebody may be waiting for */
	bool ended;
	u64 steps;
	struct polled_counters counters;

	atomic64_t note;		/* vectors whose queues are to be woken */
	unsigned long noted;		/* bit 0: on a list of those that have a note */
	struct llist_node noted_as;
};

/*
 * What a descriptor of a vector names; held by the descriptor and by each
 * connection.
 */
struct vector {
	struct kref refs;
	struct receiver *receiver;	/* held */
	unsigned int number;
	bool revoked;			/* under receiver->lock, with connections */
	struct list_head connections;
	wait_queue_head_t queue;	/* of those that wait for its end, or for what is sent */

	/* Of a receiver that is polled. */
	bool semaphore;
	u64 count;			/* noticed and not read; under polled->lock */
};

/* A connection: an entry of a process's table that names a vector. */
struct connection {
	struct vector *vector;		/* held; NULL: the entry is free */
	u64 *entry;			/* the half of it that makes it valid */
	struct table *table;		/* whose it is; only compared */
	struct list_head others;	/* of the vector; under its receiver's lock */
};

/*
 * A process's UITT and what it names; held by each thread that has it in its MSRs
 * or may, and by the process.
 */
struct table {
	struct kref refs;
	struct rhash_head node;
	struct signal_struct *process;	/* who; only compared */
	struct uitt_entry *uitt;	/* a page */
	unsigned long grace;		/* when it was given up, for RCU */
	struct mutex lock;		/* of the connections' places */
	struct connection connections[UINTR_CONNECTIONS];
	struct llist_node dead;
};

/* A thread's timer; the thread's own with interrupts off, and the hrtimer's function. */
struct ticks {
	struct hrtimer timer;
	bool used;
	ktime_t next;		/* 0: none */
	u64 period;		/* ns; 0: once */
	unsigned int vector;
};

/*
 * A thread's part: from its first call until exec or exit. Everything
 * of it is the thread's own, with interrupts off, unless it says otherwise.
 */
struct thread {
	struct kref refs;
	struct task_struct *task;	/* held */
	struct preempt_notifier notifier;
	struct receiver *receiver;	/* held; NULL: it only sends */
	struct table *table;		/* held; NULL: it only receives */

	bool armed;			/* its state is in the MSRs of its CPU */
	u64 uirr;			/* while it is not armed */
	bool uif;			/* likewise */
	bool waiting;			/* in UINTR_WAIT */

	/* Whose list it is on; changes under that list's lock. NULL: none. */
	struct sleepers *asleep_on;
	struct list_head sleeping;

	struct ticks ticks;

	struct irq_work late;		/* it went to sleep on a request */
	unsigned long works;		/* which of the following are under way */
	struct callback_head interrupted;
	struct callback_head framed;
	struct callback_head returned;
	struct callback_head ended;

	/* H12: what the signal that is being delivered found, and where its frame will be. */
	bool signal_uif;
	int signal;
	unsigned long signal_handler;
	unsigned long frame;

	int unread;		/* invalid instructions in a row that could not be read */

	bool left;
	unsigned long grace;	/* when it was given up, for RCU */
	struct llist_node dead;
};

enum { WORK_INTERRUPTED, WORK_FRAMED, WORK_RETURNED, WORK_ENDED };

/* Receivers that sleep and are reached through this CPU. */
struct sleepers {
	raw_spinlock_t lock;	/* taken in hard interrupts, and with a run queue locked */
	int cpu;
	bool open;		/* the CPU is on-line */
	struct list_head list;
	struct list_head polled;	/* those that are armed */
	struct list_head throttled;	/* those of them for which nobody may interrupt now */
	struct hrtimer unthrottle;	/* runs if and only if there are such */
	u64 window;			/* when the share of interrupts was last renewed */
	u64 spent;			/* ns that they took since */
	struct llist_head noted;
	struct irq_work wake_noted;
};

/* Between two steps that others can see: with UINTR_DELAYS, a test's, up to 20 us now and then. */
#ifdef UINTR_DELAYS
void delay(void);
#else
static inline void delay(void)
{
}
#endif

/* cpu.c */
int cpus_start(void);
void cpus_stop(void);
u64 upid_address(u8 vector, int cpu);
void msrs_clear(void);

static inline bool testui(void)
{
	bool uif;

	asm volatile("testui" : "=@ccc" (uif) : : "memory");
	return uif;
}

static inline void clui(void)
{
	asm volatile("clui" : : : "memory");
}

static inline void stui(void)
{
	asm volatile("stui" : : : "memory");
}

/* sends.c */
extern struct receiver nobody;
extern bool count_sends;
void send(struct receiver *receiver, u8 vector);
bool send_counted(struct pt_regs *regs);

/* counters.c */
void counters_add(struct receiver *receiver);
void counters_remove(struct receiver *receiver);
int counters_start(void);
void counters_stop(void);

/* accounts.c */
struct account *account_take(void);
void account_give(struct account *account);
int accounts_start(void);
void accounts_stop(void);

/* switch.c */
void sleepers_open(int cpu);
void sleepers_stop(void);
void sleepers_move(int cpu);
struct sleepers *open_list(void);
u64 readdress(struct uintr_upid *upid, u8 vector, int cpu);
u64 suppress(struct receiver *receiver);
struct thread *own_thread(void);
struct thread *thread_join(gfp_t gfp);
void thread_leave(struct thread *thread);
void thread_put(struct thread *thread);
void thread_free(struct thread *thread);
void arm(struct thread *thread);
void disarm(struct thread *thread);
void wake_of(struct thread *thread);
bool pending(struct thread *thread);
bool thread_work(struct thread *thread, int work, struct callback_head *head,
		 enum task_work_notify_mode mode);
void switch_hook(void *data, int vector);
int threads_start(void);
void threads_stop(void);

/* timer.c */
void ticks_init(struct thread *thread);
void ticks_in(struct thread *thread);
void ticks_out(struct thread *thread);
void ticks_stop(struct thread *thread);
long receiver_timer(struct receiver *receiver, const struct uintr_timer *args);

/* receiver.c */
long receiver_new(const struct uintr_receive *args);
void receiver_put(struct receiver *receiver);
void receiver_end(struct receiver *receiver);
void receiver_free(struct receiver *receiver);
void receiver_ended(struct callback_head *head);
bool receiver_lives(struct receiver *receiver);
int receivers_start(void);
void receivers_stop(void);

/* eventfd.c */
long receiver_eventfd(struct receiver *receiver, const struct uintr_eventfd *args);
bool source_end(struct receiver *receiver, unsigned int number);

/* vector.c */
long vector_new(struct receiver *receiver, unsigned long number);
void vector_put(struct vector *vector);
void vector_revoke(struct vector *vector);
int vectors_start(void);
void vectors_stop(void);

/* poll.c */
ssize_t polled_read(struct vector *vector, struct iov_iter *to, bool waits);
__poll_t polled_poll(struct vector *vector, __poll_t events);
void polled_notice(struct sleepers *list);
void polled_place(struct vector *vector);
void polled_displace(struct vector *vector);
void polled_forget(struct vector *vector);
void polled_end(struct polled *polled);
void polled_move(struct sleepers *from, struct sleepers *to);
void polled_charge(struct sleepers *list, u64 began);
struct polled *polled_make(struct receiver *receiver);
void polled_open(struct sleepers *list);
void polled_stop(struct sleepers *list);

/* table.c */
long table_connect(struct vector *vector);
long table_disconnect(unsigned long index);
void table_put(struct table *table);
void table_free(struct table *table);
void table_process_ends(void);
bool table_adopt(void);
int tables_start(void);
void tables_stop(void);

/* signals.c */
void signal_hook(void *data, int signal, struct kernel_siginfo *info, struct k_sigaction *action);
void interrupted(struct callback_head *head);
void framed(struct callback_head *head);
void returned(struct callback_head *head);
int signals_start(void);
void signals_stop(void);

/* reaper.c */
void table_armed(struct table *table);
void let_sends_end(bool (*concerns)(struct table *there, void *what), void *what);
void reap_receiver(struct receiver *receiver);
void reap_table(struct table *table);
void reap_thread(struct thread *thread);
int reaper_start(void);
void reaper_stop(void);

#endif
