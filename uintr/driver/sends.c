// SPDX-License-Identifier: GPL-2.0-only
/*
 * SENDUIPI, done by the driver: where the kernel is the sender; and so that it can be counted, if the parameter count_sends
 * is set: no thread is given its table, so that each SENDUIPI is an invalid instruction,
 * and what the manual says of it is done here. A send takes some thousand
 * instructions that way; it is for those who look for one that is lost, and for tests.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <asm/apic.h>
#include <asm/ptrace.h>

#include "driver.h"

bool count_sends;
module_param(count_sends, bool, 0444);
MODULE_PARM_DESC(count_sends, "do SENDUIPI in the driver, to count what is posted and notified");

/*
 * Whom an entry names that is free: with SN set, it tells nobody. No manual says
 * that SENDUIPI reads both halves of an entry at once. One that has the half of a
 * connection just made finds an address that may be written to behind the other.
 */
struct receiver nobody = { .upid.low = UPID_SN };

/* F3 [REX] 0F C7 /6 with a register; nothing compiles to other prefixes. */
static const u8 opcode[] = { 0x0f, 0xc7 };
#define REPEAT		0xf3
#define IS_REX(byte)	(((byte) & 0xf0) == 0x40)
#define REX_B		1
#define IS_6(modrm)	(((modrm) & 0xf8) == 0xf0)

/* So often in a row no page is taken away: it may be executed and not read. */
#define UNREAD_MOST	100

/* As instructions number them. */
static const u8 registers[] = {
	offsetof(struct pt_regs, ax), offsetof(struct pt_regs, cx),
	offsetof(struct pt_regs, dx), offsetof(struct pt_regs, bx),
	offsetof(struct pt_regs, sp), offsetof(struct pt_regs, bp),
	offsetof(struct pt_regs, si), offsetof(struct pt_regs, di),
	offsetof(struct pt_regs, r8), offsetof(struct pt_regs, r9),
	offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
	offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13),
	offsetof(struct pt_regs, r14), offsetof(struct pt_regs, r15),
};

/* The length of the SENDUIPI at @regs and the index it was given; 0: it is none; negative: it cannot be read. */
static int decode(struct pt_regs *regs, u64 *index)
{
	u8 code[5];
	int rex = 0, number;

	if (copy_from_user_nofault(code, (void __user *)regs->ip, 4))
		return -EFAULT;
	if (code[0] != REPEAT)
		return 0;
	if (IS_REX(code[1])) {
		if (copy_from_user_nofault(code, (void __user *)regs->ip, 5))
			return -EFAULT;
		rex = 1;
	}
	if (memcmp(code + 1 + rex, opcode, sizeof(opcode)) || !IS_6(code[3 + rex]))
		return 0;
	number = (code[3 + rex] & 7) | (rex && (code[1] & REX_B) ? 8 : 0);
	*index = *(unsigned long *)((char *)regs + registers[number]);
	return 4 + rex;
}

/* As the CPU sends it, to the CPU that a UPID's low half names. */
static void notify(u64 low)
{
	u8 vector = low >> 16;
	int cpu;

	for_each_online_cpu(cpu) {
		if (upid_address(vector, cpu) == (low & ~(UPID_ON | UPID_SN))) {
			apic->send_IPI(cpu, vector);
			return;
		}
	}
}

static bool exchange(struct uintr_upid *upid, struct uintr_upid *old, const struct uintr_upid *new)
{
	bool done;

	asm volatile("lock cmpxchg16b %1"
		     : "=@ccz" (done), "+m" (*upid), "+a" (old->low), "+d" (old->pir)
		     : "b" (new->low), "c" (new->pir)
		     : "memory");
	return done;
}

/* What SENDUIPI does with its receiver and the vector; with interrupts off. */
void send(struct receiver *receiver, u8 vector)
{
	struct uintr_upid *upid = &receiver->upid;
	struct uintr_upid old = { READ_ONCE(upid->low), READ_ONCE(upid->pir) }, new;
	struct sends *sends = &receiver->sends;

	do {
		new = old;
		new.pir |= BIT_ULL(vector);
		if (!(old.low & (UPID_ON | UPID_SN)))
			new.low |= UPID_ON;
	} while (!exchange(upid, &old, &new));
	atomic64_inc(&sends->posted);
	if (old.pir == new.pir)
		atomic64_inc(&sends->merged);
	if (old.low & UPID_SN) {
		atomic64_inc(&sends->suppressed);
	} else if (old.low & UPID_ON) {
		atomic64_inc(&sends->covered);
	} else {
		atomic64_inc((u8)(old.low >> 16) == WAKE ? &sends->woke : &sends->notified);
		delay();
		notify(old.low);
	}
}

/*
 * An invalid instruction of a thread that has a table: whether it was SENDUIPI, which is
 * done then. Interrupts stay off meanwhile, as they do within an instruction:
 * let_sends_end() waits for it.
 */
bool send_counted(struct pt_regs *regs)
{
	struct thread *thread = own_thread();
	struct uitt_entry *entry;
	u64 index, low;
	int length, i;

	if (!thread || !thread->table)
		return false;
	length = decode(regs, &index);
	/* The page that it lies on was taken away just now: fetching it again brings it back, if it can be read at all. */
	if (length < 0)
		return ++thread->unread < UNREAD_MOST;
	thread->unread = 0;
	if (!length)
		return false;
	if (index < UINTR_CONNECTIONS) {
		index = array_index_nospec(index, UINTR_CONNECTIONS);
		entry = &thread->table->uitt[index];
		low = READ_ONCE(entry->low);
		/* As long as it takes to use the entry again, if that did not wait. */
		for (i = 0; i < 8; i++)
			delay();
		if (low & UITT_VALID) {
			regs->ip += length;
			send(container_of((struct uintr_upid *)READ_ONCE(entry->upid), struct receiver, upid), low >> 8);
			return true;
		}
	}
	/* General protection. */
	local_irq_enable();
	force_sig(SIGSEGV);
	local_irq_disable();
	return true;
}
