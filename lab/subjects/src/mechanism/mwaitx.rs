// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mwaitx`: the CPU itself waits for a store to a cache line, in user mode (AMD).

use std::sync::atomic::AtomicU32;

use super::watched_word::{Pause, WatchedLink};
use super::{Explanation, Mechanism, Notifiers, Unavailable, Waits};

pub(crate) struct Mwaitx;

/// Whether the CPU has the instructions: CPUID leaf 0x8000_0001, ECX
/// bit 29 (AMD APM vol. 3, appendix E).
#[cfg(target_arch = "x86_64")]
fn has_monitorx() -> bool {
    raw_cpuid::CpuId::new()
        .get_extended_processor_and_feature_identifiers()
        .is_some_and(|features| features.has_monitorx_mwaitx())
}

#[cfg(not(target_arch = "x86_64"))]
fn has_monitorx() -> bool {
    false
}

/// Time-stamp ticks after which a doze ends by itself, so that a timed wait can look at the clock.
#[cfg(target_arch = "x86_64")]
const DOZE_TICKS: u64 = 100_000;

impl Pause for Mwaitx {
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn between_looks(word: &AtomicU32, seen: u32) {
        use std::sync::atomic::Ordering::Acquire;
        // SAFETY: `word` is a valid address; `available` has found MONITORX on this
        // CPU, and no trial is run without it. The line is armed before the last
        // look: a store after the look ends the doze, one before it is seen. RBX,
        // which the compiler keeps for itself, is put back before the block ends.
        unsafe {
            std::arch::asm!(
                "monitorx",
                in("rax") word,
                in("ecx") 0_u32,
                in("edx") 0_u32,
                options(nostack, preserves_flags),
            );
            if word.load(Acquire) == seen {
                std::arch::asm!(
                    "xchg rbx, {ticks}",
                    "mwaitx",
                    "xchg rbx, {ticks}",
                    ticks = inout(reg) DOZE_TICKS => _,
                    // 0xf0 asks for C0, the lightest state; ECX bit 1 makes EBX the longest doze.
                    in("eax") 0xf0_u32,
                    in("ecx") 2_u32,
                    options(nostack, preserves_flags),
                );
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn between_looks(_: &AtomicU32, _: u32) {
        unreachable!("`available` refuses other architectures")
    }
}

impl Mechanism for Mwaitx {
    type Link = WatchedLink<Self>;
    const NAME: &'static str = "mwaitx";
    const WAITS: Waits = Waits::Spins;
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "monitorx/mwaitx on a shared word (AMD)",
        how: "The waiter arms a monitor on the word's cache line, looks once more, and dozes \
            in state C0 until the line is written or 100000 time-stamp ticks have passed; then \
            it looks again. The notifier only stores the next number.",
        kernel: "Nothing: both instructions run in user mode.",
        limits: "The waiter keeps its CPU from other tasks, but leaves a sibling thread more \
            of the core. An interrupt ends a doze early. Absent in many virtual machines even \
            where the CPU has it. The timed wait looks at the clock after each doze.",
        sources: &[
            "AMD APM vol. 3, MONITORX and MWAITX",
            "Linux arch/x86/include/asm/mwait.h, arch/x86/lib/delay.c",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        if has_monitorx() {
            return Ok(());
        }
        Err(Unavailable::because(
            "this CPU has no MONITORX (CPUID leaf 8000_0001, ECX bit 29): mwaitx would be an invalid opcode",
        ))
    }
}
