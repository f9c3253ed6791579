// SPDX-License-Identifier: MIT OR Apache-2.0
//! `umwait`: the CPU itself waits for a store to a cache line, in user mode (WAITPKG, Intel).

use std::sync::atomic::AtomicU32;

use super::watched_word::{Pause, WatchedLink};
use super::{Explanation, Mechanism, Notifiers, Unavailable, Waits};

pub(crate) struct Umwait;

/// Whether the CPU has the instructions.
#[cfg(target_arch = "x86_64")]
fn has_waitpkg() -> bool {
    raw_cpuid::CpuId::new().get_extended_feature_info().is_some_and(|features| features.has_waitpkg())
}

#[cfg(not(target_arch = "x86_64"))]
fn has_waitpkg() -> bool {
    false
}

/// Time-stamp ticks after which a doze ends by itself, so that a timed wait can look at the clock;
/// the kernel's own limit (`/sys/devices/system/cpu/umwait_control/max_time`) has the same default.
#[cfg(target_arch = "x86_64")]
const DOZE_TICKS: u64 = 100_000;

impl Pause for Umwait {
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn between_looks(word: &AtomicU32, seen: u32) {
        use std::sync::atomic::Ordering::Acquire;
        // SAFETY: `word` is a valid address; `available` has found WAITPKG on
        // this CPU, and no trial is run without it. The line is armed before the
        // last look: a store after the look ends the doze, one before it is seen.
        unsafe {
            std::arch::asm!("umonitor {0}", in(reg) word, options(nostack, preserves_flags));
            if word.load(Acquire) == seen {
                let until = std::arch::x86_64::_rdtsc().wrapping_add(DOZE_TICKS);
                std::arch::asm!(
                    "umwait {0:e}",
                    // Bit 0: state C0.1, the lighter of the two, with the faster way out.
                    in(reg) 1_u32,
                    in("eax") until as u32,
                    in("edx") (until >> 32) as u32,
                    options(nostack),
                );
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn between_looks(_: &AtomicU32, _: u32) {
        unreachable!("`available` refuses other architectures")
    }
}

impl Mechanism for Umwait {
    type Link = WatchedLink<Self>;
    const NAME: &'static str = "umwait";
    const WAITS: Waits = Waits::Spins;
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "umonitor/umwait on a shared word (Intel WAITPKG)",
        how: "The waiter arms a monitor on the word's cache line, looks once more, and dozes \
            in state C0.1 until the line is written or 100000 time-stamp ticks have passed; \
            then it looks again. The notifier only stores the next number.",
        kernel: "Nothing: both instructions run in user mode. The kernel only sets the longest \
            doze (/sys/devices/system/cpu/umwait_control/max_time, 100000 ticks by default) \
            and whether C0.2 is allowed.",
        limits: "The waiter keeps its CPU from other tasks, but leaves a sibling thread more \
            of the core and takes less power than spinning. An interrupt ends a doze early. \
            Absent in many virtual machines even where the CPU has it. The timed wait looks at \
            the clock after each doze.",
        sources: &[
            "Intel SDM vol. 2B, UMONITOR and UMWAIT",
            "Linux arch/x86/kernel/cpu/umwait.c",
            "Linux Documentation/ABI/testing/sysfs-devices-system-cpu, umwait_control",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        if has_waitpkg() {
            return Ok(());
        }
        Err(Unavailable::because(
            "this CPU has no WAITPKG (CPUID leaf 7, ECX bit 5): umwait would be an invalid opcode",
        ))
    }
}
