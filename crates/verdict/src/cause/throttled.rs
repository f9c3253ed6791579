// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control group had used up its quota.
//!
//! The counters say that the group stood still at some time since the last reading, and no event says when. What shows that it
//! was in this wake is a side that could have run on a CPU that ran nothing: else a CPU with a task to run runs it.

use std::cell::Cell;

use super::preempted::GONE;
use super::{Cause, held_ps, queued, took, waiters_cpu, whole};
use doorbell_results::about::About;
use doorbell_results::anatomy::{Mark, Wake};
use doorbell_results::event::What;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "throttling",
        what: "The control group of a side had used up its CPU time, and the side stood ready on a CPU that ran nothing.",
        taken: "The group's nr_throttled went up, and the events show a side that was ready on a CPU that ran nothing.",
        misleads: "The counter says for how long the group stood still since the last reading, and not when: several wake-ups of that time may each be given it.",
    },
    cure: "raise or lift the CPU limit of the container (cpu.max, `docker run --cpus`)",
    by_events: true,
    find: |wake| {
        let meanwhile = wake.meanwhile.as_ref()?;
        let periods = meanwhile.throttled_periods.filter(|periods| *periods > 0)?;
        let throttled_ps = meanwhile.throttled_ns?.saturating_mul(1000);
        let held = held_back(wake)?.min(throttled_ps);
        (held > 0).then(|| {
            (
                held,
                format!(
                    "a side stood ready for {} on a CPU that ran nothing; in the {} before it was caught nr_throttled went up by {periods} \
                     and the control group stood still for {}",
                    took(held),
                    took(meanwhile.window_ns.saturating_mul(1000)),
                    took(throttled_ps)
                ),
            )
        })
    },
};

/// How long a side stood ready on a CPU that ran nothing, picoseconds.
fn held_back(wake: &Wake) -> Option<u64> {
    let (start, end) = whole(wake);
    // Of the notifier only what it does until the waking counts, of the waiter only what follows its coming in.
    let lost = [
        (wake.tasks[0], start, wake.at(Mark::Issued).unwrap_or(end)),
        (wake.tasks[1], wake.at(Mark::ScheduledIn).unwrap_or(start), end),
    ];
    let lost = lost.map(|(side, from, to)| {
        let left = Cell::new(None);
        let leaves = |what: &What| matches!(what, What::Switch { from, state, to: 0, .. } if *from == side && state & GONE == 0);
        held_ps(
            wake,
            (from, to),
            false,
            |event| leaves(&event.what).then(|| left.set(Some(event.cpu))).is_some(),
            // Once that CPU runs another task the side would have to wait for it with any quota.
            |event| match event.what {
                What::Switch { to, .. } => to == side || to != 0 && left.get() == Some(event.cpu),
                _ => false,
            },
        )
    });
    lost.into_iter().chain(not_let_in(wake)).max()
}

/// How long the waiter was ready before it was let in, from when its CPU turned to nothing all the same. A CPU that was idle all
/// along may have been slow to leave its idle state, or may not have been told.
fn not_let_in(wake: &Wake) -> Option<u64> {
    let ((_, to), cpu) = (queued(wake)?, waiters_cpu(wake)?);
    let ready = wake.events.iter().find_map(|event| match event.what {
        What::Runnable { task, .. } if task == wake.tasks[1] && event.at >= 0 => Some(event.at),
        _ => None,
    })?;
    let turns = |what: &What| matches!(what, What::Idles { .. } | What::Switch { to: 0, .. });
    Some(held_ps(
        wake,
        (ready, to),
        false,
        |event| event.cpu == cpu && event.at > ready && turns(&event.what),
        |event| event.cpu == cpu && matches!(event.what, What::Switch { to, .. } if to != 0),
    ))
}
