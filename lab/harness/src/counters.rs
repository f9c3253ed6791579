// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel counts for the calling thread.

use crate::task;
pub use crate::usage::Usage;
use doorbell_results::record::SideCounters;

#[derive(Debug, Clone, Copy)]
pub struct Counters {
    /// Before the reading, for the end of a window.
    first: Usage,
    /// After it, for the start of one: what the reading costs lies between two windows.
    last: Usage,
    migrations: Option<u64>,
    cpu: u32,
}

impl Usage {
    /// CPU time that a reading takes, nanoseconds: of sixteen in a row, the least of eight rows.
    pub fn reading_ns() -> u64 {
        let row = || {
            let before = task::cpu_ns();
            (0..16).for_each(|_| {
                std::hint::black_box(Self::read());
            });
            task::cpu_ns().saturating_sub(before) / 16
        };
        (0..8).map(|_| row()).min().unwrap_or(0)
    }
}

impl Counters {
    pub fn read() -> Self {
        let first = Usage::read();
        let (migrations, cpu) = (task::migrations(), task::cpu());
        Self { first, last: Usage::read(), migrations, cpu }
    }

    /// What was counted since `before`, for the side called `side`,
    /// whose window was `window_ns` long.
    pub fn since(&self, before: &Self, side: &str, window_ns: u64) -> SideCounters {
        SideCounters {
            cpus: vec![before.cpu, self.cpu],
            migrations: self.migrations.zip(before.migrations).map(|(now, then)| now - then),
            window_ns,
            ..self.first.since(&before.last).counters(side)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a thread had used since the last tick, up to 4 ms, was
    /// once missing, and turned up in the next window.
    #[test]
    fn cpu_time_is_that_of_now_and_not_of_the_last_tick() {
        let clock = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        let mut missing: Vec<u64> = (0..500)
            .map(|_| {
                let began = clock();
                // The clock brings the count up to date as well: what is used from here on would be missing.
                for number in 0..20_000 {
                    std::hint::black_box(number);
                }
                let usage = Usage::read();
                let after = clock();
                assert!(usage.user_ns + usage.system_ns <= after && began <= after);
                after - usage.user_ns - usage.system_ns
            })
            .collect();
        missing.sort_unstable();
        // Both are cut down to microseconds; half of the readings meet nothing in between.
        assert!(missing[250] < 5_000, "{} ns were missing", missing[250]);
    }

    fn fault(pages: usize) {
        let size = pages * 4096;
        // SAFETY: an anonymous mapping at an address of the kernel's choice aliases nothing.
        unsafe {
            let base = libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(base, libc::MAP_FAILED);
            libc::madvise(base, size, libc::MADV_NOHUGEPAGE);
            for page in 0..pages {
                base.cast::<u8>().add(page * 4096).write_volatile(1);
            }
            libc::munmap(base, size);
        }
    }

    #[test]
    fn what_was_used_before_a_window_is_none_of_it() {
        fault(1000);
        let before = Counters::read();
        fault(100);
        let counted = Counters::read().since(&before, "initiator", 0).minor_faults;
        assert!((100..1000).contains(&counted), "{counted}");
    }
}
