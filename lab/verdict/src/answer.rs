// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a survey says: which mechanism for which need, what a
//! placement is worth, what the machine cannot show.
//!
//! All round trips back to back are judged together, every pair of
//! mechanisms on a placement and every pinning of one against none, and
//! so are all wakes after sleeps ([`slices`](super::slices)): whatever
//! a survey calls different anywhere is so in 95 of 100 surveys.

use super::best::{Behind, best};
use super::compare::RELEVANT;
use super::hung::hung;
use super::provisional::{Provisional, provisional};
use super::ratio::{Ratio, Standing};
use super::sleeps::{Slept, sleeps};
use super::slices::ERROR;
use super::versus::{Versus, within};
use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::record::subject::{Contexts, Waits};
use doorbell_results::record::{Outcome, Quantity, ResultFile, Variant};
use std::collections::BTreeMap;

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
    pub trust: Trust,
    /// What this machine cannot show, and why.
    pub untold: Vec<String>,
    /// The level of each configuration that was judged, nanoseconds.
    levels_ns: Vec<(Configuration, f64)>,
}

impl Answer {
    /// What a configuration takes, nanoseconds, by whose ratio it
    /// stands to others; none of what was not judged.
    pub fn level_ns(&self, configuration: &Configuration) -> Option<f64> {
        self.levels_ns.iter().find(|(known, _)| known == configuration).map(|(_, ns)| *ns)
    }
}

/// A need and what serves it best.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    pub relation: String,
    pub need: Need,
    /// The fastest mechanism, by round trip.
    pub best: String,
    /// What it takes, nanoseconds: the [level](super::slices::Levels::level) of its blocks, by
    /// whose ratio it stands to others.
    pub round_trip_ns: f64,
    /// CPU time of a wake-up, nanoseconds: see `Variant::cpu_ns_per_wake`.
    pub cpu_ns: Option<f64>,
    /// The others that serve the need, the fastest first.
    pub others: Vec<Other>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Other {
    pub subject: String,
    /// As a multiple of the best; none of too few blocks.
    pub ratio: Option<Ratio>,
    pub standing: Standing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The least latency, a core may burn.
    Fastest,
    Sleeps,
    /// To sleep on a descriptor, beside others.
    Descriptor,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub subject: String,
    /// The relation of the two CPUs, or `unpinned`.
    pub relation: String,
    /// What it takes there, nanoseconds; a level too.
    pub round_trip_ns: f64,
    /// Unpinned, as a multiple of this; none of itself and of too few blocks.
    pub unpinned: Option<Ratio>,
    /// The shortest and the longest of the medians of its trials unpinned, nanoseconds.
    pub unpinned_ns: Option<[f64; 2]>,
    /// Moves between CPUs per second, where the kernel tells.
    pub migrations_per_s: Option<f64>,
}

/// What a notification costs the notifier.
#[derive(Debug, Clone, PartialEq)]
pub struct Notified {
    pub subject: String,
    /// The median of all calls, nanoseconds.
    pub awake_ns: f64,
    pub asleep_ns: f64,
}

/// How far to believe the figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Trust {
    /// What the harness itself adds to a round trip, nanoseconds.
    pub harness_ns: Option<f64>,
    /// Spinning's round trip over that of two bare loops, on the same two cores in the same run.
    pub over_bare: Option<f64>,
    pub trials: usize,
    /// Trials that measured something, whether or not it can be true; a cut one too.
    pub measured: usize,
    /// Those of them that others interfered with to their last try; none where the system told of
    /// no trial what others took.
    pub interfered: Option<usize>,
    pub implausible: usize,
    pub broken: usize,
    pub provisional: Option<Provisional>,
    /// For each primitive cost, the largest reading over the smallest.
    pub primitive_spread: BTreeMap<String, f64>,
}

pub fn answer(result: &ResultFile) -> Answer {
    let variants = result.variants();
    let round_trips = RoundTrips::of(&variants);
    let slept = sleeps(&variants, SHARE);
    let levels = variants.iter().map(|variant| variant.configuration);
    let level_ns = |configuration| {
        let ns = round_trips.level_ns(configuration).or_else(|| slept.level_ns(configuration))?;
        Some((configuration.clone(), ns))
    };
    Answer {
        levels_ns: levels.filter_map(level_ns).collect(),
        picks: round_trips.picks(),
        placements: round_trips.placements(),
        sleeps: slept.slept,
        notify: notify(&variants),
        trust: trust(result, &variants),
        untold: untold(result),
    }
}

