// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell switch`: every quotient with the count it was divided by.

use super::axis::Axis;
use super::columns::{Columns, dash};
use super::figures::{Figures, Row, percentile};
use super::section::Section;
use super::subsection::Subsection;
use super::table::{Table, number, word};
use super::unit::{Scale, all_alike, count};
use crate::wording::four_digits;
use doorbell_results::configuration::Configuration;
use doorbell_results::figure::operation::{
    AS_PRINTED, CHECKS, MEAN, PER_FAULT, PER_SWITCH, RATE, REAL_SWITCHES, SWITCHES_PER_ROUND,
};
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::{Contexts, Subject};

/// The part of the operation that only writes a working set.
pub const WRITES_ALONE: &str = "writing the set alone";

#[derive(Debug)]
pub struct Operations;

impl Section for Operations {
    fn name(&self) -> &'static str {
        "operations"
    }
    fn subsections(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let (late, alone, together) = sorted(figures);
        let checks =
            Subsection::of_lines("How the switches were counted", checks(&together).into_iter().collect());
        let tables =
            [calls(&alone), switches(&together), working_sets(result, figures), checks, preemptions(&late)];
        tables.into_iter().flatten().collect()
    }
    fn answer(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let (late, alone, together) = sorted(figures);
        let preemptions = preemptions(&late);
        if alone.is_empty() && together.is_empty() {
            return preemptions.into_iter().collect();
        }
        [answer(result, &alone, together)].into_iter().chain(preemptions).collect()
    }
    fn tells(&self, name: &str) -> bool {
        [MEAN, RATE, REAL_SWITCHES, SWITCHES_PER_ROUND, PER_SWITCH, PER_FAULT].contains(&name)
            || CHECKS.contains(&name)
            || name.ends_with(AS_PRINTED)
    }
}

/// What was due at a time, what is done on one side, and what on two.
fn sorted<'a>(figures: &'a Figures) -> (Vec<&'a Row<'a>>, Vec<&'a Row<'a>>, Vec<&'a Row<'a>>) {
    let late = |row: &&Row| row.series.contains_key(&Quantity::Response);
    let (late, rows): (Vec<&Row>, Vec<&Row>) = figures.rows.iter().partition(late);
    let alone = |row: &&Row| matches!(row.variant.subject(), Subject::Operation { two_sided: false, .. });
    let (alone, together) = rows.into_iter().partition(alone);
    (late, alone, together)
}

/// What a switch costs on one core and a hand-over on two, what a
/// call and a fault cost, and the figures behind it.
fn answer(result: &ResultFile, alone: &[&Row], together: Vec<&Row>) -> Subsection {
    let least = |rows: &[&Row], of: fn(&Row) -> Option<f64>| {
        let known = rows.iter().filter_map(|row| Some((row.configuration().subject.clone(), of(row)?)));
        known.min_by(|a, b| a.1.total_cmp(&b.1))
    };
    // The times of a sentence, in one unit.
    let told = |parts: [(&str, Option<(String, f64)>); 2]| {
        let known: Vec<(&str, String, f64)> =
            parts.into_iter().filter_map(|(what, of)| of.map(|(name, ps)| (what, name, ps))).collect();
        let times = all_alike(&known.iter().map(|(_, _, ps)| *ps).collect::<Vec<f64>>());
        let told = known.iter().zip(times).map(|((what, name, _), time)| format!("{what} {time} ({name})"));
        told.collect::<Vec<String>>()
    };
    let mut lead = headline(result, &together);
    let bare: Vec<&Row> = alone.iter().filter(|row| row.configuration().size == 0).copied().collect();
    let call = least(&bare, |row| row.p50_ps(Quantity::Operation));
    let fault = least(&bare, |row| Some(row.figure(|name| name == PER_FAULT)? * 1e3));
    let cheapest = told([("the cheapest call", call), ("a page fault", fault)]);
    if !cheapest.is_empty() {
        lead.push(format!("On one side: {}.", cheapest.join(", ")));
    }
    let rows = if together.is_empty() { alone.to_vec() } else { together };
    let scale = scale_of(&rows);
    // At 80 columns the sentences above have said what it is of.
    let table = Columns::of(&rows, "operation")
        .each([(number("p50"), 0.5), (number("p99"), 0.99)], move |row, q| {
            at(row, Quantity::Operation, *q, scale)
        })
        .figure(number("per switch"), PER_SWITCH, move |ns| scale.show_ns(ns))
        .figure(number("switches/round").keep(1), SWITCHES_PER_ROUND, two_decimals)
        .table(&rows);
    Subsection::answer(format!("What a context switch costs, {}", scale.unit.sign()), lead, table)
}

fn scale_of(rows: &[&Row]) -> Scale {
    Scale::for_ps(rows.iter().map(|row| p50(row)))
}

