// SPDX-License-Identifier: MIT OR Apache-2.0
//! What explains a difference as well as the thing that was changed, and by how much that widens its interval.

use super::{ComparedConfiguration, Ratio};
use crate::judge;
use crate::statistics::median;
use doorbell_results::plan::FEWEST_BLOCKS;
use doorbell_results::record::populations::populations;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::{MadeOf, Measured, Subject};
use doorbell_results::record::variant::Variant;
use doorbell_results::record::{Outcome, Record, ResultFile};
use doorbell_results::written::plain;
use std::fmt;

/// A bare system call: the speed of the CPU.
const SPEED: &str = "system-call";

/// How far the primitive costs of two runs may be apart, as a ratio, for the rest of the difference still to be believed.
const PRIMITIVES_APART: f64 = 1.25;

/// Share of the trials of a configuration that may have met interference for a difference to be believed.
const INTERFERENCE: f64 = 0.5;

/// Share of the samples by which a population may grow or shrink for the medians still to be comparable.
const POPULATION_SHIFT: f64 = 0.1;

/// What else explains a difference.
#[derive(Debug, Clone, PartialEq)]
pub enum Obstacle {
    /// Too few blocks in one of the runs.
    FewBlocks(usize),
    /// Trials of the candidate hung, failed or could not be true, more than of the baseline: those that are left are a
    /// choice of the lucky ones.
    Broken { trials: usize, of: usize },
    /// The machine itself was not the same.
    PrimitivesDrifted {
        primitive: &'static str,
        /// Its later level as a multiple of the earlier.
        ratio: f64,
    },
    /// Other programs, the hypervisor or a quota interfered with most trials.
    Interference {
        /// Share of the trials of the worse run.
        share: f64,
    },
    /// The samples went from one population to another.
    PopulationsShifted {
        /// The share of the fastest population in each run.
        shares: [f64; 2],
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewBlocks(blocks) => {
                let many = if *blocks == 1 { "" } else { "s" };
                write!(f, "{blocks} block{many} of {FEWEST_BLOCKS} at least (--blocks)")
            }
            Self::Broken { trials, of } => {
                write!(f, "{trials} of {of} trials of the candidate hung, failed or cannot be true")
            }
            Self::PrimitivesDrifted { primitive, ratio } => {
                write!(f, "the machine's primitive costs moved ({primitive} x {})", plain(*ratio))
            }
            Self::Interference { share } => {
                write!(f, "{:.0} % of the trials met interference", share * 100.0)
            }
            Self::PopulationsShifted { shares: [before, after] } => write!(
                f,
                "the two modes shifted (the fast one from {:.0} % to {:.0} %)",
                before * 100.0,
                after * 100.0
            ),
        }
    }
}

impl Obstacle {
    /// `ratio` with all that it could be.
    pub(super) fn widen(&self, ratio: Ratio) -> Ratio {
        match self {
            // It has no ends as it is.
            Self::FewBlocks(_) => ratio,
            // Those that are left may be the fast ones.
            Self::Broken { .. } => Ratio { high: f64::INFINITY, ..ratio },
            Self::PrimitivesDrifted { ratio: moved, .. } => ratio.explained_by(*moved),
            Self::Interference { .. } | Self::PopulationsShifted { .. } => ratio.explained(),
        }
    }
}

/// What else explains a difference of the configuration.
pub(super) fn found(
    row: &ComparedConfiguration,
    files: [&ResultFile; 2],
    variants: [&Variant; 2],
) -> Option<Obstacle> {
    let fewest = row.blocks[0].min(row.blocks[1]);
    if fewest < judge::FEWEST {
        return Some(Obstacle::FewBlocks(fewest));
    }
    let [before, after] = variants.map(broken);
    if after > before {
        return Some(Obstacle::Broken { trials: after, of: variants[1].records.len() });
    }
    // A reference inside the trials met what they met: of sides that are pinned, slow and fast stretches of their CPUs make
    // populations, which the reference has too, and what others took they took from both.
    if row.machine.is_some() && row.configuration.placement.cpus.is_some() {
        return None;
    }
    if let Some((primitive, ratio)) = moved(files, variants[0]) {
        return Some(Obstacle::PrimitivesDrifted { primitive, ratio });
    }
    let share = variants.map(interfered).into_iter().fold(0.0, f64::max);
    if share > INTERFERENCE {
        return Some(Obstacle::Interference { share });
    }
    shifted(variants, row.quantity).map(|shares| Obstacle::PopulationsShifted { shares })
}

