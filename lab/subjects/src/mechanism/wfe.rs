// SPDX-License-Identifier: MIT OR Apache-2.0
//! `wfe`: the CPU itself waits for a store to a line that it has
//! marked for exclusive access, in user mode (ARM).

use std::sync::atomic::AtomicU32;

use super::watched_word::{Pause, WatchedLink};
use super::{Explanation, Mechanism, Notifiers, Unavailable, Waits};

pub(crate) struct Wfe;

/// Whether the kernel has the timer send an event every 100 µs
/// (`HWCAP_EVTSTRM`), so that a doze ends by itself.
#[cfg(target_arch = "aarch64")]
fn has_event_stream() -> bool {
    // SAFETY: getauxval has no conditions.
    // JUSTIFICATION: the standard library tells features, and this is the kernel's doing.
    unsafe { libc::getauxval(libc::AT_HWCAP) & libc::HWCAP_EVTSTRM != 0 }
}

#[cfg(not(target_arch = "aarch64"))]
fn has_event_stream() -> bool {
    false
}

impl Pause for Wfe {
    #[cfg(target_arch = "aarch64")]
    #[inline]
    fn between_looks(word: &AtomicU32, seen: u32) {
        // SAFETY: `word` is a valid, aligned address. The load arms the monitor
        // before the value is compared: a store after it takes the mark away,
        // which is an event (Arm ARM, D1.7.1), one before it is seen. Dozing
        // without the mark would only last until the next event of the timer.
        unsafe {
            std::arch::asm!(
                "ldaxr {now:w}, [{word}]",
                "cmp {now:w}, {seen:w}",
                "b.ne 2f",
                "wfe",
                "2:",
                word = in(reg) word.as_ptr(),
                seen = in(reg) seen,
                now = out(reg) _,
                options(nostack),
            );
        }
    }

    #[cfg(not(target_arch = "aarch64"))]
    fn between_looks(_: &AtomicU32, _: u32) {
        unreachable!("`available` refuses other architectures")
    }
}

impl Mechanism for Wfe {
    type Link = WatchedLink<Self>;
    const NAME: &'static str = "wfe";
    const WAITS: Waits = Waits::Spins;
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "wfe with an armed monitor on a shared word (ARM)",
        how: "The waiter loads the word exclusively (ldaxr), which arms its core's monitor, \
            and if the word is the one seen last it dozes with wfe until the monitor's mark is \
            lost to a store of the notifier's, an interrupt comes, or the timer sends an \
            event; then it looks again. The notifier only stores the next number.",
        kernel: "Nothing: all of it runs in user mode. The kernel has the timer send an event \
            every 100 µs (HWCAP_EVTSTRM), without which a doze would have no end; Linux waits \
            for its own locks in the same way.",
        limits: "The waiter keeps its CPU from other tasks, but its core takes less power than \
            spinning. A hypervisor may have wfe taken from its guests (HCR_EL2.TWE), and an \
            emulator may make nothing of it. The timed wait looks at the clock after each \
            doze, so it may be late by 100 µs.",
        sources: &[
            "Arm ARM (DDI 0487), D1.7.1, Wait for Event; B2.12, exclusive monitors",
            "Linux arch/arm64/include/asm/cmpxchg.h, __cmpwait; \
             Documentation/arch/arm64/elf_hwcaps.rst, HWCAP_EVTSTRM",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        if !cfg!(target_arch = "aarch64") {
            return Err(Unavailable::because("this processor is none of ARM's: it has no wfe"));
        }
        if has_event_stream() {
            return Ok(());
        }
        Err(Unavailable::because(
            "this kernel has the timer send no events (HWCAP_EVTSTRM): a doze by wfe might never end",
        ))
    }
}
