// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell tasks`: what a hand-off costs beside the control, what a task costs to make, to reap
//! and to keep, and how many fit.

use super::axis::{self, Axis};
use super::columns::{Columns, dash};
use super::figures::{Distribution, Figures, Row};
use super::published;
use super::section::Section;
use super::subsection::{Subsection, all, nothing};
use super::table::{Table, number, word};
use super::unit::{Scale, count, plain};
use crate::wording::{counted, four_digits, sentence};
use doorbell_results::configuration::Configuration;
use doorbell_results::figure::task::{
    CEILING, MOVES_PER_TASK, SWITCHES_COUNTED, SWITCHES_PER_HANDOFF, TASK_BYTES,
};
use doorbell_results::figure::timer_ticks;
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;
use doorbell_verdict::claims::coroutines::{COROUTINES, COROUTINES_ALONE, PROCESSES, PROCESSES_ALONE};
use doorbell_verdict::compare::RELEVANT;
use doorbell_verdict::ratio::Standing;
use doorbell_verdict::versus::versus;

/// The part of the kind that every other is held against.
pub const CONTROL: &str = "control";

#[derive(Debug)]
pub struct Tasks;

impl Section for Tasks {
    fn name(&self) -> &'static str {
        "tasks"
    }
    fn subsections(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        subsections(result, figures)
    }
    fn answer(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        answer(figures)
    }
    fn tells(&self, name: &str) -> bool {
        use timer_ticks::{BY_CYCLES, BY_TICKS, RUNS, STEP, TICKS, WORST};
        let own = [SWITCHES_COUNTED, SWITCHES_PER_HANDOFF, TASK_BYTES, CEILING, MOVES_PER_TASK];
        own.contains(&name) || [TICKS, BY_TICKS, BY_CYCLES, RUNS, STEP, WORST].contains(&name)
    }
}

/// What a hand-off, a task's making and its memory cost with the most tasks, the cheapest kind
/// first, and where the order changes with their number.
fn answer(figures: &Figures) -> Vec<Subsection> {
    let told =
        [Quantity::HandOff, Quantity::Life].into_iter().filter_map(|quantity| kinds(figures, quantity));
    told.collect()
}

fn kinds(figures: &Figures, quantity: Quantity) -> Option<Subsection> {
    let mut rows = rows(figures, quantity);
    let tasks = |row: &Row| row.configuration().pattern.tasks().map(|(tasks, _)| tasks);
    rows.sort_by_key(|(row, series)| (std::cmp::Reverse(tasks(row)), series.quantile(0.5)));
    let scale = scale_of(&rows);
    let axes = axis::varying(rows.iter().map(|(row, _)| row.configuration()));
    let table = Columns::along(&axes, "mechanism")
        .at([(number("p50"), 0.5), (number("p99"), 0.99)], scale)
        .cpu(number("CPU"), scale)
        .with(number("make").keep(3), |(row, _)| scale.known(row.p50_ps(Quantity::Create)))
        .with(number("reap").keep(2), |(row, _)| scale.known(row.p50_ps(Quantity::Reap)))
        .figure(number("memory, B").keep(4), TASK_BYTES, whole)
        .table(&rows);
    let (what, title) = match quantity {
        Quantity::HandOff => ("A hand-off", "What a hand-off between tasks costs"),
        _ => ("A life", "What a task costs to make, run once and reap"),
    };
    let most = rows.first().and_then(|(row, _)| tasks(row));
    let ranked: Vec<_> = rows.iter().filter(|(row, _)| tasks(row) == most && !row.is_harness()).collect();
    let medians: Vec<f64> = ranked.iter().map(|(_, series)| series.quantile(0.5) as f64).collect();
    let names = ranked.iter().map(|(row, _)| &row.configuration().subject);
    let ranked: Vec<String> =
        names.zip(&medians).map(|(name, ps)| format!("{name} {}", scale.show(*ps))).collect();
    let mut lead = Vec::new();
    if let (Some(most), [_, ..]) = (most, &ranked[..]) {
        lead.push(format!(
            "{what} among {}, {}: {}.",
            counted(most.into(), "task"),
            scale.unit.sign(),
            ranked.join("; ")
        ));
    }
    lead.extend(crossings(&rows, quantity));
    let title = format!("{title}, {}", scale.unit.sign());
    (!rows.is_empty()).then(|| Subsection { title, lead, table: Some(table), ..Subsection::default() })
}

