// SPDX-License-Identifier: MIT OR Apache-2.0
//! What sleeping costs on this machine: from the profile, or measured once per process.

use crate::calibration::{self, Calibration, CostSource};
use crate::counters;
use crate::process::Process;
use crate::profile::{self, Profile};
use crate::thread::without_signals;
use doorbell_core::window::SleepCost;
use rustix::thread::futex::{Flags, wait_bitset, wake};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The process one of whose threads calibrates, in a word; 0 if none does.
///
/// Not a lock: reading a profile may take for ever (it may be a pipe, or on a server that is gone),
/// and a fork neither waits for that nor leaves the child waiting for a thread it does not have.
/// The child calibrates for itself.
static CALIBRATING: AtomicU64 = AtomicU64::new(0);

/// Ends the calibration under way, also if it panics.
struct Calibrating(u64);

impl Calibrating {
    /// Begins one. `None` while another thread of this process is at it.
    fn begin() -> Option<Self> {
        let ours = Process::current().word();
        let others = CALIBRATING.load(Ordering::Acquire);
        let taken = others != ours
            && CALIBRATING.compare_exchange(others, ours, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // Made only if it is ours: dropping it would end the other thread's.
        taken.then(|| Self(ours))
    }
}

impl Drop for Calibrating {
    fn drop(&mut self) {
        // Not if a forked child has begun its own.
        let _ = CALIBRATING.compare_exchange(self.0, 0, Ordering::Release, Ordering::Relaxed);
    }
}

/// What this process holds to be the cost of sleeping, and how it
/// came to. The first call may take some milliseconds.
///
/// ```
/// println!("{}", doorbell::calibration().source);
/// ```
pub fn calibration() -> &'static Calibration {
    loop {
        if let Some(known) = calibration::known() {
            return known;
        }
        let Some(calibrating) = Calibrating::begin() else {
            // Two at once would disturb each other. What is waited for takes milliseconds.
            thread::sleep(Duration::from_micros(200));
            continue;
        };
        if calibration::known().is_none() {
            calibration::set(calibrate());
        }
        drop(calibrating);
        if let Some(known) = calibration::known() {
            // After it is known: a table made meanwhile has it from `calibration::known`.
            counters::publish(known);
        }
    }
}

/// What sleeping costs here. The first call in a process may take some milliseconds.
///
/// A profile that cannot be used is passed over in favour of a
/// measurement; [`calibration`] says so, and why.
pub fn sleep_cost() -> SleepCost {
    calibration().cost
}

fn calibrate() -> Calibration {
    let Some(path) = profile::path() else {
        return Calibration { cost: measure(ROUNDS), source: CostSource::NoProfile };
    };
    match Profile::read(&path) {
        Ok(profile) => Calibration { cost: profile.cost, source: CostSource::Profile(path) },
        Err(error) => Calibration { cost: measure(ROUNDS), source: CostSource::Unusable { path, error } },
    }
}

/// Enough for a median that neighbours do not move; about 5 ms.
const ROUNDS: u32 = 200;
/// Bounds for what can be a measurement: below the first no machine wakes anybody; above the second
/// the measurement met interference for all of its length.
const BELIEVABLE_NS: std::ops::RangeInclusive<u32> = 500..=200_000;

