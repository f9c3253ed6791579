// SPDX-License-Identifier: MIT OR Apache-2.0
//! The times in which a side could have run and did not, CPU by CPU, and what its CPU ran
//! meanwhile.
//!
//! Only what ran on the CPU that the side waited for, and while it did, can have kept it from
//! running; the idle task cannot.

use std::collections::BTreeMap;

use super::{called, took, waiters_cpu};
use doorbell_results::anatomy::{Mark, Wake};
use doorbell_results::event::What;

/// Tasks that are named; the rest is a number.
const NAMED: usize = 3;

/// Bits of a task's state under which it sleeps or is stopped of its own; without them it would
/// have gone on.
const GONE: i64 = 0xff;

/// A time for which a side stood ready for one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) side: i32,
    pub(super) cpu: u32,
    pub(super) from: i64,
    pub(super) to: i64,
    /// From when it was in the CPU's queue: what the CPU ran before that may have kept it from
    /// there, and that it ran nothing says nothing.
    queued: i64,
}

/// The times for which a side that had run would have gone on. Of the notifier only what it does
/// until the waking counts, of the waiter only what follows its coming in.
pub(super) fn lost(wake: &Wake) -> Vec<Ready> {
    let end = i64::try_from(wake.whole_ps()).unwrap_or(i64::MAX);
    let parts = [
        (wake.tasks[0], 0, wake.at(Mark::Issued).unwrap_or(end)),
        (wake.tasks[1], wake.at(Mark::ScheduledIn).unwrap_or(0), end),
    ];
    let mut all = Vec::new();
    for (side, from, to) in parts {
        let mut out = None;
        for event in wake.events.iter().filter(|event| (from..=to).contains(&event.at)) {
            match event.what {
                What::Switch { from, state, .. } if from == side && state & GONE == 0 => {
                    out = Some((event.cpu, event.at));
                }
                _ => moved(&mut all, &mut out, side, event.at, &event.what),
            }
        }
        close(&mut all, &mut out, side, to);
    }
    all
}

/// The times for which the waiter was ready and had not come in, from when it was woken.
pub(super) fn queued(wake: &Wake) -> Vec<Ready> {
    let (Some(issued), Some(to)) = (wake.at(Mark::Issued), wake.at(Mark::ScheduledIn)) else {
        return Vec::new();
    };
    let Some(came_in_on) = waiters_cpu(wake) else { return Vec::new() };
    let waiter = wake.tasks[1];
    let within = || wake.events.iter().filter(move |event| (issued..=to).contains(&event.at));
    // Where nothing tells for which CPU it was made ready it is the one that it came in on, and it
    // was ready from the start.
    let told = within().find_map(|event| match event.what {
        What::Runnable { task, on } if task == waiter => Some((on, event.at)),
        _ => None,
    });
    let (first, ready) = told.unwrap_or((came_in_on, issued));
    // From the start all the same: until the waiter is made ready its CPU may be in what keeps it
    // from being so.
    let (mut all, mut out) = (Vec::new(), Some((first, issued)));
    for event in within().filter(|event| event.at >= ready) {
        moved(&mut all, &mut out, waiter, event.at, &event.what);
    }
    close(&mut all, &mut out, waiter, to);
    all.iter_mut().for_each(|span| span.queued = span.from.max(ready));
    all
}

/// What an event does to a side that stands ready: it comes in, or it is moved to another CPU and
/// stands ready there.
fn moved(all: &mut Vec<Ready>, out: &mut Option<(u32, i64)>, side: i32, at: i64, what: &What) {
    match what {
        What::Switch { to, .. } if *to == side => close(all, out, side, at),
        What::Migrates { task, to, .. } if *task == side && out.is_some() => {
            close(all, out, side, at);
            *out = Some((*to, at));
        }
        _ => {}
    }
}

fn close(all: &mut Vec<Ready>, out: &mut Option<(u32, i64)>, side: i32, to: i64) {
    let ready = out.take().map(|(cpu, from)| Ready { side, cpu, from, to, queued: from });
    all.extend(ready.filter(|ready| ready.to > ready.from));
}

