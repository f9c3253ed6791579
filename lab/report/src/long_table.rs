// SPDX-License-Identifier: MIT OR Apache-2.0
//! The long table that exports share: one number a line, with
//! everything that tells where it comes from.

use std::rc::Rc;

use super::axis::Axis;
use doorbell_results::configuration::{Configuration, Target, Timing, Trace, WaitPolicy};
use doorbell_results::record::subject::Contexts;
use doorbell_results::record::{Outcome, Record, ResultFile};
use doorbell_results::schedule::Schedule;

/// One field of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Words; shared, for every line of a record has the same.
    Text(Rc<str>),
    Whole(u64),
    Real(f64),
    /// Nothing: the column does not apply.
    Absent,
}

impl Value {
    /// Words, or nothing where there are none.
    pub fn text(text: &str) -> Self {
        if text.is_empty() { Self::Absent } else { Self::Text(text.into()) }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => out.write_str(text),
            Self::Whole(number) => write!(out, "{number}"),
            Self::Real(number) => write!(out, "{number}"),
            Self::Absent => Ok(()),
        }
    }
}

/// The columns that say which run a line is from, so that tables of many machines can be read as
/// one.
pub const RUN: [&str; 7] =
    ["experiment", "started_at_unix_ns", "tool_version", "kernel", "processor", "product", "hypervisor"];

/// The columns after [`RUN`] that say which trial a line is from.
pub const TRIAL: [&str; 32] = [
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
    "page_cache",
    "target",
    "until_count",
    "until_ns",
    "latency_limit_us",
    "schedule",
    "beside",
    "slowdown_ppm",
    "trace",
    "trace_above_ns",
];

/// The columns after [`TRIAL`] in the table of figures.
pub const FIGURE: [&str; 4] = ["quantity", "statistic", "value", "unit"];

/// The columns after [`TRIAL`] in the table of bins: samples from `low_ns` to `high_ns`, both
/// included.
pub const BIN: [&str; 5] = ["quantity", "low_ns", "high_ns", "count", "unit"];

/// What the result is called: its name, or where it has none when it began.
pub fn name(result: &ResultFile) -> String {
    result.name.clone().unwrap_or_else(|| result.started_at_unix_ns.to_string())
}

/// The fields of [`TRIAL`] for the record at `index` of the result called `name`.
pub fn trial(name: &Rc<str>, index: usize, record: &Record) -> Vec<Value> {
    let outcome = match record.outcome {
        Outcome::Done => "done",
        Outcome::Skipped { .. } => "skipped",
        Outcome::Implausible { .. } => "implausible",
        Outcome::Hung { .. } => "hung",
        Outcome::Failed { .. } => "failed",
        Outcome::Partial => "partial",
    };
    let head: [Value; TRIAL.len() - AXES] = [
        Value::Text(Rc::clone(name)),
        Value::Whole(index as u64),
        Value::Whole(record.block.into()),
        Value::Whole(record.attempts.into()),
        Value::text(outcome),
    ];
    [&head[..], &axes(&record.configuration)].concat()
}

/// The columns of [`TRIAL`] that tell one configuration from another.
const AXES: usize = 27;