/// Crossings that are told at the most.
const CROSSINGS: usize = 3;

/// The kinds of which one is shown to be cheaper with few tasks and dearer with many.
fn crossings(rows: &[(&Row, &Distribution)], quantity: Quantity) -> Vec<String> {
    const MOST: usize = 48;
    if rows.len() > MOST {
        return Vec::new();
    }
    let judged = versus(&rows.iter().map(|(row, _)| &row.variant).collect::<Vec<_>>(), quantity);
    let is = |a, b, wanted| judged.ratio(a, b).is_some_and(|ratio| ratio.standing(RELEVANT) == wanted);
    let tasks = |place: usize| rows[place].0.configuration().pattern.tasks().map(|(tasks, _)| tasks);
    let kind = |place: usize| rows[place].0.configuration().subject.as_str();
    let places = || 0..rows.len();
    let mut told = Vec::new();
    for (a, b) in places().flat_map(|a| places().map(move |b| (a, b))) {
        // `a` is cheaper than `b` with as many tasks; the same two
        // with more of them are the other way round.
        if kind(a) == kind(b) || tasks(a) != tasks(b) || !is(a, b, Standing::Slower) {
            continue;
        }
        let turned = places().flat_map(|c| places().map(move |d| (c, d))).find(|&(c, d)| {
            (kind(c), kind(d)) == (kind(a), kind(b))
                && tasks(c) == tasks(d)
                && tasks(c) > tasks(a)
                && is(d, c, Standing::Slower)
        });
        if let (Some((c, _)), Some(few)) = (turned, tasks(a)) {
            told.push(format!(
                "{} is cheaper than {} with {} tasks and dearer with {}.",
                kind(a),
                kind(b),
                count(few.into()),
                count(tasks(c).unwrap_or_default().into())
            ));
        }
    }
    told.truncate(CROSSINGS);
    told
}

/// Everything about a run of tasks.
pub fn subsections(result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
    if figures.rows.is_empty() {
        return nothing();
    }
    [hand_offs(result, figures), lives(figures), queue(result, figures), ticks(figures)]
        .into_iter()
        .chain(published::subsections(result))
        .flatten()
        .collect()
}

/// The rows that have figures of `quantity`.
fn rows<'a>(figures: &'a Figures, quantity: Quantity) -> Vec<(&'a Row<'a>, &'a Distribution)> {
    figures.rows.iter().filter_map(|row| Some((row, row.series.get(&quantity)?))).collect()
}

/// The unit of the shortest median: beside a call, a coroutine in
/// microseconds would be two digits of nothing.
fn scale_of(rows: &[(&Row, &Distribution)]) -> Scale {
    Scale::for_ps(rows.iter().map(|(_, series)| series.quantile(0.5) as f64).min_by(f64::total_cmp))
}

/// The control of a row: plain calls with as many tasks and turns and
/// the same working set, under the same load.
fn control<'a>(
    result: &ResultFile,
    figures: &'a Figures,
    configuration: &Configuration,
) -> Option<&'a Distribution> {
    let row = figures.rows.iter().find(|row| {
        let other = row.configuration();
        result.plan.plays(&other.subject, CONTROL)
            && (other.pattern, other.size, &other.load)
                == (configuration.pattern, configuration.size, &configuration.load)
    })?;
    row.series.get(&Quantity::HandOff)
}

/// A figure that is a whole number.
fn whole(value: f64) -> String {
    count(value.max(0.0) as u64)
}

