// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counter that the processor gives programs to read, and how it is read in order.

use doorbell_results::machine::clock::{Source, Ticks};

pub(crate) use own::{KERNELS_NAME, SOURCE, count, count_after_loads, is_invariant};

#[cfg(target_arch = "x86_64")]
mod own {
    use super::*;

    pub(crate) const SOURCE: Source = Source::Tsc;
    /// What the kernel calls its clock where it goes by this counter.
    pub(crate) const KERNELS_NAME: &str = "tsc";

    /// Whether it runs at one speed whatever the processor does.
    pub(crate) fn is_invariant() -> bool {
        raw_cpuid::CpuId::new().get_advanced_power_mgmt_info().is_some_and(|power| power.has_invariant_tsc())
    }

    #[inline(always)]
    pub(crate) fn count() -> Ticks {
        // SAFETY: RDTSC exists on every x86-64 CPU; where CR4.TSD
        // forbids it the kernel's own vDSO would fault too.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// `rdtscp` waits for earlier loads (Intel SDM vol. 2B, RDTSCP).
    #[inline(always)]
    pub(crate) fn count_after_loads() -> Ticks {
        let mut cpu = 0;
        // SAFETY: called only where CPUID reports an invariant TSC,
        // and every such CPU has RDTSCP; `cpu` is ours.
        unsafe { core::arch::x86_64::__rdtscp(&raw mut cpu) }
    }
}

#[cfg(target_arch = "aarch64")]
mod own {
    use super::*;

    pub(crate) const SOURCE: Source = Source::Cntvct;
    /// drivers/clocksource/arm_arch_timer.c of Linux.
    pub(crate) const KERNELS_NAME: &str = "arch_sys_counter";

    /// The generic timer counts at a fixed frequency, in every state of power (Arm ARM, D12.1.2).
    pub(crate) fn is_invariant() -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn count() -> Ticks {
        let count;
        // SAFETY: Linux lets programs read it (its vDSO does), or
        // does it for them where the processor is at fault.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags))
        };
        count
    }

    /// A processor may read the counter early, but nothing after an
    /// `isb` begins before a branch ahead of it is decided: of every
    /// load whose value was looked at (Arm ARM, B2.3.9, D12.2.1).
    #[inline(always)]
    pub(crate) fn count_after_loads() -> Ticks {
        let count;
        // SAFETY: as above. Not `nomem`, so that the compiler keeps the order too.
        unsafe {
            core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack, preserves_flags))
        };
        count
    }
}

#[cfg(target_arch = "riscv64")]
mod own {
    use super::*;

    pub(crate) const SOURCE: Source = Source::Rdtime;
    /// drivers/clocksource/timer-riscv.c of Linux.
    pub(crate) const KERNELS_NAME: &str = "riscv_clocksource";

    /// It counts at a constant frequency, and is one for all harts to within a tick (RISC-V
    /// unprivileged manual, Zicntr).
    pub(crate) fn is_invariant() -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn count() -> Ticks {
        let count;
        // SAFETY: Linux lets programs read it, or does it for them.
        unsafe { core::arch::asm!("rdtime {}", out(reg) count, options(nomem, nostack, preserves_flags)) };
        count
    }

    /// Reading a counter is device input to a fence (RISC-V
    /// unprivileged manual, Zicsr, "CSR Access Ordering").
    #[inline(always)]
    pub(crate) fn count_after_loads() -> Ticks {
        let count;
        // SAFETY: as above. Not `nomem`, so that the compiler keeps the order too.
        unsafe {
            core::arch::asm!("fence r, i", "rdtime {}", out(reg) count, options(nostack, preserves_flags))
        };
        count
    }
}
