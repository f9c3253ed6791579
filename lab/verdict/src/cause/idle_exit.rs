// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiter's CPU was idle, was told of the wake, and took its time to leave its idle state.

use super::{Cause, took, waiters_cpu};
use doorbell_results::about::About;
use doorbell_results::anatomy::{Mark, Wake};
use doorbell_results::event::What;

pub(super) const CAUSE: Cause = Cause {
    about: About {
        name: "idle exit",
        what: "The waiter's CPU was idle when it was told, and took long to leave its idle state.",
        taken: "From the sending of the interrupt, or where that is not recorded from when the \
            wakeup was issued, to the first sign that the CPU left its idle state; of a recorded \
            program to when the idle task made room for the waiter.",
        misleads: "In a guest the hypervisor's delay in running the CPU again is in it. Of a \
            recorded program idle states are not seen: a waiter that an idle CPU took over from a \
            busy one looks the same.",
    },
    cure: "keep CPUs from deep idle states (`/dev/cpu_dma_latency`, idle=poll); in a guest raise \
        halt_poll_ns on the host",
    by_events: true,
    find: |wake| left_idle(wake).or_else(|| made_room(wake)),
};

/// What the CPU told of its idle states.
fn left_idle(wake: &Wake) -> Option<(u64, String)> {
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
}

/// Of a recorded program, whose idle states are not recorded: nobody is left waiting by a CPU that
/// turns to its idle task, so one that had it until the waiter came had nothing else to run.
fn made_room(wake: &Wake) -> Option<(u64, String)> {
    let cpu = waiters_cpu(wake).filter(|_| wake.across)?;
    let (issued, came) = (wake.at(Mark::Issued)?, wake.at(Mark::ScheduledIn)?);
    // Stamps are of a trial, and of a trial idle states are recorded.
    if wake.at(Mark::Sent).is_some() {
        return None;
    }
    let there = || wake.events.iter().filter(|event| event.cpu == cpu && event.at <= came);
    // Interrupts are told as the idle task's there; no other task may have run.
    let alone =
        there().filter(|event| event.at >= issued).all(|event| [0, wake.tasks[1]].contains(&event.task));
    let idle = there().rfind(|event| event.task != wake.tasks[1])?;
    let turned = match idle.what {
        What::Switch { to, .. } => to == wake.tasks[1],
        What::Runs { .. } => true,
        _ => false,
    };
    let ps = came.saturating_sub(issued).max(0).unsigned_abs();
    (alone && turned && idle.task == 0 && idle.at == came).then(|| {
        (ps, format!("CPU {cpu} was idle, and took {} from the wakeup to running the waiter", took(ps)))
    })
}
