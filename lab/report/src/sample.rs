// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results made by hand, for the tests of the views.

use std::collections::BTreeMap;

use crate::switch::WRITES_ALONE;
use crate::tasks::CONTROL;
use doorbell_results::configuration::{Configuration, Pattern, Until};
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use doorbell_results::plan::Plan;
use doorbell_results::record::result::{Primitive, Primitives, SCHEMA_VERSION};
use doorbell_results::record::{
    Environment, Histogram, Outcome, Record, ResultFile, Series, SideCounters, Tally, Warning,
};

/// A ping-pong of `subject`, unpinned.
pub(super) fn configuration(subject: &str) -> Configuration {
    Configuration::new(subject, Pattern::PingPong { gap_ns: 0 }, Until::count(1000))
}

/// A trial of `configuration` whose headline quantity took `times_ps`.
pub(super) fn record(configuration: &Configuration, block: u32, times_ps: &[u64]) -> Record {
    let mut histogram = Histogram::new();
    for &ps in times_ps {
        histogram.record(ps);
    }
    let mut record = Record {
        configuration: configuration.clone(),
        subject: doorbell_results::record::sample::subject(configuration),
        block,
        attempts: 1,
        outcome: Outcome::Done,
        series: BTreeMap::new(),
        figures: Vec::new(),
        slices: Vec::new(),
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
        environment: Environment::default(),
        warnings: Vec::new(),
    };
    let headline =
        doorbell_results::record::variant::Variant { configuration, records: Vec::new(), grid_ps: 0.0 }
            .headline();
    record.series.insert(headline, Series::from(&histogram));
    record
}

/// A run of `experiment` with these records, its plan made of their configurations.
pub(super) fn result(experiment: &str, records: Vec<Record>) -> ResultFile {
    let mut configurations: Vec<Configuration> = Vec::new();
    for record in &records {
        if !configurations.contains(&record.configuration) {
            configurations.push(record.configuration.clone());
        }
    }
    let blocks = records.iter().map(|record| record.block + 1).max().unwrap_or(1);
    let primitive =
        |name: &str, p50_ns, min_ns| Primitive { name: name.into(), p50_ns, min_ns, count: 10_000 };
    let started_at_unix_ns = 1_795_293_000_000_000_000;
    let primitives = (0..=blocks).map(|block| Primitives {
        block,
        at_unix_ns: started_at_unix_ns + u64::from(block) * 2_000_000_000,
        primitives: vec![
            primitive("clock", 12.5, 12.0),
            primitive("system-call", 238.0 + f64::from(block), 230.0),
            primitive("two-core-wake", 4400.0 - 10.0 * f64::from(block), 4100.5),
        ],
    });
    let mut plan = Plan::new(experiment, configurations, blocks, 7);
    told(experiment, &mut plan);
    ResultFile {
        verdict: None,
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        command_line: vec!["doorbell".into(), experiment.into(), "futex".into()],
        name: None,
        started_at_unix_ns,
        finished_at_unix_ns: started_at_unix_ns + 6_200_000_000,
        partial: false,
        machine: machine(),
        plan,
        primitives: primitives.collect(),
        records,
        beside: Vec::new(),
        warnings: Vec::new(),
    }
}

/// What an experiment of this name says that its results are told in, and who plays which part.
fn told(experiment: &str, plan: &mut Plan) {
    let section = match experiment {
        "survey" | "pairs" | "tasks" => experiment,
        "switch" => "operations",
        "fanout" => "fan-outs",
        "io" => "transfers",
        "net" => "messages",
        "idle" => "sleeps",
        "anatomy" => "stages",
        "why" => "slow-wakes",
        _ => return,
    };
    plan.sections = vec![section.to_owned()];
    let parts: &[(&str, &str)] = match experiment {
        "tasks" => &[("call", CONTROL), ("timer-ticks", "ticks")],
        "switch" => &[("touch", WRITES_ALONE)],
        _ => &[],
    };
    plan.parts = parts.iter().map(|(subject, part)| ((*subject).to_owned(), (*part).to_owned())).collect();
    plan.claims = match experiment {
        "fanout" => Some("semaphores".to_owned()),
        "tasks" => Some("tornado-os".to_owned()),
        "io" => Some("polling".to_owned()),
        "idle" => Some("idling".to_owned()),
        _ => None,
    };
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
