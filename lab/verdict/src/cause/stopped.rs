// SPDX-License-Identifier: MIT OR Apache-2.0
//! A side was stopped by a signal (SIGSTOP, a debugger).

use super::{Cause, called, held_ps, took, whole};
use doorbell_results::about::About;
use doorbell_results::event::What;

/// `TASK_STOPPED` and `TASK_TRACED`, as sched_switch reports them (kernel include/linux/sched.h).
const STOPPED: i64 = 4 | 8;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "stopped by a signal",
        what: "A side was stopped or traced, and had not been told to go on.",
        taken: "sched_switch took the side off its CPU stopped or traced; it ends where the side \
            is made ready.",
        misleads: "Who sent the signal is not recorded.",
    },
    cure: "find who sends SIGSTOP or traces the process (`grep TracerPid /proc/PID/status`)",
    by_events: true,
    find: |wake| {
        let stopped = |side: i32| {
            let begins = |what: &What| matches!(what, What::Switch { from, state, .. } if *from == side && state & STOPPED != 0);
            // One that was stopped when the wake began has not run
            // since. The notifier had: it took the stamp.
            let moved =
                |what: &What| matches!(what, What::Switch { from, to, .. } if *from == side || *to == side);
            let last = wake.events.iter().rfind(|event| event.at < 0 && moved(&event.what));
            let before = side != wake.tasks[0] && last.is_some_and(|event| begins(&event.what));
            let ps = held_ps(
                wake,
                whole(wake),
                before,
                |event| begins(&event.what),
                // Told to go on, it is no longer stopped but waits for a CPU.
                |event| matches!(event.what, What::Runnable { task: to, .. } | What::Switch { to, .. } if to == side),
            );
            (ps > 0).then(|| (ps, format!("{} was stopped for {}", called(wake, side), took(ps))))
        };
        wake.tasks.into_iter().filter_map(stopped).max_by_key(|found| found.0)
    },
};
