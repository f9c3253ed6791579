// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell tasks`: what a hand-off costs beside the control, what a task costs to make, to reap
//! and to keep, and how many fit.

use super::axis::{self, Axis};
use super::columns::{Columns, dash};
use super::figures::{Distribution, Figures, Having, Row};
use super::published;
use super::section::Section;
use super::subsection::{Subsection, all};
use super::table::{number, word};
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
        [hand_offs(result, figures), lives(figures), queue(result, figures), ticks(figures)]
            .into_iter()
            .chain(published::subsections(result))
            .flatten()
            .collect()
    }
    fn answer(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        [Quantity::HandOff, Quantity::Life]
            .into_iter()
            .filter_map(|quantity| kinds(figures, quantity))
            .collect()
    }
    fn tells(&self, name: &str) -> bool {
        use timer_ticks::{BY_CYCLES, BY_TICKS, RUNS, STEP, TICKS, WORST};
        let own = [SWITCHES_COUNTED, SWITCHES_PER_HANDOFF, TASK_BYTES, CEILING, MOVES_PER_TASK];
        own.contains(&name) || [TICKS, BY_TICKS, BY_CYCLES, RUNS, STEP, WORST].contains(&name)
    }
}

/// What a hand-off, a task's making and its memory cost with the most tasks, the cheapest kind
/// first, and where the order changes with their number.
fn kinds(figures: &Figures, quantity: Quantity) -> Option<Subsection> {
    let mut rows = figures.having(|_| quantity);
    let tasks = |row: &Row| row.configuration().pattern.tasks().map(|(tasks, _)| tasks);
    rows.sort_by_key(|(row, series)| (std::cmp::Reverse(tasks(row)), series.quantile(0.5)));
    let scale = scale_of(&rows);
    let table = Columns::of(&rows, "mechanism")
        .at([(number("p50"), 0.5), (number("p99"), 0.99)], scale)
        .cpu(number("CPU"), scale)
        .p50(number("make").keep(3), Quantity::Create, scale)
        .p50(number("reap").keep(2), Quantity::Reap, scale)
        .figure(number("memory, B").keep(4), TASK_BYTES, whole)
        .table(&rows);
    let (what, title) = match quantity {
        Quantity::HandOff => ("A hand-off", "What a hand-off between tasks costs"),
        _ => ("A life", "What a task costs to make, run once and reap"),
    };
    let most = rows.first().and_then(|(row, _)| tasks(row));
    let ranked = rows.iter().filter(|(row, _)| tasks(row) == most && !row.is_harness());
    let told =
        |(row, series): &Having| format!("{} {}", row.configuration().subject, scale.show(series.p50_ps()));
    let ranked: Vec<String> = ranked.map(told).collect();
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
    (!rows.is_empty()).then(|| Subsection::answer(title, lead, table))
}

/// Crossings that are told at the most.
const CROSSINGS: usize = 3;

/// The kinds of which one is shown to be cheaper with few tasks and dearer with many.
fn crossings(rows: &[Having], quantity: Quantity) -> Vec<String> {
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

/// The unit of the shortest median: beside a call, a coroutine in
/// microseconds would be two digits of nothing.
fn scale_of(rows: &[Having]) -> Scale {
    Scale::for_ps(rows.iter().map(|(_, series)| series.p50_ps()).min_by(f64::total_cmp))
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

fn whole(value: f64) -> String {
    count(value.max(0.0) as u64)
}

fn hand_offs(result: &ResultFile, figures: &Figures) -> Option<Subsection> {
    let rows = figures.having(|_| Quantity::HandOff);
    let scale = scale_of(&rows);
    let bare = |row: &Row| control(result, figures, row.configuration()).map(Distribution::p50_ps);
    let table = Columns::of(&rows, "mechanism")
        .at([(number("p50"), 0.5), (number("p99").keep(9), 0.99), (number("max").keep(4), 1.0)], scale)
        .with(number("x call").keep(10), |(row, series)| {
            bare(row).map_or_else(dash, |bare| plain(series.p50_ps() / bare.max(1.0)))
        })
        .with(number("above call").keep(8), |(row, series)| {
            scale.known(bare(row).map(|bare| (series.p50_ps() - bare).max(0.0)))
        })
        .cpu(number("CPU").keep(3), scale)
        .figure(number("switches").keep(11), SWITCHES_PER_HANDOFF, |value| format!("{value:.3}"))
        .p50(number("make").keep(7), Quantity::Create, scale)
        .p50(number("reap").keep(6), Quantity::Reap, scale)
        .figure(number("memory, B").keep(5), TASK_BYTES, whole)
        .figure(number("most here").keep(2), CEILING, whole)
        .tally(number("hand-offs").keep(1), |tally| tally.seen)
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
    Some(
        Subsection::of_table(title, table, notes)?
            .led_by(all(&axis::common(rows.iter().map(|(row, _)| row.configuration())))),
    )
}

fn lives(figures: &Figures) -> Option<Subsection> {
    let rows = figures.having(|_| Quantity::Life);
    let scale = scale_of(&rows);
    let table = Columns::of(&rows, "mechanism")
        .at([(number("p50"), 0.5), (number("p99").keep(5), 0.99), (number("max").keep(2), 1.0)], scale)
        .p50(number("make").keep(8), Quantity::Create, scale)
        .p50(number("run and reap").keep(7), Quantity::Reap, scale)
        .figure(number("most here").keep(6), CEILING, whole)
        .tally(number("lives").keep(4), |tally| tally.seen)
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
    let medians = figures.having(|_| Quantity::HandOff);
    let scale = scale_of(&medians);
    let quick = |configuration: &Configuration| {
        let (_, quick) = pairs.iter().find(|(slow, _)| plan.plays(&configuration.subject, slow))?;
        let same = |(other, _): &&Having| {
            let other = other.configuration();
            plan.plays(&other.subject, quick)
                && *other == Configuration { subject: other.subject.clone(), ..configuration.clone() }
        };
        medians.iter().find(same).map(|(_, series)| series.p50_ps())
    };
    let both =
        medians.iter().filter_map(|(row, slow)| Some((*row, [slow.p50_ps(), quick(row.configuration())?])));
    let table = Columns::none()
        .with(word("tasks on the rotating queue"), |(row, _): &(&Row, [f64; 2])| {
            row.configuration().subject.clone()
        })
        .with(number("tasks"), |(row, _)| Axis::Tasks.value(row.configuration()))
        .with(number("turns"), |(row, _)| Axis::Yields.value(row.configuration()))
        .with(number("p50"), |(_, [slow, _])| scale.show(*slow))
        .with(number("on the O(1) queue"), |(_, [_, quick])| scale.show(*quick))
        .with(number("the queue's share"), |(_, [slow, quick])| {
            format!("{:.0} %", (1.0 - quick / slow.max(1.0)) * 100.0)
        })
        .figure(number("moves per task").keep(2), MOVES_PER_TASK, |moves| format!("{moves:.1}"))
        .tally(number("hand-offs").keep(1), |tally| tally.seen)
        .table(&both.collect::<Vec<_>>());
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
