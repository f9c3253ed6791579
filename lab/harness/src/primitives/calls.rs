// SPDX-License-Identifier: MIT OR Apache-2.0
//! Primitive costs that need nobody else: a clock reading, a system call, a wake that finds nobody.

use rustix::thread::futex::{self, Flags};

use super::samples::Samples;
use crate::site::Word;
use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::result::Primitive;

/// Calls between two clock readings: the reading is then some 1 % of the batch for a system call,
/// and is part of what is measured for the clock itself.
const BATCH: u64 = 50;
const BATCHES: usize = 200;

pub(super) fn all(clock: Clock) -> Vec<Primitive> {
    let word = Word::default();
    let reading = || {
        std::hint::black_box(clock.now_awake());
    };
    vec![
        Samples::new(clock, BATCHES).batches(BATCH, reading).primitive("clock"),
        Samples::new(clock, BATCHES).batches(BATCH, system_call).primitive("system-call"),
        Samples::new(clock, BATCHES)
            .batches(BATCH, || {
                // Nobody waits, so nothing is to be done about the answer.
                let _ = futex::wake(&word.0, Flags::PRIVATE, 1);
            })
            .primitive("wake-nobody"),
    ]
}

/// `getppid`, which the kernel answers from two loads: the cost is that of entering and leaving it.
/// Called by number, for a C library may keep the answer of the cheaper calls.
fn system_call() {
    // SAFETY: getppid takes no argument and touches no memory of ours.
    // JUSTIFICATION: rustix offers it too, but promises no system call per call.
    unsafe { libc::syscall(libc::SYS_getppid) };
}