/// The calling thread and another wake each other in turn, each asleep in between, `rounds` times.
///
/// The other runs where the scheduler puts it. If the caller may use one CPU alone, the other
/// leaves that for those its control group allows it and the kernel does not isolate, as a plain
/// task: a process that is pinned waits for others that are not where it is, and a wake-up on one
/// CPU costs less than half of one between two. Where there is no other CPU to be had, they share.
///
/// `latency` is half the median round trip; `price` is the processor time
/// of both threads for one sleep and one wake-up. Where no thread can be
/// made both are the least that is believed, and who waits hardly spins.
pub fn measure(rounds: u32) -> SleepCost {
    let least = *BELIEVABLE_NS.start();
    let ball = AtomicU32::new(0);
    let pinned = sched_getaffinity(None).is_ok_and(|own| own.count() == 1);
    let here = sched_getcpu();
    let mut trips = Vec::with_capacity(rounds as usize);
    let busy = thread::scope(|scope| {
        let play = || {
            if pinned {
                leave(here);
            }
            let start = cpu_time();
            for round in 0..rounds {
                wait_for(&ball, 2 * round + 1);
                pass(&ball, 2 * round + 2);
            }
            cpu_time() - start
        };
        let partner = without_signals(|| thread::Builder::new().spawn_scoped(scope, play));
        let Ok(partner) = partner else { return None };
        let start = cpu_time();
        for round in 0..rounds {
            let served = Instant::now();
            pass(&ball, 2 * round + 1);
            wait_for(&ball, 2 * round + 2);
            trips.push(served.elapsed().as_nanos());
        }
        Some(cpu_time() - start + partner.join().unwrap_or(0))
    });
    let Some(busy) = busy else { return SleepCost { latency: least, price: least } };
    trips.sort_unstable();
    let latency = trips.get(trips.len() / 2).copied().unwrap_or(0) / 2;
    let price = busy / (2 * u128::from(rounds.max(1)));
    let believable = |ns: u128| u32::try_from(ns).unwrap_or(u32::MAX).clamp(least, *BELIEVABLE_NS.end());
    SleepCost { latency: believable(latency), price: believable(price) }
}

/// Keeps this thread off the CPU `here` and off those that the kernel isolates for others, without
/// a priority above theirs. Where nothing else is allowed, it stays.
fn leave(here: usize) {
    // SAFETY: 0 names the calling thread; the parameter lives through the call, and all of its fields
    // are integers, of which musl has more than glibc.
    // JUSTIFICATION: rustix has neither.
    unsafe {
        let ordinary: libc::sched_param = std::mem::zeroed();
        if matches!(libc::sched_getscheduler(0), libc::SCHED_FIFO | libc::SCHED_RR) {
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &ordinary);
        }
    }
    let mut others = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|cpu| *cpu != here).for_each(|cpu| others.set(cpu));
    for list in ["isolated", "nohz_full"] {
        let text = fs::read_to_string(format!("/sys/devices/system/cpu/{list}")).unwrap_or_default();
        cpus(&text).filter(|cpu| *cpu < CpuSet::MAX_CPU).for_each(|cpu| others.unset(cpu));
    }
    let _ = sched_setaffinity(None, &others);
}

/// The CPUs of a list as the kernel writes it: `1-3,8`. What is none (`(null)`) names none.
fn cpus(list: &str) -> impl Iterator<Item = usize> {
    list.trim()
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .flatten()
}

/// Processor time of the calling thread, in nanoseconds.
fn cpu_time() -> u128 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u128::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u128::try_from(time.tv_nsec).unwrap_or(0)
}

fn pass(ball: &AtomicU32, to: u32) {
    ball.store(to, Ordering::SeqCst);
    // Cannot fail: the address is valid. If nobody slept yet, the word has changed.
    let _ = wake(ball, Flags::PRIVATE, 1);
}

fn wait_for(ball: &AtomicU32, value: u32) {
    while ball.load(Ordering::Acquire) != value {
        // Returns when the word changed, at a wake, at a signal: look again in each case.
        let _ = wait_bitset(ball, Flags::PRIVATE, value - 1, None, NonZeroU32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pinned process once measured a wake on its one CPU, held what came from others for too
    /// late to spin for, and slept in turn with its peer for ever.
    #[test]
    fn a_thread_that_may_use_one_cpu_leaves_it_where_there_is_another() {
        let own = || {
            let mask = sched_getaffinity(None).unwrap();
            (0..CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect::<Vec<_>>()
        };
        thread::spawn(move || {
            let all = own();
            let here = all[0];
            let mut only = CpuSet::new();
            only.set(here);
            sched_setaffinity(None, &only).unwrap();
            leave(here);
            // More may be allowed than the tests were started with, but not fewer.
            assert!(!own().contains(&here) || all == [here], "{:?} of {all:?}", own());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn lists_of_cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpus("1-3,8\n").collect::<Vec<_>>(), [1, 2, 3, 8]);
        assert_eq!(cpus("\n").chain(cpus("(null)\n")).count(), 0);
    }
}
