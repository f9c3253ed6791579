// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell tasks` on the terminal: what a hand-off costs beside the control, what a task costs to make, to reap and to
//! keep, and how many fit.

use super::axis::{self, Axis};
use super::figures::{Distribution, Figures, Row};
use super::style::{Role, Style};
use super::summary::{four_digits, sentence, shown};
use super::table::{Align, Column, Table};
use super::unit::{Scale, count};
use crate::experiment::tasks_limits::CEILING;
use crate::record::series::Quantity;
use crate::task::{MOVES_PER_TASK, SWITCHES_PER_HANDOFF, TASK_BYTES, timer_ticks};
use crate::trial::cell::Cell;

/// The kind that every other is held against.
const CONTROL: &str = "call";

/// Everything about a run of tasks.
pub fn tables(figures: &Figures, style: &Style) -> String {
    if figures.rows.is_empty() {
        return "\nNo trial of this run has figures.\n".to_owned();
    }
    [hand_offs(figures, style), lives(figures, style), queue(figures, style), ticks(figures, style)].concat()
}

fn number(head: &str) -> Column {
    Column::new(head, Align::Right)
}

/// The rows that have figures of `quantity`.
fn rows<'a>(figures: &'a Figures, quantity: Quantity) -> Vec<(&'a Row<'a>, &'a Distribution)> {
    figures.rows.iter().filter_map(|row| Some((row, row.series.get(&quantity)?))).collect()
}

/// The unit of the shortest median: beside a call, a coroutine in microseconds would be two digits of nothing.
fn scale_of(rows: &[(&Row, &Distribution)]) -> Scale {
    Scale::for_ps(rows.iter().map(|(_, series)| series.quantile(0.5) as f64).min_by(f64::total_cmp))
}

/// The control of a row: plain calls with as many tasks and turns and the same working set, under the same load.
fn control<'a>(figures: &'a Figures, cell: &Cell) -> Option<&'a Distribution> {
    let row = figures.rows.iter().find(|row| {
        let other = row.cell();
        other.subject == CONTROL
            && (other.pattern, other.size, &other.load) == (cell.pattern, cell.size, &cell.load)
    })?;
    row.series.get(&Quantity::HandOff)
}

fn hand_offs(figures: &Figures, style: &Style) -> String {
    let rows = rows(figures, Quantity::HandOff);
    if rows.is_empty() {
        return String::new();
    }
    let cells = || rows.iter().map(|(row, _)| row.cell());
    let axes = axis::varying(cells());
    let scale = scale_of(&rows);
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::new(axis.name(), Align::Left)).collect();
    columns.extend([
        number("p50").keep(u8::MAX),
        number("p99").keep(9),
        number("max").keep(4),
        number("x call").keep(10),
        number("above call").keep(8),
        number("CPU").keep(3),
        number("switches").keep(11),
        number("make").keep(7),
        number("reap").keep(6),
        number("memory, B").keep(5),
        number("most here").keep(2),
        number("hand-offs").keep(1),
    ]);
    let mut table = Table::new(columns);
    for (row, series) in &rows {
        let median = series.quantile(0.5) as f64;
        let bare = control(figures, row.cell()).map(|bare| bare.quantile(0.5) as f64);
        let of = |quantity| {
            let series = row.series.get(&quantity);
            series.map_or_else(|| "-".to_owned(), |series| scale.show(series.quantile(0.5) as f64))
        };
        let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, row)).collect();
        line.extend([median, series.quantile(0.99) as f64, series.max_ps as f64].map(|ps| scale.show(ps)));
        line.push(bare.map_or_else(|| "-".to_owned(), |bare| format!("{:.2}", median / bare.max(1.0))));
        line.push(bare.map_or_else(|| "-".to_owned(), |bare| scale.show((median - bare).max(0.0))));
        line.push(row.cpu_ps().map_or_else(|| "-".to_owned(), |ps| scale.show(ps)));
        line.push(figure(row, SWITCHES_PER_HANDOFF).map_or_else(String::new, |value| format!("{value:.3}")));
        line.extend([of(Quantity::Create), of(Quantity::Reap)]);
        line.extend([TASK_BYTES, CEILING].map(|name| whole(row, name)));
        line.push(count(row.arm.tally().seen));
        table.row(line);
    }
    let mut out = heading(&format!("Hand-offs, {}", scale.unit.sign()), style);
    let common = axis::common(cells());
    if !common.is_empty() {
        out.push_str(&style.wrap(&format!("All: {common}."), 0));
    }
    out.push_str(&table.render(style));
    for note in [
        format!("Hand-off: {}", sentence(Quantity::HandOff.definition())),
        "x call, above call: as a multiple of the control with as many tasks and turns, and less it; the control is a call \
         through the same queue with the same count and stamps, so it is the harness's own cost."
            .to_owned(),
        "Switches: context switches that the kernel counted for all tasks from when they stood ready to the last hand-off, \
         by hand-off. Between processes that is the most that changes of address space can be: a switch to the idle task \
         and back to the same process is counted and changes none. CPU: CPU time by hand-off, of threads and processes \
         from standing ready to going home, of code with making and reaping."
            .to_owned(),
        "Make, reap, memory: medians per task, memory as the kernel counts it while all stand ready. Most here: how many \
         fit this machine."
            .to_owned(),
    ] {
        out.push_str(&style.wrap(&note, 2));
    }
    out
}

