// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Puts the wake-ups of followed threads together in the kernel: one record each, with who woke whom
 * out of which system call, when, and how long that took.
 *
 * wake.bpf.o beside it is made of it by
 *
 *     clang -target bpf -mcpu=v3 -O2 -Wall -Werror -c wake.bpf.c -o wake.bpf.o
 *
 * and is what users get: they need no compiler. ci/test/49-bpf.sh makes it again and compares. It
 * includes nothing: where fields of the kernel's structures lie, place.rs finds in the
 * running kernel's type information, and writes it into `where` before the program is loaded; for the
 * kernel's verifier these are constants.
 */

typedef unsigned char u8;
typedef int s32;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define inline inline __attribute__((always_inline))

/* The kernel's functions by their numbers (include/uapi/linux/bpf.h, __BPF_FUNC_MAPPER). */
static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*now_ns)(void) = (void *)5;
static u32 (*chance)(void) = (void *)7;
static u32 (*this_cpu)(void) = (void *)8;
static long (*stack_number)(void *context, void *map, u64 flags) = (void *)27;
static long (*read_user)(void *into, u32 size, const void *from) = (void *)112;
static long (*read_kernel)(void *into, u32 size, const void *from) = (void *)113;
static long (*read_kernel_text)(void *into, u32 size, const void *from) = (void *)115;
static void *(*reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*submit)(void *record, u64 flags) = (void *)132;
static void *(*task_storage)(void *map, void *task, void *value, u64 flags) = (void *)156;
static void *(*current_task)(void) = (void *)158;
static void *(*registers)(void *task) = (void *)175;

/* BPF_LOCAL_STORAGE_GET_F_CREATE and BPF_RB_NO_WAKEUP there. */
enum { CREATE = 1, NO_WAKEUP = 1 };
/* CLONE_THREAD (include/uapi/linux/sched.h). */
enum { CLONE_THREAD = 0x00010000 };
/* PF_IO_WORKER, PF_USER_WORKER and PF_KTHREAD (include/linux/sched.h): threads without calls. */
enum { NO_CALLS = 0x00000010 | 0x00004000 | 0x00200000 };
/* TASK_DEAD there. */
enum { DEAD = 0x80 };
/* MAX_RT_PRIO (include/linux/sched/prio.h). */
enum { FIRST_ORDINARY = 100 };
/* SOFTIRQ_OFFSET, and the bits of interrupts (include/linux/preempt.h). */
enum { SOFTIRQ = 0x100, INTERRUPT = 0xf0000 };

/* Where things lie in this kernel; `NOWHERE` if it has none. place.rs writes it, in this order. */
#define NOWHERE 0xffffffffull
const volatile struct {
	u64 task_pid, task_tgid, task_flags, task_mm, task_comm, task_state;
	u64 task_switched, task_preempted; /* nvcsw, nivcsw */
	u64 task_ran; /* se.sum_exec_runtime */
	u64 task_ran_before; /* se.prev_sum_exec_runtime: as it was when the task came */
	u64 task_priority;
	u64 task_reads, task_writes; /* ioac.syscr, ioac.syscw */
	u64 task_preempt_count; /* thread_info.preempt_count, where that is in the task */
	u64 task_queue, queue_cpu; /* se.cfs_rq, and its rq, which is a variable of the CPU */
	u64 cpu_preempt_count; /* how far behind that lies the CPU's own count */
	u64 registers_call, registers_args[3];
	u64 registers_at[4]; /* of user mode: code, stack, frame, and where calls return to */
	u64 hrtimer_sleeper, timer_sleeper; /* the task, behind its timer */
	u64 switch_has_state; /* whether the fourth word of sched_switch is the state */
	u64 children; /* whether processes that are made are followed too */
	u64 one_in; /* of so many sleeps one is recorded with its stacks; 0: none */
} where SEC(".rodata");

struct {
	u64 lost; /* records for which there was no room */
	u64 incomplete; /* sleeps of which the waking was not seen */
	u64 stacks_lost; /* stacks for which there was no room */
} counts SEC(".bss");

struct map {
	u32 type, key, value, entries, flags;
};

/* A followed thread. */
struct thread {
	u64 slept; /* when it left its CPU; 0 while it is not known to sleep */
	u64 waking;
	u64 ran; /* its CPU time when it left */
	u64 done; /* calls that read or wrote, when it left */
	u64 waker_switches;
	u64 args[3], waker_args[3];
	s32 call, waker_call;
	s32 waker, waker_process;
	u32 how, waker_cpu;
	u32 starter; /* what it makes is followed, and it is not */
	u32 sampled; /* its stacks are recorded, of this sleep */
};

