// SPDX-License-Identifier: MIT OR Apache-2.0
//! A side lost its CPU in the middle of the wake: the notifier before it had notified, or the waiter after it had run.

use super::{Cause, called, held_ps, took, whole};
use doorbell_results::about::About;
use doorbell_results::anatomy::Mark;
use doorbell_results::event::What;

/// Bits of a task's state under which it sleeps or is stopped of its own; without them it would have gone on.
pub(super) const GONE: i64 = 0xff;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "involuntary switch",
        what: "A side lost its CPU to another task though it would have gone on.",
        taken: "sched_switch took the side off its CPU runnable; it ends where the side is scheduled in again.",
        misleads: "What took the CPU may itself have waited for the side, as a kernel thread does.",
    },
    cure: "keep other work off the CPUs of both sides (cpuset, isolcpus), or raise their priority",
    by_events: true,
    find: |wake| {
        let (start, end) = whole(wake);
        // Of the notifier only what it does until the waking counts, of the waiter only what follows its coming in.
        let spans = [
            (wake.tasks[0], start, wake.at(Mark::Issued).unwrap_or(end)),
            (wake.tasks[1], wake.at(Mark::ScheduledIn).unwrap_or(start), end),
        ];
        let lost = |(side, from, to): (i32, i64, i64)| {
            let leaves = |what: &What| matches!(what, What::Switch { from, state, .. } if *from == side && state & GONE == 0);
            let ps = held_ps(
                wake,
                (from, to),
                false,
                |event| leaves(&event.what),
                |event| matches!(event.what, What::Switch { to, .. } if to == side),
            );
            let by =
                wake.events.iter().filter(|event| event.at >= from && event.at <= to).find_map(|event| {
                    match &event.what {
                        What::Switch { to, .. } if leaves(&event.what) => Some(*to),
                        _ => None,
                    }
                })?;
            (ps > 0).then(|| {
                (ps, format!("{} lost its CPU to {} for {}", called(wake, side), called(wake, by), took(ps)))
            })
        };
        spans.into_iter().filter_map(lost).max_by_key(|found| found.0)
    },
};
