// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares runs, cell by cell: a ratio with an interval, and a verdict that may be "no difference shown".
//!
//! SUMMARY: a cell is called slower or faster if its median differs by at least [`RELEVANT`], more than chance makes
//! blocks differ, after the machine's own change is taken out. A difference that the machine's floors, other programs
//! or a shift between populations explain as well is called none: the verdict is then that nothing can be told.
//!
//! DETAILS: a trial gives one number, the logarithm of its median; the trials of a cell are one per block. Blocks are
//! minutes apart from those of another run, and the machine drifts in between: on one busy virtual machine the medians
//! of futex, eventfd and pipe rose and fell together by 7 % from run to run, and the speed of the CPU with them. So each
//! block's number is taken relative to a floor measured just before and just after it ([`yardstick`]), with the exponent
//! with which a wake follows it.
//! The difference of two runs is that of their trimmed means, and its standard error comes from resampling both runs'
//! blocks in stretches of neighbours. The interval holds for all cells of the comparison together: with `m` cells each is
//! tested at 5 % / m (Bonferroni), so that chance alone makes two runs of the same thing differ in 1 of 20 comparisons.

use crate::mechanism::Waits;
use crate::record::ResultFile;
use crate::record::arm::Arm;
use crate::record::series::Quantity;
use crate::trial::cell::{Cell, Pattern, WaitPolicy};

use super::statistics::{resample, standard_error, stretch, student, trimmed_mean};

mod emulators;
mod matching;
mod obstacle;

pub use emulators::apart;
use matching::matched;
pub use obstacle::Obstacle;

/// The least difference that is called one, as a share. The drift between two runs that floors do not see is of this
/// size; a smaller difference needs arms interleaved in one run.
pub const RELEVANT: f64 = 0.025;

/// The chance that two runs of the same thing differ anywhere in a comparison.
const ERROR: f64 = 0.05;

/// Resamplings for a standard error, whose own error is then about 3 %.
const RESAMPLINGS: usize = 500;

/// What a comparison concludes about a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It takes longer.
    Slower,
    /// It takes less time.
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

/// One cell of both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'result> {
    /// What was run, as the baseline has it.
    pub cell: &'result Cell,
    /// What is compared.
    pub quantity: Quantity,
    /// The baseline's median over its blocks, nanoseconds.
    pub baseline_p50_ns: f64,
    /// Blocks used, of baseline and candidate.
    pub blocks: [usize; 2],
    /// The medians, as measured.
    pub measured: f64,
    /// How much of it is the machine's own change, where both runs have floors.
    pub machine: Option<f64>,
    /// The medians, the machine's own change taken out; what the verdict is about.
    pub p50: Ratio,
    /// The 99th percentiles, likewise; for the reader, tails decide no verdict.
    pub p99: Option<Ratio>,
    /// The conclusion.
    pub verdict: Verdict,
}

/// A cell that is not compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Unmatched<'result> {
    /// What was or was to be run.
    pub cell: &'result Cell,
    /// Why it is not compared.
    pub reason: String,
    /// Whether the baseline has figures of it and the candidate should have.
    pub gone: bool,
}

/// A comparison of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'result> {
    /// The cells both have, in the order of the baseline's plan.
    pub rows: Vec<Row<'result>>,
    /// The cells that are not compared.
    pub unmatched: Vec<Unmatched<'result>>,
    /// The confidence of each interval, such that all hold together with 95 %.
    pub confidence: f64,
}

impl Comparison<'_> {
    /// Whether some cell is slower.
    pub fn has_regression(&self) -> bool {
        self.rows.iter().any(|row| row.verdict == Verdict::Slower)
    }

    /// Whether some difference could not be judged.
    pub fn has_obstacle(&self) -> bool {
        self.unmatched.iter().any(|cell| cell.gone)
            || self.rows.iter().any(|row| matches!(row.verdict, Verdict::CannotTell(_)))
    }
}

