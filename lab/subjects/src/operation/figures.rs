// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures that follow from a record of an operation: pure arithmetic on what the kernel counted.

use super::{Operation, find};
use doorbell_results::configuration::Pattern;
use doorbell_results::figure::operation::{
    MEAN, PER_FAULT, PER_SWITCH, RATE, REAL_SWITCHES, SWITCHES_PER_ROUND,
};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Figure, Record, Warning, warning};
/// Switches in a window below which a quotient says nothing: a few
/// come from the rendezvous and from timer ticks.
const ENOUGH: u64 = 100;

/// Switches per round below which a protocol did not switch at all: what was counted is other
/// tasks' doing. Two sides that yield on two cores make one switch in a hundred rounds.
const HARDLY_ANY: f64 = 0.5;

/// Disagreement of two switch counts over the same rounds that is
/// more than the few switches between their readings.
const CHECK_SLACK: f64 = 16.0;

/// Adds to a record of an operation what follows from its counts;
/// leaves every other record as it is.
pub(crate) fn derive(record: &mut Record) {
    if !matches!(record.configuration.pattern, Pattern::Operation { .. }) {
        return;
    }
    if record.sides.is_empty() {
        return;
    }
    let Ok(operation) = find(&record.configuration.subject) else { return };
    let mut figures = mean_and_rate(record, operation);
    if operation.form.two_sided || record.series.contains_key(&Quantity::Response) {
        figures.extend(switches(record));
    } else if operation.faults {
        figures.extend(faults(record));
    }
    figures.extend((operation.classic)(record));
    figures.extend(combine_checks(record));
    record.figures = figures;
    if let Some(warning) = disagreement(record) {
        record.warnings.push(warning);
    }
}

/// The figure called `name`.
pub(crate) fn named<'record>(record: &'record Record, name: &str) -> Option<&'record Figure> {
    record.figures.iter().find(|figure| figure.name == name)
}

/// Length of the leading side's window in nanoseconds and the operations done in it.
pub(super) fn window(record: &Record) -> Option<(f64, f64)> {
    let window = record.sides.first()?.window_ns;
    (window > 0 && record.tally.sent > 0).then_some((window as f64, record.tally.sent as f64))
}

pub(super) fn figure(name: &str, value: f64, unit: &str, formula: impl Into<String>) -> Figure {
    Figure { name: name.to_owned(), value, unit: unit.to_owned(), formula: formula.into() }
}

/// The figure of a tool that calls each of its rounds, `unit`, so many switches, whatever there were.
pub(super) fn assumed(record: &Record, name: &str, switches: u32, unit: &str) -> Option<Figure> {
    let (window, rounds) = window(record)?;
    let times = if switches > 1 { format!("{switches} × ") } else { String::new() };
    let formula = format!("{window} ns / ({times}{rounds} {unit}), assumed");
    Some(figure(name, window / (f64::from(switches) * rounds), "ns", formula))
}

/// The figure of a tool that tells the time of a whole batch of operations, `what`, in a unit of so
/// many nanoseconds.
pub(super) fn batch_time(record: &Record, name: &str, what: &str, (ns, unit): (f64, &str)) -> Option<Figure> {
    let Pattern::Operation { batch } = record.configuration.pattern else { return None };
    let mean = record.series.get(&Quantity::Operation)?.mean_ns;
    Some(figure(name, mean * f64::from(batch) / ns, unit, format!("mean time of {batch} {what}")))
}

/// Switches of both sides in the window.
pub(super) fn switches_counted(record: &Record) -> u64 {
    record.sides.iter().map(|side| side.voluntary_switches + side.involuntary_switches).sum()
}

fn mean_and_rate(record: &Record, operation: &Operation) -> Vec<Figure> {
    let Some(series) = record.series.get(&Quantity::Operation) else { return Vec::new() };
    let unit = operation.form.unit;
    let mut figures =
        vec![figure(MEAN, series.mean_ns, "ns", format!("mean of the timed batches, per {unit}"))];
    if series.mean_ns > 0.0 {
        figures.push(figure(
            RATE,
            1e9 / series.mean_ns,
            "1/s",
            format!("{unit}s in a second, from the mean"),
        ));
    }
    figures
}

