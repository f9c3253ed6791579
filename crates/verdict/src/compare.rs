// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares runs, configuration by configuration: a ratio with an interval, and a verdict that may be "no difference shown".
//!
//! SUMMARY: a configuration is called slower or faster if its median differs by at least [`RELEVANT`], more than chance makes
//! blocks differ, after the machine's own change is taken out. A difference that the machine's primitive costs, other programs
//! or a shift between populations explain as well is called none: the verdict is then that nothing can be told.
//!
//! DETAILS: a trial gives one number, the logarithm of its median; the trials of a configuration are one per block. Blocks are
//! minutes apart from those of another run, and the machine drifts in between: on a virtual machine whose core was shared the
//! medians of runs spread by 8 %. So where both runs have a reference ([`Reference`](doorbell_results::record::Reference)) each block's
//! number is the mechanism's round trip as a multiple of the reference's beside it.
//! The difference of two runs is that of their trimmed means, and its standard error comes from resampling both runs'
//! blocks in stretches of neighbours. The interval holds for all configurations of the comparison together: with `m` configurations each is
//! tested at 5 % / m (Bonferroni), so that chance alone makes two runs of the same thing differ in 1 of 20 comparisons.

use doorbell_results::configuration::Configuration;
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::variant::Variant;

use super::statistics::{reach, resample, standard_error, stretch, trimmed_mean};

mod emulators;
mod matching;
mod obstacle;

pub use emulators::apart;
use matching::matched;
pub use obstacle::Obstacle;

/// The least difference that is called one, as a share. The drift between two runs that primitive costs do not see is of this
/// size; a smaller difference needs variants interleaved in one run.
pub const RELEVANT: f64 = 0.025;

/// The chance that two runs of the same thing differ anywhere in a comparison.
const ERROR: f64 = 0.05;

/// Resamplings for a standard error, whose own error is then about 3 %.
const RESAMPLINGS: usize = 500;

/// What a comparison concludes about a configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Slower,
    Faster,
    /// Nothing beyond chance was seen.
    NoDifferenceShown,
    /// A difference was seen that something else explains as well.
    CannotTell(Obstacle),
}

/// A ratio of candidate to baseline with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Above 1: the candidate takes longer.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// One configuration of both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'result> {
    /// What was run, as the baseline has it.
    pub configuration: &'result Configuration,
    /// The same, as the candidate has it: on another machine other CPUs may stand for the same placement.
    pub candidate: &'result Configuration,
    pub quantity: Quantity,
    /// The baseline's median over its blocks, nanoseconds.
    pub baseline_p50_ns: f64,
    /// Blocks used, of baseline and candidate.
    pub blocks: [usize; 2],
    pub measured: f64,
    /// How much of it is the machine's own change, where both runs have a reference: how much that changed.
    pub machine: Option<f64>,
    /// The medians, the machine's own change taken out; what the verdict is about.
    pub p50: Ratio,
    /// The 99th percentiles, likewise; for the reader, tails decide no verdict.
    pub p99: Option<Ratio>,
    /// What else would explain a difference of any of its figures.
    pub doubt: Option<Obstacle>,
    pub verdict: Verdict,
}

/// A configuration that is not compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Unmatched<'result> {
    /// What was or was to be run.
    pub configuration: &'result Configuration,
    /// Why it is not compared.
    pub reason: String,
    /// Whether the baseline has figures of it and the candidate should have.
    pub gone: bool,
}

/// A comparison of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'result> {
    /// The baseline and the candidate.
    pub files: [&'result ResultFile; 2],
    /// The configurations both have, in the order of the baseline's plan.
    pub rows: Vec<Row<'result>>,
    /// The configurations that are not compared.
    pub unmatched: Vec<Unmatched<'result>>,
    /// The confidence of each interval, such that all hold together with 95 %.
    pub confidence: f64,
}

impl Comparison<'_> {
    /// Whether some configuration is slower.
    pub fn has_regression(&self) -> bool {
        self.rows.iter().any(|row| row.verdict == Verdict::Slower)
    }

    /// Whether some difference could not be judged.
    pub fn has_obstacle(&self) -> bool {
        self.unmatched.iter().any(|configuration| configuration.gone)
            || self.rows.iter().any(|row| matches!(row.verdict, Verdict::CannotTell(_)))
    }
}