fn two_decimals(number: f64) -> String {
    format!("{number:.2}")
}

/// How late a thread that computes was interrupted, and what that took from it.
fn preemptions(rows: &[&Row]) -> Option<Subsection> {
    let scale = Scale::for_ps(rows.iter().filter_map(|row| row.p50_ps(Quantity::Response)));
    let table = operations()
        .with(word("placement"), |row| placement(row.configuration()))
        .each([(number("late p50"), 0.5), (number("p99"), 0.99), (number("max"), 1.0)], move |row, q| {
            at(row, Quantity::Response, *q, scale)
        })
        .each([(number("taken p50"), 0.5), (number("p99"), 0.99)], move |row, q| {
            at(row, Quantity::Operation, *q, scale)
        })
        .figure(number("switches/round").keep(2), SWITCHES_PER_ROUND, two_decimals)
        .tally(number("rounds").keep(1), |tally| tally.sent)
        .table(rows);
    let note = "Late: from the requested time to the handler. Taken: time the thread lost, between \
        its readings of the clock before and after the interrupt. Switches: of both sides, from \
        the kernel (getrusage).";
    explained(&format!("Preemption: how late, and what it takes, {}", scale.unit.sign()), note, table)
}

/// The protocol by which switches are told first, between processes and between threads alike.
pub const TOLD_FIRST: &str = "the switch that is told first";

/// What one switch and what a round over two cores costs, by one protocol that really switched:
/// between two kinds of sides as between any two things, what differs must be the sides alone.
fn headline(result: &ResultFile, together: &[&Row]) -> Vec<String> {
    // The first of its rows on one core, or over two; the plan's first policy and working set come
    // first.
    let row = |subject: &str, contexts, wanted: bool| {
        together.iter().copied().find(|row| {
            let configuration = row.configuration();
            configuration.subject == subject
                && configuration.contexts == contexts
                && configuration.placement.cpus.is_some_and(|[first, second]| (first == second) == wanted)
                && row.figure(|name| name == PER_SWITCH).is_some()
        })
    };
    let kinds = [(Contexts::Processes, "processes"), (Contexts::Threads, "threads")];
    let shown = |subject: &str| {
        let found = kinds
            .iter()
            .flat_map(|(contexts, _)| [true, false].map(|one_core| row(subject, *contexts, one_core)));
        found.flatten().count()
    };
    // Where the plan names none, or it was not run, the first of those that switched in most
    // places.
    let rank = |subject: &str| (shown(subject) > 0 && result.plan.plays(subject, TOLD_FIRST), shown(subject));
    let subjects = together.iter().map(|row| row.configuration().subject.as_str());
    let Some(subject) =
        subjects.rev().max_by_key(|subject| rank(subject)).filter(|subject| shown(subject) > 0)
    else {
        return Vec::new();
    };
    let sentence = |what: &str, one_core: bool, of: fn(&Row) -> Option<f64>| {
        let known: Vec<(&str, f64, f64)> = kinds
            .iter()
            .filter_map(|(contexts, name)| {
                let row = row(subject, *contexts, one_core)?;
                Some((*name, of(row)?, row.figure(|name| name == SWITCHES_PER_ROUND)?))
            })
            .collect();
        let times = all_alike(&known.iter().map(|(_, ps, _)| *ps).collect::<Vec<f64>>());
        let told = known.iter().zip(times).map(|((between, _, switches), time)| {
            format!("{time} between {between} ({switches:.2} switches a round)")
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("{what} by {subject}: {}.", told.join(", ")))
    };
    let switch =
        sentence("One switch on one core", true, |row| Some(row.figure(|name| name == PER_SWITCH)? * 1e3));
    let round = sentence("There and back over two cores", false, |row| row.p50_ps(Quantity::Operation));
    switch.into_iter().chain(round).collect()
}

fn calls(rows: &[&Row]) -> Option<Subsection> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.configuration().size == 0).copied().collect();
    let scale = scale_of(&rows);
    let table = operations()
        .with(word("per"), |row| match row.variant.subject() {
            Subject::Operation { unit, .. } => unit.clone(),
            _ => String::new(),
        })
        .each([(number("p50"), 0.5), (number("p99"), 0.99)], move |row, q| {
            at(row, Quantity::Operation, *q, scale)
        })
        .with(number("mean"), move |row| scale.show(mean(row)))
        .figure(number("per fault counted"), PER_FAULT, move |ns| scale.show_ns(ns))
        .tally(number("operations").keep(1), |tally| tally.sent)
        .table(&rows);
    let note =
        "Timed in batches: percentiles are those of batch averages. The faults are counted by the kernel.";
    explained(&format!("Calls and faults, {}", scale.unit.sign()), note, table)
}

