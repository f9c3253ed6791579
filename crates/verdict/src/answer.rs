// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a survey says: which mechanism for which need, what a placement is worth, what the machine cannot tell.
//!
//! Two variants are told apart here only when every block of one is faster than every block of the other. Were they the
//! same, n blocks against n would separate so cleanly by chance once in (2n)!/(2·n!·n!) surveys: once in 10 for three
//! blocks, in 126 for five, in 1716 for seven (the extreme of Mann and Whitney's U). Where the best is held against many,
//! that chance is multiplied by their number and must stay below 5 %. Everything else is said to show no difference.

use doorbell_results::configuration::WaitPolicy;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::{Contexts, Waits};
use doorbell_results::record::{Outcome, ResultFile, Variant};
use std::collections::BTreeMap;
/// The operation that is the limit of spinning.
pub const LIMIT: &str = "cache-line";

/// The part that an operation plays here: what spinning could reach at best.
pub const LIMIT_OF_SPINNING: &str = "the limit of spinning";

/// The part that a mechanism plays here: it spins, and does nothing else.
pub const BARE_SPINNING: &str = "bare spinning";

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// For each placement on chosen CPUs, nearest first, what serves which need best.
    pub picks: Vec<Pick>,
    /// The same mechanism in different places.
    pub placements: Vec<Placed>,
    /// A wake after a short sleep and after a long one.
    pub sleeps: Vec<Slept>,
    /// What notifying an awake waiter costs against a sleeping one.
    pub notify: Option<Notified>,
    /// How far to believe all this.
    pub trust: Trust,
    /// What this machine cannot tell, and why.
    pub untold: Vec<String>,
}

/// A time as its blocks gave it, nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Time {
    /// The median of the blocks' medians.
    pub median_ns: f64,
    /// The fastest and the slowest block's median.
    pub blocks_ns: [f64; 2],
    pub blocks: usize,
}

/// A need and what serves it best.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    /// The relation of the two CPUs.
    pub relation: String,
    pub need: Need,
    /// The fastest mechanism, by round trip.
    pub best: String,
    pub round_trip: Time,
    /// CPU time of both sides per round trip, nanoseconds.
    pub cpu_ns: Option<f64>,
    /// Mechanisms that serve the need and were not shown to be slower.
    pub as_good: Vec<String>,
}

/// What a waiter needs from its mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The least latency, a core may burn.
    Fastest,
    Sleeps,
    /// To sleep on a descriptor, beside others.
    Descriptor,
}

/// One mechanism in one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub subject: String,
    /// The relation of the two CPUs, or `unpinned`.
    pub relation: String,
    pub round_trip: Time,
    /// Moves between CPUs per second, where the kernel tells.
    pub migrations_per_s: Option<f64>,
}

/// One mechanism's wake after sleeps of two lengths.
#[derive(Debug, Clone, PartialEq)]
pub struct Slept {
    pub subject: String,
    /// The shortest gap, nanoseconds, and the wake after it.
    pub short: (u64, Time),
    /// The longest gap, nanoseconds, and the wake after it.
    pub long: (u64, Time),
}

/// What a notification costs the notifier.
#[derive(Debug, Clone, PartialEq)]
pub struct Notified {
    pub subject: String,
    pub awake: Time,
    pub asleep: Time,
}

/// How far to believe the figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Trust {
    /// What the harness itself adds to a round trip, nanoseconds.
    pub harness_ns: Option<f64>,
    /// Spinning's round trip over that of two bare loops, on the same two cores in the same run.
    pub over_bare: Option<f64>,
    pub trials: usize,
    /// Trials that others disturbed to the end.
    pub interfered: usize,
    /// Trials whose figures could not be true.
    pub implausible: usize,
    /// Trials that hung or failed.
    pub broken: usize,
    /// For each primitive cost, the largest reading over the smallest.
    pub primitive_spread: BTreeMap<String, f64>,
}

/// What `result`, a survey, says.
pub fn answer(result: &ResultFile) -> Answer {
    let variants = result.variants();
    Answer {
        picks: picks(&variants),
        placements: placements(&variants),
        sleeps: sleeps(&variants),
        notify: notify(&variants),
        trust: trust(result, &variants),
        untold: untold(result),
    }
}