/// Compares `candidate` with `baseline`; differences of less than `relevant`, a share, are none.
pub fn compare<'result>(
    baseline: &'result ResultFile,
    candidate: &'result ResultFile,
    relevant: f64,
) -> Comparison<'result> {
    let (first, second) = (baseline.arms(), candidate.arms());
    if let Some(reason) = apart(baseline, candidate) {
        let unmatched =
            |arm: &Arm<'result>| Unmatched { cell: arm.cell, reason: reason.clone(), gone: false };
        return Comparison {
            rows: Vec::new(),
            unmatched: first.iter().map(unmatched).collect(),
            confidence: 1.0 - ERROR,
        };
    }
    let (pairs, unmatched) = matched(&first, &second, candidate.partial);
    // Each cell has two intervals, of p50 and of p99.
    let confidence = 1.0 - ERROR / (2 * pairs.len()).max(1) as f64;
    let rows = pairs
        .into_iter()
        .filter_map(|(arm, other)| row([baseline, candidate], [arm, other], confidence, relevant))
        .collect();
    Comparison { rows, unmatched, confidence }
}

/// The floor that the cell's time follows most closely, and the exponent with which it does; none for what does not sleep
/// back to back: user-mode loops follow no floor of the kernel, a long sleep or a large message is made of other things,
/// and an operation may be the floor itself.
///
/// On one core all of a wake is work of that core, and so is the floor of a switch there: over 450 blocks on a virtual
/// machine that was slow for half of the time the exponent fitted was 0.82, with a correlation of 0.84 (0.73 with the
/// system call). Across cores some of the time is the way of an interrupt: over 18 runs there the exponents fitted to the
/// system call were 0.61 (eventfd), 0.64 (pipe) and 0.82 (futex), and the floors of two cores spread more than what they
/// should explain.
pub fn yardstick(cell: &Cell) -> Option<(&'static str, f64)> {
    let sleeps = cell.wait != WaitPolicy::Spin
        && !crate::mechanism::find(&cell.subject).is_ok_and(|entry| entry.waits() == Waits::Spins);
    let back_to_back = cell.pattern == Pattern::PingPong { gap_ns: 0 } && cell.size == 0;
    match cell.placement.cpus {
        _ if !(sleeps && back_to_back) => None,
        Some([first, second]) if first == second => Some(("same-core-switch", 0.8)),
        _ => Some((SPEED, 0.7)),
    }
}

/// How far the exponent of a mechanism or a machine may be from ours, as a standard deviation: the spread of those fitted.
const EXPONENT_SPREAD: f64 = 0.1;

/// Whether the floors of both runs can only have moved by the machine's own doing: with another kernel, other mitigations
/// or another processor they are part of what is compared.
fn same_system(files: [&ResultFile; 2]) -> bool {
    let [first, second] = files.map(|file| &file.machine);
    // An emulator's floors follow what else its host does.
    !files[0].emulated()
        && first.kernel.release == second.kernel.release
        && first.kernel.version == second.kernel.version
        && first.kernel.command_line == second.kernel.command_line
        && first.processor.model_name == second.processor.model_name
        && first.processor.microcode == second.processor.microcode
        && first.processor.mitigations == second.processor.mitigations
}

/// A bare system call: the speed of the CPU.
const SPEED: &str = "system-call";

/// A block's figures in logarithms: the median, the 99th percentile, and the level of the yardstick around it.
#[derive(Debug, Clone, Copy)]
struct Block {
    p50: f64,
    p99: f64,
    yardstick: Option<f64>,
}

fn blocks(file: &ResultFile, arm: &Arm, quantity: Quantity, yardstick: Option<&str>) -> Vec<Block> {
    let reading = |block: u32| {
        let name = yardstick?;
        let reading = file.floors.iter().find(|reading| reading.block == block)?;
        let found = reading.floors.iter().find(|found| found.name == name && found.p50_ns > 0.0)?;
        Some(found.p50_ns.ln())
    };
    let mut blocks: Vec<(u32, Block)> = arm
        .usable()
        .filter_map(|record| {
            let series = record.series.get(&quantity).filter(|series| series.p50_ns > 0.0)?;
            let around = [reading(record.block), reading(record.block.saturating_add(1))];
            let known: Vec<f64> = around.into_iter().flatten().collect();
            let yardstick = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64);
            Some((record.block, Block { p50: series.p50_ns.ln(), p99: series.p99_ns.ln(), yardstick }))
        })
        .collect();
    blocks.sort_by_key(|(block, _)| *block);
    blocks.into_iter().map(|(_, block)| block).collect()
}