/// Compares `candidate` with `baseline`; differences of less than `relevant`, a share, are none.
pub fn compare<'result>(
    baseline: &'result ResultFile,
    candidate: &'result ResultFile,
    relevant: f64,
) -> Comparison<'result> {
    let (first, second) = (baseline.variants(), candidate.variants());
    if let Some(reason) = apart(baseline, candidate) {
        let unmatched = |variant: &Variant<'result>| Unmatched {
            configuration: variant.configuration,
            reason: reason.clone(),
            gone: false,
        };
        return Comparison {
            files: [baseline, candidate],
            rows: Vec::new(),
            unmatched: first.iter().map(unmatched).collect(),
            confidence: 1.0 - ERROR,
        };
    }
    let (pairs, unmatched) = matched(&first, &second, candidate.partial);
    // Each configuration has two intervals, of p50 and of p99.
    let confidence = 1.0 - ERROR / (2 * pairs.len()).max(1) as f64;
    let rows = pairs
        .into_iter()
        .filter_map(|(variant, other)| row([baseline, candidate], [variant, other], confidence, relevant))
        .collect();
    Comparison { files: [baseline, candidate], rows, unmatched, confidence }
}

/// How far from in proportion a mechanism may follow the reference, as a standard deviation of the exponent: over 1700 trials
/// each of futex, eventfd and pipe on a core whose speed varied by 16 % the exponents were 1.01, 0.96 and 0.95.
const EXPONENT_SPREAD: f64 = 0.05;

/// Whether the reference of both runs can only have moved by the machine's own doing: with another kernel, other mitigations,
/// another processor, other settings of it or another release of this program it is part of what is compared.
fn same_system(files: [&ResultFile; 2]) -> bool {
    let [first, second] = files.map(|file| &file.machine);
    // An emulator's primitive costs follow what else its host does.
    !files[0].emulated()
        && first.kernel.release == second.kernel.release
        && first.kernel.version == second.kernel.version
        && first.kernel.command_line == second.kernel.command_line
        && first.processor.model_name == second.processor.model_name
        && first.processor.microcode == second.processor.microcode
        && first.processor.mitigations == second.processor.mitigations
}

/// A block's figures in logarithms.
#[derive(Debug, Clone, Copy)]
struct Block {
    p50: f64,
    p99: f64,
    reference: Option<Paired>,
}

/// The reference's round trip, and the mechanism's as a multiple of it, in logarithms.
#[derive(Debug, Clone, Copy)]
struct Paired {
    level: f64,
    ratio: f64,
}

fn blocks(variant: &Variant, quantity: Quantity) -> Vec<Block> {
    let mut blocks: Vec<(u32, Block)> = variant
        .usable()
        .filter_map(|record| {
            let series = record.series.get(&quantity).filter(|series| series.p50_ns > 0.0)?;
            let reference = record
                .reference
                .map(|found| Paired { level: found.round_trip_ns.ln(), ratio: found.ratio.ln() });
            Some((record.block, Block { p50: series.p50_ns.ln(), p99: series.p99_ns.ln(), reference }))
        })
        .collect();
    blocks.sort_by_key(|(block, _)| *block);
    blocks.into_iter().map(|(_, block)| block).collect()
}

/// The blocks that have a reference, where most of both runs have: a busy block may be too short of slices. Else all.
fn paired(both: Both) -> Both {
    let with = both.each_ref().map(|blocks| {
        let with = blocks.iter().filter(|block| block.reference.is_some()).copied();
        with.collect::<Vec<Block>>()
    });
    let most = with.iter().zip(&both).all(|(with, all)| with.len() * 4 >= all.len() * 3);
    if most { with } else { both }
}

/// Blocks of two runs, as measured or as resampled.
type Both = [Vec<Block>; 2];

/// The trimmed mean of what `value` makes of each block.
fn level(blocks: &[Block], value: &dyn Fn(&Block) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = blocks.iter().map(value).collect();
    trimmed_mean(&values?)
}

/// The level of the second run less that of the first.
fn difference(both: &Both, value: &dyn Fn(&Block) -> Option<f64>) -> Option<f64> {
    Some(level(&both[1], value)? - level(&both[0], value)?)
}

