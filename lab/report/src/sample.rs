// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results made by hand, for the tests of the views.

use crate::style::Style;
use crate::subsection::{self, Subsection};
use crate::switch::WRITES_ALONE;
use crate::tasks::CONTROL;
use doorbell_results::configuration::{Configuration, Pattern, Until};
use doorbell_results::plan::Plan;
use doorbell_results::record::{
    Environment, Figure, Histogram, Record, ResultFile, Series, SideCounters, Tally, Variant, Warning, sample,
};

/// A ping-pong of `subject`, unpinned.
pub(super) fn configuration(subject: &str) -> Configuration {
    with(subject, Pattern::PingPong { gap_ns: 0 })
}

/// The same with another pattern.
pub(super) fn with(subject: &str, pattern: Pattern) -> Configuration {
    Configuration::new(subject, pattern, Until::count(1000))
}

/// A trial of `configuration` whose headline quantity took `times_ps`.
pub(super) fn record(configuration: &Configuration, block: u32, times_ps: &[u64]) -> Record {
    let mut histogram = Histogram::new();
    times_ps.iter().for_each(|ps| histogram.record(*ps));
    let headline = Variant { configuration, records: Vec::new(), grid_ps: 0.0 }.headline();
    let samples = times_ps.len() as u64;
    let side = |side: &str| SideCounters {
        side: side.into(),
        cpus: vec![0, 1],
        system_ns: 2500 * samples,
        ..SideCounters::default()
    };
    Record {
        series: [(headline, Series::from(&histogram))].into(),
        figures: Vec::new(),
        tally: Tally { sent: samples, seen: samples, ..Tally::default() },
        sides: ["notifier", "waiter"].map(side).into(),
        environment: Environment::default(),
        ..sample::record(configuration.clone(), block, 16_000.0)
    }
}

/// A figure beside the series, in nanoseconds.
pub(super) fn figure(name: &str, value: f64) -> Figure {
    Figure { name: name.to_owned(), value, unit: "ns".to_owned(), formula: String::new() }
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
    let mut plan = Plan::new(experiment, configurations, blocks, 7);
    told(experiment, &mut plan);
    ResultFile {
        command_line: vec!["doorbell".into(), experiment.into(), "futex".into()],
        name: None,
        plan,
        records,
        warnings: Vec::new(),
        ..sample::result(&[], blocks, |_, _| 0.0)
    }
}

/// What is told, in plain characters and without its lines' ends.
pub(super) fn flat(told: &[Subsection]) -> String {
    subsection::text(told, &Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ")
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

/// A warning called `name`.
pub(super) fn warning(name: &str) -> Warning {
    Warning {
        name: name.into(),
        cause: "another task used 0.4 of a measured CPU".into(),
        effect: "latencies of this trial may be too long".into(),
        cure: "stop other work, or measure on isolated CPUs".into(),
    }
}
