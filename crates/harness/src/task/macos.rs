// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of macOS about the calling thread. Type-checked and never run.

use std::io;

use crate::usage::Usage;

/// Whether switches and faults are counted for each thread.
pub const COUNTS: bool = false;

/// Whether CPU time is told finely enough to be asked for around one call.
pub const TELLS_CPU_TIME: bool = true;

/// Its number.
pub fn number() -> u32 {
    let mut number = 0_u64;
    // SAFETY: 0 names the calling thread, and the number is ours (pthread_threadid_np(3)).
    unsafe { libc::pthread_threadid_np(0, &raw mut number) };
    // A name for people; the watchdog only asks whether it is zero.
    number as u32 | 1 << 31
}

/// The CPU it is on: not told.
pub fn cpu() -> u32 {
    0
}

/// CPU time it has used, nanoseconds.
pub fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Usage {
    /// Reads it, all CPU time as the program's own; see [`COUNTS`].
    pub fn read() -> Self {
        Self {
            voluntary_switches: 0,
            involuntary_switches: 0,
            minor_faults: 0,
            major_faults: 0,
            user_ns: cpu_ns(),
            system_ns: 0,
        }
    }
}

/// Moves between CPUs: not told.
pub fn migrations() -> Option<u64> {
    None
}

/// Refused: real-time threads there are promised time by period, not by priority (thread_policy_set).
pub fn become_fifo(_priority: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