fn row<'result>(
    files: [&ResultFile; 2],
    variants: [&Variant<'result>; 2],
    confidence: f64,
    relevant: f64,
) -> Option<Row<'result>> {
    let quantity = variants[0].headline();
    let both = paired(variants.map(|variant| blocks(variant, quantity)));
    let counts = [both[0].len(), both[1].len()];
    let measured = difference(&both, &|block| Some(block.p50))?;
    let machine = difference(&both, &|block| Some(block.reference?.level)).filter(|_| same_system(files));
    let doubt = machine.map_or(0.0, |machine| machine * EXPONENT_SPREAD);
    let ratio = |figure: &dyn Fn(&Block) -> Option<f64>| {
        let estimate = difference(&both, figure)?;
        let mut random = fastrand::Rng::with_seed(1);
        let error = standard_error(RESAMPLINGS, || {
            let drawn = both.each_ref().map(|blocks| {
                resample(blocks.len(), &mut random).into_iter().map(|index| blocks[index]).collect()
            });
            difference(&drawn, figure)
        })?;
        // Resampling sees the spread of n blocks as if their mean were known: it lacks the factor n / (n - l), l being the
        // length of the stretches drawn.
        let fewer = counts[0].min(counts[1]);
        let error = error * (fewer as f64 / fewer.saturating_sub(stretch(fewer)).max(1) as f64).sqrt();
        // A trimmed mean has the freedom of the blocks it keeps (K. K. Yuen, Biometrika 61, 1974); of unequal runs the
        // shorter decides.
        let freedom = 2.0 * ((fewer - fewer / 5 * 2) as f64 - 1.0);
        let reach = reach(confidence, freedom) * error.hypot(doubt);
        Some(Ratio {
            estimate: estimate.exp(),
            low: (estimate - reach).exp(),
            high: (estimate + reach).exp(),
        })
    };
    let [p50, p99] = match machine {
        Some(_) => [
            ratio(&|block| Some(block.reference?.ratio)),
            ratio(&|block| Some(block.p99 - block.reference?.level)),
        ],
        None => [ratio(&|block| Some(block.p50)), ratio(&|block| Some(block.p99))],
    };
    let mut row = Row {
        configuration: variants[0].configuration,
        candidate: variants[1].configuration,
        quantity,
        baseline_p50_ns: level(&both[0], &|block| Some(block.p50))?.exp(),
        blocks: counts,
        measured: measured.exp(),
        machine: machine.map(f64::exp),
        p50: p50?,
        p99,
        doubt: None,
        verdict: Verdict::NoDifferenceShown,
    };
    row.doubt = obstacle::to_a_difference(&row, files, variants);
    row.verdict = verdict(&row, variants, relevant);
    Some(row)
}

