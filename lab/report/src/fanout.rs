// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fan-outs: one line per variant with everything a round has, then
//! events of shared objects, then memory.

use super::axis;
use super::columns::{Columns, dash};
use super::figures::{self, Figures, Row};
use super::section::Section;
use super::subsection::{Subsection, all, nothing};
use super::table::number;
use super::unit::{Scale, alike, count};
use crate::wording::{counted, sentence};
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
        subsections(figures)
    }
    fn answer(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        answer(figures)
    }
    fn tells(&self, name: &str) -> bool {
        [ORDER_BY_POST, ORDER_BY_NUMBER, LATENCY_BY_NUMBER, BY_CHANCE].contains(&name)
    }
}

/// When the first, the middle and the last receiver run, what a post
/// costs the notifier, and whether any was missed.
fn answer(figures: &Figures) -> Vec<Subsection> {
    let rows: Vec<&Row> = figures.rows.iter().filter(|row| !row.is_harness()).collect();
    let of = |row: &Row, quantity| row.p50_ps(quantity);
    let known = || rows.iter().flat_map(|row| SHORT.map(|(quantity, ..)| of(row, quantity))).flatten();
    let scale = Scale::for_ps(known());
    let axes = axis::varying(rows.iter().map(|row| row.configuration()));
    let missed = |row: &Row| row.variant.tally().lost.saturating_add(row.variant.tally().late);
    let table = Columns::along(&axes, "mechanism")
        .each(
            SHORT.map(|(quantity, head, keep)| (number(head).keep(keep), quantity)),
            |row: &&Row, quantity| scale.known(of(row, *quantity)),
        )
        .cpu(number("CPU"), scale)
        .with(number("lost or late"), |row| count(missed(row)))
        .with(number("wake-ups").keep(1), |row| count(row.variant.tally().seen))
        .table(&rows);
    let most = rows.iter().max_by_key(|row| row.configuration().pattern.receivers());
    let mut lead: Vec<String> = most
        .and_then(|row| {
            let [first, middle, last] = [Quantity::FirstWake, Quantity::MedianWake, Quantity::LastWake]
                .map(|quantity| of(row, quantity));
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
    vec![Subsection { title, lead, table: Some(table), ..Subsection::default() }]
}

/// The columns of the answer.
const SHORT: [(Quantity, &str, u8); 5] = [
    (Quantity::FirstWake, "first p50", u8::MAX),
    (Quantity::MedianWake, "median p50", u8::MAX),
    (Quantity::LastWake, "last p50", u8::MAX),
    (Quantity::Wake, "wake p50", 3),
    (Quantity::Notify, "post p50", 2),
];

/// Everything about a run of fan-outs.
pub fn subsections(figures: &Figures) -> Vec<Subsection> {
    if figures.rows.is_empty() {
        return nothing();
    }
    let words = [
        Subsection::of_lines("One object for all", demonstrations(figures)),
        Subsection::of_lines("Memory of the receivers", memory(figures).into_iter().collect()),
    ];
    times(figures).into_iter().chain(orders(figures)).chain(words.into_iter().flatten()).collect()
}

fn times(figures: &Figures) -> Option<Subsection> {
    let configurations = || figures.rows.iter().map(Row::configuration);
    let axes = axis::varying(configurations());
    let scale = Scale::for_ps(
        figures.rows.iter().flat_map(|row| row.series.values()).map(|series| series.quantile(0.5) as f64),
    );
    let rows: Vec<&Row> = figures.rows.iter().collect();
    let times = TIMES.map(|(quantity, q, head, keep)| (number(head).keep(keep), (quantity, q)));
    let table = Columns::along(&axes, "mechanism")
        .each(times, |row: &&Row, (quantity, q)| {
            let series = row.series.get(quantity);
            scale.known(series.and_then(|series| series.percentile(*q)).map(|ps| ps as f64))
        })
        .cpu(number("CPU").keep(2), scale)
        .with(number("rounds"), |row| {
            count(row.series.get(&Quantity::NotifyRound).map_or(0, |series| series.count))
        })
        .with(number("wake-ups").keep(1), |row| count(row.variant.tally().seen))
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
    let figures = [ORDER_BY_POST, ORDER_BY_NUMBER, LATENCY_BY_NUMBER].map(|name| (number(name), name));
    let table = Columns::along(&axes, "mechanism")
        .each(figures.into_iter().chain([(number("by chance up to"), BY_CHANCE)]), |row: &&Row, wanted| {
            row.figure(|name| name == *wanted).map_or_else(dash, |value| format!("{value:.3}"))
        })
        .with(number("trials").keep(1), |row| count(row.variant.usable().count() as u64))
        .table(&rows);
    let note = "Spearman's rank correlations, without unit. Order by post: of the places in the \
        order of posts, randomised each round, and in the order of wake-ups. By number: of a \
        receiver's number, by which it was started, and its mean place or median latency; where \
        the number says nothing, chance exceeds the last column one time in twenty.";
    Subsection::of_table("Who wakes first", table, vec![note.to_owned()])
}

/// The rounds of a row.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::style::Style;
    use crate::subsection::text;
    use doorbell_results::configuration::{Configuration, Pattern};
    use doorbell_results::record::fanout::{ReceiversMemory, Rounds};
    use doorbell_results::record::{Histogram, ResultFile, Series};

    fn configuration(subject: &str, receivers: u32) -> Configuration {
        Configuration {
            pattern: Pattern::FanOut { receivers, interval_ns: 1_000_000_000 },
            ..sample::configuration(subject)
        }
    }

    fn run() -> ResultFile {
        let mut own = sample::record(&configuration("sem-posix-named", 200), 0, &[8_000_000; 40]);
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
            memory: Some(ReceiversMemory {
                pss_bytes: 201 * 100 * 1024,
                rss_bytes: 201 * 3000 * 1024,
                kernel_bytes: 201 * 60 * 1024,
                processes: 201,
            }),
            ..FanOut::default()
        });
        let mut shared = sample::record(&configuration("sem-posix-for-all", 200), 0, &[]);
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
        let text = text(&subsections(&Figures::of(&result)), &Style { width: 200, ..Style::PLAIN });
        let line = text.lines().find(|line| line.starts_with("sem-posix-named")).unwrap();
        for figure in ["8.0", "9.0", "50.0", "123", "1.5", "111"] {
            assert!(line.split_whitespace().any(|word| word.starts_with(figure)), "{figure}:\n{text}");
        }
    }

    #[test]
    fn misses_duplicates_and_memory_are_said_in_words() {
        let result = run();
        let text = text(&subsections(&Figures::of(&result)), &Style { width: 200, ..Style::PLAIN });
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