fn p50_ns(variant: &Variant, quantity: Quantity) -> Option<f64> {
    variant.quantiles_ps(quantity, [0.5]).map(|[ps]| ps as f64 / 1000.0)
}

fn back_to_back(variant: &Variant) -> bool {
    variant.configuration.pattern.back_to_back() && variant.configuration.wait == WaitPolicy::Block
}

/// All that goes back to back, judged together.
struct RoundTrips<'variant, 'result> {
    variants: Vec<&'variant Variant<'result>>,
    versus: Versus,
}

/// Whether the sides of a variant are two processes and its mechanism serves some need.
fn is_candidate(variant: &Variant) -> bool {
    variant.configuration.contexts == Contexts::Processes
        && serves(variant, Need::Fastest)
        && hung(variant).is_none()
}

/// The pairs of variants that a survey holds against each other beside those that serve a need: a
/// mechanism pinned and not.
fn pairs(variants: &[&Variant]) -> Vec<(usize, usize)> {
    let spoken_of = |a: &Variant, b: &Variant| {
        a.configuration.placement.cpus.is_some() != b.configuration.placement.cpus.is_some()
            && a.configuration.subject == b.configuration.subject
    };
    let all = (0..variants.len()).flat_map(|a| (0..variants.len()).map(move |b| (a, b)));
    all.filter(|&(a, b)| a < b && spoken_of(variants[a], variants[b])).collect()
}

impl<'variant, 'result> RoundTrips<'variant, 'result> {
    fn of(variants: &'variant [Variant<'result>]) -> Self {
        let variants: Vec<&Variant> = variants.iter().filter(|variant| back_to_back(variant)).collect();
        let versus = within(&variants, Quantity::RoundTrip, &pairs(&variants), SHARE / 4.0);
        Self { variants, versus }
    }

    fn level_ns(&self, configuration: &Configuration) -> Option<f64> {
        let place = self.variants.iter().position(|variant| variant.configuration == configuration)?;
        self.versus.level_ns(place)
    }

    fn picks(&self) -> Vec<Pick> {
        let mut relations: Vec<&str> = Vec::new();
        for variant in self.variants.iter().filter(|variant| variant.configuration.placement.cpus.is_some()) {
            let relation = variant.configuration.placement.relation.as_str();
            if !relations.contains(&relation) {
                relations.push(relation);
            }
        }
        let needs = [Need::Fastest, Need::Sleeps, Need::Descriptor];
        let all = relations.into_iter().flat_map(|relation| needs.map(|need| (relation, need)));
        all.filter_map(|(relation, need)| self.pick(relation, need)).collect()
    }

    /// The rows that share what pinnings leave of the error: of each placement its needs.
    fn rows(&self) -> usize {
        let mut relations: Vec<&str> =
            self.variants.iter().map(|variant| variant.configuration.placement.relation.as_str()).collect();
        relations.sort_unstable();
        relations.dedup();
        3 * relations.len()
    }

    fn pick(&self, relation: &str, need: Need) -> Option<Pick> {
        let fits = (0..self.variants.len()).filter(|&index| {
            let variant = self.variants[index];
            variant.configuration.placement.relation == relation
                && is_candidate(variant)
                && serves(variant, need)
        });
        let error = 0.75 * SHARE / self.rows() as f64;
        let found = best(&self.versus.levels, fits, error, RELEVANT);
        let (first, rest) = found.split_first()?;
        let subject = |behind: &Behind| self.variants[behind.thing].configuration.subject.clone();
        let others = rest.iter().map(|behind| Other {
            subject: subject(behind),
            ratio: behind.ratio,
            standing: behind.standing,
        });
        Some(Pick {
            relation: relation.to_owned(),
            need,
            best: subject(first),
            round_trip_ns: self.versus.level_ns(first.thing)?,
            cpu_ns: self.variants[first.thing].cpu_ns_per_wake(),
            others: others.collect(),
        })
    }

    /// The mechanisms that were run unpinned too, everywhere they were run.
    fn placements(&self) -> Vec<Placed> {
        let free = |subject: &str| {
            self.variants.iter().position(|variant| {
                variant.configuration.placement.cpus.is_none() && variant.configuration.subject == subject
            })
        };
        let placed = self.variants.iter().enumerate().filter_map(|(index, variant)| {
            let free = free(&variant.configuration.subject)?;
            let free_ns = self.variants[free].medians_ns(Quantity::RoundTrip);
            let end = |of: fn(f64, f64) -> f64| free_ns.iter().copied().reduce(of);
            Some(Placed {
                subject: variant.configuration.subject.clone(),
                relation: variant.configuration.placement.relation.clone(),
                round_trip_ns: self.versus.level_ns(index)?,
                unpinned: self.versus.ratio(index, free),
                unpinned_ns: end(f64::min).zip(end(f64::max)).map(<[f64; 2]>::from),
                migrations_per_s: migrations_per_s(variant),
            })
        });
        placed.collect()
    }
}