fn verdict(row: &Row, variants: [&Variant; 2], relevant: f64) -> Verdict {
    if let Some(obstacle) = obstacle::to_any_verdict(row, variants) {
        return Verdict::CannotTell(obstacle);
    }
    let different = if row.p50.low > 1.0 && row.p50.estimate >= 1.0 + relevant {
        Verdict::Slower
    } else if row.p50.high < 1.0 && row.p50.estimate <= 1.0 / (1.0 + relevant) {
        Verdict::Faster
    } else {
        return Verdict::NoDifferenceShown;
    };
    row.doubt.clone().map_or(different, Verdict::CannotTell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::{Reference, sample};

    /// Noise as virtual machines have it: a drift that mechanism and reference share, and each block's own.
    #[derive(Clone, Copy)]
    struct Noise {
        /// Standard deviation of a block's own, in the logarithm.
        own: f64,
        /// Standard deviation of the drift between runs.
        drift: f64,
        /// How the mechanism follows the reference, as an exponent.
        exponent: f64,
    }

    fn normal(random: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// `base`, a run of futex and pipe, with times that are `slowdown` times longer than they should be.
    fn run(base: &ResultFile, slowdown: f64, noise: Noise, random: &mut fastrand::Rng) -> ResultFile {
        let drift = noise.drift * normal(random);
        let mut result = base.clone();
        for record in &mut result.records {
            let ratio = slowdown * (noise.own * normal(random) + (noise.exponent - 1.0) * drift).exp();
            for series in record.series.values_mut() {
                series.p50_ns *= ratio * drift.exp();
                series.p99_ns *= ratio * drift.exp();
            }
            record.reference =
                Some(Reference { slices: 10, rounds: 704, round_trip_ns: 9000.0 * drift.exp(), ratio });
        }
        result
    }

    fn base() -> ResultFile {
        sample::result(&[sample::configuration("futex"), sample::configuration("pipe")], 10, |_, _| 16_000.0)
    }

    /// How many of `times` comparisons find the configuration slower, and how many find any difference at all.
    fn found(slowdown: f64, noise: Noise, times: u64) -> (usize, usize) {
        let base = base();
        let verdicts: Vec<[bool; 2]> = (0..times)
            .map(|seed| {
                let mut random = fastrand::Rng::with_seed(seed);
                let first = run(&base, 1.0, noise, &mut random);
                let second = run(&base, slowdown, noise, &mut random);
                let comparison = compare(&first, &second, RELEVANT);
                let different = comparison.rows.iter().any(|row| row.verdict != Verdict::NoDifferenceShown);
                [comparison.rows.iter().all(|row| row.verdict == Verdict::Slower), different]
            })
            .collect();
        let count = |which: usize| verdicts.iter().filter(|verdict| verdict[which]).count();
        (count(0), count(1))
    }

    /// A quiet machine that drifts by a few percent from run to run.
    const DRIFTING: Noise = Noise { own: 0.01, drift: 0.05, exponent: 0.96 };

    #[test]
    fn two_runs_of_the_same_thing_differ_in_fewer_than_one_in_twenty_comparisons() {
        for noise in [DRIFTING, Noise { own: 0.002, ..DRIFTING }, Noise { own: 0.05, ..DRIFTING }] {
            let (_, different) = found(1.0, noise, 100);
            assert!(different <= 5, "{different} of 100 with blocks that spread by {}", noise.own);
        }
    }

    #[test]
    fn a_slowdown_of_five_percent_is_found_through_the_drift_in_nineteen_of_twenty() {
        let (slower, _) = found(1.05, DRIFTING, 100);
        assert!(slower >= 95, "{slower} of 100");
    }

    #[test]
    fn a_speedup_is_faster_and_a_difference_too_small_to_matter_is_none() {
        let exact = Noise { own: 0.001, drift: 0.0, exponent: 1.0 };
        let base = base();
        let first = run(&base, 1.0, exact, &mut fastrand::Rng::with_seed(1));
        let verdict = |slowdown| {
            let second = run(&base, slowdown, exact, &mut fastrand::Rng::with_seed(2));
            compare(&first, &second, RELEVANT).rows[0].verdict.clone()
        };
        assert_eq!(verdict(0.9), Verdict::Faster);
        assert_eq!(verdict(1.01), Verdict::NoDifferenceShown);
        assert_eq!(verdict(1.03), Verdict::Slower);
    }

    pub(super) fn plain(level: f64) -> ResultFile {
        sample::result(&[sample::configuration("futex")], 6, |_, block| {
            level * (1.0 + 0.001 * f64::from(block))
        })
    }

    pub(super) fn only(first: &ResultFile, second: &ResultFile) -> Verdict {
        compare(first, second, RELEVANT).rows[0].verdict.clone()
    }

    fn paired(level: f64, round_trip_ns: f64) -> ResultFile {
        let mut result = plain(level);
        for record in &mut result.records {
            let ratio = record.series[&Quantity::RoundTrip].p50_ns / round_trip_ns;
            record.reference = Some(Reference { slices: 10, rounds: 704, round_trip_ns, ratio });
        }
        result
    }

    #[test]
    fn a_machine_that_is_slower_by_its_reference_is_taken_out_and_shown() {
        let comparison_of = |first, second| {
            let (first, second) = (paired(16_000.0, first), paired(17_600.0, second));
            let comparison = compare(&first, &second, RELEVANT);
            let row = &comparison.rows[0];
            (row.verdict.clone(), row.measured, row.machine, row.p50.estimate)
        };
        let (verdict, measured, machine, estimate) = comparison_of(8000.0, 8800.0);
        assert_eq!(verdict, Verdict::NoDifferenceShown);
        assert!((measured - 1.1).abs() < 0.001 && (estimate - 1.0).abs() < 0.001, "{measured} {estimate}");
        assert!((machine.unwrap() - 1.1).abs() < 0.001);
        assert_eq!(comparison_of(8000.0, 8000.0).0, Verdict::Slower);
    }

    #[test]
    fn between_two_kernels_the_reference_is_part_of_what_is_compared() {
        let (first, mut second) = (paired(16_000.0, 8000.0), paired(17_600.0, 8800.0));
        second.machine.kernel.release = Some("another".to_owned());
        let comparison = compare(&first, &second, RELEVANT);
        assert_eq!((comparison.rows[0].machine, comparison.has_regression()), (None, true));
    }

    #[test]
    fn without_a_reference_in_most_blocks_the_medians_are_compared_as_they_are() {
        let (first, mut second) = (paired(16_000.0, 8000.0), paired(17_600.0, 8800.0));
        second.records[0].reference = None;
        assert_eq!(only(&first, &second), Verdict::NoDifferenceShown);
        second.records[1].reference = None;
        let comparison = compare(&first, &second, RELEVANT);
        assert_eq!((comparison.rows[0].machine, comparison.has_regression()), (None, true));
    }
}
