// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up results for tests: what a sane run on two CPUs would have left.

use std::collections::BTreeMap;

use super::Quantity;
use super::result::{Primitive, Primitives, SCHEMA_VERSION};
use super::subject::{Carries, MadeOf, Measured, Noticed, Notification, Notifiers, Subject, Waits};
use super::{
    Environment, Figure, Histogram, Outcome, Record, ResultFile, Series, SideCounters, Tally, Warning,
};
use crate::configuration::{Configuration, Pattern, Placement, Timing, Until};
use crate::machine::Machine;
use crate::plan::Plan;

/// Back-to-back round trips between CPUs 0 and 1.
pub fn configuration(subject: &str) -> Configuration {
    Configuration {
        timing: Timing::Stamp,
        placement: Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
        ..Configuration::new(subject, Pattern::PingPong { gap_ns: 0 }, Until::count(1000))
    }
}

/// What a configuration's subject is, for the few names that tests use; any other blocks, coalesces
/// and drops nothing, as a futex does.
pub fn subject(configuration: &Configuration) -> Subject {
    let name = configuration.subject.as_str();
    let futex = Notification {
        waits: Waits::Blocks,
        coalesces: true,
        drops: false,
        descriptor: false,
        timed: true,
        notifiers: Notifiers::One,
        carries: Carries::Nothing,
        processes: true,
        threads: true,
    };
    let descriptor = Notification { descriptor: true, notifiers: Notifiers::Several, ..futex };
    let stream = Notification { coalesces: false, carries: Carries::Message, ..descriptor };
    let notification = match name {
        "null" => Notification { waits: Waits::Nothing, ..futex },
        "spin" | "umwait" => Notification { waits: Waits::Spins, ..futex },
        "sched-yield" => Notification { waits: Waits::Yields, ..futex },
        "sem-posix" | "sem-posix-for-all" => {
            Notification { coalesces: false, notifiers: Notifiers::Several, ..futex }
        }
        "udp" => Notification { drops: true, ..stream },
        "pipe" | "fifo" | "tcp" | "unix-stream" | "unix-dgram" | "unix-seqpacket" => stream,
        name if name.starts_with("eventfd") => descriptor,
        _ => futex,
    };
    match configuration.pattern {
        Pattern::FanOut { .. } => Subject::FanOut { shared: name.ends_with("-for-all"), notification },
        Pattern::Operation { .. } => {
            let alone =
                ["clock-read", "getppid", "gettid", "gettid-syscall", "touch", "page-fault-anonymous"]
                    .contains(&name);
            let unit = if alone { "call" } else { "round" };
            Subject::Operation { two_sided: !alone, unit: unit.to_owned() }
        }
        Pattern::Tasks { .. } => {
            let made_of = match name {
                "life-thread" | "life-clone" => MadeOf::Threads,
                "life-fork" | "life-fork-exec" | "life-vfork" | "life-posix-spawn" => MadeOf::Processes,
                name if name.starts_with("thread-") => MadeOf::Threads,
                name if name.starts_with("process-") => MadeOf::Processes,
                _ => MadeOf::Code,
            };
            let lives = name.starts_with("life-");
            let measured = if lives { Measured::Lives } else { Measured::HandOffs };
            let sleeps = made_of != MadeOf::Code && !lives && !name.ends_with("-yield");
            Subject::Tasks { made_of, measured, sleeps }
        }
        Pattern::Io { .. } => {
            let noticed = match name {
                "io-null" => Noticed::Nothing,
                name if name.contains("poll") && name != "uring-sqpoll" => Noticed::ByPolling,
                "sync-hipri" | "uring-hybrid" => Noticed::ByPolling,
                _ => Noticed::ByInterrupt,
            };
            Subject::IoEngine { noticed, kernel_thread: name.contains("sqpoll") }
        }
        Pattern::Gpu { .. } => {
            let calls = name.starts_with("gpu-host") || name == "gpu-events";
            let sleeps =
                calls || ["block", "pause", "hybrid", "adaptive"].iter().any(|word| name.contains(word));
            let noticed = if sleeps { Noticed::ByInterrupt } else { Noticed::ByPolling };
            Subject::IoEngine { noticed, kernel_thread: calls }
        }
        Pattern::PingPong { .. } | Pattern::OneWay { .. } | Pattern::OpenLoop { .. } => {
            Subject::Mechanism(notification)
        }
    }
}

/// Samples between `low_ns` and three times that, most of them low, always the same ones.
pub fn histogram(low_ns: f64, count: u64) -> Histogram {
    let mut histogram = Histogram::new();
    for sample in 0..count {
        let place = (sample as f64 + 0.5) / count as f64;
        histogram.record((low_ns * 1000.0 * (1.0 + 2.0 * place.powi(4))) as u64);
    }
    histogram
}

/// So many samples, all of `ns`.
pub fn series(ns: f64, count: u64) -> Series {
    let mut times = Histogram::new();
    times.record_many((ns * 1000.0) as u64, count);
    Series::from(&times)
}

/// A figure without a formula.
pub fn figure(name: &str, value: f64) -> Figure {
    Figure { name: name.to_owned(), value, unit: String::new(), formula: String::new() }
}