/* Include/uapi/linux/bpf.h: BPF_MAP_TYPE_TASK_STORAGE with BPF_F_NO_PREALLOC, _HASH, _PERCPU_ARRAY, _RINGBUF. */
struct map threads SEC("maps") = { 29, sizeof(s32), sizeof(struct thread), 0, 1 };
/* Processes that are to be followed; threads with ALONE; threads whose children are with STARTER. */
struct map wanted SEC("maps") = { 1, sizeof(u32), sizeof(u32), 4096, 0 };
/* The timer that has run out on this CPU and is being served: whom it wakes, if somebody. */
struct map timers SEC("maps") = { 6, sizeof(u32), 2 * sizeof(u64), 1, 0 };
struct map records SEC("maps") = { 27, 0, 0, 1 << 25, 0 };
/* Stacks have room of their own: they are large, and no wake-up is to be lost for one. */
struct map stacks SEC("maps") = { 27, 0, 0, 1 << 25, 0 };
/* BPF_MAP_TYPE_STACK_TRACE: the kernel's part, by number. */
struct map numbered SEC("maps") = { 7, sizeof(u32), 64 * sizeof(u64), 4096, 0 };
#define STARTER 0x80000000u
#define ALONE 0x40000000u

/* Kinds of record; record.rs reads them. */
enum { WOKEN = 1, LEFT = 2, BORN = 3, RENAMED = 4, ENDED = 5, STACK = 6 };

/* In `how`. */
enum {
	IN_SOFTIRQ = 1,
	IN_INTERRUPT = 2,
	BY_TIMER = 4, /* a timer was served */
	RAN_OUT = 8, /* the sleeper's own */
	UNTOLD = 16, /* its CPU's turning to it was not told */
};

struct woken {
	u32 kind, how;
	s32 task, process, waker, waker_process, call, waker_call;
	u64 slept, waking, came, ran, done, waker_switches;
	u64 args[3], waker_args[3];
	u32 cpu, waker_cpu;
	s32 before; /* who had the CPU until then; -1 where that was not told */
	u32 nothing;
	u64 before_ran; /* for how long, in one go; 0 where the kernel does not count that */
};

/* The stack of a sleeper, or of who wakes it. */
enum { SLEEPER = 0, WAKER = 1, SOFTIRQ_OR_WAKER = 2 };
#define PIECE 1024
#define PIECES 16
struct stack {
	u32 kind;
	s32 task; /* who sleeps */
	u32 of; /* SLEEPER, WAKER, or SOFTIRQ_OR_WAKER: perhaps an interrupt's */
	s32 process; /* whose stack it is */
	u64 slept; /* when the sleeper left its CPU */
	s32 kernel; /* the number of the kernel's part; negative if there is none */
	u32 length; /* bytes of user mode's part; 0 in the kernel's own threads and in interrupts */
	u64 at[4];
	char bytes[PIECES * PIECE];
};

struct at {
	u32 kind;
	s32 task;
	u64 at; /* ENDED: CPU time */
};

struct named {
	u32 kind;
	s32 task, process, parent;
	char name[16];
};

#define FIELD(type, base, offset) (*(type *)((char *)(base) + (offset)))

static inline struct thread *followed(void *task)
{
	return task_storage(&threads, task, 0, 0);
}

static inline u64 calls_done(void *task)
{
	if (where.task_reads == NOWHERE)
		return 0;
	return FIELD(u64, task, where.task_reads) + FIELD(u64, task, where.task_writes);
}

static inline void call_of(void *task, s32 *call, u64 *args)
{
	*call = -1;
	if (!FIELD(void *, task, where.task_mm) || FIELD(u32, task, where.task_flags) & NO_CALLS)
		return;
	void *saved = registers(task);
	u64 number = 0;
	/* Its size is not the same on all architectures; a call's number is in the lower half. */
	read_kernel(&number, sizeof(number), (char *)saved + where.registers_call);
	*call = (s32)number;
	args[0] = FIELD(u64, saved, where.registers_args[0]);
	args[1] = FIELD(u64, saved, where.registers_args[1]);
	args[2] = FIELD(u64, saved, where.registers_args[2]);
}

/* For tasks of real-time priority the kernel does not keep what it was when they came. */
static inline u64 ran_at_once(void *task)
{
	if (FIELD(s32, task, where.task_priority) < FIRST_ORDINARY)
		return 0;
	return FIELD(u64, task, where.task_ran) - FIELD(u64, task, where.task_ran_before);
}

static inline u32 context(void *task)
{
	u32 count = 0;
	if (where.task_preempt_count != NOWHERE) {
		count = FIELD(u32, task, where.task_preempt_count);
	} else {
		/* The CPU's variables lie together, and the running task's queue is one of them. */
		u64 cpu = (u64)FIELD(void *, FIELD(void *, task, where.task_queue), where.queue_cpu);
		read_kernel(&count, sizeof(count), (void *)(cpu + where.cpu_preempt_count));
	}
	return count & INTERRUPT ? IN_INTERRUPT : count & SOFTIRQ ? IN_SOFTIRQ : 0;
}

