// SPDX-License-Identifier: MIT OR Apache-2.0
//! What explains a difference as well as the thing that was changed,
//! and by how much that widens its interval.

use super::{ComparedConfiguration, Ratio};
use crate::slices::FEWEST_PAIRS;
use crate::statistics::median;
use doorbell_results::plan::FEWEST_BLOCKS;
use doorbell_results::record::subject::{MadeOf, Measured, Subject};
use doorbell_results::record::variant::Variant;
use doorbell_results::record::{Outcome, Record, ResultFile};
use doorbell_results::written::plain;

/// A bare system call: the speed of the CPU.
const SPEED: &str = "system-call";

/// How far the primitive costs of two runs may be apart, as a ratio,
/// for the rest of the difference still to be believed.
const PRIMITIVES_APART: f64 = 1.25;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Obstacle {
    /// Too few blocks in one of the runs.
    #[error("{0} block{s} of {FEWEST_BLOCKS} at least (--blocks)", s = if *.0 == 1 { "" } else { "s" })]
    FewBlocks(usize),
    /// More than of the baseline: those that are left are a choice of the lucky ones.
    #[error("{trials} of {of} trials of the candidate hung, failed or cannot be true")]
    Broken { trials: usize, of: usize },
    /// The machine itself was not the same: the later level as a multiple of the earlier.
    #[error("the machine's primitive costs moved ({primitive} x {})", plain(*.ratio))]
    PrimitivesDrifted { primitive: &'static str, ratio: f64 },
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
        }
    }
}

/// What else explains a difference of the configuration; that the
/// machine's primitive costs moved only where they `may`.
pub(super) fn found(
    row: &ComparedConfiguration,
    files: [&ResultFile; 2],
    variants: [&Variant; 2],
    primitives_may: bool,
) -> Option<Obstacle> {
    let fewest = row.blocks[0].min(row.blocks[1]);
    if fewest < FEWEST_PAIRS {
        return Some(Obstacle::FewBlocks(fewest));
    }
    let [before, after] = variants.map(broken);
    if after > before {
        return Some(Obstacle::Broken { trials: after, of: variants[1].records.len() });
    }
    let (primitive, ratio) = primitives_may.then(|| moved(files, variants[0]))??;
    Some(Obstacle::PrimitivesDrifted { primitive, ratio })
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

/// The first primitive cost of the configuration that is not where it was, and its later level as a
/// multiple of the earlier.
fn moved(files: [&ResultFile; 2], variant: &Variant) -> Option<(&'static str, f64)> {
    let level = |file: &ResultFile, name: &str| {
        let levels = file.primitives_called(name).map(|primitive| primitive.p50_ns);
        median(&levels.filter(|ns| *ns > 0.0).collect::<Vec<f64>>())
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

#[cfg(test)]
mod tests {
    use super::super::tests::{only, plain};
    use super::super::{RELEVANT, Standing, compare};
    use super::*;
    use doorbell_results::record::sample;

    /// What keeps the one verdict open.
    fn open(first: &ResultFile, second: &ResultFile) -> Obstacle {
        let comparison = compare(first, second, RELEVANT);
        assert_eq!(comparison.rows[0].standing, Standing::Inconclusive, "{:?}", comparison.rows[0]);
        comparison.rows[0].doubt.clone().unwrap()
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
}