fn switches(rows: &[&Row]) -> Option<Subsection> {
    let scale = scale_of(rows);
    let tool = move |row: &&Row| match tool_figure(row) {
        Some((ns, "ns")) => format!("{} {}", scale.show(ns * 1e3), scale.unit.sign()),
        Some((value, unit)) => format!("{} {unit}", four_digits(value)),
        None => String::new(),
    };
    let table = settings()
        .each([(number("round p50"), 0.5), (number("p99"), 0.99)], move |row, q| {
            at(row, Quantity::Operation, *q, scale)
        })
        .with(number("mean").keep(2), move |row| scale.show(mean(row)))
        .figure(number("switches/round"), SWITCHES_PER_ROUND, two_decimals)
        .figure(number("per switch"), PER_SWITCH, move |ns| scale.show_ns(ns))
        .with(word("as the tool prints it"), tool)
        .with(number("RES/round").keep(4), |row| interrupts(row, "RES"))
        .with(number("CAL/round").keep(3), |row| interrupts(row, "CAL"))
        .tally(number("rounds").keep(1), |tally| tally.sent)
        .table(rows);
    let note = "A round is there and back. Switches: voluntary and involuntary ones of both sides \
        in the measured window, from the kernel (getrusage); per switch: the window divided by \
        them, or - where the protocol hardly switched. As the tool prints it: with the divisor the \
        tool assumes. RES, CAL: rescheduling and function-call interrupts on the sides' CPUs \
        during the whole trial.";
    explained(&format!("Switches, {}", scale.unit.sign()), note, table)
}

/// Switches with a working set, less what writing the set costs alone.
fn working_sets(result: &ResultFile, figures: &Figures) -> Option<Subsection> {
    let writes_alone = |row: &Row| result.plan.plays(&row.configuration().subject, WRITES_ALONE);
    let alone = |size: u32| {
        let own = |row: &&Row| writes_alone(row) && row.configuration().size == size;
        figures.rows.iter().find(own).map(p50)
    };
    let written = |row: &Row| alone(row.configuration().size);
    let with_a_set =
        |row: &&Row| !writes_alone(row) && row.configuration().size > 0 && written(row).is_some();
    let rows: Vec<&Row> = figures.rows.iter().filter(with_a_set).collect();
    let scale = scale_of(&rows);
    let bare = |row: &Row| {
        let bare = Configuration { size: 0, ..row.configuration().clone() };
        figures.rows.iter().find(|other| *other.configuration() == bare)
    };
    let table = settings()
        .with(number("round p50"), move |row| scale.show(p50(row)))
        .with(number("set written alone"), move |row| scale.known(written(row)))
        .with(number("round less two sets"), move |row| {
            written(row).map_or_else(dash, |ps| signed(p50(row) - 2.0 * ps, scale))
        })
        .with(number("without a set"), move |row| scale.known(bare(row).map(p50)))
        .tally(number("rounds").keep(1), |tally| tally.sent)
        .table(&rows);
    let note = "Medians. Each side writes its set before each hand-over, so a round holds two \
        writes; what remains above the round without a set is what the switch did to the caches. \
        On two cores the writes of a round do not overlap either: the sides alternate.";
    explained(&format!("Working sets, {}", scale.unit.sign()), note, table)
}

/// Whether the three ways of counting agreed.
fn checks(rows: &[&Row]) -> Option<String> {
    let sum = |name: &str| -> Option<f64> {
        let values: Vec<f64> = rows
            .iter()
            .flat_map(|row| &row.variant.records)
            .flat_map(|record| &record.figures)
            .filter(|figure| figure.name == name)
            .map(|figure| figure.value)
            .collect();
        (!values.is_empty()).then(|| values.iter().sum())
    };
    let [usage, status, event] = CHECKS;
    let usage = sum(usage)?;
    let say =
        |name: &str| sum(name).map_or_else(|| "not to be had here".to_owned(), |value| count(value as u64));
    Some(format!(
        "Over the same rounds after each window, all trials: getrusage {}, /proc status {}, perf \
         software event {}.",
        count(usage as u64),
        say(status),
        say(event),
    ))
}

fn operations<'row>() -> Columns<'row, &'row Row<'row>> {
    Columns::none().with(word("operation"), |row: &&Row| row.configuration().subject.clone())
}

fn settings<'row>() -> Columns<'row, &'row Row<'row>> {
    operations()
        .with(word("between"), |row| Axis::Contexts.value(row.configuration()))
        .with(word("placement"), |row| placement(row.configuration()))
        .with(word("policy"), |row| row.configuration().scheduler.name().to_owned())
        .with(number("set"), |row| bytes(row.configuration().size))
}

/// A table below the sentence that explains it.
fn explained(title: &str, note: &str, table: Table) -> Option<Subsection> {
    Some(Subsection::of_table(title, table, Vec::new())?.led_by(note.to_owned()))
}