fn time(variant: &Variant, quantity: Quantity) -> Option<Time> {
    let mut medians = variant.medians_ns(quantity);
    medians.sort_by(f64::total_cmp);
    let (first, last) = (*medians.first()?, *medians.last()?);
    let middle = medians.len() / 2;
    let median_ns = (medians[middle] + medians[(medians.len() - 1) / 2]) / 2.0;
    Some(Time { median_ns, blocks_ns: [first, last], blocks: medians.len() })
}

/// Whether every block of `slow` was slower than every block of `fast`, and the blocks are enough for that to mean
/// something when `among` such pairs are looked at together (Bonferroni, 5 % for all of them).
pub fn shown_slower(slow: &Time, fast: &Time, among: usize) -> bool {
    let (n, m) = (slow.blocks as u32, fast.blocks as u32);
    let orders = (1..=n).fold(1.0, |orders, i| orders * f64::from(m + i) / f64::from(i));
    slow.blocks_ns[0] > fast.blocks_ns[1] && 2.0 * among as f64 / orders <= 0.05
}

fn back_to_back(variant: &Variant) -> bool {
    variant.configuration.pattern.back_to_back() && variant.configuration.wait == WaitPolicy::Block
}

fn picks(variants: &[Variant]) -> Vec<Pick> {
    let mut relations: Vec<&str> = Vec::new();
    for variant in variants
        .iter()
        .filter(|variant| back_to_back(variant) && variant.configuration.placement.cpus.is_some())
    {
        let relation = variant.configuration.placement.relation.as_str();
        if !relations.contains(&relation) {
            relations.push(relation);
        }
    }
    let mut picks = Vec::new();
    for relation in relations {
        for need in [Need::Fastest, Need::Sleeps, Need::Descriptor] {
            picks.extend(pick(variants, relation, need));
        }
    }
    picks
}

fn pick(variants: &[Variant], relation: &str, need: Need) -> Option<Pick> {
    let mut fit: Vec<(&Variant, Time)> = variants
        .iter()
        .filter(|variant| back_to_back(variant) && variant.configuration.placement.relation == relation)
        .filter(|variant| variant.configuration.contexts == Contexts::Processes && serves(variant, need))
        .filter_map(|variant| Some((variant, time(variant, Quantity::RoundTrip)?)))
        .collect();
    fit.sort_by(|a, b| a.1.median_ns.total_cmp(&b.1.median_ns));
    let (best, round_trip) = fit.first()?.clone();
    let as_good = fit[1..]
        .iter()
        .filter(|(_, time)| !shown_slower(time, &round_trip, fit.len() - 1))
        .map(|(variant, _)| variant.configuration.subject.clone())
        .collect();
    Some(Pick {
        relation: relation.to_owned(),
        need,
        best: best.configuration.subject.clone(),
        round_trip,
        cpu_ns: best.cpu_ns_per_wake(),
        as_good,
    })
}

fn serves(variant: &Variant, need: Need) -> bool {
    variant.subject().notification().is_some_and(|notification| match need {
        Need::Fastest => notification.waits != Waits::Nothing,
        Need::Sleeps => notification.waits == Waits::Blocks,
        Need::Descriptor => notification.waits == Waits::Blocks && notification.descriptor,
    })
}

/// The mechanisms that were run unpinned too, everywhere they were run.
fn placements(variants: &[Variant]) -> Vec<Placed> {
    let everywhere: Vec<&str> = variants
        .iter()
        .filter(|variant| back_to_back(variant) && variant.configuration.placement.cpus.is_none())
        .map(|variant| variant.configuration.subject.as_str())
        .collect();
    variants
        .iter()
        .filter(|variant| {
            back_to_back(variant) && everywhere.contains(&variant.configuration.subject.as_str())
        })
        .filter_map(|variant| {
            Some(Placed {
                subject: variant.configuration.subject.clone(),
                relation: variant.configuration.placement.relation.clone(),
                round_trip: time(variant, Quantity::RoundTrip)?,
                migrations_per_s: migrations_per_s(variant),
            })
        })
        .collect()
}

fn migrations_per_s(variant: &Variant) -> Option<f64> {
    let mut moves = 0;
    let mut window_ns = 0;
    for side in variant.usable().flat_map(|record| &record.sides) {
        moves += side.migrations?;
        window_ns = side.window_ns.saturating_add(window_ns);
    }
    (window_ns > 0).then(|| moves as f64 * 2e9 / window_ns as f64)
}

