// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fan-outs: one line per variant with everything a round has, then
//! events of shared objects, then memory.

use super::axis;
use super::columns::Columns;
use super::figures::{self, Distribution, Figures, Row};
use super::section::Section;
use super::subsection::{Subsection, all};
use super::table::number;
use super::unit::{Scale, alike, count};
use crate::wording::{counted, sentence, shown};
use doorbell_results::figure::fanout::{BY_CHANCE, LATENCY_BY_NUMBER, ORDER_BY_NUMBER, ORDER_BY_POST};
use doorbell_results::record::ResultFile;
use doorbell_results::record::fanout::FanOut;
use doorbell_results::record::series::Quantity;

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

#[derive(Debug)]
pub struct FanOuts;

impl Section for FanOuts {
    fn name(&self) -> &'static str {
        "fan-outs"
    }
    fn subsections(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let words = [
            Subsection::of_lines("One object for all", demonstrations(figures)),
            Subsection::of_lines("Memory of the receivers", memory(figures).into_iter().collect()),
        ];
        times(figures).into_iter().chain(orders(figures)).chain(words.into_iter().flatten()).collect()
    }
    fn answer(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        vec![answer(figures)]
    }
    fn tells(&self, name: &str) -> bool {
        [ORDER_BY_POST, ORDER_BY_NUMBER, LATENCY_BY_NUMBER, BY_CHANCE].contains(&name)
    }
}

/// When the first, the middle and the last receiver run, what a post
/// costs the notifier, and whether any was missed.
fn answer(figures: &Figures) -> Subsection {
    let rows: Vec<&Row> = figures.rows.iter().filter(|row| !row.is_harness()).collect();
    let known = rows.iter().flat_map(|row| SHORT.map(|(quantity, ..)| row.p50_ps(quantity))).flatten();
    let scale = Scale::for_ps(known);
    let missed = |row: &Row| row.variant.tally().lost.saturating_add(row.variant.tally().late);
    let mut columns = Columns::of(&rows, "mechanism");
    for (quantity, head, keep) in SHORT {
        columns = columns.p50(number(head).keep(keep), quantity, scale);
    }
    let table = columns
        .cpu(number("CPU"), scale)
        .with(number("lost or late"), |row| count(missed(row)))
        .tally(number("wake-ups").keep(1), |tally| tally.seen)
        .table(&rows);
    let most = rows.iter().max_by_key(|row| row.configuration().pattern.receivers());
    let mut lead: Vec<String> = most
        .and_then(|row| {
            let [first, middle, last] = [Quantity::FirstWake, Quantity::MedianWake, Quantity::LastWake]
                .map(|quantity| row.p50_ps(quantity));
            let [first, middle, last] = alike([first?, middle?, last?]);
            let receivers = counted(row.configuration().pattern.receivers()?.into(), "receiver");
            let subject = &row.configuration().subject;
            Some(format!(
                "Of {receivers} ({subject}) the first runs {first} after the first post, the \
                 middle one after {middle}, the last after {last}."
            ))
        })
        .into_iter()
        .collect();
    lead.extend(demonstrations(figures));
    if rows.iter().all(|row| missed(row) == 0) && !rows.is_empty() {
        lead.push("No wake-up was lost or late.".to_owned());
    }
    let title = format!("When the receivers run, medians of the rounds, {}", scale.unit.sign());
    Subsection::answer(title, lead, table)
}

const SHORT: [(Quantity, &str, u8); 5] = [
    (Quantity::FirstWake, "first p50", u8::MAX),
    (Quantity::MedianWake, "median p50", u8::MAX),
    (Quantity::LastWake, "last p50", u8::MAX),
    (Quantity::Wake, "wake p50", 3),
    (Quantity::Notify, "post p50", 2),
];