fn lives(figures: &Figures, style: &Style) -> String {
    let rows: Vec<(&Row, &Distribution)> = rows(figures, Quantity::Life);
    if rows.is_empty() {
        return String::new();
    }
    let cells = || rows.iter().map(|(row, _)| row.cell());
    let axes = axis::varying(cells());
    let scale = scale_of(&rows);
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::new(axis.name(), Align::Left)).collect();
    columns.extend([
        number("p50"),
        number("p99").keep(5),
        number("max").keep(2),
        number("make").keep(8),
        number("run and reap").keep(7),
        number("most here").keep(6),
        number("lives").keep(4),
    ]);
    let mut table = Table::new(columns);
    for (row, series) in &rows {
        let of = |quantity| {
            let series = row.series.get(&quantity);
            series.map_or_else(|| "-".to_owned(), |series| scale.show(series.quantile(0.5) as f64))
        };
        let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, row)).collect();
        line.extend(
            [series.quantile(0.5), series.quantile(0.99), series.max_ps].map(|ps| scale.show(ps as f64)),
        );
        line.extend([of(Quantity::Create), of(Quantity::Reap)]);
        line.push(whole(row, CEILING));
        line.push(count(row.arm.tally().seen));
        table.row(line);
    }
    let mut out = heading(&format!("Lives: made, run once, reaped, {}", scale.unit.sign()), style);
    out.push_str(&table.render(style));
    let note = "Per task, of all tasks of a generation together: all are made, then all are waited for. Most here: how many \
                fit this machine at once.";
    out.push_str(&style.wrap(note, 2));
    out
}

/// How much of a figure was the queue: the same tasks on a queue whose delete moves every element.
fn queue(figures: &Figures, style: &Style) -> String {
    let pairs = [("stackless-rotating", "stackless"), ("process-pair-rotating", "process-pair")];
    let mut table = Table::new(vec![
        Column::new("tasks on the rotating queue", Align::Left),
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
        let cell = row.cell();
        let Some((_, quick)) = pairs.iter().find(|(slow, _)| *slow == cell.subject) else { continue };
        let same = |other: &&(&Row, &Distribution)| {
            *other.0.cell() == Cell { subject: (*quick).to_owned(), ..cell.clone() }
        };
        let Some((_, quick)) = medians.iter().find(same) else { continue };
        let [slow, quick] = [series, quick].map(|series| series.quantile(0.5) as f64);
        table.row(vec![
            cell.subject.clone(),
            Axis::Tasks.value(cell),
            Axis::Yields.value(cell),
            scale.show(slow),
            scale.show(quick),
            format!("{:.0} %", (1.0 - quick / slow.max(1.0)) * 100.0),
            figure(row, MOVES_PER_TASK).map_or_else(|| "-".to_owned(), |moves| format!("{moves:.1}")),
            count(row.arm.tally().seen),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    let note = "Medians. The rotating queue deletes a task that has ended by taking every element out and putting all others \
                back, as the queue of tornado-os does; nothing else differs.";
    heading(&format!("The share of the queue, {}", scale.unit.sign()), style)
        + &table.render(style)
        + &style.wrap(note, 2)
}

/// Times told by counting timer ticks, beside the same runs told by the cycle counter.
fn ticks(figures: &Figures, style: &Style) -> String {
    let mut table = Table::new(vec![
        number("tasks"),
        number("turns"),
        number("ticks per run"),
        number("hand-off by ticks, ns"),
        number("by cycle counter, ns"),
        number("one tick of a run"),
        number("worst error of ten runs"),
        number("runs").keep(1),
    ]);
    for row in figures.rows.iter().filter(|row| row.cell().subject == "timer-ticks") {
        let Some(per_run) = figure(row, timer_ticks::TICKS) else { continue };
        let show = |name, unit: &str| {
            figure(row, name).map_or_else(|| "-".to_owned(), |value| format!("{}{unit}", four_digits(value)))
        };
        table.row(vec![
            Axis::Tasks.value(row.cell()),
            Axis::Yields.value(row.cell()),
            four_digits(per_run),
            show(timer_ticks::BY_TICKS, ""),
            show(timer_ticks::BY_CYCLES, ""),
            show(timer_ticks::STEP, " %"),
            show(timer_ticks::WORST, " %"),
            count(row.series.get(&Quantity::Create).map_or(0, |series| series.count)),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    let note = "Ticks of 0.5 ms, as tornado-os counted them, and the cycle counter over the same runs of stackless-rotating. One \
                tick of a run is the error of a single count; the worst error is that of a mean of ten counts.";
    heading("Counting timer ticks", style) + &table.render(style) + &style.wrap(note, 2)
}

fn heading(title: &str, style: &Style) -> String {
    format!("\n{}\n", style.paint(Role::Heading, &style.text(title)))
}

/// The middle of a figure over the trials of a row.
fn figure(row: &Row, name: &str) -> Option<f64> {
    let figures = row.arm.records.iter().flat_map(|record| &record.figures);
    let mut values: Vec<f64> = figures
        .filter(|figure| figure.name == name && figure.value.is_finite())
        .map(|figure| figure.value)
        .collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A figure that is a whole number.
fn whole(row: &Row, name: &str) -> String {
    figure(row, name).map_or_else(|| "-".to_owned(), |value| count(value.max(0.0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::Contexts;
    use crate::record::{Figure, Record};
    use crate::trial::cell::Pattern;
    use crate::view::sample;

    fn record(subject: &str, ps: u64) -> Record {
        let cell = Cell {
            pattern: Pattern::Tasks { tasks: 1000, yields: 100 },
            contexts: Contexts::Processes,
            ..sample::cell(subject)
        };
        sample::record(&cell, 0, &[ps; 50])
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
        let text = tables(&Figures::of(&result), &Style { width: 200, ..Style::PLAIN });
        let line = text.lines().find(|line| line.starts_with("process-futex")).unwrap();
        for word in ["500.10", "1.000", "180,000", "23,456"] {
            assert!(line.split_whitespace().any(|own| own == word), "{word}:\n{text}");
        }
    }
}
