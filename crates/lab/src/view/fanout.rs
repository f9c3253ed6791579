// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fan-outs on the terminal: one line per arm with everything a round has, then what befell shared objects, then memory.

use super::axis;
use super::extra::Extra;
use super::figures::{Figures, Row};
use super::style::{Role, Style};
use super::summary::{counted, sentence, shown};
use super::table::{Align, Column, Table};
use super::unit::{Scale, count};
use crate::record::Record;
use crate::record::fanout::FanOut;
use crate::record::series::Quantity;
use crate::trial::fanout::gather::{BY_CHANCE, LATENCY_BY_NUMBER, ORDER_BY_NUMBER, ORDER_BY_POST};

/// The columns of times: quantity, quantile, head, and how long it stays when there is no room.
const TIMES: [(Quantity, f64, &str, u8); 10] = [
    (Quantity::Wake, 0.5, "wake p50", u8::MAX),
    (Quantity::Wake, 0.99, "wake p99", 9),
    (Quantity::Wake, 1.0, "wake max", 5),
    (Quantity::FirstWake, 0.5, "first p50", 8),
    (Quantity::MedianWake, 0.5, "median p50", 7),
    (Quantity::LastWake, 0.5, "last p50", u8::MAX),
    (Quantity::LastWake, 1.0, "last max", 4),
    (Quantity::Notify, 0.5, "post p50", 10),
    (Quantity::Notify, 0.99, "post p99", 3),
    (Quantity::NotifyRound, 0.5, "round of posts p50", 6),
];

/// Everything about a run of fan-outs.
pub fn tables(figures: &Figures, style: &Style) -> String {
    if figures.rows.is_empty() {
        return "\nNo trial of this run has figures.\n".to_owned();
    }
    let mut out = times(figures, style);
    out.push_str(&orders(figures, style));
    out.push_str(&demonstrations(figures, style));
    out.push_str(&memory(figures, style));
    out
}

fn times(figures: &Figures, style: &Style) -> String {
    let cells = || figures.rows.iter().map(Row::cell);
    let axes = axis::varying(cells());
    let scale = Scale::for_ps(
        figures.rows.iter().flat_map(|row| row.series.values()).map(|series| series.quantile(0.5) as f64),
    );
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::new(axis.name(), Align::Left)).collect();
    for (_, _, head, keep) in TIMES {
        columns.push(Column::new(head, Align::Right).keep(keep));
    }
    columns.push(Column::new("CPU", Align::Right).keep(2));
    columns.push(Column::new("rounds", Align::Right).keep(u8::MAX));
    columns.push(Column::new("wakes", Align::Right).keep(1));
    let mut table = Table::new(columns);
    for row in &figures.rows {
        let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, row)).collect();
        line.extend(TIMES.map(|(quantity, quantile, _, _)| {
            let series = row.series.get(&quantity);
            series.map_or_else(|| "-".to_owned(), |series| scale.show(series.quantile(quantile) as f64))
        }));
        line.push(row.cpu_ps().map_or_else(|| "-".to_owned(), |ps| scale.show(ps)));
        line.push(count(row.series.get(&Quantity::NotifyRound).map_or(0, |series| series.count)));
        line.push(count(row.arm.tally().seen));
        table.row(line);
    }
    let title = format!("Fan-out, {}", scale.unit.sign());
    let mut out = format!("\n{}\n", style.paint(Role::Heading, &style.text(&title)));
    let common = axis::common(cells());
    if !common.is_empty() {
        out.push_str(&style.wrap(&format!("All: {common}."), 0));
    }
    out.push_str(&table.render(style));
    for (name, quantity) in [
        ("wake", Quantity::Wake),
        ("first, median, last", Quantity::LastWake),
        ("post", Quantity::Notify),
        ("round of posts", Quantity::NotifyRound),
    ] {
        let definition = match quantity {
            Quantity::LastWake => {
                "from just before the first post of a round to the first instruction of the receiver that woke first, in \
                 the middle, last"
            }
            _ => quantity.definition(),
        };
        out.push_str(&style.wrap(&format!("{name}: {}", sentence(definition)), 2));
    }
    out.push_str(&style.wrap("CPU: CPU time of notifier and receivers per wake.", 2));
    if figures.rows.iter().any(Row::is_harness) {
        let note = "The harness itself: nothing is posted; each receiver is woken by a timer of its own at a moment drawn by \
                    lot, so wake is the lateness of a timer, and first, median and last are the lot's doing.";
        out.push_str(&style.wrap(note, 2));
    }
    out
}

/// Whether receivers woke in the order of the posts, and whether it mattered who they were.
fn orders(figures: &Figures, style: &Style) -> String {
    let extras = Extra::of(figures);
    let axes = axis::varying(figures.rows.iter().map(Row::cell));
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::new(axis.name(), Align::Left)).collect();
    columns.extend(
        [ORDER_BY_POST, ORDER_BY_NUMBER, LATENCY_BY_NUMBER].map(|name| Column::new(name, Align::Right)),
    );
    columns.push(Column::new("by chance up to", Align::Right));
    columns.push(Column::new("trials", Align::Right).keep(1));
    let mut table = Table::new(columns);
    for row in &figures.rows {
        let of =
            |name: &str| extras.iter().find(|extra| extra.row.cell() == row.cell() && extra.name == name);
        if of(ORDER_BY_POST).is_none() {
            continue;
        }
        let number = |name| of(name).map_or_else(|| "-".to_owned(), |extra| format!("{:.3}", extra.median()));
        let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, row)).collect();
        line.extend([ORDER_BY_POST, ORDER_BY_NUMBER, LATENCY_BY_NUMBER, BY_CHANCE].map(number));
        line.push(count(row.arm.usable().count() as u64));
        table.row(line);
    }
    if table.is_empty() {
        return String::new();
    }
    let note = "Spearman's rank correlations. Order by post: of the places in the order of posts, drawn by lot each round, and \
                in the order of wakes. By number: of a receiver's number, by which it was started, and its mean place or \
                median latency; where the number says nothing, chance exceeds the last column one time in twenty.";
    let title = style.paint(Role::Heading, "Who wakes first");
    format!("\n{title}\n{}{}", table.render(style), style.wrap(note, 2))
}