/// The fields of those columns. No two configurations have the same ones: exporters take them for
/// the name of a series. So every field of a configuration is named here, and one that is added to
/// it does not compile until it is.
fn axes(configuration: &Configuration) -> [Value; AXES] {
    let Configuration {
        subject,
        contexts,
        pattern,
        timing,
        wait,
        placement,
        size,
        until,
        scheduler,
        injected_slowdown_ppm,
        load: _,
        trace,
        target,
        latency_limit_us,
        schedule,
        beside,
    } = configuration;
    let contexts = match contexts {
        Contexts::Processes => "processes",
        Contexts::Threads => "threads",
    };
    let timing = match timing {
        Timing::Around => "around",
        Timing::Stamp => "stamp",
        Timing::Blocked => "blocked",
    };
    let (wait, wait_ns) = match *wait {
        WaitPolicy::Block => ("block", Value::Absent),
        WaitPolicy::Spin => ("spin", Value::Absent),
        WaitPolicy::SpinThenBlock { spin_ns } => ("spin-then-block", Value::Whole(spin_ns)),
        WaitPolicy::Timeout { timeout_ns } => ("timeout", Value::Whole(timeout_ns)),
    };
    let scheduler = scheduler.name();
    let cpu = |index: usize| placement.cpus.map_or(Value::Absent, |cpus| Value::Whole(cpus[index].into()));
    let (trace, trace_above_ns) = match *trace {
        None => (Value::Absent, Value::Absent),
        Some(Trace::Stages) => (Value::text("stages"), Value::Absent),
        Some(Trace::Worst { keep, above_ns }) => {
            (Value::text(&format!("worst {keep}")), Value::Whole(above_ns))
        }
    };
    let whole = |number: Option<u64>| number.map_or(Value::Absent, Value::Whole);
    let small = |number: Option<u32>| whole(number.map(u64::from));
    [
        Value::text(subject),
        Value::text(contexts),
        Value::text(pattern.name()),
        Value::Whole(pattern.gap_ns()),
        small(pattern.receivers()),
        small(pattern.tasks().map(|(tasks, _)| tasks)),
        small(pattern.tasks().map(|(_, yields)| yields)),
        small(pattern.batch()),
        Value::text(timing),
        Value::text(wait),
        wait_ns,
        Value::text(&placement.relation),
        cpu(0),
        cpu(1),
        Value::Whole((*size).into()),
        Value::text(scheduler),
        Value::text(&Axis::Load.value(configuration)),
        pattern
            .transfers()
            .map_or(Value::Absent, |(_, direct)| Value::text(if direct { "bypassed" } else { "used" })),
        target.as_ref().map_or(Value::Absent, |target| Value::text(&target_of(target))),
        whole(until.count),
        whole(until.time_ns),
        small(*latency_limit_us),
        schedule.as_ref().map_or(Value::Absent, |schedule| Value::text(&schedule_of(schedule))),
        small(*beside),
        small(*injected_slowdown_ppm),
        trace,
        trace_above_ns,
    ]
}

/// A schedule with everything that tells it from another.
fn schedule_of(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Recorded { gaps_ns } => {
            let gaps: Vec<String> = gaps_ns.iter().map(u64::to_string).collect();
            gaps.join(" ")
        }
        law => law.title(),
    }
}

/// A target with everything that tells it from another.
fn target_of(target: &Target) -> String {
    match target {
        Target::Created { bytes, folder, passes } => {
            let folder =
                folder.as_ref().map_or_else(String::new, |folder| format!(" in {}", folder.display()));
            format!("made, {bytes} bytes filled {passes} x{folder}")
        }
        Target::File { path } => format!("file {}", path.display()),
        Target::Device { path, consent, passes } => {
            let written = consent.as_ref().map_or_else(String::new, |name| format!(" written as {name}"));
            format!("device {}{written}, filled {passes} x", path.display())
        }
    }
}

fn run(result: &ResultFile) -> Vec<Value> {
    let machine = &result.machine;
    let text = |text: &Option<String>| Value::text(text.as_deref().unwrap_or_default());
    vec![
        Value::text(&result.plan.experiment),
        Value::Whole(result.started_at_unix_ns),
        Value::text(&result.tool_version),
        text(&machine.kernel.release),
        text(&machine.processor.model_name),
        text(&machine.virtualisation.product),
        text(&machine.virtualisation.hypervisor),
    ]
}

