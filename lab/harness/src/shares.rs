// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of a CPU the sides of a trial get.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::control::Control;

/// A side that runs for a smaller part of the time than this, and
/// wants to run, is kept from it by others.
const LEAST: u32 = 10;

/// Looks at what both sides get, again and again.
#[derive(Debug)]
pub(super) struct Shares {
    ran: [Option<Duration>; 2],
    looked: Instant,
}

impl Shares {
    pub(super) fn new(now: Instant) -> Self {
        Self { ran: [None; 2], looked: now }
    }

    /// Whether a side wants a CPU, and had less than a tenth of one since the last look.
    pub(super) fn starve(&mut self, control: &Control, now: Instant) -> bool {
        let least = (now - self.looked) / LEAST;
        self.looked = now;
        let ran = control.progress.each_ref().map(|side| ran_if_runnable(side.task.load(Relaxed)));
        let before = std::mem::replace(&mut self.ran, ran);
        before.iter().zip(ran).any(|sides| match sides {
            (Some(before), Some(now)) => now.saturating_sub(*before) < least,
            _ => false,
        })
    }
}

/// The CPU time that a task had, if it is one that runs or waits for a CPU
/// (proc_pid_stat(5), field 3; `schedstat` of Documentation/scheduler/sched-stats.rst,
/// which is the task's own for a thread too).
fn ran_if_runnable(task: u32) -> Option<Duration> {
    let read = |name: &str| doorbell_files::kernel(format!("/proc/{task}/{name}")).ok();
    if read("stat")?.rsplit(')').next()?.split_whitespace().next()? != "R" {
        return None;
    }
    let ran = read("schedstat")?.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ran))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_has_a_share_and_who_sleeps_wants_none() {
        let own = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        assert!(ran_if_runnable(own).is_some());
        let (tell, hear) = std::sync::mpsc::channel();
        let (leave, stay) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let _ = stay.recv();
        });
        let task = u32::try_from(hear.recv().unwrap()).unwrap();
        while ran_if_runnable(task).is_some() {
            std::thread::yield_now();
        }
        drop(leave);
        sleeper.join().unwrap();
        assert!(ran_if_runnable(0).is_none());
    }
}
