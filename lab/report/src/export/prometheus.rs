// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics as text, one a configuration, over all its blocks: in Prometheus's own format, which the
//! node exporter's textfile collector, push gateways and promtool read. These take no OpenMetrics.
//!
//! No sample has a time of its own: who collects files (the node exporter's textfile collector, a
//! push gateway) refuses those. When the run ended is a metric.

use std::fmt::Display;
use std::io::{self, Write};

use crate::export::Format;
use crate::figures::{Distribution, Figures, Row, supports};
use crate::long_table::{TRIAL, Value, name, trial};
use crate::notifications::IRREGULARITIES;
use doorbell_results::record::ResultFile;
use doorbell_results::written::letters;
use doorbell_verdict::answer::trusted;

/// Upper bounds of the histogram's buckets: 1, 2 and 5 of every decade from 100 ns to 1 s. The same
/// in every export, so that buckets of any number of runs and machines may be added up.
const DECADES_NS: std::ops::Range<i32> = 2..9;

/// The columns that are no labels. All others tell one configuration from another, whatever the
/// run: without one of them two series of a run would have one name, which whoever reads the text
/// refuses.
const NO_LABELS: [&str; 4] = ["result", "record", "block", "attempts"];

pub const PROMETHEUS: Format = Format {
    name: "prometheus",
    about: "Prometheus's text: a summary and a histogram of each quantity of each configuration, \
         counts, CPU time, primitive costs",
    export: metrics,
};

fn metrics(result: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
    let figures = Figures::of(result);
    let rows: Vec<(String, &Row)> =
        figures.rows.iter().filter_map(|row| Some((labels(result, row)?, row))).collect();
    let run = run(result);
    let series = || {
        rows.iter().flat_map(|(labels, row)| {
            let of = move |name: &str| format!("{labels},quantity=\"{name}\"");
            row.series.iter().map(move |(quantity, series)| (of(quantity.name()), series))
        })
    };
    let help = "Times of a quantity: its percentiles, exact to 0.1 %.";
    let mut family = Family::begin(out, "doorbell_latency_seconds", "summary", help)?;
    for (labels, series) in series() {
        for q in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0].into_iter().filter(|q| supports(series.count, *q)) {
            let ps = if q == 0.0 { series.min_ps } else { series.quantile(q) };
            family.sample("", &format!("{labels},quantile=\"{q}\""), seconds(ps))?;
        }
        family.sample("_count", &labels, series.count)?;
        family.sample("_sum", &labels, sum(series))?;
    }
    let help = "The same times in buckets that add up over runs and machines.";
    let mut family = Family::begin(out, "doorbell_latency_buckets_seconds", "histogram", help)?;
    for (labels, series) in series() {
        for bound_ns in bounds_ns() {
            let below = series.buckets.iter().filter(|(ps, _)| *ps as f64 <= bound_ns * 1e3);
            let count: u64 = below.map(|(_, count)| count).sum();
            family.sample("_bucket", &format!("{labels},le=\"{}\"", bound_ns / 1e9), count)?;
        }
        family.sample("_bucket", &format!("{labels},le=\"+Inf\""), series.count)?;
        family.sample("_count", &labels, series.count)?;
        family.sample("_sum", &labels, sum(series))?;
    }
    let help = "CPU time of a wake-up (the notifier's call and the waiter's time) or an operation.";
    let mut family = Family::begin(out, "doorbell_cpu_per_wake_seconds", "gauge", help)?;
    for (labels, row) in &rows {
        row.cpu_ps().map_or(Ok(()), |ps| family.sample("", labels, ps / 1e12))?;
    }
    let help = "Notifications of the run by what became of them.";
    let mut family = Family::begin(out, "doorbell_notifications", "gauge", help)?;
    for (labels, row) in &rows {
        let tally = row.variant.tally();
        let irregular = IRREGULARITIES.iter().map(|kind| (kind.name, (kind.of)(&tally)));
        for (kind, count) in [("sent", tally.sent), ("seen", tally.seen)].into_iter().chain(irregular) {
            family.sample("", &format!("{labels},kind=\"{kind}\""), count)?;
        }
    }
    let help = "Trials of the run by how they ended.";
    let mut family = Family::begin(out, "doorbell_trials", "gauge", help)?;
    for (outcome, count) in outcomes(result) {
        family.sample("", &format!("{run},outcome=\"{outcome}\""), count)?;
    }
    let help = "Trials that other work interfered with to their last try.";
    let mut family = Family::begin(out, "doorbell_trials_with_interference", "gauge", help)?;
    // Where the system tells nothing of others, no number is none.
    trusted(result).interfered.map_or(Ok(()), |interfered| family.sample("", &run, interfered))?;
    let help = "1 if the run was interrupted, 0 if not.";
    Family::begin(out, "doorbell_run_partial", "gauge", help)?.sample("", &run, u8::from(result.partial))?;
    let help = "The machine's primitive costs: the costs of which every wake-up is a small \
        multiple. Median over the run's readings.";
    let mut family = Family::begin(out, "doorbell_primitive_cost_seconds", "gauge", help)?;
    for (primitive, ns) in primitives(result) {
        family.sample("", &format!("{run},primitive=\"{}\"", escape(&primitive)), ns / 1e9)?;
    }
    let finished = result.finished_at_unix_ns as f64 / 1e9;
    let name = "doorbell_run_finished_timestamp_seconds";
    Family::begin(out, name, "gauge", "When the run ended.")?.sample("", &run, finished)?;
    let help = "What was run, and on what.";
    Family::begin(out, "doorbell_run_info", "gauge", help)?.sample("", &info(result), 1)
}