/// The primitive costs of which the time of the variant's configuration is made.
fn primitives_of(variant: &Variant) -> &'static [&'static str] {
    match (variant.subject(), variant.configuration.placement.cpus) {
        (Subject::Operation { .. } | Subject::IoEngine { .. }, _) => &[SPEED],
        (subject, _) if never_switches(subject) => &[SPEED],
        (_, Some([first, second])) if first == second => &[SPEED, "same-core-switch"],
        _ => &[SPEED, "cache-line-hop", "two-core-wake"],
    }
}

/// Whether a kind of task is code of one thread, between whose parts the kernel never switches.
fn never_switches(subject: &Subject) -> bool {
    matches!(subject, Subject::Tasks { made_of: MadeOf::Code, measured: Measured::HandOffs, .. })
}

/// The first primitive cost of the configuration that is not where it was, and its later level as a multiple of the earlier.
fn moved(files: [&ResultFile; 2], variant: &Variant) -> Option<(&'static str, f64)> {
    let level = |file: &ResultFile, name: &str| {
        let readings = file.primitives.iter().flat_map(|reading| &reading.primitives);
        let levels: Vec<f64> = readings
            .filter(|primitive| primitive.name == name && primitive.p50_ns > 0.0)
            .map(|primitive| primitive.p50_ns)
            .collect();
        median(&levels)
    };
    primitives_of(variant).iter().find_map(|name| {
        let ratio = level(files[1], name)? / level(files[0], name)?;
        (!(1.0 / PRIMITIVES_APART..=PRIMITIVES_APART).contains(&ratio)).then_some((*name, ratio))
    })
}

/// Trials that ran and have no figures.
fn broken(variant: &Variant) -> usize {
    let broken = |record: &&&Record| {
        matches!(record.outcome, Outcome::Hung { .. } | Outcome::Failed { .. } | Outcome::Implausible { .. })
    };
    variant.records.iter().filter(broken).count()
}

/// The share of trials that met interference.
fn interfered(variant: &Variant) -> f64 {
    let usable = variant.usable().count().max(1);
    variant.usable().filter(|record| record.had_interference()).count() as f64 / usable as f64
}