fn sleeps(variants: &[Variant]) -> Vec<Slept> {
    let mut by_subject: BTreeMap<&str, Vec<(u64, Time)>> = BTreeMap::new();
    for variant in variants {
        if variant.configuration.pattern.one_way()
            && variant.configuration.wait == WaitPolicy::Block
            && let Some(time) = time(variant, Quantity::Wake)
        {
            by_subject
                .entry(&variant.configuration.subject)
                .or_default()
                .push((variant.configuration.pattern.gap_ns(), time));
        }
    }
    by_subject
        .into_iter()
        .filter_map(|(subject, mut wakes)| {
            wakes.sort_by_key(|(gap, _)| *gap);
            let (short, long) = (wakes.first()?.clone(), wakes.last()?.clone());
            (short.0 < long.0).then(|| Slept { subject: subject.to_owned(), short, long })
        })
        .collect()
}

fn notify(variants: &[Variant]) -> Option<Notified> {
    let awake = variants.iter().find(|variant| {
        variant.configuration.pattern.one_way() && variant.configuration.wait == WaitPolicy::Spin
    })?;
    let asleep = variants.iter().find(|variant| {
        variant.configuration.subject == awake.configuration.subject
            && variant.configuration.pattern == awake.configuration.pattern
            && variant.configuration.placement == awake.configuration.placement
            && variant.configuration.wait == WaitPolicy::Block
    })?;
    Some(Notified {
        subject: awake.configuration.subject.clone(),
        awake: time(awake, Quantity::Notify)?,
        asleep: time(asleep, Quantity::Notify)?,
    })
}

fn trust(result: &ResultFile, variants: &[Variant]) -> Trust {
    let ran: Vec<_> =
        result.records.iter().filter(|record| !matches!(record.outcome, Outcome::Skipped { .. })).collect();
    let count = |wanted: fn(&Outcome) -> bool| ran.iter().filter(|record| wanted(&record.outcome)).count();
    let harness = variants.iter().find(|variant| back_to_back(variant) && variant.is_harness());
    let mut readings: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for primitive in result
        .primitives
        .iter()
        .flat_map(|primitives| &primitives.primitives)
        .filter(|primitive| primitive.count > 0)
    {
        let range = readings.entry(primitive.name.clone()).or_insert([primitive.p50_ns; 2]);
        *range = [range[0].min(primitive.p50_ns), range[1].max(primitive.p50_ns)];
    }
    Trust {
        harness_ns: harness.and_then(|variant| Some(time(variant, Quantity::RoundTrip)?.median_ns)),
        over_bare: over_bare(result, variants),
        trials: ran.len(),
        interfered: ran.iter().filter(|record| record.had_interference()).count(),
        implausible: count(|outcome| matches!(outcome, Outcome::Implausible { .. })),
        broken: count(|outcome| matches!(outcome, Outcome::Hung { .. } | Outcome::Failed { .. })),
        primitive_spread: readings
            .into_iter()
            .filter(|(_, [low, _])| *low > 0.0)
            .map(|(name, [low, high])| (name, high / low))
            .collect(),
    }
}

fn over_bare(result: &ResultFile, variants: &[Variant]) -> Option<f64> {
    let plays = |variant: &Variant, part| result.plan.plays(&variant.configuration.subject, part);
    let bare = variants.iter().find(|variant| plays(variant, LIMIT_OF_SPINNING))?;
    let same_place = |variant: &&Variant| {
        plays(variant, BARE_SPINNING)
            && back_to_back(variant)
            && variant.configuration.placement == bare.configuration.placement
    };
    let spin = variants.iter().find(same_place)?;
    Some(time(spin, Quantity::RoundTrip)?.median_ns / time(bare, Quantity::Operation)?.median_ns)
}

fn untold(result: &ResultFile) -> Vec<String> {
    let relations = result
        .machine
        .topology
        .pairs()
        .into_iter()
        .filter(|pair| pair.cpus.is_none())
        .map(|pair| format!("{}: {}", pair.relation.name(), pair.why));
    let mut skipped: BTreeMap<&str, &str> = BTreeMap::new();
    for record in &result.records {
        if let Outcome::Skipped { reason } = &record.outcome {
            skipped.insert(&record.configuration.subject, reason);
        }
    }
    relations.chain(skipped.into_iter().map(|(subject, reason)| format!("{subject}: {reason}"))).collect()
}
