// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel counts for the calling thread.

use std::io;

use crate::record::SideCounters;

/// A reading.
#[derive(Debug, Clone, Copy)]
pub struct Counters {
    /// Before the reading, for the end of a window.
    first: libc::rusage,
    /// After it, for the start of one: what the reading costs lies between two windows.
    last: libc::rusage,
    migrations: Option<u64>,
    cpu: u32,
}

/// What the kernel has charged the calling thread with.
pub(crate) fn usage() -> libc::rusage {
    // SAFETY: rusage is plain data, valid when zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is ours and of the right type. RUSAGE_THREAD cannot fail with a valid pointer.
    // JUSTIFICATION: rustix has no getrusage.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage
}

impl Counters {
    /// Reads them for the calling thread.
    pub fn read() -> Self {
        let first = usage();
        let (migrations, cpu) = (migrations(), rustix::thread::sched_getcpu() as u32);
        Self { first, last: usage(), migrations, cpu }
    }

    /// What was counted since `before`, for the side called `side`, whose window was `window_ns` long.
    pub fn since(&self, before: &Self, side: &str, window_ns: u64) -> SideCounters {
        let count =
            |field: fn(&libc::rusage) -> libc::c_long| (field(&self.first) - field(&before.last)) as u64;
        let time = |field: fn(&libc::rusage) -> libc::timeval| {
            let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
            ns(field(&self.first)) - ns(field(&before.last))
        };
        SideCounters {
            side: side.to_owned(),
            cpus: vec![before.cpu, self.cpu],
            migrations: self.migrations.zip(before.migrations).map(|(now, then)| now - then),
            voluntary_switches: count(|usage| usage.ru_nvcsw),
            involuntary_switches: count(|usage| usage.ru_nivcsw),
            minor_faults: count(|usage| usage.ru_minflt),
            major_faults: count(|usage| usage.ru_majflt),
            user_ns: time(|usage| usage.ru_utime),
            system_ns: time(|usage| usage.ru_stime),
            window_ns,
        }
    }
}

/// `se.nr_migrations` of `/proc/thread-self/sched`, where the kernel was built to show it.
fn migrations() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
    let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// Puts the calling thread under `SCHED_FIFO` with `priority`.
pub fn become_fifo(priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 names the calling thread; `parameter` lives through the call.
    // JUSTIFICATION: rustix has no sched_setscheduler.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
