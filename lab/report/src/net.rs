// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell io --net`: latency, CPU time and requests by event.

use super::columns::Columns;
use super::figures::{Figures, Row};
use super::row_comparison::{interval, is_open};
use super::section::Section;
use super::sentence::Sentence;
use super::subsection::Subsection;
use super::table::number;
use super::unit::{Scale, alike, plain, time, time_ns};
use crate::wording::sentence;
use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::figure::request::{HELPER, REQUESTS};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Record, ResultFile};
use doorbell_verdict::versus::versus_of;

#[derive(Debug)]
pub struct Messages;

impl Section for Messages {
    fn name(&self) -> &'static str {
        "messages"
    }
    fn subsections(&self, _: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        messages(figures).into_iter().collect()
    }
    fn answer(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let said = break_evens(figures);
        let even = Subsection { title: "Poll or wait".to_owned(), ..Subsection::default() };
        let even = (!said.is_empty()).then(|| even.saying(said));
        even.into_iter().chain(super::quantities::Quantities.answer(result, figures)).collect()
    }
    fn tells(&self, name: &str) -> bool {
        [REQUESTS, HELPER].contains(&name)
    }
}

fn messages(figures: &Figures) -> Option<Subsection> {
    let rows = figures.having(|row| if row.is_harness() { Quantity::Notify } else { Quantity::Wake });
    let real = rows.iter().filter(|(row, _)| !row.is_harness());
    let scale = Scale::for_ps(real.map(|(_, series)| series.p50_ps()));
    let table = Columns::of(&rows, "way")
        .at([(number("p50"), 0.5), (number("p99").keep(6), 0.99), (number("max").keep(4), 1.0)], scale)
        .with(number("client's CPU").keep(9), |(row, _)| scale.known(row.waiter_ps()))
        .p50(number("the call").keep(5), Quantity::Notify, scale)
        .figure(number("server's thread").keep(7), HELPER, |ns| scale.show_ns(ns))
        .figure(number("requests").keep(8), REQUESTS, |requests| format!("{requests:.2}"))
        .by_block(number("p50 by block").keep(1), scale)
        .samples(number("events").keep(3))
        .table(&rows);
    let notes = vec![
        sentence(Quantity::Wake.definition()),
        "By event: CPU time of the client while it waits and reads, the server's call that \
         publishes (median), the CPU time of the thread with which the server answers requests, \
         and the requests of the client. The harness has no client: its row is an empty call \
         between two clock readings."
            .to_owned(),
    ];
    let title = format!("Waiting for a message over loopback, {}", scale.unit.sign());
    Subsection::of_table(title, table, notes)
}

/// From which rate on a client that looks all the time costs less CPU
/// time than one that sleeps, and what it saves: of each way that was
/// measured both asleep and looking, else of the quickest that sleeps.
fn break_evens(figures: &Figures) -> Vec<Sentence> {
    let having = |row: &'_ &Row| !row.is_harness() && row.series.contains_key(&Quantity::Wake);
    let rows: Vec<&Row> = figures.rows.iter().filter(having).collect();
    let p50 = |row: &Row| row.p50_ps(Quantity::Wake).unwrap_or(f64::INFINITY);
    let asleep = |row: &&&Row| row.configuration().wait == WaitPolicy::Block;
    let pairs: Vec<(&Row, &Row)> = rows
        .iter()
        .filter(|row| row.configuration().wait == WaitPolicy::Spin)
        .filter_map(|looking| {
            let same = Configuration { wait: WaitPolicy::Block, ..looking.configuration().clone() };
            Some((*rows.iter().find(|row| *row.configuration() == same)?, *looking))
        })
        .collect();
    if pairs.is_empty() {
        let quickest = rows.iter().filter(asleep).min_by(|a, b| p50(a).total_cmp(&p50(b)));
        let text = quickest.and_then(|row| Some(format!("{}: {}", name(row), rate(row)?)));
        return text.map(|text| Sentence { text, open: false }).into_iter().collect();
    }
    let place = |row: &Row| rows.iter().position(|other| std::ptr::eq(*other, row)).unwrap_or(rows.len());
    let spoken_of: Vec<(usize, usize)> =
        pairs.iter().map(|(sleeping, looking)| (place(looking), place(sleeping))).collect();
    let variants: Vec<_> = rows.iter().map(|row| &row.variant).collect();
    let judged = versus_of(&variants, Quantity::Wake, &spoken_of);
    let told = |(sleeping, looking): &(&Row, &Row)| {
        let both = [*looking, *sleeping];
        let level = |row: &Row| judged.level_ns(place(row)).map_or_else(|| p50(row), |ns| ns * 1e3);
        let [short, long] = alike(both.map(level));
        let [looks, sleeps] = both.map(place);
        let even = rate(sleeping).map_or_else(String::new, |rate| format!(" {rate}"));
        let ratio = judged.ratio(looks, sleeps);
        let text = format!(
            "{}: looking takes {short} and sleeping {long}: {}.{even}",
            name(sleeping),
            interval(ratio)
        );
        Sentence { text, open: is_open(ratio) }
    };
    pairs.iter().map(told).collect()
}

fn name(row: &Row) -> String {
    format!("{} every {}", row.configuration().subject, time_ns(row.configuration().pattern.gap_ns() as f64))
}

/// A client that only looks takes a whole CPU, one that sleeps its CPU time for each message: what
/// is the same at this rate.
fn rate(sleeping: &Row) -> Option<String> {
    let client = |record: &Record| {
        let side = record.sides.iter().find(|side| side.side == "waiter")?;
        let spent = side.user_ns.saturating_add(side.system_ns);
        (spent > 0 && record.tally.seen > 0).then(|| record.tally.seen as f64 / spent as f64 * 1e9)
    };
    let rates: Vec<f64> = sleeping.variant.usable().filter_map(client).collect();
    let ends =
        (rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max));
    let by_block = match rates.len() {
        0 | 1 => String::new(),
        _ => format!(" (by block {} to {})", plain(ends.0), plain(ends.1)),
    };
    Some(format!(
        "Break-even: a client that sleeps takes {} of its own CPU time a message, one that looks a \
         whole CPU, which costs less from {} messages/s on{by_block}.",
        time(sleeping.waiter_ps()?),
        plain(1e12 / sleeping.waiter_ps()?)
    ))
}
