// SPDX-License-Identifier: MIT OR Apache-2.0
//! The primitive cost of a switch on one core: two threads that give way to each other.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::samples::Samples;
use doorbell_machine::clock::Now;
use doorbell_machine::pinned::both;
use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::record::result::Primitive;

const YIELDS: usize = 50;
const BATCHES: usize = 50;

/// Two threads on `cpu` call `sched_yield` in turn; the time of a batch is divided by the switches
/// the kernel counted in it, not by the calls made: a yield that the scheduler answers by going on
/// with the same thread is no switch.
///
/// Threads and not processes: no address space changes, so it is a
/// primitive cost for both kinds of sides.
pub(super) fn measure(clock: Clock, cpu: u32) -> io::Result<Primitive> {
    let stop = AtomicBool::new(false);
    let running = AtomicBool::new(false);
    let first = || {
        // Until the other thread has been born and moved to this CPU there is nobody to switch to.
        while !running.load(Relaxed) {
            std::thread::yield_now();
        }
        let mut samples = Samples::new(clock, BATCHES);
        while samples.wanting() {
            // The counts are asked for outside of the time: two such calls are some percent of a batch.
            let (switches_before, ran_before) = (switches(), own_time());
            let before = clock.now_awake();
            for _ in 0..YIELDS {
                std::thread::yield_now();
            }
            let took = clock.now_awake().saturating_sub(before);
            let ran = clock.ticks(own_time().saturating_sub(ran_before));
            samples.add(without_others(took, ran), switches() - switches_before);
        }
        stop.store(true, Relaxed);
        samples.primitive("same-core-switch")
    };
    let second = || {
        running.store(true, Relaxed);
        while !stop.load(Relaxed) {
            std::thread::yield_now();
        }
    };
    Ok(both([cpu, cpu], first, second)?.0)
}

/// The time of a batch that took `took`, of which this process ran `ran`.
///
/// What others ran on this CPU meanwhile is no part of a switch. With a computing
/// program there every batch holds some of its time slices, and a primitive cost
/// of milliseconds would make every true figure impossible. A tenth is left for
/// the kernel's own work between two threads, which it charges to neither.
fn without_others(took: Ticks, ran: Ticks) -> Ticks {
    let alone = ran.saturating_mul(10) >= took.saturating_mul(9);
    if alone { took } else { ran }
}

/// CPU time of this process's threads so far, by the scheduler's clock.
fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Context switches of this process's threads so far; in a process that measures primitive costs
/// only the two of them run.
fn switches() -> u64 {
    // SAFETY: rusage is plain data, valid when zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is ours and of the right type. RUSAGE_SELF cannot fail with a valid pointer.
    // JUSTIFICATION: rustix has no getrusage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The primitive cost once came out as the time slices of another program, 7 ms, and every true
    /// round trip on that core as impossible.
    #[test]
    fn a_primitive_holds_none_of_the_time_slices_of_another_program() {
        assert_eq!(without_others(7_000_000, 50_000), 50_000);
    }

    #[test]
    fn what_the_kernel_charges_to_neither_thread_stays_in_the_primitive() {
        assert_eq!(without_others(50_000, 47_000), 50_000);
    }
}
