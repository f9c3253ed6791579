// SPDX-License-Identifier: MIT OR Apache-2.0
//! `wrs`: the CPU itself waits for a store to a line that it has
//! reserved, in user mode (Zawrs, RISC-V).

use std::sync::atomic::AtomicU32;

use super::watched_word::{Pause, WatchedLink};
use super::{Explanation, Mechanism, Notifiers, Unavailable, Waits};

pub(crate) struct Wrs;

/// Whether the kernel finds Zawrs on every hart that this process may run on; why not, else.
#[cfg(target_arch = "riscv64")]
fn has_zawrs() -> Result<bool, rustix::io::Errno> {
    /// A question and its answer (linux/asm/hwprobe.h).
    #[repr(C)]
    struct Pair {
        key: i64,
        value: u64,
    }
    const RISCV_HWPROBE_KEY_IMA_EXT_0: i64 = 4;
    const RISCV_HWPROBE_EXT_ZAWRS: u64 = 1 << 48;
    const SYS_RISCV_HWPROBE: libc::c_long = 258;
    let mut pair = Pair { key: RISCV_HWPROBE_KEY_IMA_EXT_0, value: 0 };
    let no_cpus = std::ptr::null::<libc::c_ulong>();
    // SAFETY: one pair, which is ours; no set of CPUs means all.
    // JUSTIFICATION: rustix has no call for it.
    match unsafe { libc::syscall(SYS_RISCV_HWPROBE, &raw mut pair, 1_usize, 0_usize, no_cpus, 0_u32) } {
        0 => Ok(pair.key == RISCV_HWPROBE_KEY_IMA_EXT_0 && pair.value & RISCV_HWPROBE_EXT_ZAWRS != 0),
        _ => Err(rustix::io::Errno::from_io_error(&std::io::Error::last_os_error())
            .unwrap_or(rustix::io::Errno::NOSYS)),
    }
}

impl Pause for Wrs {
    #[cfg(target_arch = "riscv64")]
    #[inline]
    fn between_looks(word: &AtomicU32, seen: u32) {
        // SAFETY: `word` is a valid, aligned address; `available` has found Zawrs, and no trial is run
        // without it. The load reserves the line before the value is compared: a store after it
        // takes the reservation away, which ends the stall, one before it is seen. WRS.STO by its
        // code, for assemblers need not know it (Zawrs 1.01).
        unsafe {
            std::arch::asm!(
                "lr.w.aq {now}, ({word})",
                "bne {now}, {seen}, 2f",
                ".4byte 0x01d00073",
                "2:",
                word = in(reg) word.as_ptr(),
                // As the load extends it.
                seen = in(reg) seen.cast_signed() as isize,
                now = out(reg) _,
                options(nostack),
            );
        }
    }

    #[cfg(not(target_arch = "riscv64"))]
    fn between_looks(_: &AtomicU32, _: u32) {
        unreachable!("`available` refuses other architectures")
    }
}

impl Mechanism for Wrs {
    type Link = WatchedLink<Self>;
    const NAME: &'static str = "wrs";
    const WAITS: Waits = Waits::Spins;
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "wrs.sto on a reserved shared word (RISC-V Zawrs)",
        how: "The waiter loads the word with a reservation (lr.w), and if it is the one seen \
            last its hart stalls with wrs.sto until the reservation is lost to a store of the \
            notifier's, an interrupt is pending, or a short time of the hart's own choosing is \
            over; then it looks again. The notifier only stores the next number.",
        kernel: "Nothing: all of it runs in user mode. Linux waits for its own locks with \
            wrs.nto, which has no time-out of its own: here a timed wait must look at the \
            clock, so it is the one that has.",
        limits: "The waiter keeps its CPU from other tasks, but its hart takes less power than \
            spinning. Told by the kernel since 6.11 (riscv_hwprobe). An emulator may make \
            nothing of the stall. The timed wait looks at the clock after each.",
        sources: &[
            "RISC-V Wait-on-Reservation-Set (Zawrs) extension, 1.01",
            "Linux arch/riscv/include/asm/cmpxchg.h, __cmpwait; Documentation/arch/riscv/hwprobe.rst",
        ],
    };

    #[cfg(target_arch = "riscv64")]
    fn available() -> Result<(), Unavailable> {
        match has_zawrs() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Unavailable::because(
                "riscv_hwprobe shows no Zawrs on every hart here (kernel 6.11 began to): wrs.sto \
                 might be an invalid instruction",
            )),
            Err(error) => Err(Unavailable::because(format!(
                "whether the harts have Zawrs cannot be asked: riscv_hwprobe says {error} (kernel \
                 6.4 brought it)"
            ))),
        }
    }

    #[cfg(not(target_arch = "riscv64"))]
    fn available() -> Result<(), Unavailable> {
        Err(Unavailable::because("this processor is no RISC-V: it has no wrs.sto"))
    }
}
