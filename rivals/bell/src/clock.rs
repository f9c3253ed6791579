// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time-stamp counter in nanoseconds, and processor time.

use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::time::Instant;

/// The time-stamp counter.
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Nanoseconds in one tick, measured once against the monotonic clock over 20 ms.
pub fn nanoseconds_per_tick() -> f64 {
    static VALUE: OnceLock<f64> = OnceLock::new();
    *VALUE.get_or_init(|| {
        let (start, began) = (Instant::now(), ticks());
        while start.elapsed().as_millis() < 20 {
            std::hint::spin_loop();
        }
        let (elapsed, ended) = (start.elapsed(), ticks());
        elapsed.as_nanos() as f64 / (ended - began) as f64
    })
}

/// Processor time of all threads of this process, in nanoseconds.
pub fn process_cpu() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// Processor time of this thread, in nanoseconds.
pub fn thread_cpu() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Keeps the calling thread on `cpu`.
pub fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).expect("the CPU is there");
}
