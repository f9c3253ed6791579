// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiter was moved to another CPU while it was ready to run.

use super::{Cause, took};
use doorbell_results::about::About;
use doorbell_results::anatomy::Mark;
use doorbell_results::event::What;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "migration",
        what: "The waiter was moved to another CPU while it was ready.",
        taken: "sched_migrate_task after the waiter was made ready; it ends where the waiter is \
            scheduled in.",
        misleads: "The choice of a CPU on waking is recorded as a migration too, and is none here.",
    },
    cure: "pin the waiter (`--placement`, taskset, a cpuset)",
    by_events: true,
    find: |wake| {
        let waiter = wake.tasks[1];
        // The choice of a CPU on waking is told as a migration too,
        // before the task is runnable; that moves nothing.
        let ready = wake.events.iter().find_map(|event| match event.what {
            What::Runnable { task, .. } if task == waiter && event.at >= 0 => Some(event.at),
            _ => None,
        })?;
        let moved = wake.events.iter().find_map(|event| match event.what {
            What::Migrates { task, from, to } if task == waiter && event.at >= ready => {
                Some((event.at, from, to))
            }
            _ => None,
        });
        let (at, from, to) = moved?;
        // Moved before it ran: until it came in. Moved after: until the next time it did.
        let came_in = wake.events.iter().find_map(|event| match event.what {
            What::Switch { to, .. } if to == waiter && event.at >= at => Some(event.at),
            _ => None,
        });
        let end = came_in.or_else(|| wake.at(Mark::Woke))?;
        let ps = end.saturating_sub(at).max(0).unsigned_abs();
        Some((
            ps,
            format!("moved from CPU {from} to CPU {to} while it was ready; {} until it ran there", took(ps)),
        ))
    },
};
