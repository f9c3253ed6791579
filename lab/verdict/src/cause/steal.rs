// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hypervisor ran somebody else on the CPU.
//!
//! A guest is told of steal time in ticks of 10 ms and by no event. So steal is named only where
//! the counter of a CPU that the wake needed moved since the last reading, and there is a gap of
//! this wake in which that CPU said nothing at all. A CPU that has not been told yet has nothing to
//! say; where it was idle then, [`idle_exit`](super::idle_exit) covers as much and is
//! what was seen, so it is named first.

use super::{Cause, took, waiters_cpu, whole};
use doorbell_results::about::About;
use doorbell_results::anatomy::Mark;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "steal",
        what: "The hypervisor ran something else on a CPU that the wake-up needed.",
        taken: "The CPU's steal time went up, and for that long it recorded nothing.",
        misleads: "The kernel counts steal in ticks, over a time that is longer than the wake-up: \
            it covers at most what the counter says.",
    },
    cure: "ask for a machine type with dedicated CPUs, or measure when the host is less busy",
    by_events: true,
    find: |wake| {
        let meanwhile = wake.meanwhile.as_ref()?;
        let (from, to) = whole(wake);
        let needed = |cpu: u32| wake.marks.iter().any(|passed| passed.cpu == Some(cpu));
        let (cpu, steal) = meanwhile
            .steal_ns
            .iter()
            .filter(|(cpu, ns)| needed(**cpu) && **ns > 0)
            .max_by_key(|(_, ns)| **ns)?;
        let told = wake.at(Mark::InterruptSent).or_else(|| wake.at(Mark::Issued));
        let from = if wake.across && waiters_cpu(wake) == Some(*cpu) {
            told.unwrap_or(from).max(from)
        } else {
            from
        };
        let mut last = from;
        let mut silent = 0;
        let said = wake.events.iter().filter(|event| event.cpu == *cpu && event.at >= from);
        for at in said.map(|event| event.at).chain([to]) {
            silent = at.saturating_sub(last).max(silent);
            last = at;
        }
        let silent = silent.max(0).unsigned_abs();
        // The counter may have moved for another moment of its window: no more is claimed than it says.
        let covers = silent.min(steal.saturating_mul(1000));
        Some((
            covers,
            format!(
                "the hypervisor took {} from CPU {cpu} in the {} before it was caught, and that \
                 CPU said nothing for {} of this wake-up",
                took(steal.saturating_mul(1000)),
                took(meanwhile.window_ns.saturating_mul(1000)),
                took(silent)
            ),
        ))
    },
};
