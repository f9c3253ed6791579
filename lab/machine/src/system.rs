// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of Linux: its clocks, its CPUs, and the machine as its files tell it.

use std::io;
use std::time::Instant;

use rustix::thread::CpuSet;
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::root::Root;
use super::{Asked, LOAD_WINDOW, load, pressure, read};
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::cpu_list::CpuList;
use doorbell_results::machine::load::Load;
use doorbell_results::machine::topology::Topology;

/// The monotonic clock in nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// The clock that nothing disciplines, nanoseconds: what others are held against.
#[inline]
pub(crate) fn raw_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::MonotonicRaw))
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether the system itself tells the time by the CPU's counter, which Linux calls `counter`,
/// having seen that those of all CPUs agree.
pub(crate) fn trusts_counter(counter: &str) -> bool {
    doorbell_files::kernel("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .is_ok_and(|name| name.trim() == counter)
}

pub fn pin(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    // A CPU beyond the set's size is left out; the kernel then refuses the empty set.
    if (cpu as usize) < CpuSet::MAX_CPU {
        set.set(cpu as usize);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

pub fn affinity() -> Option<CpuList> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// Which CPUs there are, and what they share.
pub fn topology() -> Topology {
    super::topology::read(&Root::live(), None)
}

/// This machine, with what `measure` adds, and its load over that time.
pub(crate) fn machine(clock: Clock, measure: impl FnOnce(&mut Machine)) -> Machine {
    let root = Root::live();
    let (started, before) = (Instant::now(), load::Reading::take(&root));
    let mut machine = read(&root, clock, Asked::here());
    measure(&mut machine);
    std::thread::sleep(LOAD_WINDOW.saturating_sub(started.elapsed()));
    let load = before.until(&load::Reading::take(&root), machine.topology.usable.clone());
    machine.load = Some(Load { load_average: pressure::load_average(&root), ..load });
    machine
}