/// A figure of a block.
type Figure = fn(&Block) -> f64;

/// Blocks of two runs, as measured or as resampled.
type Both = [Vec<Block>; 2];

/// The trimmed mean of what `value` makes of each block.
fn level(blocks: &[Block], value: impl Fn(&Block) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = blocks.iter().map(value).collect();
    trimmed_mean(&values?)
}

/// The level of the second run less that of the first.
fn difference(both: &Both, value: impl Fn(&Block) -> Option<f64>) -> Option<f64> {
    Some(level(&both[1], &value)? - level(&both[0], &value)?)
}

/// The difference of two runs with the machine's own change taken out, and that change; where a run has no floors, the
/// difference as it is. The exponent is not fitted to the blocks: where the machine stands still within each run and
/// moved between them, the noise of the readings would pull it towards nothing.
fn adjusted(both: &Both, figure: Figure, exponent: f64) -> Option<(f64, Option<f64>)> {
    match difference(both, |block| Some(exponent * block.yardstick?)) {
        Some(machine) => Some((
            difference(both, |block| Some(figure(block) - exponent * block.yardstick?))?,
            Some(machine),
        )),
        None => Some((difference(both, |block| Some(figure(block)))?, None)),
    }
}

fn row<'result>(
    files: [&ResultFile; 2],
    arms: [&Arm<'result>; 2],
    confidence: f64,
    relevant: f64,
) -> Option<Row<'result>> {
    let quantity = arms[0].headline();
    let (name, exponent) = yardstick(arms[0].cell)
        .filter(|_| same_system(files))
        .map_or((None, 0.0), |(name, e)| (Some(name), e));
    let both = [blocks(files[0], arms[0], quantity, name), blocks(files[1], arms[1], quantity, name)];
    let counts = [both[0].len(), both[1].len()];
    let measured = difference(&both, |block| Some(block.p50))?;
    let (_, machine) = adjusted(&both, |block| block.p50, exponent)?;
    // What an exponent other than ours would have made of the machine's change.
    let doubt = machine.map_or(0.0, |machine| machine / exponent * EXPONENT_SPREAD);
    let ratio = |figure: Figure| {
        let (estimate, _) = adjusted(&both, figure, exponent)?;
        let mut random = fastrand::Rng::with_seed(1);
        let error = standard_error(RESAMPLINGS, || {
            let drawn = both.each_ref().map(|blocks| {
                resample(blocks.len(), &mut random).into_iter().map(|index| blocks[index]).collect()
            });
            adjusted(&drawn, figure, exponent).map(|(estimate, _)| estimate)
        })?;
        // Resampling sees the spread of n blocks as if their mean were known: it lacks the factor n / (n - l), l being the
        // length of the stretches drawn.
        let fewer = counts[0].min(counts[1]);
        let error = error * (fewer as f64 / fewer.saturating_sub(stretch(fewer)).max(1) as f64).sqrt();
        // A trimmed mean has the freedom of the blocks it keeps (K. K. Yuen, Biometrika 61, 1974); of unequal runs the
        // shorter decides.
        let freedom = 2.0 * ((fewer - fewer / 5 * 2) as f64 - 1.0);
        let reach = student(confidence, freedom) * error.hypot(doubt);
        Some(Ratio {
            estimate: estimate.exp(),
            low: (estimate - reach).exp(),
            high: (estimate + reach).exp(),
        })
    };
    let p50 = ratio(|block| block.p50)?;
    let mut row = Row {
        cell: arms[0].cell,
        quantity,
        baseline_p50_ns: level(&both[0], |block| Some(block.p50))?.exp(),
        blocks: counts,
        measured: measured.exp(),
        machine: machine.map(f64::exp),
        p50,
        p99: ratio(|block| block.p99),
        verdict: Verdict::NoDifferenceShown,
    };
    row.verdict = verdict(&row, files, arms, relevant);
    Some(row)
}

