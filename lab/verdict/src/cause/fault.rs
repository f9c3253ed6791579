// SPDX-License-Identifier: MIT OR Apache-2.0
//! A side touched memory that was not there.

use super::{Cause, called, took, whole};
use doorbell_results::about::About;
use doorbell_results::event::What;

/// `TASK_INTERRUPTIBLE` and `TASK_UNINTERRUPTIBLE`, as sched_switch
/// reports them (kernel include/linux/sched.h).
const ASLEEP: i64 = 1 | 2;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "page fault",
        what: "A side touched a page that was not there.",
        taken: "A page fault of a side in user mode; it ends at the side's next event.",
        misleads: "What the side did between the fault and that event is counted with it.",
    },
    cure: "touch and lock the memory beforehand (mlockall, MAP_POPULATE)",
    by_events: true,
    find: |wake| {
        let (_, end) = whole(wake);
        let own = |event: &&doorbell_results::event::Event| wake.tasks.contains(&event.task) && event.at >= 0;
        let mut worst: Option<(u64, String)> = None;
        let mut number = 0;
        for event in wake.events.iter().filter(own) {
            if event.what != What::Fault {
                continue;
            }
            number += 1;
            // The kernel tells when a fault begins. It is over at the latest when the task next does
            // something that is told; until then it runs nothing else but its own few
            // instructions. It may sleep for its page, but whoever loses the CPU or is stopped
            // waits for something else.
            let next = wake
                .events
                .iter()
                .find(|other| {
                    other.task == event.task
                        && other.at > event.at
                        && !matches!(other.what, What::Switch { state, .. } if state & ASLEEP != 0)
                })
                .map_or(end, |other| other.at.min(end));
            let ps = next.saturating_sub(event.at).max(0).unsigned_abs();
            let text = format!(
                "{} touched a page that was not there; at most {} went into it",
                called(wake, event.task),
                took(ps)
            );
            if worst.as_ref().is_none_or(|worst| ps > worst.0) {
                worst = Some((ps, text));
            }
        }
        let (ps, text) = worst?;
        let more = if number > 1 { format!(" ({number} faults in all)") } else { String::new() };
        Some((ps, format!("{text}{more}")))
    },
};
