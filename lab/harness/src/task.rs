// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of Linux about the calling thread.

use crate::usage::Usage;

pub fn number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

pub fn cpu() -> u32 {
    rustix::thread::sched_getcpu() as u32
}

pub fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Usage {
    /// Reads it; some 0.5 µs.
    ///
    /// The sum of both times is up to date: getrusage(2) alone knows what was used until the last
    /// tick or switch, some milliseconds ago where nobody sleeps, and asking for the thread's
    /// clock brings it up to now (Linux kernel/sched/core.c, `task_sched_runtime`).
    pub fn read() -> Self {
        let _ = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        // SAFETY: rusage is plain data, valid when zero.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is ours and of the right type. RUSAGE_THREAD cannot fail with a valid pointer.
        // JUSTIFICATION: rustix has no getrusage.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Self {
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
        }
    }
}

/// `se.nr_migrations` of `/proc/thread-self/sched`, where the kernel was built to show it.
pub fn migrations() -> Option<u64> {
    let text = doorbell_files::kernel("/proc/thread-self/sched").ok()?;
    let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}
