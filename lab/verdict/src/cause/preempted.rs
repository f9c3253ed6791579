// SPDX-License-Identifier: MIT OR Apache-2.0
//! A side lost its CPU in the middle of the wake: the notifier before it had notified, or the
//! waiter after it had run.

use super::ready::{Ran, Ready, lost};
use super::{Cause, called, took};
use doorbell_results::about::About;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "involuntary switch",
        what: "A side lost its CPU to another task though it would have gone on.",
        taken: "sched_switch took the side off its CPU runnable; what other tasks ran there \
            counts, until the side is scheduled in again.",
        misleads: "What took the CPU may itself have waited for the side, as a kernel thread does.",
    },
    cure: "keep other work off the CPUs of both sides (cpuset, isolcpus), or raise their priority",
    by_events: true,
    find: |wake| {
        let stopped = wake.meanwhile.as_ref().and_then(|meanwhile| {
            let ns = meanwhile.throttled_ns.filter(|ns| *ns > 0)?;
            Some(format!(
                "; the control group stood still too, for {} of the {} before it was caught",
                took(ns.saturating_mul(1000)),
                took(meanwhile.window_ns.saturating_mul(1000))
            ))
        });
        let out = lost(wake);
        let of = |side: i32| {
            let spans: Vec<Ready> = out.iter().copied().filter(|ready| ready.side == side).collect();
            let ran = Ran::during(wake, &spans);
            let idle =
                (ran.idle_ps > 0).then(|| format!("; that CPU also ran nothing for {}", took(ran.idle_ps)));
            (ran.others_ps() > 0).then(|| {
                let mut said = format!("{} lost its CPU to {}", called(wake, side), ran.named(wake));
                said.extend(idle.into_iter().chain(stopped.clone()));
                (ran.others_ps(), said)
            })
        };
        wake.tasks.into_iter().filter_map(of).max_by_key(|found| found.0)
    },
};
