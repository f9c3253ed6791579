// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes series and figures of the readings that a fan-out left in its table.

use super::notify::{Notified, Round};
use super::table::Table;
use crate::side::SideReport;
use doorbell_results::figure::fanout::{BY_CHANCE, LATENCY_BY_NUMBER, ORDER_BY_NUMBER, ORDER_BY_POST};
use doorbell_results::machine::clock::Ticks;
use doorbell_results::record::fanout::{FanOut, Receivers, Rounds};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Figure, Histogram, Series, SideCounters, Tally};
use std::collections::BTreeMap;

pub fn reports(notified: &Notified, table: &Table) -> Vec<SideReport> {
    let part = &table.part;
    let rounds = notified.rounds.iter().enumerate().skip(part.warmup as usize);
    let rounds = &rounds.collect::<Vec<(usize, &Round)>>()[..];
    let mut tally = Tally { warmup: part.warmup.min(notified.rounds.len() as u64), ..Tally::default() };
    for row in table.rows() {
        tally.timeouts += row.timeouts();
        tally.late += row.late();
        tally.spurious += row.spurious();
    }
    tally.sent = rounds.len() as u64 * u64::from(part.receivers);
    let mut series = BTreeMap::new();
    let mut figures = Vec::new();
    let fanout = if part.shared {
        shared(rounds, table, &mut tally, &mut series)
    } else {
        own(rounds, table, &mut tally, &mut series, &mut figures)
    };
    keep(&mut series, Quantity::Notify, &notified.posts);
    let mut whole = Histogram::new();
    for (_, round) in rounds {
        whole.record(part.clock.ps(round.ended.saturating_sub(round.began)));
    }
    keep(&mut series, Quantity::NotifyRound, &whole);
    let counters = notified.counters.clone();
    vec![
        SideReport { series, tally, counters, figures, fanout: Some(fanout), ..SideReport::default() },
        SideReport { counters: together(table), ..SideReport::default() },
    ]
}

/// Rounds after the warm-up, each with its place in the table.
type Recorded<'rounds> = [(usize, &'rounds Round)];

fn keep(series: &mut BTreeMap<Quantity, Series>, quantity: Quantity, histogram: &Histogram) {
    if histogram.count() > 0 {
        series.insert(quantity, Series::from(histogram));
    }
}

/// Each receiver has its own object: every wake belongs to a post.
fn own(
    rounds: &Recorded,
    table: &Table,
    tally: &mut Tally,
    series: &mut BTreeMap<Quantity, Series>,
    figures: &mut Vec<Figure>,
) -> FanOut {
    let clock = table.part.clock;
    let count = table.part.receivers as usize;
    let mut wakes = Histogram::new();
    let [mut firsts, mut medians, mut lasts] = [(); 3].map(|()| Histogram::new());
    let mut kept = Rounds::default();
    let mut latencies: Vec<Vec<u64>> = vec![Vec::with_capacity(rounds.len()); count];
    let mut places = vec![0.0; count];
    let mut by_post = Vec::new();
    for &(index, round) in rounds {
        // Receiver, moment, latency.
        let mut woken: Vec<(u32, Ticks, u64)> = Vec::with_capacity(count);
        for (number, row) in (0..).zip(table.rows()).filter(|(_, row)| row.seen() > index as u64) {
            let sent = table.sent(index as u64, number).load(std::sync::atomic::Ordering::Relaxed);
            let awake = row.awake(index);
            let latency = clock.ps(awake.saturating_sub(sent));
            wakes.record(latency);
            latencies[number as usize].push(latency);
            woken.push((number, awake, latency));
        }
        tally.seen += woken.len() as u64;
        tally.lost += (count - woken.len()) as u64;
        woken.sort_by_key(|(_, awake, _)| *awake);
        for (place, (number, _, _)) in woken.iter().enumerate() {
            places[*number as usize] += place as f64 + 1.0;
        }
        let since = |place: usize| clock.ps(woken[place].1.saturating_sub(round.began));
        if let Some(last) = woken.len().checked_sub(1) {
            for (histogram, kept, place) in [
                (&mut firsts, &mut kept.first_ns, 0),
                (&mut medians, &mut kept.median_ns, last / 2),
                (&mut lasts, &mut kept.last_ns, last),
            ] {
                histogram.record(since(place));
                kept.push(since(place) as f64 / 1000.0);
            }
        }
        kept.notify_ns.push(clock.ps(round.ended.saturating_sub(round.began)) as f64 / 1000.0);
        let order = woken_by_number(&woken, count);
        let posted: Vec<f64> = round.order.iter().map(|number| order[*number as usize]).collect();
        by_post.extend(rank_correlation(&posted));
    }
    for (quantity, histogram) in [
        (Quantity::Wake, &wakes),
        (Quantity::FirstWake, &firsts),
        (Quantity::MedianWake, &medians),
        (Quantity::LastWake, &lasts),
    ] {
        keep(series, quantity, histogram);
    }
    let receivers = receivers(latencies, &places, rounds.len());
    let seen = !rounds.is_empty();
    let of_number = |values: &[f64]| rank_correlation(&ranks(values)).filter(|_| seen);
    let told = [
        (
            ORDER_BY_POST,
            (!by_post.is_empty()).then(|| by_post.iter().sum::<f64>() / by_post.len() as f64),
            "Spearman's rho of place in the order of posts and of wake-ups, mean of the rounds",
        ),
        // One value a receiver: rounds are no independent witnesses of what a receiver is like.
        (
            ORDER_BY_NUMBER,
            of_number(&receivers.mean_place),
            "Spearman's rho of number and mean place in the order of wake-ups",
        ),
        (LATENCY_BY_NUMBER, of_number(&receivers.p50_ns), "Spearman's rho of number and median latency"),
        (
            BY_CHANCE,
            (count > 1 && seen).then(|| 1.96 / (count as f64 - 1.0).sqrt()),
            "1.96 / sqrt(receivers - 1): exceeded one time in twenty where the number says nothing",
        ),
    ];
    figures.extend(told.into_iter().filter_map(|(name, value, formula)| {
        let (name, unit, formula) = (name.to_owned(), "rank correlation".to_owned(), formula.to_owned());
        Some(Figure { name, value: value?, unit, formula })
    }));
    FanOut { rounds: kept, receivers, ..FanOut::default() }
}