fn p50(row: &Row) -> f64 {
    row.p50_ps(Quantity::Operation).unwrap_or(0.0)
}

/// A quantile of any quantity in words, as far as its samples support it.
fn at(row: &Row, quantity: Quantity, q: f64, scale: Scale) -> String {
    let series = row.series.get(&quantity);
    series.map_or_else(dash, |series| percentile(series.quantile(q) as f64, q, series.count, scale))
}

fn mean(row: &Row) -> f64 {
    row.series.get(&Quantity::Operation).map_or(0.0, |series| series.mean_ps)
}

/// What the tool whose protocol this is would print.
fn tool_figure<'row>(row: &'row Row) -> Option<(f64, &'row str)> {
    let printed = |name: &str| name.ends_with(AS_PRINTED);
    let mut figures = row.variant.records.iter().flat_map(|record| &record.figures);
    let unit = &figures.find(|figure| printed(&figure.name))?.unit;
    Some((row.figure(printed)?, unit))
}

/// Interrupts of one kind per round over whole trials.
fn interrupts(row: &Row, kind: &str) -> String {
    let known = row.variant.records.iter().any(|record| !record.environment.interrupts.is_empty());
    let rounds = row.variant.tally().sent;
    if !known || rounds == 0 {
        return "-".to_owned();
    }
    let came: u64 =
        row.variant.records.iter().filter_map(|record| record.environment.interrupts.get(kind)).sum();
    format!("{:.2}", came as f64 / rounds as f64)
}

fn placement(configuration: &Configuration) -> String {
    let relation = &configuration.placement.relation;
    configuration.placement.cpus.map_or_else(|| relation.clone(), |[a, b]| format!("{relation} {a},{b}"))
}

fn bytes(size: u32) -> String {
    match size {
        0 => "-".to_owned(),
        size if size.is_multiple_of(1 << 20) => format!("{} MiB", size >> 20),
        size if size.is_multiple_of(1 << 10) => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}

/// A difference, which may be negative where the caches favour the alternating sides.
fn signed(ps: f64, scale: Scale) -> String {
    if ps < 0.0 { format!("-{}", scale.show(-ps)) } else { scale.show(ps) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, figure, with};
    use doorbell_results::configuration::{Pattern, Placement};

    /// "There and back over two cores 0.14 µs (cache-line)", of 0.00 switches, and processes by
    /// switch-pipe beside threads by switch-futex: whatever was quickest was told.
    #[test]
    fn processes_and_threads_are_told_by_one_protocol_that_switched_with_its_count() {
        let record = |subject: &str, contexts, cpus: [u32; 2], level_ps, switches: f64| {
            let placement = Placement { relation: "same-core".into(), cpus: Some(cpus) };
            let operation = with(subject, Pattern::Operation { batch: 1 });
            let configuration = Configuration { contexts, placement, ..operation };
            let mut record = sample::record(&configuration, 0, &[level_ps; 1000]);
            record.figures = vec![figure(SWITCHES_PER_ROUND, switches)];
            if switches > 0.5 {
                record.figures.push(figure(PER_SWITCH, level_ps as f64 / switches / 1e3));
            }
            record
        };
        let (processes, threads) = (Contexts::Processes, Contexts::Threads);
        let records = vec![
            record("cache-line", processes, [0, 1], 140_000, 0.0),
            record("cache-line", threads, [0, 1], 140_000, 0.0),
            record("by-yield", processes, [1, 1], 2_000_000, 2.0),
            record("by-futex", processes, [1, 1], 4_000_000, 2.0),
            record("by-futex", threads, [1, 1], 3_000_000, 2.0),
            record("by-futex", processes, [0, 1], 40_000_000, 2.0),
            record("by-futex", threads, [0, 1], 38_000_000, 2.02),
            record("by-pipe", threads, [1, 1], 1_000_000, 2.0),
        ];
        let mut result = sample::result("switch", records);
        let lead = |result: &ResultFile| Operations.answer(result, &Figures::of(result))[0].lead.clone();
        let expected = [
            "One switch on one core by by-futex: 2 µs between processes (2.00 switches a round), \
             1.5 µs between threads (2.00 switches a round).",
            "There and back over two cores by by-futex: 40 µs between processes (2.00 switches a \
             round), 38 µs between threads (2.02 switches a round).",
        ];
        assert_eq!(lead(&result), expected);
        // What the plan names comes first, also where another switched in more places; what
        // switched nowhere is never told.
        result.plan.parts.insert("cache-line".to_owned(), TOLD_FIRST.to_owned());
        assert_eq!(lead(&result), expected);
        result.plan.parts.insert("by-yield".to_owned(), TOLD_FIRST.to_owned());
        assert_eq!(
            lead(&result),
            ["One switch on one core by by-yield: 1 µs between processes (2.00 switches a round)."]
        );
    }
}
