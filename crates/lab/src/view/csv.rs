// SPDX-License-Identifier: MIT OR Apache-2.0
//! A long table of comma-separated values: one number a line, with everything that tells where it comes from.

use std::io::{self, Write};

use super::axis::Axis;
use super::export::Export;
use crate::mechanism::Contexts;
use crate::record::{Outcome, Record, ResultFile};
use crate::trial::cell::{Pattern, Scheduler, Timing, WaitPolicy};

/// The table.
#[derive(Debug, Clone, Copy)]
pub struct Csv;

const COLUMNS: [&str; 26] = [
    "result",
    "record",
    "block",
    "attempts",
    "outcome",
    "mechanism",
    "contexts",
    "pattern",
    "gap_ns",
    "receivers",
    "tasks",
    "yields",
    "batch",
    "timing",
    "wait",
    "wait_ns",
    "placement",
    "cpu_first",
    "cpu_second",
    "size_bytes",
    "scheduler",
    "load",
    "quantity",
    "statistic",
    "value",
    "unit",
];

impl Export for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "one number a line: every statistic, counter and figure of every trial, with the cell it belongs to"
    }

    fn export(&self, result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(out);
        table.write_record(COLUMNS)?;
        let name = result.name.clone().unwrap_or_else(|| result.started_at_unix_ns.to_string());
        for (index, record) in result.records.iter().enumerate() {
            let head = [name.clone(), index.to_string()].into_iter().chain(head(record));
            let head: Vec<String> = head.collect();
            for Number { quantity, statistic, value, mut unit } in numbers(record) {
                // A program that looks for nanoseconds must not take an emulator's for a machine's.
                if result.emulated() && !["", "count"].contains(&unit.as_str()) {
                    unit.push_str(" emulated");
                }
                table.write_record(head.iter().map(String::as_str).chain([
                    quantity.as_str(),
                    statistic.as_str(),
                    value.as_str(),
                    unit.as_str(),
                ]))?;
            }
        }
        table.flush()
    }
}

/// The record and its cell, in the order of [`COLUMNS`] from `block` to `load`.
fn head(record: &Record) -> [String; 20] {
    let cell = &record.cell;
    let outcome = match record.outcome {
        Outcome::Done => "done",
        Outcome::Skipped { .. } => "skipped",
        Outcome::Implausible { .. } => "implausible",
        Outcome::Hung { .. } => "hung",
        Outcome::Failed { .. } => "failed",
        Outcome::Partial => "partial",
    };
    let contexts = match cell.contexts {
        Contexts::Processes => "processes",
        Contexts::Threads => "threads",
    };
    let (pattern, batch) = match cell.pattern {
        Pattern::PingPong { .. } => ("ping-pong", String::new()),
        Pattern::OneWay { .. } => ("one-way", String::new()),
        Pattern::OpenLoop { .. } => ("open-loop", String::new()),
        Pattern::FanOut { .. } => ("fan-out", String::new()),
        Pattern::Operation { batch } => ("operation", batch.to_string()),
        Pattern::Tasks { .. } => ("tasks", String::new()),
    };
    let receivers = match cell.pattern {
        Pattern::FanOut { receivers, .. } => receivers.to_string(),
        _ => String::new(),
    };
    let [tasks, yields] = match cell.pattern {
        Pattern::Tasks { tasks, yields } => [tasks, yields].map(|number| number.to_string()),
        _ => [const { String::new() }; 2],
    };
    let timing = match cell.timing {
        Timing::Around => "around",
        Timing::Stamp => "stamp",
        Timing::Blocked => "blocked",
    };
    let (wait, wait_ns) = match cell.wait {
        WaitPolicy::Block => ("block", String::new()),
        WaitPolicy::Spin => ("spin", String::new()),
        WaitPolicy::SpinThenBlock { spin_ns } => ("spin-then-block", spin_ns.to_string()),
        WaitPolicy::Timeout { timeout_ns } => ("timeout", timeout_ns.to_string()),
    };
    let scheduler = match cell.scheduler {
        Scheduler::Other => "other",
        Scheduler::Fifo => "fifo",
    };
    let load = Axis::Load.value(cell);
    let cpu = |index: usize| cell.placement.cpus.map_or_else(String::new, |cpus| cpus[index].to_string());
    [
        record.block.to_string(),
        record.attempts.to_string(),
        outcome.to_owned(),
        cell.subject.clone(),
        contexts.to_owned(),
        pattern.to_owned(),
        cell.pattern.gap_ns().to_string(),
        receivers,
        tasks,
        yields,
        batch,
        timing.to_owned(),
        wait.to_owned(),
        wait_ns,
        cell.placement.relation.clone(),
        cpu(0),
        cpu(1),
        cell.size.to_string(),
        scheduler.to_owned(),
        load,
    ]
}