/// Of the chance that a survey is wrong anywhere half is for round
/// trips and half for wakes after sleeps.
pub(super) const SHARE: f64 = ERROR / 2.0;

fn serves(variant: &Variant, need: Need) -> bool {
    variant.subject().notification().is_some_and(|notification| match need {
        Need::Fastest => notification.waits != Waits::Nothing,
        Need::Sleeps => notification.waits == Waits::Blocks,
        Need::Descriptor => notification.waits == Waits::Blocks && notification.descriptor,
    })
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
        awake_ns: p50_ns(awake, Quantity::Notify)?,
        asleep_ns: p50_ns(asleep, Quantity::Notify)?,
    })
}

pub fn trusted(result: &ResultFile) -> Trust {
    trust(result, &result.variants())
}

fn trust(result: &ResultFile, variants: &[Variant]) -> Trust {
    let ran: Vec<_> =
        result.records.iter().filter(|record| !matches!(record.outcome, Outcome::Skipped { .. })).collect();
    let measured = || ran.iter().filter(|record| record.outcome.measured());
    let count = |wanted: fn(&Outcome) -> bool| ran.iter().filter(|record| wanted(&record.outcome)).count();
    let broken = |outcome: &Outcome| matches!(outcome, Outcome::Hung { .. } | Outcome::Failed { .. });
    let harness = variants.iter().find(|variant| back_to_back(variant) && variant.is_harness());
    let mut readings: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    let primitives = result.primitives.iter().flat_map(|reading| &reading.primitives);
    for primitive in primitives.filter(|primitive| primitive.count > 0) {
        let range = readings.entry(primitive.name.clone()).or_insert([primitive.p50_ns; 2]);
        *range = [range[0].min(primitive.p50_ns), range[1].max(primitive.p50_ns)];
    }
    Trust {
        harness_ns: harness.and_then(|variant| p50_ns(variant, Quantity::RoundTrip)),
        over_bare: over_bare(result, variants),
        trials: ran.len(),
        measured: measured().count(),
        interfered: measured()
            .any(|record| record.tells_interference())
            .then(|| measured().filter(|record| record.had_interference()).count()),
        implausible: count(|outcome| matches!(outcome, Outcome::Implausible { .. })),
        broken: count(broken),
        provisional: provisional(result),
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
    Some(p50_ns(spin, Quantity::RoundTrip)? / p50_ns(bare, Quantity::Operation)?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    /// A lost wake-up in one trial of nine, and the others made it the fastest.
    #[test]
    fn what_hung_once_is_nowhere_the_fastest() {
        let configurations = ["futex", "eventfd"].map(sample::configuration);
        let mut result = sample::result(&configurations, 9, |configuration, block| {
            let level = if configuration.subject == "futex" { 4_000.0 } else { 8_000.0 };
            level * (1.0 + 0.001 * f64::from(block % 3))
        });
        let best = |result: &ResultFile| {
            let picks = answer(result).picks.into_iter().filter(|pick| pick.need == Need::Fastest);
            picks.map(|pick| pick.best).collect::<Vec<_>>()
        };
        assert_eq!(best(&result), ["futex"]);
        let lost = sample::of(&mut result, "futex").next().unwrap();
        lost.outcome = Outcome::Hung { last_seen: Vec::new() };
        assert_eq!(best(&result), ["eventfd"]);
    }
}
