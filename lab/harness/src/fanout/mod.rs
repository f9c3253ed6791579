// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fan-out: one notifier, many receivers. What runs it is a host of processes where there is
//! fork, and of threads elsewhere.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use self::fan::FanEntry;
use self::table::{Part, Table};
use super::control::Step;
use doorbell_machine::clock::Now;
use doorbell_results::configuration::Configuration;
use doorbell_results::configuration::Pattern;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::LastSeen;

pub mod fan;
pub mod gather;
pub mod memory;
pub mod notify;
mod processes;
pub mod receive;
pub mod table;

pub use processes::allow_descriptors;
pub(super) use processes::run;

/// Rounds before recording begins: the first faults in code and data
/// of every receiver, the second finds them warm.
pub(super) const WARMUP: u64 = 2;

/// Without a step forward for this long, plus four intervals and
/// [`EACH`] for every receiver, a fan-out hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Time to start, to wake or to end one receiver on a machine that is
/// busy with others: a hundred times what it takes.
pub(super) const EACH: Duration = Duration::from_millis(20);

/// Time to report one wake, on top of that of a side: 4 to 10 µs in a debug build on a busy
/// machine, fifty times as long on an emulated CPU.
pub(super) const REPORT_EACH: Duration = Duration::from_micros(500);

/// How often the host looks for progress while the rounds go on.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often it looks whether all receivers stand ready, before anything is measured.
pub(super) const READY_EVERY: Duration = Duration::from_millis(5);

/// The stack of a receiving thread. Two thousand of the usual 2 MiB would only be address space,
/// but it counts against limits of it.
pub(super) const STACK: usize = 128 << 10;

/// Most receivers whose whereabouts a hang tells.
pub(super) const TOLD: usize = 4;

pub(super) fn part(clock: Clock, configuration: &Configuration, entry: &FanEntry) -> Result<Part, String> {
    let Pattern::FanOut { receivers, interval_ns } = configuration.pattern else {
        return Err("this is no fan-out".to_owned());
    };
    let part = Part {
        clock,
        wait: configuration.wait,
        receivers,
        warmup: WARMUP,
        rounds: configuration.until.count.unwrap_or(1),
        interval_ns,
        // Another order in each trial; none of them is special.
        seed: clock.now(),
        shared: entry.shared,
    };
    Ok(part)
}

/// The notifier's step and round, and how far all receivers have come.
pub(super) fn progress(table: &Table) -> (u32, u64, u64, u32) {
    let control = table.control;
    let seen = table.rows().map(|row| row.seen() + row.all_wakes() + u64::from(row.done())).sum();
    let notifier = &control.progress;
    (notifier.step.load(Relaxed), notifier.sequence.load(Relaxed), seen, control.ready.load(Relaxed))
}

/// Where the notifier is, and the first receivers that are behind it.
pub(super) fn last_seen(table: &Table) -> Vec<LastSeen> {
    let notifier = &table.control.progress;
    let round = notifier.sequence.load(Relaxed);
    let mut told = vec![LastSeen {
        side: "notifier".to_owned(),
        step: Step::name(notifier.step.load(Relaxed)).to_owned(),
        sequence: round,
    }];
    let behind = (0_u32..).zip(table.rows()).filter(|(_, row)| row.task() == 0 || row.seen() < round);
    told.extend(behind.take(TOLD).map(|(number, row)| LastSeen {
        side: format!("receiver {number}"),
        step: if row.task() == 0 { "starting" } else { "waits" }.to_owned(),
        sequence: row.seen(),
    }));
    told
}
