// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiter's CPU was idle, was told of the wake, and took its time to leave its idle state.

use super::{Cause, took, waiters_cpu};
use doorbell_results::about::About;
use doorbell_results::anatomy::Mark;
use doorbell_results::event::What;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "idle exit",
        what: "The waiter's CPU was idle when it was told, and took long to leave its idle state.",
        taken: "From the sending of the interrupt, or where that is not recorded from when the wakeup was issued, to the first sign that the CPU left its idle state.",
        misleads: "In a guest the hypervisor's delay in running the CPU again is in it.",
    },
    cure: "keep CPUs from deep idle states (`/dev/cpu_dma_latency`, idle=poll); in a guest raise halt_poll_ns on the host",
    by_events: true,
    find: |wake| {
        let cpu = waiters_cpu(wake).filter(|_| wake.across)?;
        let told = wake.at(Mark::InterruptSent).or_else(|| wake.at(Mark::Issued))?;
        let left = wake.at(Mark::Taken)?;
        // Idle from before it was told, and the last that its CPU said.
        let last = wake.events.iter().rfind(|event| {
            event.cpu == cpu && event.at <= told && matches!(event.what, What::Idles { .. } | What::Wakes)
        })?;
        let What::Idles { state } = last.what else { return None };
        let ps = left.saturating_sub(told).max(0).unsigned_abs();
        let slept = told.saturating_sub(last.at).max(0).unsigned_abs();
        Some((
            ps,
            format!(
                "CPU {cpu} had been idle (state {state}) for {} and took {} from being told to running again",
                took(slept),
                took(ps)
            ),
        ))
    },
};
