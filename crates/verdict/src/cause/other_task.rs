// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiter was ready, and its CPU ran something else.

use std::collections::BTreeMap;

use super::{Cause, called, queued, took, waiters_cpu};
use doorbell_results::about::About;
use doorbell_results::event::What;

/// Tasks that are named; the rest is a number.
const NAMED: usize = 3;

/// Who runs on the CPU.
#[derive(Clone, Copy)]
struct Running {
    task: i32,
    /// As the kernel counts; none where nothing told of its coming.
    priority: Option<i32>,
    since: i64,
    /// The last event that said so.
    seen: i64,
}

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "its CPU ran something else",
        what: "The waiter was ready, and its CPU ran other tasks.",
        taken: "The events of that CPU from when the wakeup was issued to when the waiter was scheduled in, by task; the three longest are named.",
        misleads: "Where a task's coming was not recorded, it is counted from the first event in which it ran.",
    },
    cure: "keep other work off the waiter's CPU (cpuset, isolcpus), or give the waiter a higher priority",
    by_events: true,
    find: |wake| {
        let (from, to) = queued(wake)?;
        let cpu = waiters_cpu(wake)?;
        let mut times: BTreeMap<i32, (u64, Option<i32>)> = BTreeMap::new();
        let mut running: Option<Running> = None;
        let mut add = |running: Option<Running>, until: i64| {
            // Task 0 is the idle task: then the CPU ran nothing.
            if let Some(Running { task, priority, since, .. }) = running.filter(|running| running.task != 0) {
                let ps = until.saturating_sub(since.max(from)).max(0).unsigned_abs();
                let time = times.entry(task).or_default();
                *time = (time.0.saturating_add(ps), time.1.or(priority));
            }
        };
        for event in wake.events.iter().filter(|event| event.cpu == cpu && event.at <= to) {
            let at = event.at;
            // Each event says who ran. Kernels were seen that do not tell when a CPU turns from idle to a task: that one has
            // been there since its first event at the latest, and the one before it until its last at the least.
            running = match running {
                Some(before) if before.task == event.task => Some(Running { seen: at, ..before }),
                before => {
                    add(before, before.map_or(at, |before| before.seen));
                    Some(Running { task: event.task, priority: None, since: at, seen: at })
                }
            };
            if let What::Switch { to: next, to_priority, .. } = &event.what {
                add(running, at);
                running = Some(Running { task: *next, priority: Some(*to_priority), since: at, seen: at });
            }
        }
        // One of them may be the notifier: on the waiter's CPU it goes on until it gives way.
        let mut others: Vec<(i32, (u64, Option<i32>))> =
            times.into_iter().filter(|(task, (ps, _))| *task != wake.tasks[1] && *ps > 0).collect();
        others.sort_by_key(|(_, (ps, _))| std::cmp::Reverse(*ps));
        let sum = others.iter().fold(0_u64, |sum, (_, (ps, _))| sum.saturating_add(*ps));
        let said = |(task, (ps, priority)): &(i32, (u64, Option<i32>))| {
            let kind = match priority {
                Some(priority @ ..100) => {
                    format!(" (real-time priority {})", 99_i32.saturating_sub(*priority))
                }
                Some(priority) => format!(" (nice {})", priority.saturating_sub(120)),
                None => String::new(),
            };
            format!("{}{kind} for {}", called(wake, *task), took(*ps))
        };
        let mut names: Vec<String> = others.iter().take(NAMED).map(said).collect();
        if others.len() > NAMED {
            names.push(format!("{} more", others.len() - NAMED));
        }
        let names = names.join(", ");
        (sum > 0).then(|| (sum, format!("while the waiter was ready, CPU {cpu} ran {names}")))
    },
};
