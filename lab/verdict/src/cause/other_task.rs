// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiter was ready, and its CPU ran something else.

use super::Cause;
use super::ready::{Ran, queued};
use doorbell_results::about::About;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "its CPU ran something else",
        what: "The waiter was ready, and its CPU ran other tasks.",
        taken: "The events of the CPU that the waiter stood ready for, from when the wakeup was \
            issued to when it was scheduled in, by task; the three longest are named.",
        misleads: "Where a task's coming was not recorded, it is counted from the first event in \
            which it ran.",
    },
    cure: "keep other work off the waiter's CPU (cpuset, isolcpus), or give the waiter a higher priority",
    by_events: true,
    find: |wake| {
        // One of them may be the notifier: on the waiter's CPU it goes on until it gives way.
        let spans = queued(wake);
        let ran = Ran::during(wake, &spans);
        let mut cpus: Vec<String> = spans.iter().map(|ready| ready.cpu.to_string()).collect();
        cpus.dedup();
        (ran.others_ps() > 0).then(|| {
            let said = format!(
                "while the waiter was ready, CPU {} ran {}",
                cpus.join(", then CPU "),
                ran.named(wake)
            );
            (ran.others_ps(), said)
        })
    },
};