fn receivers(latencies: Vec<Vec<u64>>, places: &[f64], rounds: usize) -> Receivers {
    let mut receivers = Receivers::default();
    for (mut latencies, places) in latencies.into_iter().zip(places) {
        latencies.sort_unstable();
        let at = |index: usize| latencies.get(index).map_or(0.0, |ps| *ps as f64 / 1000.0);
        receivers.p50_ns.push(at(latencies.len().saturating_sub(1) / 2));
        receivers.max_ns.push(at(latencies.len().saturating_sub(1)));
        receivers.mean_place.push(places / rounds.max(1) as f64);
    }
    receivers
}

/// All wait on one object: what a receiver takes is nobody's in particular.
fn shared(
    rounds: &Recorded,
    table: &Table,
    tally: &mut Tally,
    series: &mut BTreeMap<Quantity, Series>,
) -> FanOut {
    let clock = table.part.clock;
    let (mut firsts, mut lasts) = (Histogram::new(), Histogram::new());
    let mut kept = Rounds::default();
    for &(index, round) in rounds {
        let (mut duplicates, mut misses) = (0, 0);
        let mut awake = Vec::new();
        for row in table.rows() {
            match row.wakes(index) {
                0 => misses += 1,
                wakes => {
                    tally.seen += wakes;
                    duplicates += wakes - 1;
                    awake.push(clock.ps(row.awake(index).saturating_sub(round.began)));
                }
            }
        }
        tally.duplicate += duplicates;
        tally.lost += misses;
        kept.duplicates.push(duplicates);
        kept.misses.push(misses);
        kept.notify_ns.push(clock.ps(round.ended.saturating_sub(round.began)) as f64 / 1000.0);
        if let (Some(first), Some(last)) = (awake.iter().min(), awake.iter().max()) {
            firsts.record(*first);
            lasts.record(*last);
            kept.first_ns.push(*first as f64 / 1000.0);
            kept.last_ns.push(*last as f64 / 1000.0);
        }
    }
    keep(series, Quantity::FirstWake, &firsts);
    keep(series, Quantity::LastWake, &lasts);
    FanOut { rounds: kept, ..FanOut::default() }
}

/// All receivers as one side: sums, and the CPUs they were seen on.
fn together(table: &Table) -> SideCounters {
    let mut all =
        SideCounters { side: "receivers".to_owned(), migrations: Some(0), ..SideCounters::default() };
    let mut cpus = std::collections::BTreeSet::new();
    for one in table.rows().map(|row| row.counters()) {
        cpus.extend(&one.cpus);
        all.migrations = all.migrations.zip(one.migrations).map(|(sum, moves)| sum + moves);
        all.voluntary_switches += one.voluntary_switches;
        all.involuntary_switches += one.involuntary_switches;
        all.minor_faults += one.minor_faults;
        all.major_faults += one.major_faults;
        all.user_ns += one.user_ns;
        all.system_ns += one.system_ns;
        all.window_ns += one.window_ns;
    }
    all.cpus = cpus.into_iter().collect();
    all
}

/// The place of each receiver in the order of wakes, by number; those that did not wake come last.
fn woken_by_number(woken: &[(u32, Ticks, u64)], count: usize) -> Vec<f64> {
    let mut places = vec![count as f64; count];
    for (place, (number, _, _)) in woken.iter().enumerate() {
        places[*number as usize] = place as f64;
    }
    places
}