/* Of `of`, which runs here; `user`: with what it has in user mode. */
static inline void tell_stack(void *context, struct thread *thread, s32 sleeper, u32 which,
			      void *of, u32 user)
{
	struct stack *record = reserve(&stacks, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&counts.stacks_lost, 1);
		return;
	}
	record->kind = STACK;
	record->task = sleeper;
	record->of = which;
	record->process = FIELD(s32, of, where.task_tgid);
	record->slept = thread->slept;
	record->kernel = (s32)stack_number(context, &numbered, 0);
	u32 length = 0;
	if (user && FIELD(void *, of, where.task_mm) && !(FIELD(u32, of, where.task_flags) & NO_CALLS)) {
		void *saved = registers(of);
		record->at[0] = FIELD(u64, saved, where.registers_at[0]);
		record->at[1] = FIELD(u64, saved, where.registers_at[1]);
		record->at[2] = FIELD(u64, saved, where.registers_at[2]);
		record->at[3] = where.registers_at[3] == NOWHERE ? 0 : FIELD(u64, saved, where.registers_at[3]);
		/* In pieces: the stack may end before. */
#pragma unroll
		for (u32 piece = 0; piece < PIECES; piece++) {
			if (length != piece * PIECE)
				continue;
			if (!read_user(record->bytes + piece * PIECE, PIECE, (char *)record->at[1] + piece * PIECE))
				length += PIECE;
		}
	}
	record->length = length;
	submit(record, NO_WAKEUP);
}

SEC("tp_btf/sched_waking") int waking(u64 *words)
{
	void *task = (void *)words[0];
	struct thread *thread = followed(task);
	/* A waking that met it on its way to sleep counts, unless another follows. */
	if (!thread || (thread->slept && thread->waking >= thread->slept))
		return 0;
	void *waker = current_task();
	u32 how = context(waker);
	if (how) {
		u32 only = 0;
		u64 *timer = map_lookup(&timers, &only);
		if (timer && timer[0])
			how |= timer[1] == (u64)task ? BY_TIMER | RAN_OUT : BY_TIMER;
	}
	thread->how = how;
	thread->waker_cpu = this_cpu();
	thread->waker = FIELD(s32, waker, where.task_pid);
	thread->waker_process = FIELD(s32, waker, where.task_tgid);
	thread->waker_switches =
		FIELD(u64, waker, where.task_switched) + FIELD(u64, waker, where.task_preempted);
	call_of(waker, &thread->waker_call, thread->waker_args);
	thread->waking = now_ns();
	if (where.one_in && thread->slept && thread->sampled)
		tell_stack(words, thread, FIELD(s32, task, where.task_pid),
			   how & IN_SOFTIRQ ? SOFTIRQ_OR_WAKER : WAKER, waker, !(how & IN_INTERRUPT));
	return 0;
}

static inline void tell_when(u32 kind, void *task, u64 at)
{
	struct at *record = reserve(&records, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&counts.lost, 1);
		return;
	}
	record->kind = kind;
	record->task = FIELD(s32, task, where.task_pid);
	record->at = at;
	submit(record, NO_WAKEUP);
}

static inline void tell_name(u32 kind, void *task, void *parent, void *name)
{
	struct named *record = reserve(&records, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&counts.lost, 1);
		return;
	}
	record->kind = kind;
	record->task = FIELD(s32, task, where.task_pid);
	record->process = FIELD(s32, task, where.task_tgid);
	record->parent = FIELD(s32, parent, where.task_tgid);
	read_kernel_text(record->name, sizeof(record->name), name);
	submit(record, NO_WAKEUP);
}

static inline void came(struct thread *thread, void *task, u64 at, void *before)
{
	struct woken *record;
	if (!thread->waking) {
		__sync_fetch_and_add(&counts.incomplete, 1);
	} else if ((record = reserve(&records, sizeof(*record), 0))) {
		record->kind = WOKEN;
		record->how = before ? thread->how : thread->how | UNTOLD;
		record->task = FIELD(s32, task, where.task_pid);
		record->process = FIELD(s32, task, where.task_tgid);
		record->waker = thread->waker;
		record->waker_process = thread->waker_process;
		record->call = thread->call;
		record->waker_call = thread->waker_call;
		record->slept = thread->slept;
		record->waking = thread->waking;
		record->came = at;
		record->ran = thread->ran;
		record->done = thread->done;
		record->waker_switches = thread->waker_switches;
		record->args[0] = thread->args[0];
		record->args[1] = thread->args[1];
		record->args[2] = thread->args[2];
		record->waker_args[0] = thread->waker_args[0];
		record->waker_args[1] = thread->waker_args[1];
		record->waker_args[2] = thread->waker_args[2];
		record->cpu = this_cpu();
		record->waker_cpu = thread->waker_cpu;
		record->before = before ? FIELD(s32, before, where.task_pid) : -1;
		record->nothing = 0;
		record->before_ran = before ? ran_at_once(before) : 0;
		submit(record, NO_WAKEUP);
	} else {
		__sync_fetch_and_add(&counts.lost, 1);
	}
	thread->slept = 0;
	thread->waking = 0;
}