/// Samples of one name.
pub(crate) struct Family<'a> {
    out: &'a mut dyn Write,
    name: &'a str,
}

impl<'a> Family<'a> {
    pub(crate) fn begin(out: &'a mut dyn Write, name: &'a str, kind: &str, help: &str) -> io::Result<Self> {
        writeln!(out, "# TYPE {name} {kind}")?;
        writeln!(out, "# HELP {name} {}", escape(help))?;
        Ok(Self { out, name })
    }

    /// A sample whose name ends in `suffix`.
    pub(crate) fn sample(&mut self, suffix: &str, labels: &str, value: impl Display) -> io::Result<()> {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        writeln!(self.out, "{}{suffix}{labels} {value}", self.name)
    }
}

/// The label that says which run; an emulator's times carry a mark, or a dashboard would take them
/// for a machine's.
fn run(result: &ResultFile) -> String {
    let mark = result.mark().map_or_else(String::new, |mark| format!(",clock=\"{mark}\""));
    format!("run=\"{}\"{mark}", escape(&name(result)))
}

/// The labels of a configuration, all that apply to it; none of a variant without a record.
fn labels(result: &ResultFile, row: &Row) -> Option<String> {
    let record = row.variant.records.first()?;
    let fields = trial(&"".into(), 0, record);
    let mut labels = run(result);
    for (column, field) in TRIAL.iter().zip(fields) {
        if !NO_LABELS.contains(column) && *column != "outcome" && field != Value::Absent {
            labels.push_str(&format!(",{column}=\"{}\"", escape(&field.to_string())));
        }
    }
    Some(labels)
}

fn info(result: &ResultFile) -> String {
    let machine = &result.machine;
    let facts = [
        ("experiment", Some(&result.plan.experiment)),
        ("version", Some(&result.tool_version)),
        ("kernel", machine.kernel.release.as_ref()),
        ("processor", machine.processor.model_name.as_ref()),
        ("product", machine.virtualisation.product.as_ref()),
        ("hypervisor", machine.virtualisation.hypervisor.as_ref()),
    ];
    let facts = facts.into_iter().filter_map(|(name, fact)| Some((name, fact?)));
    facts.fold(run(result), |text, (name, fact)| format!("{text},{name}=\"{}\"", escape(fact)))
}

fn outcomes(result: &ResultFile) -> Vec<(String, usize)> {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for (index, record) in result.records.iter().enumerate() {
        let outcome = trial(&"".into(), index, record)[4].to_string();
        *counts.entry(outcome).or_default() += 1;
    }
    counts.into_iter().collect()
}

fn primitives(result: &ResultFile) -> Vec<(String, f64)> {
    let mut readings = std::collections::BTreeMap::<&str, Vec<f64>>::new();
    for primitive in result
        .primitives
        .iter()
        .flat_map(|reading| &reading.primitives)
        .filter(|primitive| primitive.count > 0)
    {
        readings.entry(&primitive.name).or_default().push(primitive.p50_ns);
    }
    let middle = |(name, values): (&str, Vec<f64>)| {
        Some((name.to_owned(), doorbell_verdict::statistics::median(&values)?))
    };
    readings.into_iter().filter_map(middle).collect()
}