fn hand_offs(result: &ResultFile, figures: &Figures) -> Option<Subsection> {
    let rows = rows(figures, Quantity::HandOff);
    let configurations = || rows.iter().map(|(row, _)| row.configuration());
    let axes = axis::varying(configurations());
    let scale = scale_of(&rows);
    let bare =
        |row: &Row| control(result, figures, row.configuration()).map(|bare| bare.quantile(0.5) as f64);
    let p50 = |series: &Distribution| series.quantile(0.5) as f64;
    let table = Columns::along(&axes, "mechanism")
        .at([(number("p50"), 0.5), (number("p99").keep(9), 0.99), (number("max").keep(4), 1.0)], scale)
        .with(number("x call").keep(10), |(row, series)| {
            bare(row).map_or_else(dash, |bare| plain(p50(series) / bare.max(1.0)))
        })
        .with(number("above call").keep(8), |(row, series)| {
            scale.known(bare(row).map(|bare| (p50(series) - bare).max(0.0)))
        })
        .cpu(number("CPU").keep(3), scale)
        .with(number("switches").keep(11), |(row, _)| {
            let switches = row.figure(|name| name == SWITCHES_PER_HANDOFF);
            switches.map_or_else(String::new, |value| format!("{value:.3}"))
        })
        .with(number("make").keep(7), |(row, _)| scale.known(row.p50_ps(Quantity::Create)))
        .with(number("reap").keep(6), |(row, _)| scale.known(row.p50_ps(Quantity::Reap)))
        .figure(number("memory, B").keep(5), TASK_BYTES, whole)
        .figure(number("most here").keep(2), CEILING, whole)
        .with(number("hand-offs").keep(1), |(row, _)| count(row.variant.tally().seen))
        .table(&rows);
    let notes = vec![
        format!("Hand-off: {}", sentence(Quantity::HandOff.definition())),
        "x call, above call: as a multiple of the control with as many tasks and turns, and less \
         it; the control is a call through the same queue with the same count and stamps, so it is \
         the harness's own cost."
            .to_owned(),
        "Switches: context switches that the kernel counted for all tasks from when they stood \
         ready to the last hand-off, by hand-off. Between processes that is the most that changes \
         of address space can be: a switch to the idle task and back to the same process is \
         counted and changes none. CPU: CPU time by hand-off, of threads and processes from \
         standing ready to going home, of code with making and reaping."
            .to_owned(),
        "Make, reap, memory: medians per task, memory as the kernel counts it while all stand \
         ready. Most here: how many fit this machine."
            .to_owned(),
    ];
    let title = format!("Hand-offs, {}", scale.unit.sign());
    Some(Subsection::of_table(title, table, notes)?.led_by(all(&axis::common(configurations()))))
}

fn lives(figures: &Figures) -> Option<Subsection> {
    let rows = rows(figures, Quantity::Life);
    let axes = axis::varying(rows.iter().map(|(row, _)| row.configuration()));
    let scale = scale_of(&rows);
    let table = Columns::along(&axes, "mechanism")
        .at([(number("p50"), 0.5), (number("p99").keep(5), 0.99), (number("max").keep(2), 1.0)], scale)
        .with(number("make").keep(8), |(row, _)| scale.known(row.p50_ps(Quantity::Create)))
        .with(number("run and reap").keep(7), |(row, _)| scale.known(row.p50_ps(Quantity::Reap)))
        .figure(number("most here").keep(6), CEILING, whole)
        .with(number("lives").keep(4), |(row, _)| count(row.variant.tally().seen))
        .table(&rows);
    let note = "Per task, of all tasks of a generation together: all are made, then all are waited \
        for. Most here: how many fit this machine at once.";
    let title = format!("Lives: made, run once, reaped, {}", scale.unit.sign());
    Subsection::of_table(title, table, vec![note.to_owned()])
}