fn switches(record: &Record) -> Vec<Figure> {
    let Some((window, rounds)) = window(record) else { return Vec::new() };
    let count = switches_counted(record);
    let voluntary: u64 = record.sides.iter().map(|side| side.voluntary_switches).sum();
    let mut figures = vec![
        figure(
            REAL_SWITCHES,
            count as f64,
            "count",
            format!(
                "getrusage of both sides in the window: {voluntary} voluntary + {} involuntary",
                count - voluntary
            ),
        ),
        figure(SWITCHES_PER_ROUND, count as f64 / rounds, "count", format!("{count} / {rounds} rounds")),
    ];
    if count >= ENOUGH && count as f64 >= rounds * HARDLY_ANY {
        figures.push(figure(
            PER_SWITCH,
            window / count as f64,
            "ns",
            format!("window of {window} ns / {count} switches counted"),
        ));
    }
    figures
}

fn faults(record: &Record) -> Option<Figure> {
    let series = record.series.get(&Quantity::Operation)?;
    let side = record.sides.first()?;
    let count = side.minor_faults + side.major_faults;
    (count >= ENOUGH).then(|| {
        let touched = record.tally.sent;
        figure(
            PER_FAULT,
            series.mean_ns * touched as f64 / count as f64,
            "ns",
            format!(
                "time in {touched} pages touched / {count} faults counted ({} minor, {} major)",
                side.minor_faults, side.major_faults
            ),
        )
    })
}

/// The sides' check counts, added up by the way of counting.
fn combine_checks(record: &Record) -> Vec<Figure> {
    ["check-getrusage", "check-proc-status", "check-perf-event"]
        .into_iter()
        .filter_map(|name| {
            let own: Vec<&Figure> = record.figures.iter().filter(|figure| figure.name == name).collect();
            let formula = own.iter().map(|figure| figure.formula.as_str()).collect::<Vec<_>>().join(" + ");
            (own.len() == 2)
                .then(|| figure(name, own.iter().map(|figure| figure.value).sum(), "count", formula))
        })
        .collect()
}

fn disagreement(record: &Record) -> Option<Warning> {
    let usage = named(record, "check-getrusage")?.value;
    let other = ["check-proc-status", "check-perf-event"]
        .into_iter()
        .filter_map(|name| named(record, name))
        .find(|figure| (figure.value - usage).abs() > CHECK_SLACK.max(usage / 100.0))?;
    Some(Warning {
        name: warning::SWITCH_COUNTS_DISAGREE.name.to_owned(),
        cause: format!(
            "over the same rounds getrusage counted {usage} switches, {} {}",
            other.name, other.value
        ),
        effect: "the figures per real switch of this record rest on a count that is in doubt".to_owned(),
        cure: "run it again on an idle machine; if it stays, report it with the kernel's version".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Configuration;
    use doorbell_results::record::subject::Contexts;
    use doorbell_results::record::{SideCounters, sample};

    #[test]
    fn a_quotient_over_a_handful_of_switches_is_not_made() {
        let record = two_sided("timetctxsw2", 1_000_000, 2);
        assert!(named(&record, PER_SWITCH).is_none());
        assert_eq!(named(&record, REAL_SWITCHES).unwrap().value, 2.0);
    }

    #[test]
    fn the_tools_figure_and_the_counted_one_stand_side_by_side() {
        // tsuna/contextswitch issue 3: 500 000 loops that made 10 switches each, divided by 4.
        let record = two_sided("timectxsw", 500_000, 5_000_000);
        assert_eq!(named(&record, "timetctxsw as printed").unwrap().value, 50.0);
        assert_eq!(named(&record, PER_SWITCH).unwrap().value, 20.0);
    }

    #[test]
    fn counts_that_disagree_are_a_warning() {
        let mut record = blank("switch-futex", 1000, 2000);
        record.figures = vec![
            figure("check-getrusage", 300.0, "count", ""),
            figure("check-getrusage", 300.0, "count", ""),
            figure("check-perf-event", 300.0, "count", ""),
            figure("check-perf-event", 200.0, "count", ""),
        ];
        derive(&mut record);
        assert_eq!(record.warnings[0].name, "switch-counts-disagree");
        assert!(record.warnings[0].cause.contains("600") && record.warnings[0].cause.contains("500"));
    }

    fn two_sided(subject: &str, rounds: u64, switches: u64) -> Record {
        let mut record = blank(subject, rounds, switches);
        derive(&mut record);
        record
    }

    fn blank(subject: &str, rounds: u64, switches: u64) -> Record {
        let (pattern, contexts) = (Pattern::Operation { batch: 1 }, Contexts::Threads);
        let mut record =
            sample::record(Configuration { pattern, contexts, ..sample::configuration(subject) }, 0, 1000.0);
        let side = SideCounters {
            voluntary_switches: switches / 2,
            window_ns: 100_000_000,
            uncounted: false,
            ..SideCounters::default()
        };
        record.sides = vec![side.clone(), side];
        record.tally.sent = rounds;
        record
    }
}
