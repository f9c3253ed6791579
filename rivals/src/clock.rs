// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time-stamp counter in nanoseconds, processor time, and the CPU a thread stays on.

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

/// What one reading of the counter costs, in nanoseconds: the least of some means.
pub fn reading() -> f64 {
    const READINGS: u32 = 1000;
    (0..20)
        .map(|_| {
            let start = ticks();
            for _ in 0..READINGS {
                std::hint::black_box(ticks());
            }
            (ticks() - start) as f64 * nanoseconds_per_tick() / f64::from(READINGS)
        })
        .fold(f64::INFINITY, f64::min)
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
///
/// # Panics
/// If this process may not run there.
pub fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    if let Err(errno) = rustix::thread::sched_setaffinity(None, &set) {
        panic!("cannot stay on CPU {cpu}: {errno}; name others with --cpus");
    }
}

/// The first two CPUs this process may run on; the same one twice if there is but one.
pub fn first_cpus() -> (usize, usize) {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    let mut allowed = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    let first = allowed.next().unwrap_or(0);
    (first, allowed.next().unwrap_or(first))
}