/// What the CPUs ran while a side stood ready for them, picoseconds.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// Other tasks, with their priority as the kernel counts where it was told.
    tasks: BTreeMap<i32, (u64, Option<i32>)>,
    /// Nothing, from when the CPU turned to it: one that was idle all along may not have been told
    /// of the side yet.
    pub(super) idle_ps: u64,
}

/// Who runs on the CPU.
#[derive(Clone, Copy)]
struct Running {
    task: i32,
    /// As the kernel counts; none where nothing told of its coming.
    priority: Option<i32>,
    since: i64,
    /// The last event that said so.
    seen: i64,
}

impl Ran {
    pub(super) fn during(wake: &Wake, spans: &[Ready]) -> Self {
        let mut ran = Self::default();
        spans.iter().for_each(|ready| ran.add(wake, *ready));
        ran
    }

    fn add(&mut self, wake: &Wake, ready: Ready) {
        let Ready { side, cpu, from, to, queued } = ready;
        let mut running: Option<Running> = None;
        let mut add = |running: Option<Running>, until: i64| {
            let Some(Running { task, priority, since, .. }) = running else { return };
            let ps = until.saturating_sub(since.max(from)).max(0).unsigned_abs();
            match task {
                0 if since >= queued => self.idle_ps = self.idle_ps.saturating_add(ps),
                0 => {}
                task if task == side || ps == 0 => {}
                task => {
                    let time = self.tasks.entry(task).or_default();
                    *time = (time.0.saturating_add(ps), time.1.or(priority));
                }
            }
        };
        for event in wake.events.iter().filter(|event| event.cpu == cpu && event.at <= to) {
            let at = event.at;
            // Each event says who ran. Kernels were seen that do not tell when a CPU turns from
            // idle to a task: that one has been there since its first event at the latest, and the
            // one before it until its last at the least.
            running = match running {
                Some(before) if before.task == event.task => Some(Running { seen: at, ..before }),
                before => {
                    add(before, before.map_or(at, |before| before.seen));
                    Some(Running { task: event.task, priority: None, since: at, seen: at })
                }
            };
            match &event.what {
                What::Switch { to: next, to_priority, .. } => {
                    add(running, at);
                    running =
                        Some(Running { task: *next, priority: Some(*to_priority), since: at, seen: at });
                }
                // The idle task enters its idle state anew after each interrupt that brought no
                // work.
                What::Idles { .. }
                    if running.is_none_or(|running| running.task != 0 || running.since < queued) =>
                {
                    running = Some(Running { task: 0, priority: None, since: at, seen: at });
                }
                _ => {}
            }
        }
        // The idle task leaves when the side comes in, if not before; of another it is known until
        // the last that was heard of it.
        let until = running.map_or(to, |running| if running.task == 0 { to } else { running.seen });
        add(running, until);
    }

    pub(super) fn others_ps(&self) -> u64 {
        self.tasks.values().fold(0, |sum, (ps, _)| sum.saturating_add(*ps))
    }

    /// Those that ran, longest first: "'hog' (300) (real-time priority 50) for 888 µs".
    pub(super) fn named(&self, wake: &Wake) -> String {
        let mut others: Vec<_> = self.tasks.iter().collect();
        others.sort_by_key(|(_, (ps, _))| std::cmp::Reverse(*ps));
        let said = |(task, (ps, priority)): &(&i32, &(u64, Option<i32>))| {
            let kind = match priority {
                Some(priority @ ..100) => {
                    format!(" (real-time priority {})", 99_i32.saturating_sub(*priority))
                }
                Some(priority) => format!(" (nice {})", priority.saturating_sub(120)),
                None => String::new(),
            };
            format!("{}{kind} for {}", called(wake, **task), took(*ps))
        };
        let mut names: Vec<String> = others.iter().take(NAMED).map(said).collect();
        if others.len() > NAMED {
            names.push(format!("{} more", others.len() - NAMED));
        }
        names.join(", ")
    }
}