/// The shares of the fastest population, if samples went from one population to another between the runs.
///
/// Runs with as many populations each are compared population by population: where all of them became slower the shares
/// stay, though a border drawn in one run would cut the other's in the wrong place. Where only one run has populations, or
/// they are not as many, the border between its first two is held against both.
fn shifted(variants: [&Variant; 2], quantity: Quantity) -> Option<[f64; 2]> {
    let times = [variants[0].histogram(quantity)?, variants[1].histogram(quantity)?];
    let groups = [populations(&times[0]), populations(&times[1])];
    let shares = if groups[0].len() == groups[1].len() {
        [groups[0].first()?.share, groups[1].first()?.share]
    } else {
        let border_ns = groups.iter().find_map(|groups| match &groups[..] {
            [first, second, ..] => Some((first.p50_ns * second.p50_ns).sqrt()),
            _ => None,
        })?;
        times.map(|times| {
            let below = times.buckets().filter(|(ps, _)| (*ps as f64) < border_ns * 1000.0);
            below.map(|(_, count)| count).fold(0, u64::saturating_add) as f64 / times.count() as f64
        })
    };
    ((shares[0] - shares[1]).abs() > POPULATION_SHIFT).then_some(shares)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{only, plain};
    use super::super::{RELEVANT, Standing, compare};
    use super::*;
    use doorbell_results::record::{Histogram, Series, Warning, sample, warning};

    /// What keeps the one verdict open.
    fn open(first: &ResultFile, second: &ResultFile) -> Obstacle {
        let comparison = compare(first, second, RELEVANT);
        assert_eq!(comparison.rows[0].standing, Standing::Inconclusive, "{:?}", comparison.rows[0]);
        comparison.rows[0].doubt.clone().unwrap()
    }

    #[test]
    fn a_difference_between_runs_with_interference_proves_nothing() {
        let first = plain(16_000.0);
        let mut second = plain(18_000.0);
        for record in &mut second.records[..6] {
            record.warnings.push(Warning {
                name: warning::INTERFERENCE.name.to_owned(),
                cause: String::new(),
                effect: String::new(),
                cure: String::new(),
            });
        }
        assert!(matches!(open(&first, &second), Obstacle::Interference { .. }));
        // Where nothing differs, the interference does not matter.
        let mut calm = second.clone();
        calm.records = plain(16_000.0).records;
        calm.records.iter_mut().for_each(|record| record.warnings = second.records[0].warnings.clone());
        assert!(matches!(only(&first, &calm), Standing::Same { .. }));
    }

    #[test]
    fn samples_that_change_their_population_make_no_regression() {
        let with_slow_share = |slow: u64| {
            let mut result = plain(16_000.0);
            for record in &mut result.records {
                let mut times = Histogram::new();
                for sample in 0..1000 {
                    let level = if sample < slow { 17_000_000 } else { 8_500_000 };
                    times.record(level + sample * 1000);
                }
                record.series.insert(Quantity::RoundTrip, Series::from(&times));
            }
            result
        };
        let Obstacle::PopulationsShifted { shares } = open(&with_slow_share(300), &with_slow_share(700))
        else {
            panic!("no shift")
        };
        assert!((shares[0] - 0.7).abs() < 0.01 && (shares[1] - 0.3).abs() < 0.01, "{shares:?}");
    }

    #[test]
    fn a_wake_across_cores_that_costs_the_machine_itself_more_is_no_regression() {
        let (first, mut second) = (plain(16_000.0), plain(20_000.0));
        for primitive in second.primitives.iter_mut().flat_map(|reading| &mut reading.primitives) {
            primitive.p50_ns *= if primitive.name == "two-core-wake" { 1.4 } else { 1.0 };
        }
        assert!(matches!(
            open(&first, &second),
            Obstacle::PrimitivesDrifted { primitive: "two-core-wake", .. }
        ));
        // It explains a factor of 1.4 and no more.
        for record in &mut second.records {
            record.series.values_mut().for_each(|series| series.p50_ns *= 2.0);
        }
        assert_eq!(only(&first, &second), Standing::Slower);
    }

    #[test]
    fn a_machine_that_is_another_one_is_named_instead_of_a_regression() {
        let first = plain(16_000.0);
        let mut second = plain(31_000.0);
        second.primitives.iter_mut().for_each(|reading| *reading = sample::primitives(reading.block, 2.0));
        let Obstacle::PrimitivesDrifted { primitive: "system-call", ratio } = open(&first, &second) else {
            panic!("{:?}", only(&first, &second))
        };
        assert!((ratio - 2.0).abs() < 1e-6);
    }

    #[test]
    fn five_blocks_conclude_nothing() {
        let few = |level: f64| sample::result(&[sample::configuration("futex")], 5, |_, _| level);
        assert_eq!(open(&few(16_000.0), &few(32_000.0)), Obstacle::FewBlocks(5));
    }

    /// Such a difference once was called a shift: the border of the first run lay in the middle of the second's groups.
    #[test]
    fn two_near_populations_that_both_became_slower_are_a_regression() {
        let both = |factor: f64| {
            let mut result = plain(16_000.0);
            for record in &mut result.records {
                let mut times = Histogram::new();
                for sample in 0..1000 {
                    let level = if sample < 500 { 10_000_000.0 } else { 12_600_000.0 };
                    times.record((level * factor) as u64 + sample * 100);
                }
                record.series.insert(Quantity::RoundTrip, Series::from(&times));
            }
            result
        };
        assert_eq!(only(&both(1.0), &both(1.15)), Standing::Slower);
    }
}
