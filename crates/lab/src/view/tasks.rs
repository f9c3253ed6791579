// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell tasks` on the terminal: what a hand-off costs beside the control, what a task costs to make, to reap and to
//! keep, and how many fit.

use super::axis;
use super::figures::{Distribution, Figures, Row};
use super::style::{Role, Style};
use super::summary::{sentence, shown};
use super::table::{Align, Column, Table};
use super::unit::{Scale, count};
use crate::experiment::tasks_limits::CEILING;
use crate::record::series::Quantity;
use crate::task::{SWITCHES_PER_HANDOFF, TASK_BYTES};
use crate::trial::cell::Cell;

/// The kind that every other is held against.
const CONTROL: &str = "call";

/// Everything about a run of tasks.
pub fn tables(figures: &Figures, style: &Style) -> String {
    if figures.rows.is_empty() {
        return "\nNo trial of this run has figures.\n".to_owned();
    }
    [hand_offs(figures, style), lives(figures, style)].concat()
}

fn number(head: &str) -> Column {
    Column::new(head, Align::Right)
}

/// The rows that have figures of `quantity`.
fn rows<'a>(figures: &'a Figures, quantity: Quantity) -> Vec<(&'a Row<'a>, &'a Distribution)> {
    figures.rows.iter().filter_map(|row| Some((row, row.series.get(&quantity)?))).collect()
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
    let scale = Scale::for_ps(rows.iter().map(|(_, series)| series.quantile(0.5) as f64));
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
         by hand-off; between processes each is a change of address space. CPU: CPU time of driver and tasks by hand-off, \
         making and reaping included."
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
    let scale = Scale::for_ps(rows.iter().map(|(_, series)| series.quantile(0.5) as f64));
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::new(axis.name(), Align::Left)).collect();
    columns.extend([
        number("p50"),
        number("p99").keep(5),
        number("max").keep(2),
        number("make").keep(8),
        number("run and reap").keep(7),
        number("CPU").keep(3),
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
        line.push(row.cpu_ps().map_or_else(|| "-".to_owned(), |ps| scale.show(ps)));
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
        for word in ["500.00", "1.000", "180,000", "23,456"] {
            assert!(line.split_whitespace().any(|own| own == word), "{word}:\n{text}");
        }
    }
}