/// Every line of the table of bins: [`RUN`], [`TRIAL`], then [`BIN`].
pub fn bins(result: &ResultFile) -> impl Iterator<Item = Vec<Value>> {
    let run = run(result);
    let name: Rc<str> = name(result).into();
    let unit = Value::text(&result.mark().map_or_else(|| "ns".to_owned(), |mark| format!("ns {mark}")));
    let usable = |record: &doorbell_results::record::Record| {
        // Figures of an implausible record never reach a table.
        matches!(record.outcome, Outcome::Done | Outcome::Partial)
    };
    let records = result.records.iter().enumerate().filter(move |(_, record)| usable(record));
    records.flat_map(move |(index, record)| {
        let head = [run.clone(), trial(&name, index, record)].concat();
        let unit = unit.clone();
        record.series.iter().flat_map(move |(quantity, series)| {
            let quantity = Value::text(quantity.name());
            let bins: Vec<[Value; 3]> = series.decode().map_or_else(
                |_| Vec::new(),
                |histogram| {
                    let ns = |ps: u64| Value::Real(ps as f64 / 1000.0);
                    let bins = histogram.inner().iter_recorded().map(|bin| {
                        let inner = histogram.inner();
                        let ps = bin.value_iterated_to();
                        let [low, high] = [inner.lowest_equivalent(ps), inner.highest_equivalent(ps)];
                        [ns(low), ns(high), Value::Whole(bin.count_at_value())]
                    });
                    bins.collect()
                },
            );
            let (head, unit) = (head.clone(), unit.clone());
            bins.into_iter().map(move |bin| {
                let mut line = head.clone();
                line.push(quantity.clone());
                line.extend(bin);
                line.push(unit.clone());
                line
            })
        })
    })
}

/// Every line of the table of figures: [`RUN`], [`TRIAL`], then [`FIGURE`].
pub fn lines(result: &ResultFile) -> impl Iterator<Item = Vec<Value>> {
    let name: Rc<str> = name(result).into();
    let (run, mark) = (run(result), result.mark());
    result.records.iter().enumerate().flat_map(move |(index, record)| {
        let head = [run.clone(), trial(&name, index, record)].concat();
        numbers(record).into_iter().map(move |number| {
            let mut line = head.clone();
            let mut unit = number.unit;
            // A program that looks for nanoseconds must not take an emulator's for a machine's.
            if let Some(mark) = mark.filter(|_| !["", "count"].contains(&unit.as_str())) {
                unit.push_str(&format!(" {mark}"));
            }
            line.extend([
                Value::text(&number.quantity),
                Value::text(&number.statistic),
                number.value,
                Value::text(&unit),
            ]);
            line
        })
    })
}

struct Number {
    quantity: String,
    statistic: String,
    value: Value,
    unit: String,
}

fn number(quantity: &str, statistic: &str, value: Value, unit: &str) -> Number {
    Number { quantity: quantity.to_owned(), statistic: statistic.to_owned(), value, unit: unit.to_owned() }
}

fn counted(quantity: &str, statistic: &str, count: u64) -> Number {
    number(quantity, statistic, Value::Whole(count), "count")
}

fn measured(quantity: &str, statistic: &str, value: f64, unit: &str) -> Number {
    number(quantity, statistic, Value::Real(value), unit)
}

/// What else went on while a trial ran.
fn around(record: &Record) -> Vec<Number> {
    let around = &record.environment;
    let shares = [
        ("foreign", around.foreign_share, "CPUs"),
        ("steal", around.steal_share, "CPUs"),
        ("pressure", around.pressure_share, "share"),
        ("load_average", around.load_average, "tasks"),
    ];
    let mut all: Vec<Number> = shares
        .into_iter()
        .filter_map(|(statistic, value, unit)| Some(measured("environment", statistic, value?, unit)))
        .collect();
    all.extend(around.throttled_ns.map(|ns| number("environment", "throttled", Value::Whole(ns), "ns")));
    all.extend(around.idle_states.iter().map(|(state, share)| measured("idle time", state, *share, "share")));
    all.extend(around.idle_entries.iter().map(|(state, entries)| counted("idle entries", state, *entries)));
    all
}