/// The records of a row that have rounds.
fn rounds<'row>(row: &'row Row) -> impl Iterator<Item = (&'row Record, &'row FanOut)> {
    row.arm.usable().filter_map(|record| Some((record, record.fanout.as_ref()?)))
}

/// What befell receivers that share one object.
fn demonstrations(figures: &Figures, style: &Style) -> String {
    let mut out = String::new();
    for row in &figures.rows {
        let duplicates: Vec<u64> = rounds(row).flat_map(|(_, fan)| fan.rounds.duplicates.clone()).collect();
        let misses: Vec<u64> = rounds(row).flat_map(|(_, fan)| fan.rounds.misses.clone()).collect();
        if duplicates.is_empty() {
            continue;
        }
        let bad = misses.iter().filter(|misses| **misses > 0).count() as u64;
        let sum = |numbers: &[u64]| numbers.iter().fold(0_u64, |sum, number| sum.saturating_add(*number));
        let line = format!(
            "{}, one object for all: of {} wakes in {}, {} were a receiver's second of the round and {} times a \
             receiver got none; {} had such a miss.",
            axis::label(row.cell(), &axis::varying(figures.rows.iter().map(Row::cell))),
            count(row.arm.tally().seen),
            counted(duplicates.len() as u64, "round"),
            count(sum(&duplicates)),
            count(sum(&misses)),
            counted(bad, "round"),
        );
        out.push_str(&style.wrap(&line, 0));
    }
    if out.is_empty() {
        out
    } else {
        format!("\n{}\n{out}", style.paint(Role::Heading, "One object for all"))
    }
}

/// What the receivers cost in memory: the arm with most of them.
fn memory(figures: &Figures, style: &Style) -> String {
    let seen = figures.rows.iter().flat_map(|row| rounds(row).map(move |(record, fan)| (row, record, fan)));
    let largest = seen
        .filter_map(|(row, _, fan)| Some((row, fan.memory.filter(|memory| memory.processes > 0)?)))
        .max_by_key(|(_, memory)| memory.processes);
    let Some((row, memory)) = largest else { return String::new() };
    let each = |bytes: u64| count(bytes / memory.processes / 1024);
    let line = format!(
        "Memory of {} with {} processes: {} KiB each by share of pages (PSS), {} KiB mapped (RSS), {} KiB of the kernel's.",
        row.cell().subject,
        count(memory.processes),
        each(memory.pss_bytes),
        each(memory.rss_bytes),
        each(memory.kernel_bytes),
    );
    format!("\n{}", style.wrap(&line, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fanout::{Memory, Rounds};
    use crate::record::{Histogram, ResultFile, Series};
    use crate::trial::cell::{Cell, Pattern};
    use crate::view::sample;

    fn cell(subject: &str, receivers: u32) -> Cell {
        Cell { pattern: Pattern::FanOut { receivers, interval_ns: 1_000_000_000 }, ..sample::cell(subject) }
    }

    fn run() -> ResultFile {
        let mut own = sample::record(&cell("sem-posix-named", 200), 0, &[8_000_000; 40]);
        for (quantity, ps) in [
            (Quantity::FirstWake, 9_000_000),
            (Quantity::MedianWake, 50_000_000),
            (Quantity::LastWake, 123_000_000),
            (Quantity::Notify, 1_500_000),
            (Quantity::NotifyRound, 111_000_000),
        ] {
            let mut histogram = Histogram::new();
            (0..20).for_each(|_| histogram.record(ps));
            own.series.insert(quantity, Series::from(&histogram));
        }
        own.fanout = Some(FanOut {
            memory: Some(Memory {
                pss_bytes: 201 * 100 * 1024,
                rss_bytes: 201 * 3000 * 1024,
                kernel_bytes: 201 * 60 * 1024,
                processes: 201,
            }),
            ..FanOut::default()
        });
        let mut shared = sample::record(&cell("sem-posix-for-all", 200), 0, &[]);
        shared.series.clear();
        shared.tally.seen = 400;
        shared.fanout = Some(FanOut {
            rounds: Rounds { duplicates: vec![3, 0], misses: vec![3, 0], ..Rounds::default() },
            ..FanOut::default()
        });
        sample::result("fanout", vec![own, shared])
    }

    #[test]
    fn a_line_has_wake_first_median_last_post_and_round() {
        let result = run();
        let text = tables(&Figures::of(&result), &Style { width: 200, ..Style::PLAIN });
        let line = text.lines().find(|line| line.starts_with("sem-posix-named")).unwrap();
        for figure in ["8.0", "9.0", "50.0", "123", "1.5", "111"] {
            assert!(line.split_whitespace().any(|word| word.starts_with(figure)), "{figure}:\n{text}");
        }
    }

    #[test]
    fn misses_duplicates_and_memory_are_said_in_words() {
        let result = run();
        let text = tables(&Figures::of(&result), &Style { width: 200, ..Style::PLAIN });
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("3 were a receiver's second of the round and 3 times a receiver got none"),
            "{text}"
        );
        assert!(text.contains("1 round had such a miss"), "{text}");
        assert!(
            text.contains("100 KiB each by share of pages") && text.contains("60 KiB of the kernel's"),
            "{text}"
        );
    }
}
