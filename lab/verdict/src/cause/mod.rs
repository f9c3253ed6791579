// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes of slow wake-ups, one file each: what the events must show for it to be named.
//!
//! A cause is found only where events or counters of that very wake show it, together with how much
//! of the wake it covers. Adding one is adding a file here and one line in [`ALL`].

use doorbell_results::about::About;
use doorbell_results::anatomy::{Mark, Wake};
use doorbell_results::event::What;

mod fault;
mod idle_exit;
mod interrupt;
mod migration;
mod other_task;
mod preempted;
mod ready;
mod rescued;
mod steal;
mod stopped;
mod throttled;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub name: &'static str,
    /// How much of the wake it covers, picoseconds.
    pub covers_ps: u64,
    pub evidence: String,
}

#[derive(Debug)]
pub struct Cause {
    pub about: About,
    pub cure: &'static str,
    /// Whether it is found by events: then a list that leaves some out may lack the very one that
    /// ends it, or rules it out.
    by_events: bool,
    find: fn(&Wake) -> Option<(u64, String)>,
}

/// Every cause. The one list to extend.
pub const ALL: [Cause; 10] = [
    rescued::CAUSE,
    throttled::CAUSE,
    stopped::CAUSE,
    other_task::CAUSE,
    preempted::CAUSE,
    migration::CAUSE,
    fault::CAUSE,
    interrupt::CAUSE,
    idle_exit::CAUSE,
    steal::CAUSE,
];

/// A cause must cover this share of a wake to be what made it slow;
/// else several small things did, or something unseen.
const ENOUGH: f64 = 0.5;

/// Every cause that the wake shows, the one that covers most first. Of a wake with more events than
/// were kept, those that need none.
pub fn causes(wake: &Wake) -> Vec<Found> {
    let mut found: Vec<Found> = ALL
        .iter()
        .filter(|cause| wake.events_left_out == 0 || !cause.by_events)
        .filter_map(|cause| {
            let (covers_ps, evidence) = (cause.find)(wake)?;
            Some(Found { name: cause.about.name, covers_ps: covers_ps.min(wake.whole_ps()), evidence })
        })
        .collect();
    // Of those that cover as much, the one that stands first in the list explains the others.
    found.sort_by_key(|found| std::cmp::Reverse(found.covers_ps));
    found
}

/// The cause that made it slow; none where no cause covers enough of it.
pub fn verdict(wake: &Wake) -> Option<Found> {
    let enough = (wake.whole_ps() as f64 * ENOUGH) as u64;
    causes(wake).into_iter().find(|found| found.covers_ps >= enough.max(1))
}

/// The stage that took longest, with its time in picoseconds.
pub fn longest(wake: &Wake) -> Option<(Mark, u64)> {
    let stage = |(mark, from, to): (Mark, i64, i64)| (mark, to.saturating_sub(from).max(0).unsigned_abs());
    wake.stages().map(stage).max_by_key(|stage| stage.1)
}

/// The times between `from` and `to` during which a state held that `begins` and `ends` tell of,
/// picoseconds. What began before or ends after is cut off; `held` says whether it holds at `from`.
fn held_ps(
    wake: &Wake,
    (from, to): (i64, i64),
    mut held: bool,
    begins: impl Fn(&doorbell_results::event::Event) -> bool,
    ends: impl Fn(&doorbell_results::event::Event) -> bool,
) -> u64 {
    let mut since = from;
    let mut sum = 0_u64;
    for event in wake.events.iter().filter(|event| (from..=to).contains(&event.at)) {
        if !held && begins(event) {
            (held, since) = (true, event.at);
        } else if held && ends(event) {
            held = false;
            sum = sum.saturating_add(event.at.saturating_sub(since).unsigned_abs());
        }
    }
    if held {
        sum = sum.saturating_add(to.saturating_sub(since).max(0).unsigned_abs());
    }
    sum
}

fn waiters_cpu(wake: &Wake) -> Option<u32> {
    wake.marks.iter().find(|passed| passed.mark == Mark::ScheduledIn)?.cpu
}

/// From the notifier's stamp to the end.
fn whole(wake: &Wake) -> (i64, i64) {
    (0, i64::try_from(wake.whole_ps()).unwrap_or(i64::MAX))
}

/// Times as they are told: three digits and a unit.
fn took(ps: u64) -> String {
    let units = [(1e12, "s"), (1e9, "ms"), (1e6, "µs")];
    let (size, unit) = units.into_iter().find(|(size, _)| ps as f64 >= *size).unwrap_or((1e3, "ns"));
    let value = ps as f64 / size;
    let decimals = if value >= 100.0 { 0 } else { 1 + usize::from(value < 10.0) };
    format!("{value:.decimals$} {unit}")
}

/// How a task is called: its role, else its name and number.
fn called(wake: &Wake, task: i32) -> String {
    if task == wake.tasks[0] {
        return "the notifier".to_owned();
    }
    if task == wake.tasks[1] {
        return "the waiter".to_owned();
    }
    let name = wake.events.iter().find_map(|event| match &event.what {
        What::Switch { to, to_name, .. } if *to == task => Some(to_name),
        What::Switch { from, from_name, .. } if *from == task => Some(from_name),
        What::Runs { name } if event.task == task => Some(name),
        _ => None,
    });
    name.map_or_else(|| format!("task {task}"), |name| format!("'{name}' ({task})"))
}

#[cfg(test)]
mod tests;
