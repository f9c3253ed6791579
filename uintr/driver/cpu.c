// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPUs: whether they have user interrupts and nobody else uses them, CR4, the
 * MSRs, and what is done when one comes or goes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/version.h>
#include <asm/apic.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <asm/special_insns.h>
#include <asm/tlbflush.h>
#include <asm/uv/uv.h>
#if __has_include(<asm/cpuid/api.h>)
#include <asm/cpuid/api.h>
#endif

#include "driver.h"

#if !IS_ENABLED(CONFIG_KVM)
#error "vector 0xf0 has a handler only where CONFIG_KVM is set"
#endif

#define CPUID_7_EDX_UINTR	BIT(5)
#define CR4_UINTR		BIT(25)
/* The instruction, as a little-endian number. */
#define ENDBR64			0xfa1e0ff3u
#define XFEATURE_14_UINTR	BIT_ULL(14)

static const u32 msrs[] = {
	/* UINV first: from then on no notification is taken (H10). */
	MSR_UINTR_MISC, MSR_UINTR_PD, MSR_UINTR_TT,
	MSR_UINTR_RR, MSR_UINTR_HANDLER, MSR_UINTR_STACKADJUST,
};

/*
 * The kernel's way to write CR4: its other writes start from the copy that this
 * keeps (H17), and KVM takes what a guest's exit restores from there.
 */
#ifdef UINTR_LINKS_CR4
#define cr4_update	cr4_update_irqsoff

static int cr4_find(void)
{
	return 0;
}

static void cr4_forget(void)
{
}
#else
static void (*cr4_update)(unsigned long set, unsigned long clear);

static int cr4_find(void)
{
	u32 first;

	cr4_update = (void *)__symbol_get("cr4_update_irqsoff");
	if (!cr4_update) {
		pr_err("this kernel does not give cr4_update_irqsoff to modules: build it with kernel-hooks-7.3.patch\n");
		return -ENOENT;
	}
	/* Hidden, so that no ENDBR is made of the comparison. */
	first = ~*(u32 *)cr4_update;
	OPTIMIZER_HIDE_VAR(first);
	if (boot_cpu_has(X86_FEATURE_IBT) && first != ~ENDBR64) {
		pr_err("cr4_update_irqsoff is no target of indirect calls in this kernel: boot with the parameter ibt=off\n");
		__symbol_put("cr4_update_irqsoff");
		return -EOPNOTSUPP;
	}
	return 0;
}

static void cr4_forget(void)
{
	__symbol_put("cr4_update_irqsoff");
}
#endif

/* The low half of a UPID without ON and SN: who is told, and how (H27). */
u64 upid_address(u8 vector, int cpu)
{
	u32 id = cpu_physical_id(cpu);

	return UPID_NV(vector) | UPID_NDST(x2apic_mode ? id : id << 8);
}

/* CLUI besides, which needs CR4.UINTR, is what the next thread inherits: nothing (H8). */
static void msrs_zero(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(msrs); i++)
		wrmsrq(msrs[i], 0);
}

void msrs_clear(void)
{
	msrs_zero();
	clui();
}

/* The MSR of this CPU that is not zero, or 0. */
static u32 msr_in_use(void)
{
	u64 value;
	int i;

	for (i = 0; i < ARRAY_SIZE(msrs); i++) {
		rdmsrq(msrs[i], value);
		if (value)
			return msrs[i];
	}
	return 0;
}

/* CPUs whose CR4 is set by us. */
static DEFINE_PER_CPU(bool, ours);

/* Before the scheduler puts anything on the CPU. */
static int cpu_comes(unsigned int cpu)
{
	unsigned long flags;

	/* It is ours already if it was about to go and stays after all. */
	if (!this_cpu_read(ours) && (native_read_cr4() & CR4_UINTR)) {
		pr_err("CPU %u: somebody uses user interrupts already (CR4 %lx, MSR %x)\n",
		       cpu, native_read_cr4(), msr_in_use());
		return -EBUSY;
	}
	local_irq_save(flags);
	/* Without CR4.UINTR nobody uses them: they were left by the kernel before a kexec(2). */
	if (!this_cpu_read(ours) && msr_in_use()) {
		pr_info("CPU %u: MSR %x was left by a kernel before this one, and is cleared\n", cpu, msr_in_use());
		msrs_zero();
	}
	cr4_update(CR4_UINTR, 0);
	clui();
	this_cpu_write(ours, true);
	local_irq_restore(flags);
	sleepers_open(cpu);
	return 0;
}

/*
 * CR4 stays: threads are still pushed off, and their state is saved by
 * instructions that need it.
 */
static int cpu_goes(unsigned int cpu)
{
	sleepers_move(cpu);
	return 0;
}

/* All threads have left. */
static void cpu_clear(void *nothing)
{
	unsigned long flags;

	if (!this_cpu_read(ours))
		return;
	WARN_ON_ONCE(msr_in_use());
	local_irq_save(flags);
	/* Anybody may have opened it. */
	clui();
	cr4_update(0, CR4_UINTR);
	this_cpu_write(ours, false);
#ifdef UINTR_LEAVES_MSRS
	/* For a test, as a kernel does from which kexec(2) leads. */
	wrmsrq(MSR_UINTR_PD, PAGE_OFFSET);
	wrmsrq(MSR_UINTR_MISC, MISC_UINV(NOTIFY));
#endif
	local_irq_restore(flags);
}

static int refused(void)
{
	u32 eax, ebx, ecx, edx = 0;
	u64 xss = 0;

	if (boot_cpu_data.cpuid_level >= 7)
		cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	if (!(edx & CPUID_7_EDX_UINTR)) {
		pr_err("this CPU has no user interrupts (CPUID 7.0, EDX bit 5)\n");
		return -ENODEV;
	}
	/* UPIDs and UITTs lie in the kernel's memory. */
	if (boot_cpu_has(X86_FEATURE_PTI)) {
		pr_err("page-table isolation hides UPIDs from user mode: boot with the parameter nopti\n");
		return -EOPNOTSUPP;
	}
	if (is_uv_system()) {
		pr_err("vector %#x is that of this SGI UV machine's clock\n", WAKE);
		return -EBUSY;
	}
	if (boot_cpu_has(X86_FEATURE_XSAVES))
		rdmsrq(MSR_IA32_XSS, xss);
	if (xss & XFEATURE_14_UINTR) {
		pr_err("this kernel keeps the state of user interrupts itself (XSS %llx)\n", xss);
		return -EBUSY;
	}
	return 0;
}

static enum cpuhp_state state;

int cpus_start(void)
{
	int error = refused();

	if (!error)
		error = cr4_find();
	if (error)
		return error;
	error = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "uintr:online", cpu_comes, cpu_goes);
	if (error < 0) {
		on_each_cpu(cpu_clear, NULL, 1);
		cr4_forget();
		return error;
	}
	state = error;
	return 0;
}

void cpus_stop(void)
{
	cpus_read_lock();
	cpuhp_remove_state_nocalls_cpuslocked(state);
	on_each_cpu(cpu_clear, NULL, 1);
	cpus_read_unlock();
	cr4_forget();
}