fn verdict(row: &Row, files: [&ResultFile; 2], arms: [&Arm; 2], relevant: f64) -> Verdict {
    if let Some(obstacle) = obstacle::to_any_verdict(row, arms) {
        return Verdict::CannotTell(obstacle);
    }
    let different = if row.p50.low > 1.0 && row.p50.estimate >= 1.0 + relevant {
        Verdict::Slower
    } else if row.p50.high < 1.0 && row.p50.estimate <= 1.0 / (1.0 + relevant) {
        Verdict::Faster
    } else {
        return Verdict::NoDifferenceShown;
    };
    obstacle::to_a_difference(row, files, arms).map_or(different, Verdict::CannotTell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    /// Noise as virtual machines have it: a drift that blocks share with their floors, and each block's own.
    #[derive(Clone, Copy)]
    struct Noise {
        /// Standard deviation of a block's own, in the logarithm.
        own: f64,
        /// Standard deviation of the drift between runs, which the floors see.
        drift: f64,
        /// Standard deviation of a reading of the floors.
        reading: f64,
    }

    fn normal(random: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// `base`, a run of futex and pipe, with times that are `slowdown` times longer than they should be.
    fn run(base: &ResultFile, slowdown: f64, noise: Noise, random: &mut fastrand::Rng) -> ResultFile {
        let drift = noise.drift * normal(random);
        let mut result = base.clone();
        for record in &mut result.records {
            let level = slowdown * (drift + noise.own * normal(random)).exp();
            for series in record.series.values_mut() {
                series.p50_ns *= level;
                series.p99_ns *= level;
            }
        }
        for reading in &mut result.floors {
            let speed = drift / yardstick(&base.plan.cells[0]).unwrap().1 + noise.reading * normal(random);
            *reading = sample::floors(reading.block, speed.exp());
        }
        result
    }

    fn base() -> ResultFile {
        sample::result(&[sample::cell("futex"), sample::cell("pipe")], 10, |_, _| 16_000.0)
    }

    /// How many of `times` comparisons find the cell slower, and how many find any difference at all.
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
    const DRIFTING: Noise = Noise { own: 0.01, drift: 0.03, reading: 0.01 };

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
        let exact = Noise { own: 0.001, drift: 0.0, reading: 0.001 };
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
        sample::result(&[sample::cell("futex")], 6, |_, block| level * (1.0 + 0.001 * f64::from(block)))
    }

    pub(super) fn only(first: &ResultFile, second: &ResultFile) -> Verdict {
        compare(first, second, RELEVANT).rows[0].verdict.clone()
    }

    #[test]
    fn a_machine_that_is_a_little_slower_is_taken_out_and_shown() {
        let (first, mut second) = (plain(16_000.0), plain(17_600.0));
        let speed = 1.1_f64.powf(1.0 / yardstick(&first.plan.cells[0]).unwrap().1);
        second.floors.iter_mut().for_each(|reading| *reading = sample::floors(reading.block, speed));
        let comparison = compare(&first, &second, RELEVANT);
        let row = &comparison.rows[0];
        assert_eq!(row.verdict, Verdict::NoDifferenceShown);
        assert!((row.measured - 1.1).abs() < 0.001 && (row.p50.estimate - 1.0).abs() < 0.001, "{row:?}");
        assert!((row.machine.unwrap() - 1.1).abs() < 0.001);
    }

    #[test]
    fn without_floors_the_medians_are_compared_as_they_are() {
        let (mut first, mut second) = (plain(16_000.0), plain(18_000.0));
        first.floors.clear();
        assert_eq!(only(&first, &second), Verdict::Slower);
        second.floors.clear();
        let comparison = compare(&first, &second, RELEVANT);
        assert_eq!((comparison.rows[0].machine, comparison.has_regression()), (None, true));
    }
}