/// What some experiments leave beside times: of loads, devices and receivers.
fn beside(record: &Record) -> Vec<Number> {
    let mut all = Vec::new();
    if let Some(proof) = &record.load {
        for (statistic, ns) in [
            ("started_before", proof.started_before_ns),
            ("outlasted", proof.outlasted_ns),
            ("cpu", proof.cpu_ns),
        ] {
            all.push(number("load", statistic, Value::Whole(ns), "ns"));
        }
        all.push(counted("load", "fewest_slices", proof.fewest_slices));
        all.extend(proof.least_busy().map(|(_, share)| measured("load", "least_busy_cpu", share, "share")));
        all.extend(proof.mean_run_queue().map(|tasks| measured("load", "run_queue", tasks, "tasks")));
    }
    if let Some(io) = &record.io {
        for (statistic, operations) in [
            ("interrupts", io.interrupts),
            ("operations", io.device_operations),
            ("other_operations", io.other_operations),
        ] {
            all.extend(operations.map(|operations| counted("device", statistic, operations)));
        }
        all.push(number("kernel threads", "cpu", Value::Whole(io.kernel_thread_ns), "ns"));
    }
    if let Some(fan) = &record.fanout {
        let sum = |numbers: &[u64]| numbers.iter().fold(0_u64, |sum, number| sum.saturating_add(*number));
        if !fan.rounds.duplicates.is_empty() {
            all.push(counted("receivers", "second_wakes", sum(&fan.rounds.duplicates)));
            all.push(counted("receivers", "missed_wakes", sum(&fan.rounds.misses)));
        }
        if let Some(memory) = &fan.memory {
            for (statistic, bytes) in
                [("pss", memory.pss_bytes), ("rss", memory.rss_bytes), ("kernel", memory.kernel_bytes)]
            {
                all.push(number("memory", statistic, Value::Whole(bytes), "bytes"));
            }
            all.push(counted("memory", "processes", memory.processes));
        }
    }
    all
}

/// Every number of a record; for one without figures, a single line
/// that keeps its outcome in the table.
fn numbers(record: &Record) -> Vec<Number> {
    let mut all = Vec::new();
    // Figures of an implausible record never reach a table.
    if matches!(record.outcome, Outcome::Done | Outcome::Partial) {
        for (quantity, series) in &record.series {
            let quantity = quantity.name();
            all.push(counted(quantity, "count", series.count));
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
                all.push(measured(quantity, statistic, ns, "ns"));
            }
        }
        let figures = record.figures.iter().filter(|figure| figure.value.is_finite());
        all.extend(figures.map(|figure| measured(&figure.name, "value", figure.value, &figure.unit)));
        // Sides and counts do not make it: of a notifier that keeps a
        // gap most of the time is the harness's.
        all.extend(record.cpu_per_wake().map(|(ns, _)| measured("cpu-per-wake", "value", ns, "ns")));
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
            all.push(counted("tally", statistic, count));
        }
        for side in &record.sides {
            let counts = if side.uncounted { 4 } else { 0 };
            for (statistic, count, unit) in [
                ("voluntary_switches", side.voluntary_switches, "count"),
                ("involuntary_switches", side.involuntary_switches, "count"),
                ("minor_faults", side.minor_faults, "count"),
                ("major_faults", side.major_faults, "count"),
                ("user", side.user_ns, "ns"),
                ("system", side.system_ns, "ns"),
                ("window", side.window_ns, "ns"),
            ]
            .into_iter()
            .skip(counts)
            {
                all.push(number(&side.side, statistic, Value::Whole(count), unit));
            }
            all.extend(side.call_ns.map(|ns| measured(&side.side, "call_cpu", ns, "ns")));
            all.extend(side.held_up_ns.map(|ns| number(&side.side, "held_up", Value::Whole(ns), "ns")));
            all.extend(side.migrations.map(|moves| counted(&side.side, "migrations", moves)));
        }
        for (kind, count) in &record.environment.interrupts {
            all.push(counted("interrupts", kind, *count));
        }
        all.extend(around(record));
        all.extend(beside(record));
    }
    if all.is_empty() {
        all.push(number("", "", Value::Absent, ""));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_names_every_column() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../book/queries.md")).unwrap();
        for column in RUN.iter().chain(&TRIAL).chain(&FIGURE).chain(&BIN) {
            assert!(page.contains(&format!("`{column}`")), "{column}");
        }
    }
}