fn bounds_ns() -> impl Iterator<Item = f64> {
    DECADES_NS
        .flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(decade)))
        .chain(std::iter::once(10_f64.powi(DECADES_NS.end)))
}

fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

fn sum(series: &Distribution) -> f64 {
    series.mean_ps * series.count as f64 / 1e12
}

/// A label's value, or a help text, as the format wants it.
pub(crate) fn escape(text: &str) -> String {
    letters(text).fold(String::with_capacity(text.len()), |mut out, (letter, obeyed)| {
        match letter {
            '\\' | '"' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            // The format has no other escapes.
            letter if obeyed => out.push_str(&format!("\\\\u{{{:x}}}", u32::from(letter))),
            letter => out.push(letter),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use doorbell_results::configuration::Load;
    use doorbell_results::configuration::{
        Configuration, Direction, Pattern, Placement, Scheduler, Target, Timing, Trace, Until, WaitPolicy,
    };
    use doorbell_results::record::sample;
    use doorbell_results::record::subject::Contexts;
    use doorbell_results::schedule::Schedule;

    fn text(result: &ResultFile) -> String {
        let mut bytes = Vec::new();
        metrics(result, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The number of the first sample that begins like this.
    fn sample_of(text: &str, name: &str, label: &str) -> f64 {
        let line = text.lines().find(|line| line.starts_with(name) && line.contains(label)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn percentiles_are_in_seconds_and_buckets_hold_every_sample() {
        let result = sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0);
        let text = text(&result);
        let p50 = sample_of(&text, "doorbell_latency_seconds{", "quantity=\"round-trip\",quantile=\"0.5\"");
        assert!((p50 / 18e-6 - 1.0).abs() < 0.01, "{p50}");
        let whole =
            sample_of(&text, "doorbell_latency_buckets_seconds_bucket{", "\"round-trip\",le=\"+Inf\"");
        let below =
            sample_of(&text, "doorbell_latency_buckets_seconds_bucket{", "\"round-trip\",le=\"0.00005\"");
        let none =
            sample_of(&text, "doorbell_latency_buckets_seconds_bucket{", "\"round-trip\",le=\"0.00001\"");
        assert_eq!((whole, below, none), (2000.0, 2000.0, 0.0));
    }

    /// The textfile collector dropped the whole file: `unknown metric type "info"`.
    #[test]
    fn every_type_is_one_of_the_formats_five_and_names_its_own_samples() {
        let text = text(&sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0));
        let mut types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        assert!(types.all(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            let known = ["counter", "gauge", "histogram", "summary", "untyped"].contains(&kind);
            known && text.lines().any(|line| line.starts_with(name))
        }));
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
    }

    /// p99 of two samples stood in a dashboard, and nothing of a run in which others had interfered
    /// with every trial, or that was cut.
    #[test]
    fn what_the_count_does_not_support_is_left_out_and_how_the_run_went_is_told() {
        let mut result = sample::result(&[sample::configuration("futex")], 2, |_, _| 16_000.0);
        let quantile = |result: &ResultFile, q: &str| text(result).contains(&format!("quantile=\"{q}\""));
        assert!(quantile(&result, "0.99") && !quantile(&result, "0.999"), "2,000 samples");
        let told = |result: &ResultFile, name: &str| sample_of(&text(result), name, "");
        assert_eq!(told(&result, "doorbell_trials_with_interference{"), 0.0);
        assert_eq!(told(&result, "doorbell_run_partial{"), 0.0);
        result.partial = true;
        result.records[0].warnings.push(doorbell_results::record::Warning {
            name: doorbell_results::record::warning::INTERFERENCE.name.to_owned(),
            cause: String::new(),
            effect: String::new(),
            cure: String::new(),
        });
        assert_eq!(told(&result, "doorbell_trials_with_interference{"), 1.0);
        assert_eq!(told(&result, "doorbell_run_partial{"), 1.0);
    }

    /// Configurations that differ in nothing but one thing each, of every kind that there is.
    fn every_kind_of_configuration() -> Vec<Configuration> {
        let configuration = || sample::configuration("futex");
        let io = || Configuration {
            pattern: Pattern::Io { direction: Direction::Read, direct: true },
            ..sample::configuration("sync")
        };
        let target = |target| Configuration { target: Some(target), ..io() };
        let made = |bytes, folder: Option<&str>, passes| Target::Created {
            bytes,
            folder: folder.map(Into::into),
            passes,
        };
        let device = |consent: Option<&str>, passes| Target::Device {
            path: "/dev/a".into(),
            consent: consent.map(str::to_owned),
            passes,
        };
        let load = |workers, pinned| Configuration {
            load: Some(Load { kind: "sqrt".to_owned(), workers, pinned }),
            ..configuration()
        };
        let placed = |relation: &str, cpus| Configuration {
            placement: Placement { relation: relation.to_owned(), cpus },
            ..configuration()
        };
        let trace = |trace| Configuration { trace: Some(trace), ..configuration() };
        let pattern = |pattern| Configuration { pattern, ..configuration() };
        vec![
            configuration(),
            sample::configuration("pipe"),
            Configuration { contexts: Contexts::Threads, ..configuration() },
            pattern(Pattern::PingPong { gap_ns: 7 }),
            pattern(Pattern::OneWay { gap_ns: 0 }),
            pattern(Pattern::OpenLoop { gap_ns: 7 }),
            pattern(Pattern::FanOut { receivers: 2, interval_ns: 0 }),
            pattern(Pattern::FanOut { receivers: 3, interval_ns: 0 }),
            pattern(Pattern::FanOut { receivers: 2, interval_ns: 7 }),
            pattern(Pattern::Operation { batch: 1 }),
            pattern(Pattern::Operation { batch: 2 }),
            pattern(Pattern::Tasks { tasks: 1, yields: 0 }),
            pattern(Pattern::Tasks { tasks: 2, yields: 0 }),
            pattern(Pattern::Tasks { tasks: 2, yields: 1 }),
            io(),
            Configuration { pattern: Pattern::Io { direction: Direction::Write, direct: true }, ..io() },
            Configuration { pattern: Pattern::Io { direction: Direction::Read, direct: false }, ..io() },
            target(made(1 << 20, None, 1)),
            target(made(2 << 20, None, 1)),
            target(made(1 << 20, Some("/a"), 1)),
            target(made(1 << 20, None, 2)),
            target(Target::File { path: "/dev/a".into() }),
            target(device(None, 0)),
            target(device(Some("a"), 0)),
            target(device(Some("a"), 1)),
            Configuration { timing: Timing::Around, ..configuration() },
            Configuration { wait: WaitPolicy::Spin, ..configuration() },
            Configuration { wait: WaitPolicy::SpinThenBlock { spin_ns: 7 }, ..configuration() },
            Configuration { wait: WaitPolicy::Timeout { timeout_ns: 7 }, ..configuration() },
            placed("unpinned", None),
            placed("same-l3", Some([0, 2])),
            placed("same-l2", Some([0, 1])),
            Configuration { size: 64, ..configuration() },
            Configuration { until: Until::count(7), ..configuration() },
            Configuration { until: Until::time(Duration::from_nanos(1000)), ..configuration() },
            Configuration { scheduler: Scheduler::Fifo, ..configuration() },
            Configuration { injected_slowdown_ppm: Some(50_000), ..configuration() },
            load(1, false),
            load(2, false),
            load(2, true),
            trace(Trace::Stages),
            trace(Trace::Worst { keep: 1, above_ns: 0 }),
            trace(Trace::Worst { keep: 2, above_ns: 0 }),
            trace(Trace::Worst { keep: 2, above_ns: 7 }),
            Configuration { latency_limit_us: Some(0), ..configuration() },
            Configuration { schedule: Some(Schedule::Exponential), ..configuration() },
            Configuration { beside: Some(2), ..configuration() },
        ]
    }

    /// Configurations traced and not, by different targets, limits and slowdowns had one name.
    #[test]
    fn no_two_series_of_a_run_have_the_same_labels() {
        let configurations = every_kind_of_configuration();
        let result = sample::result(&configurations, 1, |_, _| 16_000.0);
        assert_eq!(result.variants().len(), configurations.len(), "some of them are the same");
        let text = text(&result);
        let mut seen = std::collections::BTreeSet::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, _) = line.rsplit_once(' ').unwrap();
            assert!(seen.insert(series), "{series}");
        }
        assert!(seen.len() > configurations.len() * 20, "{}", seen.len());
    }

    #[test]
    fn a_name_with_quotes_and_line_ends_stays_one_label() {
        let mut result = sample::result(&[sample::configuration("futex")], 1, |_, _| 16_000.0);
        result.name = Some("a\"b\\c\nd".to_owned());
        assert!(text(&result).contains("run=\"a\\\"b\\\\c\\nd\""));
    }
}
