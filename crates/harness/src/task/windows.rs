// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of Windows about the calling thread.

use std::io;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Kernel::PROCESSOR_NUMBER;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcessorNumberEx, GetCurrentThread, GetCurrentThreadId, GetThreadTimes, SetThreadPriority,
    THREAD_PRIORITY_TIME_CRITICAL,
};

use crate::usage::Usage;

/// Whether switches and faults are counted for each thread: they are for performance tools alone.
pub const COUNTS: bool = false;

/// Whether CPU time is told finely enough to be asked for around one call: it is told by the tick.
pub const TELLS_CPU_TIME: bool = false;

/// Its number.
pub fn number() -> u32 {
    // SAFETY: takes nothing.
    unsafe { GetCurrentThreadId() }
}

/// The CPU it is on, 64 numbers for each processor group.
pub fn cpu() -> u32 {
    let mut cpu = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
    // SAFETY: writes what is ours.
    unsafe { GetCurrentProcessorNumberEx(&raw mut cpu) };
    u32::from(cpu.Group) * 64 + u32::from(cpu.Number)
}

/// User and kernel time, nanoseconds. Windows charges by the timer's tick, 15.6 ms by default, so that a short window may show none.
fn times() -> [u64; 2] {
    let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    let [made, ended, kernel, user] = &mut times;
    // SAFETY: the handle names the calling thread, and all four are ours.
    unsafe { GetThreadTimes(GetCurrentThread(), made, ended, kernel, user) };
    // In units of 100 ns (FILETIME).
    [*user, *kernel].map(|time| (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)) * 100)
}

/// CPU time it has used, nanoseconds.
pub fn cpu_ns() -> u64 {
    times().iter().sum()
}

impl Usage {
    /// Reads it; see [`COUNTS`].
    pub fn read() -> Self {
        let [user_ns, system_ns] = times();
        Self {
            voluntary_switches: 0,
            involuntary_switches: 0,
            minor_faults: 0,
            major_faults: 0,
            user_ns,
            system_ns,
        }
    }
}

/// Moves between CPUs: not told.
pub fn migrations() -> Option<u64> {
    None
}

/// Puts the calling thread above all that is not real-time. What Linux calls FIFO is nearest to it; it has no priorities within.
pub fn become_fifo(_priority: i32) -> io::Result<()> {
    // SAFETY: the handle names the calling thread.
    match unsafe { SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_TIME_CRITICAL) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