/// A trial of `configuration` in `block` whose round trips begin at `low_ns`.
pub fn record(configuration: Configuration, block: u32, low_ns: f64) -> Record {
    let count = 1000;
    let series = BTreeMap::from([
        (Quantity::RoundTrip, Series::from(&histogram(low_ns, count))),
        (Quantity::Wake, Series::from(&histogram(low_ns / 2.0, count))),
        (Quantity::Notify, Series::from(&histogram(low_ns / 8.0, count))),
    ]);
    let window_ns = (low_ns * 2.0 * count as f64) as u64;
    let side = |name: &str, cpu| SideCounters {
        side: name.to_owned(),
        cpus: vec![cpu, cpu],
        migrations: Some(0),
        voluntary_switches: count,
        user_ns: window_ns / 10,
        system_ns: window_ns / 3,
        window_ns,
        ..SideCounters::default()
    };
    let cpus = configuration.placement.cpus.unwrap_or([0, 1]);
    Record {
        subject: subject(&configuration),
        configuration,
        block,
        attempts: 1,
        outcome: Outcome::Done,
        series,
        figures: vec![Figure {
            name: "per wake-up".to_owned(),
            value: low_ns / 2.0,
            unit: "ns".to_owned(),
            formula: "round trip / 2".to_owned(),
        }],
        slices: Vec::new(),
        fanout: None,
        io: None,
        tally: Tally { sent: count, seen: count, warmup: 100, ..Tally::default() },
        sides: vec![side("initiator", cpus[0]), side("responder", cpus[1])],
        load: None,
        anatomy: None,
        environment: Environment {
            started_at_unix_ns: 1_700_000_000_000_000_000 + u64::from(block) * 1_000_000_000,
            wall_ns: window_ns + 10_000_000,
            foreign_share: Some(0.01),
            steal_share: Some(0.0),
            interrupts: BTreeMap::from([("RES".to_owned(), 2 * count), ("LOC".to_owned(), 40)]),
            ..Environment::default()
        },
        warnings: Vec::new(),
    }
}

/// `record` with what its configuration names by now as its subject.
pub fn renamed(mut record: Record) -> Record {
    record.subject = subject(&record.configuration);
    record
}

/// A reading of the primitive costs before `block`.
pub fn primitives(block: u32, scale: f64) -> Primitives {
    let primitive = |name: &str, p50_ns: f64| Primitive {
        name: name.to_owned(),
        p50_ns: p50_ns * scale,
        min_ns: p50_ns * scale * 0.8,
        count: 1000,
    };
    Primitives {
        block,
        at_unix_ns: 1_700_000_000_000_000_000 + u64::from(block) * 1_000_000_000,
        primitives: vec![
            primitive("clock", 17.0),
            primitive("system-call", 240.0),
            primitive("cache-line-hop", 70.0),
            primitive("same-core-switch", 2770.0),
            primitive("wake-nobody", 530.0),
            primitive("two-core-wake", 8000.0),
        ],
    }
}

/// A run of `configurations` in `blocks` blocks; the round trips of
/// each configuration begin at what `low_ns` says.
pub fn result(
    configurations: &[Configuration],
    blocks: u32,
    low_ns: impl Fn(&Configuration, u32) -> f64,
) -> ResultFile {
    let records = (0..blocks)
        .flat_map(|block| {
            configurations.iter().map(move |configuration| (configuration.clone(), block)).collect::<Vec<_>>()
        })
        .map(|(configuration, block)| {
            let low = low_ns(&configuration, block);
            record(configuration, block, low)
        })
        .collect();
    ResultFile {
        verdict: None,
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".to_owned(),
        command_line: vec!["doorbell".to_owned(), "ping".to_owned()],
        name: Some("made up".to_owned()),
        started_at_unix_ns: 1_700_000_000_000_000_000,
        finished_at_unix_ns: 1_700_000_000_000_000_000 + u64::from(blocks) * 1_000_000_000,
        partial: false,
        machine: machine(),
        plan: Plan::new("ping", configurations.to_vec(), blocks, 1),
        primitives: (0..=blocks).map(|block| primitives(block, 1.0)).collect(),
        records,
        beside: Vec::new(),
        warnings: vec![Warning {
            name: "made-up".to_owned(),
            cause: "this result was not measured".to_owned(),
            effect: "none".to_owned(),
            cure: "measure".to_owned(),
        }],
    }
}

/// The records of `subject`.
pub fn of<'a>(result: &'a mut ResultFile, subject: &'a str) -> impl Iterator<Item = &'a mut Record> {
    result.records.iter_mut().filter(move |record| record.configuration.subject == subject)
}

/// Every configuration in it, of its plan and of its records.
pub fn configurations(result: &mut ResultFile) -> impl Iterator<Item = &mut Configuration> {
    let run = result.records.iter_mut().map(|record| &mut record.configuration);
    result.plan.configurations.iter_mut().chain(run)
}

/// A machine of which nothing is known but that its clock is the monotonic one.
pub fn machine() -> Machine {
    Machine::default()
}