fn times(figures: &Figures) -> Option<Subsection> {
    let configurations = || figures.rows.iter().map(Row::configuration);
    let medians = figures.rows.iter().flat_map(|row| row.series.values());
    let scale = Scale::for_ps(medians.map(Distribution::p50_ps));
    let rows: Vec<&Row> = figures.rows.iter().collect();
    let times = TIMES.map(|(quantity, q, head, keep)| (number(head).keep(keep), (quantity, q)));
    let table = Columns::of(&rows, "mechanism")
        .each(times, |row, (quantity, q)| {
            let series = row.series.get(quantity);
            scale.known(series.and_then(|series| series.percentile(*q)).map(|ps| ps as f64))
        })
        .cpu(number("CPU").keep(2), scale)
        .with(number("rounds"), |row| {
            count(row.series.get(&Quantity::NotifyRound).map_or(0, |series| series.count))
        })
        .tally(number("wake-ups").keep(1), |tally| tally.seen)
        .table(&rows);
    let first_to_last = "from just before the first post of a round to the first instruction of \
        the receiver that woke first, in the middle, last";
    let mut notes: Vec<String> = [
        ("wake", Quantity::Wake.definition()),
        ("first, median, last", first_to_last),
        ("post", Quantity::Notify.definition()),
        ("round of posts", Quantity::NotifyRound.definition()),
        ("CPU", figures::cpu(Quantity::LastWake)),
    ]
    .map(|(name, definition)| format!("{name}: {}", sentence(definition)))
    .into();
    if figures.rows.iter().any(Row::is_harness) {
        let note = "The harness itself: nothing is posted; each receiver is woken by a timer of \
            its own at a random moment, so wake is the lateness of a timer, and first, median and \
            last follow from the random moments.";
        notes.push(note.to_owned());
    }
    let title = format!("Fan-out, {}", scale.unit.sign());
    Some(Subsection::of_table(title, table, notes)?.led_by(all(&axis::common(configurations()))))
}

/// Whether receivers woke in the order of the posts, and whether it mattered who they were.
fn orders(figures: &Figures) -> Option<Subsection> {
    let axes = axis::varying(figures.rows.iter().map(Row::configuration));
    let in_order = |row: &&Row| row.figure(|name| name == ORDER_BY_POST).is_some();
    let rows: Vec<&Row> = figures.rows.iter().filter(in_order).collect();
    let three = |value: f64| format!("{value:.3}");
    let table = Columns::along(&axes, "mechanism", |row: &&Row, axis| shown(axis, row))
        .figure(number("order by post"), ORDER_BY_POST, three)
        .figure(number("order by number"), ORDER_BY_NUMBER, three)
        .figure(number("latency by number"), LATENCY_BY_NUMBER, three)
        .figure(number("by chance up to"), BY_CHANCE, three)
        .with(number("trials").keep(1), |row| count(row.variant.usable().count() as u64))
        .table(&rows);
    let note = "Spearman's rank correlations, without unit. Order by post: of the places in the \
        order of posts, randomised each round, and in the order of wake-ups. By number: of a \
        receiver's number, by which it was started, and its mean place or median latency; where \
        the number says nothing, chance exceeds the last column one time in twenty.";
    Subsection::of_table("Who wakes first", table, vec![note.to_owned()])
}

fn rounds<'row>(row: &'row Row) -> impl Iterator<Item = &'row FanOut> {
    row.variant.usable().filter_map(|record| record.fanout.as_ref())
}

/// Second and missed wake-ups of receivers that share one object.
fn demonstrations(figures: &Figures) -> Vec<String> {
    let axes = axis::varying(figures.rows.iter().map(Row::configuration));
    let sum = |numbers: &[u64]| numbers.iter().fold(0_u64, |sum, number| sum.saturating_add(*number));
    let told = figures.rows.iter().filter_map(|row| {
        let duplicates: Vec<u64> = rounds(row).flat_map(|fan| fan.rounds.duplicates.clone()).collect();
        let misses: Vec<u64> = rounds(row).flat_map(|fan| fan.rounds.misses.clone()).collect();
        let bad = misses.iter().filter(|misses| **misses > 0).count() as u64;
        (!duplicates.is_empty()).then(|| {
            format!(
                "{}, one object for all: of {} wake-ups in {}, {} were a receiver's second of the \
                 round and {} times a receiver got none; {} had such a miss.",
                axis::label(row.configuration(), &axes),
                count(row.variant.tally().seen),
                counted(duplicates.len() as u64, "round"),
                count(sum(&duplicates)),
                count(sum(&misses)),
                counted(bad, "round"),
            )
        })
    });
    told.collect()
}

/// What the receivers cost in memory: the variant with most of them.
fn memory(figures: &Figures) -> Option<String> {
    let seen = figures.rows.iter().flat_map(|row| rounds(row).map(move |fan| (row, fan)));
    let (row, memory) = seen
        .filter_map(|(row, fan)| Some((row, fan.memory.filter(|memory| memory.processes > 0)?)))
        .max_by_key(|(_, memory)| memory.processes)?;
    let each = |bytes: u64| count(bytes / memory.processes / 1024);
    Some(format!(
        "{} with {} processes: {} KiB each by share of pages (PSS), {} KiB mapped (RSS), {} KiB of \
         the kernel's.",
        row.configuration().subject,
        count(memory.processes),
        each(memory.pss_bytes),
        each(memory.rss_bytes),
        each(memory.kernel_bytes),
    ))
}
