// SPDX-License-Identifier: MIT OR Apache-2.0
//! A side was stopped by a signal (SIGSTOP, a debugger).

use super::{Cause, called, held_ps, took, whole};
use crate::trace::What;

/// `TASK_STOPPED` and `TASK_TRACED`, as sched_switch reports them (kernel include/linux/sched.h).
const STOPPED: i64 = 4 | 8;

pub(super) const CAUSE: Cause = Cause {
    name: "stopped by a signal",
    cure: "find who sends SIGSTOP or traces the process (`grep TracerPid /proc/PID/status`)",
    find: |wake| {
        let stopped = |side: i32| {
            let begins = |what: &What| matches!(what, What::Switch { from, state, .. } if *from == side && state & STOPPED != 0);
            // One that was stopped before the wake began has its last switch before it.
            let before = wake.events.iter().any(|event| event.at < 0 && begins(&event.what));
            let ps = held_ps(
                wake,
                whole(wake),
                before,
                |event| begins(&event.what),
                |event| matches!(event.what, What::Switch { to, .. } if to == side),
            );
            (ps > 0).then(|| (ps, format!("{} was stopped for {}", called(wake, side), took(ps))))
        };
        wake.tasks.into_iter().filter_map(stopped).max_by_key(|found| found.0)
    },
};