/// The place of each value in ascending order.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for (place, index) in order.into_iter().enumerate() {
        ranks[index] = place as f64;
    }
    ranks
}

/// Spearman's rank correlation of the places 0, 1, 2, … with `places`; none for fewer than two.
fn rank_correlation(places: &[f64]) -> Option<f64> {
    let n = places.len() as f64;
    if places.len() < 2 {
        return None;
    }
    let squares: f64 = places.iter().enumerate().map(|(own, place)| (own as f64 - place).powi(2)).sum();
    // Adding nothing makes of a negative nothing a plain one.
    Some(1.0 - 6.0 * squares / (n * (n * n - 1.0)) + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    fn notified(rounds: Vec<Round>) -> Notified {
        Notified { rounds, posts: Histogram::new(), counters: SideCounters::default() }
    }

    fn figure(reports: &[SideReport], name: &str) -> f64 {
        reports[0].figures.iter().find(|figure| figure.name == name).unwrap().value
    }

    /// Posts in `order` at 1000, 1100, …; receivers awake in the order of `wakes`, 5000 apart.
    fn played(order: &[u32], wakes: &[u32]) -> Vec<SideReport> {
        let table = Table::sample(order.len() as u32, 1, false);
        for round in 0..2 {
            for (place, number) in order.iter().enumerate() {
                table.sent(round, *number).store(1000 + 100 * place as u64, Relaxed);
            }
            for (place, number) in wakes.iter().enumerate() {
                table.row(*number).saw(round, 10_000 + 5000 * place as u64);
            }
        }
        let round = || Round { began: 900, ended: 2000, order: order.to_vec() };
        reports(&notified(vec![round(), round()]), &table)
    }

    #[test]
    fn first_median_and_last_count_from_the_start_of_the_round_and_the_warm_up_is_left_out() {
        let reports = played(&[2, 0, 1], &[2, 0, 1]);
        let of = |quantity| &reports[0].series[&quantity];
        // A thousandth is the histogram's own error.
        let near = |value: f64, wanted: f64| (value - wanted).abs() <= wanted / 500.0;
        assert!(near(of(Quantity::FirstWake).p50_ns, 9100.0), "{:?}", of(Quantity::FirstWake));
        assert!(near(of(Quantity::MedianWake).p50_ns, 14_100.0));
        assert!(near(of(Quantity::LastWake).p50_ns, 19_100.0));
        assert!(near(of(Quantity::NotifyRound).p50_ns, 1100.0));
        assert_eq!(of(Quantity::Wake).count, 3);
        assert!(near(of(Quantity::Wake).min_ns, 9000.0));
        assert_eq!((reports[0].tally.sent, reports[0].tally.seen, reports[0].tally.lost), (3, 3, 0));
        assert_eq!(reports[0].fanout.as_ref().unwrap().receivers.mean_place, [2.0, 3.0, 1.0]);
    }

    #[test]
    fn waking_in_the_order_of_posts_is_told_from_waking_in_the_order_of_numbers() {
        let by_post = played(&[4, 2, 0, 1, 3], &[4, 2, 0, 1, 3]);
        assert!((figure(&by_post, ORDER_BY_POST) - 1.0).abs() < 1e-9);
        assert!(figure(&by_post, ORDER_BY_NUMBER) < 0.0);
        let by_number = played(&[4, 2, 0, 1, 3], &[0, 1, 2, 3, 4]);
        assert!((figure(&by_number, ORDER_BY_NUMBER) - 1.0).abs() < 1e-9);
        let against = played(&[0, 1, 2, 3, 4], &[4, 3, 2, 1, 0]);
        assert!((figure(&against, ORDER_BY_POST) + 1.0).abs() < 1e-9);
        assert!(played(&[0], &[0])[0].figures.is_empty(), "one receiver has no order");
    }

    #[test]
    fn a_receiver_that_never_woke_is_a_loss() {
        let reports = played(&[0, 1, 2], &[1, 2]);
        assert_eq!((reports[0].tally.seen, reports[0].tally.lost), (2, 1));
        assert_eq!(reports[0].series[&Quantity::Wake].count, 2);
    }
    #[test]
    fn on_a_shared_object_second_wakes_are_duplicates_and_none_is_a_miss() {
        let table = Table::sample(3, 1, true);
        for number in [0, 0, 1] {
            table.row(number).woke(1, 5000);
        }
        let round = || Round { began: 900, ended: 2000, order: vec![0, 1, 2] };
        let reports = reports(&notified(vec![round(), round()]), &table);
        let tally = reports[0].tally;
        assert_eq!((tally.sent, tally.seen, tally.duplicate, tally.lost), (3, 3, 1, 1));
        assert_eq!(reports[0].fanout.as_ref().unwrap().rounds.misses, [1]);
    }
}