/// How much of a figure was the queue: the same tasks on a queue whose delete moves every element.
fn queue(result: &ResultFile, figures: &Figures) -> Option<Subsection> {
    let plan = &result.plan;
    let pairs = [(COROUTINES, COROUTINES_ALONE), (PROCESSES, PROCESSES_ALONE)];
    let mut table = Table::new(vec![
        word("tasks on the rotating queue"),
        number("tasks"),
        number("turns"),
        number("p50"),
        number("on the O(1) queue"),
        number("the queue's share"),
        number("moves per task").keep(2),
        number("hand-offs").keep(1),
    ]);
    let medians = rows(figures, Quantity::HandOff);
    let scale = scale_of(&medians);
    for (row, series) in &medians {
        let configuration = row.configuration();
        let Some((_, quick)) = pairs.iter().find(|(slow, _)| plan.plays(&configuration.subject, slow)) else {
            continue;
        };
        let same = |(other, _): &&(&Row, &Distribution)| {
            let other = other.configuration();
            plan.plays(&other.subject, quick)
                && *other == Configuration { subject: other.subject.clone(), ..configuration.clone() }
        };
        let Some((_, quick)) = medians.iter().find(same) else { continue };
        let [slow, quick] = [series, quick].map(|series| series.quantile(0.5) as f64);
        let moves = row.figure(|name| name == MOVES_PER_TASK);
        table.row(vec![
            configuration.subject.clone(),
            Axis::Tasks.value(configuration),
            Axis::Yields.value(configuration),
            scale.show(slow),
            scale.show(quick),
            format!("{:.0} %", (1.0 - quick / slow.max(1.0)) * 100.0),
            moves.map_or_else(dash, |moves| format!("{moves:.1}")),
            count(row.variant.tally().seen),
        ]);
    }
    let note = "Medians. The rotating queue deletes a task that has ended by taking every element \
        out and putting all others back, as the queue of tornado-os does; nothing else differs.";
    let title = format!("The share of the queue, {}", scale.unit.sign());
    Subsection::of_table(title, table, vec![note.to_owned()])
}

/// Times told by counting timer ticks, beside the same runs told by the cycle counter.
fn ticks(figures: &Figures) -> Option<Subsection> {
    let ticked = |row: &&Row| row.figure(|name| name == timer_ticks::TICKS).is_some();
    let rows: Vec<&Row> = figures.rows.iter().filter(ticked).collect();
    let table = Columns::none()
        .with(number("tasks"), |row: &&Row| Axis::Tasks.value(row.configuration()))
        .with(number("turns"), |row| Axis::Yields.value(row.configuration()))
        .figure(number("ticks per run"), timer_ticks::TICKS, four_digits)
        .figure(number("hand-off by ticks, ns"), timer_ticks::BY_TICKS, four_digits)
        .figure(number("by cycle counter, ns"), timer_ticks::BY_CYCLES, four_digits)
        .figure(number("one tick of a run"), timer_ticks::STEP, |share| format!("{} %", four_digits(share)))
        .figure(number("worst error of ten runs"), timer_ticks::WORST, |share| {
            format!("{} %", four_digits(share))
        })
        .figure(number("runs").keep(1), timer_ticks::RUNS, whole)
        .table(&rows);
    let note = "Ticks of 0.5 ms, as tornado-os counted them, and the cycle counter over the same \
        runs of stackless-rotating. One tick of a run is the error of a single count; the worst \
        error is that of a mean of ten counts.";
    Subsection::of_table("Counting timer ticks", table, vec![note.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::style::Style;
    use crate::subsection::text;
    use doorbell_results::configuration::Pattern;
    use doorbell_results::record::subject::Contexts;
    use doorbell_results::record::{Figure, Record};

    fn record(subject: &str, ps: u64) -> Record {
        let configuration = Configuration {
            pattern: Pattern::Tasks { tasks: 1000, yields: 100 },
            contexts: Contexts::Processes,
            ..sample::configuration(subject)
        };
        sample::record(&configuration, 0, &[ps; 50])
    }

    #[test]
    fn a_kind_stands_beside_its_control_with_its_switches_and_how_many_fit() {
        let mut own = record("process-futex", 2_000_000);
        for (name, value) in [(SWITCHES_PER_HANDOFF, 1.0), (TASK_BYTES, 180_000.0), (CEILING, 23_456.0)] {
            own.figures.push(Figure {
                name: name.into(),
                value,
                unit: String::new(),
                formula: String::new(),
            });
        }
        let result = sample::result("tasks", vec![record("call", 4_000), own]);
        let text = text(&subsections(&result, &Figures::of(&result)), &Style { width: 200, ..Style::PLAIN });
        let line = text.lines().find(|line| line.starts_with("process-futex")).unwrap();
        for word in ["500", "1.000", "180,000", "23,456"] {
            assert!(line.split_whitespace().any(|own| own == word), "{word}:\n{text}");
        }
    }
}
