// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results made by hand, for the tests of the views.

use std::collections::BTreeMap;

use doorbell_results::cell::{Cell, Pattern, Placement, Scheduler, Timing, Until, WaitPolicy};
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use doorbell_results::plan::{Layout, Plan};
use doorbell_results::record::result::{Floor, Floors, SCHEMA_VERSION};
use doorbell_results::record::subject::Contexts;
use doorbell_results::record::{
    Histogram, Outcome, Record, ResultFile, Series, SideCounters, Surroundings, Tally, Warning,
};

/// A ping-pong of `subject`, unpinned.
pub(super) fn cell(subject: &str) -> Cell {
    Cell {
        subject: subject.to_owned(),
        contexts: Contexts::Processes,
        pattern: Pattern::PingPong { gap_ns: 0 },
        timing: Timing::Around,
        wait: WaitPolicy::Block,
        placement: Placement { relation: "unpinned".into(), cpus: None },
        size: 0,
        until: Until::count(1000),
        scheduler: Scheduler::Other,
        injected_slowdown_ppm: None,
        without_yardstick: false,
        load: None,
        trace: None,
        target: None,
        latency_limit_us: None,
    }
}

/// A trial of `cell` whose headline quantity took `times_ps`.
pub(super) fn record(cell: &Cell, block: u32, times_ps: &[u64]) -> Record {
    let mut histogram = Histogram::new();
    for &ps in times_ps {
        histogram.record(ps);
    }
    let mut record = Record {
        cell: cell.clone(),
        subject: doorbell_results::record::sample::subject(cell),
        block,
        attempts: 1,
        outcome: Outcome::Done,
        series: BTreeMap::new(),
        figures: Vec::new(),
        yardstick: None,
        fanout: None,
        io: None,
        tally: Tally { sent: times_ps.len() as u64, seen: times_ps.len() as u64, ..Tally::default() },
        sides: ["notifier", "waiter"]
            .map(|side| SideCounters {
                side: side.into(),
                cpus: vec![0, 1],
                system_ns: 2500 * times_ps.len() as u64,
                ..SideCounters::default()
            })
            .into(),
        load: None,
        anatomy: None,
        surroundings: Surroundings::default(),
        warnings: Vec::new(),
    };
    let headline = doorbell_results::record::arm::Arm { cell, records: Vec::new() }.headline();
    record.series.insert(headline, Series::from(&histogram));
    record
}

/// A run of `experiment` with these records, its plan made of their cells.
pub(super) fn result(experiment: &str, records: Vec<Record>) -> ResultFile {
    let mut cells: Vec<Cell> = Vec::new();
    for record in &records {
        if !cells.contains(&record.cell) {
            cells.push(record.cell.clone());
        }
    }
    let blocks = records.iter().map(|record| record.block + 1).max().unwrap_or(1);
    let floor = |name: &str, p50_ns, min_ns| Floor { name: name.into(), p50_ns, min_ns, count: 10_000 };
    let started_at_unix_ns = 1_795_293_000_000_000_000;
    let floors = (0..=blocks).map(|block| Floors {
        block,
        at_unix_ns: started_at_unix_ns + u64::from(block) * 2_000_000_000,
        floors: vec![
            floor("clock", 12.5, 12.0),
            floor("system-call", 238.0 + f64::from(block), 230.0),
            floor("two-core-wake", 4400.0 - 10.0 * f64::from(block), 4100.5),
        ],
    });
    ResultFile {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        command_line: vec!["doorbell".into(), experiment.into(), "futex".into()],
        name: None,
        started_at_unix_ns,
        finished_at_unix_ns: started_at_unix_ns + 6_200_000_000,
        partial: false,
        machine: machine(),
        plan: Plan::new(experiment, layout(experiment), cells, blocks, 7),
        floors: floors.collect(),
        records,
        warnings: Vec::new(),
    }
}

/// The layout that the experiment of a name has.
fn layout(experiment: &str) -> Layout {
    match experiment {
        "survey" => Layout::Survey,
        "switch" => Layout::Operations,
        "fanout" => Layout::FanOut,
        "tasks" => Layout::Tasks,
        "io" => Layout::Io,
        "net" => Layout::Net,
        "idle" => Layout::Idle,
        "pairs" => Layout::Pairs,
        "anatomy" => Layout::Stages,
        "why" => Layout::SlowWakes,
        _ => Layout::Quantities,
    }
}

/// A machine of which nothing is known but its clock: what a file of the first layout holds.
fn machine() -> Machine {
    let known = serde_json::json!({ "clock": Clock::MONOTONIC });
    serde_json::from_value(known).expect("everything about a machine but its clock may be missing")
}

/// A warning called `name`.
pub(super) fn warning(name: &str) -> Warning {
    Warning {
        name: name.into(),
        cause: "another task used 0.4 of a measured CPU".into(),
        effect: "latencies of this trial may be too long".into(),
        cure: "stop other work, or measure on isolated CPUs".into(),
    }
}
