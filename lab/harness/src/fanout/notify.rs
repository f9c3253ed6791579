// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the notifier of a fan-out does: round after round it posts to
//! every receiver, in a fresh random order.
//!
//! The order is drawn at random so that a receiver's number and its place
//! in the round are two things: who wakes early because it was posted to
//! early is then told from who wakes early because of what it is.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use super::table::Table;
use crate::control::Step;
use crate::counters::Counters;
use crate::fanout::fan::Fan;
use crate::mechanism::Notifier;
use crate::role::pause::pause_until;
use crate::side::SideError;
use crate::site::OpenError;
use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::Ticks;
use doorbell_results::record::{Histogram, SideCounters};

#[derive(Debug)]
pub struct Notified {
    pub rounds: Vec<Round>,
    /// Cost of each post after the warm-up.
    pub posts: Histogram,
    pub counters: SideCounters,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// Just before the first post.
    pub began: Ticks,
    pub ended: Ticks,
    /// Receivers in the order in which they were posted to.
    pub order: Vec<u32>,
}

/// How often it is looked whether everybody has come: rarely enough
/// to leave a shared core to the receivers.
const LOOK: Duration = Duration::from_micros(500);

/// How long receivers have to fall asleep before the first round.
const SETTLE: Duration = Duration::from_millis(20);

/// How long a shared object's posts may stay where they are before
/// the round counts as over: nobody is owed one.
const STALE: Duration = Duration::from_millis(200);

pub fn notify<F: Fan>(fan: &F, table: &Table) -> Result<Notified, SideError> {
    let (part, control) = (&table.part, table.control);
    let clock = part.clock;
    step(table, Step::Meets, 0);
    // Pairs with the Release increments of the receivers and the Release store of the host.
    while control.ready.load(Acquire) < part.receivers || control.go.load(Acquire) == 0 {
        std::thread::sleep(LOOK);
    }
    let mut ends =
        (0..part.receivers).map(|number| fan.notifier(number)).collect::<Result<Vec<_>, OpenError>>()?;
    let mut random = fastrand::Rng::with_seed(part.seed);
    let mut order: Vec<u32> = (0..part.receivers).collect();
    let mut rounds = Vec::with_capacity(part.all_rounds());
    let mut posts = Histogram::new();
    let interval = clock.ticks(fan.interval(Duration::from_nanos(part.interval_ns)));
    let mut due = clock.now().saturating_add(clock.ticks(SETTLE));
    fan.begins(due, interval);
    let (mut before, mut opened) = (Counters::read(), clock.now_awake());
    for round in 0..part.all_rounds() as u64 {
        await_taken(table, round);
        if control.interrupted.load(Relaxed) != 0 {
            break;
        }
        step(table, Step::Pauses, round);
        pause_until(clock, due, true);
        if round == part.warmup {
            posts.clear();
            (before, opened) = (Counters::read(), clock.now_awake());
        }
        random.shuffle(&mut order);
        step(table, Step::Notifies, round + 1);
        for byte in table.payload {
            byte.store(round as u8, Relaxed);
        }
        // Pairs with the Acquire load of a receiver on a shared object.
        control.round.store(round as u32 + 1, Release);
        let began = clock.now();
        let mut last = began;
        for &number in &order {
            // Pairs with the Acquire load in `receive`: whoever sees the stamp sees the payload.
            table.sent(round, number).store(fan.due(number, round).unwrap_or(last), Release);
            ends[number as usize].notify()?;
            let now = clock.now();
            posts.record(clock.ps(now.saturating_sub(last)));
            last = now;
        }
        fan.walked(round + 1);
        // After a round that was held up the next one is a whole interval away, not overdue; only timers
        // that were set in advance keep to their schedule.
        let start = if fan.due(0, round).is_some() { due } else { began };
        due = start.saturating_add(interval);
        rounds.push(Round { began, ended: last, order: order.clone() });
    }
    await_taken(table, rounds.len() as u64);
    let window_ns = clock.ps(clock.now().saturating_sub(opened)) / 1000;
    let counters = Counters::read().since(&before, "notifier", window_ns);
    // Pairs with the Acquire loads of the receivers.
    control.stop.store(1, Release);
    step(table, Step::Notifies, rounds.len() as u64 + 1);
    for (row, end) in table.rows().zip(&mut ends) {
        // Whose wait ran out may have seen the stop and left; a signal finds nobody then.
        match end.notify() {
            Err(_) if row.done() => {}
            notified => notified?,
        }
    }
    fan.walked(u64::MAX);
    step(table, Step::AwaitsTaken, rounds.len() as u64 + 1);
    while !table.rows().all(|row| row.done()) {
        std::thread::sleep(LOOK);
    }
    step(table, Step::Finished, rounds.len() as u64);
    Ok(Notified { rounds, posts, counters })
}

/// Waits until everybody has seen `rounds` rounds; on a shared
/// object, until every post was taken or has gone stale.
fn await_taken(table: &Table, rounds: u64) {
    step(table, Step::AwaitsTaken, rounds);
    if !table.part.shared {
        let mut behind = 0;
        while behind < table.part.receivers {
            if table.row(behind).seen() >= rounds {
                behind += 1;
            } else {
                std::thread::sleep(LOOK);
            }
        }
        return;
    }
    let posts = rounds * u64::from(table.part.receivers);
    let (mut taken, mut still) = (0, std::time::Instant::now());
    loop {
        let now: u64 = table.rows().map(|row| row.all_wakes()).sum();
        if now != taken {
            (taken, still) = (now, std::time::Instant::now());
        }
        if taken >= posts || still.elapsed() > STALE {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

fn step(table: &Table, step: Step, round: u64) {
    table.control.progress.sequence.store(round, Relaxed);
    table.control.progress.step.store(step as u32, Relaxed);
}
