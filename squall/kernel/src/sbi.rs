// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of the firmware (RISC-V Supervisor Binary Interface 1.0).

use core::arch::asm;

const TIME: usize = 0x5449_4d45;
const INTER_PROCESSOR: usize = 0x0073_5049;
const HART_STATE: usize = 0x0048_534d;

fn call(extension: usize, function: usize, a0: usize, a1: usize, a2: usize) -> isize {
    let error: isize;
    // SAFETY: the firmware keeps all registers but a0 and a1.
    unsafe {
        asm!("ecall", inlateout("a0") a0 => error, inlateout("a1") a1 => _, in("a2") a2,
            in("a6") function, in("a7") extension)
    }
    error
}

/// The latest time that is asked for: QEMU 7.2 turns timebase ticks into nanoseconds in 64 bits,
/// and what overflows there is a timer that is always due. This is 1.7 years at 10 MHz.
const LATEST: u64 = u64::MAX >> 15;

/// The timer's next interrupt on this hart, in timebase ticks since
/// power-on. Takes back one that is pending.
pub(crate) fn set_timer(at: u64) {
    call(TIME, 0, at.min(LATEST) as usize, 0, 0);
}

/// Interrupts the harts whose bits are set.
pub(crate) fn interrupt(harts: u64) {
    call(INTER_PROCESSOR, 0, harts as usize, 0, 0);
}

/// Starts a hart at a physical address, with `argument` in a1. Says
/// whether there is such a hart, stopped.
pub(crate) fn start(hart: usize, at: usize, argument: usize) -> bool {
    call(HART_STATE, 0, hart, at, argument) == 0
}