SEC("tp_btf/sched_switch") int switched(u64 *words)
{
	void *from = (void *)words[1], *to = (void *)words[2];
	u64 now = 0;
	struct thread *thread = followed(to);
	if (thread && thread->slept) {
		now = now_ns();
		came(thread, to, now, from);
	}
	thread = followed(from);
	if (!thread || thread->starter)
		return 0;
	if (!now)
		now = now_ns();
	u64 ran = FIELD(u64, from, where.task_ran);
	/* It can leave only what it has come to, and has run since. */
	if (thread->slept)
		came(thread, from, now - (ran - thread->ran), 0);
	u32 state = where.switch_has_state ? (u32)words[3] : FIELD(u32, from, where.task_state);
	if (words[0] & 1 || !state) {
		tell_when(LEFT, from, now);
	} else if (state & DEAD) {
		tell_name(RENAMED, from, from, (char *)from + where.task_comm);
		tell_when(ENDED, from, ran);
	} else {
		thread->ran = ran;
		thread->done = calls_done(from);
		call_of(from, &thread->call, thread->args);
		thread->slept = now;
		if (where.one_in) {
			thread->sampled = chance() % (u32)where.one_in == 0;
			if (thread->sampled)
				tell_stack(words, thread, FIELD(s32, from, where.task_pid), SLEEPER,
					   from, 1);
		}
	}
	return 0;
}

static inline int bear(void *task, int is_thread)
{
	void *parent = current_task();
	struct thread *maker = followed(parent);
	if (!maker || !(is_thread || where.children || maker->starter))
		return 0;
	task_storage(&threads, task, 0, CREATE);
	tell_name(BORN, task, parent, (char *)task + where.task_comm);
	return 0;
}

SEC("tp_btf/task_newtask") int born(u64 *words)
{
	return bear((void *)words[0], (words[1] & CLONE_THREAD) != 0);
}

/*
 * Linux 7.3 lets a thread be preempted where it tells of a birth or a name, and then leaves out what
 * another one tells there on that CPU. Where it wakes a new thread, or switches, it does not.
 */
SEC("tp_btf/sched_wakeup_new") int begins(u64 *words)
{
	void *task = (void *)words[0];
	if (followed(task))
		return 0;
	return bear(task, FIELD(s32, task, where.task_tgid) == FIELD(s32, current_task(), where.task_tgid));
}

SEC("tp_btf/task_rename") int renamed(u64 *words)
{
	void *task = (void *)words[0];
	if (followed(task))
		tell_name(RENAMED, task, task, (void *)words[1]);
	return 0;
}

static inline int serves(void *timer, u64 sleeper)
{
	u32 only = 0;
	u64 *serving = map_lookup(&timers, &only);
	if (serving) {
		serving[0] = 1;
		serving[1] = 0;
		read_kernel(&serving[1], sizeof(u64), (char *)timer + sleeper);
	}
	return 0;
}

static inline int served(void)
{
	u32 only = 0;
	u64 *serving = map_lookup(&timers, &only);
	if (serving)
		serving[0] = 0;
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry") int hrtimer_serves(u64 *words)
{
	return serves((void *)words[0], where.hrtimer_sleeper);
}

SEC("tp_btf/hrtimer_expire_exit") int hrtimer_served(u64 *words)
{
	return served();
}

SEC("tp_btf/timer_expire_entry") int timer_serves(u64 *words)
{
	return serves((void *)words[0], where.timer_sleeper);
}

SEC("tp_btf/timer_expire_exit") int timer_served(u64 *words)
{
	return served();
}

/* Follows the threads that are there already. */
SEC("iter/task") int seed(u64 *words)
{
	void *task = (void *)words[1];
	if (!task)
		return 0;
	u32 process = FIELD(s32, task, where.task_tgid), number = FIELD(s32, task, where.task_pid);
	u32 alone = number | ALONE, starter = number | STARTER;
	u32 starts = map_lookup(&wanted, &starter) != 0;
	if (!starts && !map_lookup(&wanted, &alone) && !map_lookup(&wanted, &process))
		return 0;
	struct thread *thread = task_storage(&threads, task, 0, CREATE);
	if (thread)
		thread->starter = starts;
	return 0;
}

/* The kernel lends its functions to what is under its own licence too. */
char terms[] SEC("license") = "Dual MIT/GPL";
