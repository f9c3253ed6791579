// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiter was ready, and its CPU ran something else.

use std::collections::BTreeMap;

use super::{Cause, called, queued, took, waiters_cpu};
use crate::trace::What;

/// Tasks that are named; the rest is a number.
const NAMED: usize = 3;

pub(super) const CAUSE: Cause = Cause {
    name: "its CPU ran something else",
    cure: "keep other work off the waiter's CPU (cpuset, isolcpus), or give the waiter a higher priority",
    by_events: true,
    find: |wake| {
        let (from, to) = queued(wake)?;
        let cpu = waiters_cpu(wake)?;
        let mut times: BTreeMap<i32, (u64, i32)> = BTreeMap::new();
        let mut running: Option<(i32, i32, i64)> = None;
        let mut add = |running: Option<(i32, i32, i64)>, until: i64| {
            // Task 0 is the idle task: then the CPU ran nothing.
            if let Some((task, priority, since)) = running.filter(|running| running.0 != 0) {
                let ps = until.saturating_sub(since.max(from)).max(0).unsigned_abs();
                let time = &mut times.entry(task).or_insert((0, priority)).0;
                *time = time.saturating_add(ps);
            }
        };
        for event in wake.events.iter().filter(|event| event.cpu == cpu && event.at <= to) {
            let What::Switch { to: next, to_priority, .. } = &event.what else { continue };
            if event.at >= from {
                add(running, event.at);
            }
            running = Some((*next, *to_priority, event.at));
        }
        // One of them may be the notifier: on the waiter's CPU it goes on until it gives way.
        let mut others: Vec<(i32, (u64, i32))> =
            times.into_iter().filter(|(task, (ps, _))| *task != wake.tasks[1] && *ps > 0).collect();
        others.sort_by_key(|(_, (ps, _))| std::cmp::Reverse(*ps));
        let sum = others.iter().fold(0_u64, |sum, (_, (ps, _))| sum.saturating_add(*ps));
        let said = |(task, (ps, priority)): &(i32, (u64, i32))| {
            let kind = match priority {
                ..100 => format!("real-time priority {}", 99_i32.saturating_sub(*priority)),
                _ => format!("nice {}", priority.saturating_sub(120)),
            };
            format!("{} ({kind}) for {}", called(wake, *task), took(*ps))
        };
        let mut names: Vec<String> = others.iter().take(NAMED).map(said).collect();
        if others.len() > NAMED {
            names.push(format!("{} more", others.len() - NAMED));
        }
        let names = names.join(", ");
        (sum > 0).then(|| (sum, format!("while the waiter was ready, CPU {cpu} ran {names}")))
    },
};
