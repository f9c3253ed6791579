// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control group had used up its quota.
//!
//! The counters say that the group stood still at some time since the last reading, and no event
//! says when. What shows that it was in this wake is a side that could have run on a CPU that ran
//! nothing: else a CPU with a task to run runs it.

use super::ready::{Ran, lost, queued};
use super::{Cause, took};
use doorbell_results::about::About;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "throttling",
        what: "The control group of a side had used up its CPU time, and the side stood ready on a \
            CPU that ran nothing.",
        taken: "The group's nr_throttled went up, and the events show a side that was ready on a \
            CPU that ran nothing.",
        misleads: "The counter says for how long the group stood still since the last reading, and \
            not when: several wake-ups of that time may each be given it.",
    },
    cure: "raise or lift the CPU limit of the container (cpu.max, `docker run --cpus`)",
    by_events: true,
    find: |wake| {
        let meanwhile = wake.meanwhile.as_ref()?;
        let periods = meanwhile.throttled_periods.filter(|periods| *periods > 0)?;
        let throttled_ps = meanwhile.throttled_ns?.saturating_mul(1000);
        let ready = [lost(wake), queued(wake)].concat();
        // Once that CPU runs another task the side would have to wait for it with any quota.
        let held = Ran::during(wake, &ready).idle_ps.min(throttled_ps);
        (held > 0).then(|| {
            (
                held,
                format!(
                    "a side stood ready for {} on a CPU that ran nothing; in the {} before it was \
                     caught nr_throttled went up by {periods} and the control group stood still \
                     for {}",
                    took(held),
                    took(meanwhile.window_ns.saturating_mul(1000)),
                    took(throttled_ps)
                ),
            )
        })
    },
};