struct Number {
    quantity: String,
    statistic: String,
    value: String,
    unit: String,
}

fn number(quantity: &str, statistic: &str, value: impl ToString, unit: &str) -> Number {
    Number {
        quantity: quantity.to_owned(),
        statistic: statistic.to_owned(),
        value: value.to_string(),
        unit: unit.to_owned(),
    }
}

/// Every number of a record; for one without figures, a single line that keeps its outcome in the table.
fn numbers(record: &Record) -> Vec<Number> {
    let mut all = Vec::new();
    // Figures of an implausible record never reach a table.
    if matches!(record.outcome, Outcome::Done | Outcome::Partial) {
        for (quantity, series) in &record.series {
            let quantity = quantity.name();
            all.push(number(quantity, "count", series.count, "count"));
            for (statistic, ns) in [
                ("min", series.min_ns),
                ("p50", series.p50_ns),
                ("p90", series.p90_ns),
                ("p99", series.p99_ns),
                ("p99.9", series.p999_ns),
                ("max", series.max_ns),
                ("mean", series.mean_ns),
                ("stdev", series.stdev_ns),
            ] {
                all.push(number(quantity, statistic, ns, "ns"));
            }
        }
        let figures = record.figures.iter().filter(|figure| figure.value.is_finite());
        all.extend(figures.map(|figure| number(&figure.name, "value", figure.value, &figure.unit)));
        if let Some(yardstick) = &record.yardstick {
            all.push(number("yardstick", "round_trip", yardstick.round_trip_ns, "ns"));
            all.push(number("yardstick", "ratio", yardstick.ratio, ""));
            all.push(number("yardstick", "slices", yardstick.slices, "count"));
        }
        let tally = &record.tally;
        for (statistic, count) in [
            ("sent", tally.sent),
            ("seen", tally.seen),
            ("lost", tally.lost),
            ("late", tally.late),
            ("duplicate", tally.duplicate),
            ("spurious", tally.spurious),
            ("merged", tally.merged),
            ("timeouts", tally.timeouts),
            ("warmup", tally.warmup),
            ("proven_asleep", tally.proven_asleep),
        ] {
            all.push(number("tally", statistic, count, "count"));
        }
        for side in &record.sides {
            for (statistic, count, unit) in [
                ("voluntary_switches", side.voluntary_switches, "count"),
                ("involuntary_switches", side.involuntary_switches, "count"),
                ("minor_faults", side.minor_faults, "count"),
                ("major_faults", side.major_faults, "count"),
                ("user", side.user_ns, "ns"),
                ("system", side.system_ns, "ns"),
                ("window", side.window_ns, "ns"),
            ] {
                all.push(number(&side.side, statistic, count, unit));
            }
            all.extend(side.migrations.map(|moves| number(&side.side, "migrations", moves, "count")));
        }
        for (kind, count) in &record.surroundings.interrupts {
            all.push(number("interrupts", kind, count, "count"));
        }
        let shares =
            [("foreign", record.surroundings.foreign_share), ("steal", record.surroundings.steal_share)];
        for (statistic, share) in shares {
            all.extend(share.map(|share| number("surroundings", statistic, share, "CPUs")));
        }
    }
    if all.is_empty() {
        all.push(number("", "", "", ""));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    fn table(result: &ResultFile) -> Vec<csv::StringRecord> {
        let mut text = Vec::new();
        Csv.export(result, &mut text).unwrap();
        csv::Reader::from_reader(text.as_slice()).records().map(Result::unwrap).collect()
    }

    #[test]
    fn every_line_has_every_column_and_the_numbers_are_those_of_the_result() {
        let mut result = sample::result(&[sample::cell("futex")], 2, |_, _| 16_000.0);
        result.name = Some("with, comma and \"quotes\"".to_owned());
        let table = table(&result);
        assert!(table.iter().all(|line| line.len() == COLUMNS.len()));
        let column = |name| COLUMNS.iter().position(|column| *column == name).unwrap();
        let p50 = table
            .iter()
            .find(|line| &line[column("quantity")] == "round-trip" && &line[column("statistic")] == "p50")
            .unwrap();
        let written: f64 = p50[column("value")].parse().unwrap();
        assert_eq!(written, result.records[0].series[&crate::record::series::Quantity::RoundTrip].p50_ns);
        assert_eq!(&p50[0], "with, comma and \"quotes\"");
    }

    #[test]
    fn a_record_without_figures_keeps_its_outcome_and_shows_no_number() {
        let mut result = sample::result(&[sample::cell("futex")], 1, |_, _| 16_000.0);
        result.records[0].outcome = Outcome::Implausible { violations: Vec::new() };
        let table = table(&result);
        assert_eq!(table.len(), 1);
        assert_eq!((&table[0][4], &table[0][22]), ("implausible", ""));
    }
}
