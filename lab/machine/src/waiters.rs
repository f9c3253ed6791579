// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the waiters of every process that uses the library did so
//! far, as those processes publish it.

use super::cpu_time::CpuTimes;
use super::root::Root;
use super::{cgroup, ready};
use doorbell::counters;
use doorbell::profile::Standing;
use doorbell_results::machine::waiters::{User, Waiter, Waiters};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;
pub fn now() -> Waiters {
    let found = counters::processes();
    Waiters {
        processes: found.processes.into_iter().map(user).collect(),
        closed: found.closed,
        steal_ns: CpuTimes::read(&Root::live()).map(|times| times.steal_since_boot_ns()),
        taken: Instant::now(),
    }
}

fn user(process: counters::Process) -> User {
    let folder = format!("/proc/{}", process.process);
    let command = doorbell_files::kernel(format!("{folder}/comm")).unwrap_or_default();
    let known = |ns: u32| Some(ns).filter(|ns| *ns > 0);
    User {
        pid: process.process,
        uid: fs::metadata(&folder).ok().map(|folder| folder.uid()),
        command: command.trim_end().to_owned(),
        profile: process.profile.map(Standing::name),
        sleep_latency_ns: known(process.cost.latency),
        sleep_price_ns: known(process.cost.price),
        ready_ns: ready::ready_ns(&Root::live(), process.process),
        throttled_ns: cgroup::throttled(&Root::live(), &process.process.to_string())
            .map(|throttled| throttled.1),
        waiters: process.waiters.into_iter().map(waiter).collect(),
    }
}

fn waiter(waiter: counters::Waiter) -> Waiter {
    let counters::Counts { spun_and_hit, spun_in_vain, slept, woken } = waiter.counts;
    Waiter { place: waiter.place, name: waiter.name, spun_and_hit, spun_in_vain, slept, woken }
}
