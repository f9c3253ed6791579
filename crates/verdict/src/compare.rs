// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares runs, configuration by configuration: a ratio with an interval, and one of the four verdicts.
//!
//! SUMMARY: a configuration is called slower or faster if its median differs by at least [`RELEVANT`], more than chance makes
//! blocks differ, after the machine's own change is taken out. What else explains a difference, the machine's primitives, other
//! programs or a shift between populations, widens its interval.
//!
//! DETAILS: a trial gives one number, the logarithm of its median; the trials of a configuration are one per block. Blocks are
//! minutes apart from those of another run, and the machine drifts in between: on a virtual machine whose core was shared the
//! medians of runs spread by 8 %. So where both runs have a reference ([`Reference`]) each block's
//! number is the mechanism's round trip as a multiple of the reference's beside it. What follows from the blocks, for all configurations
//! together, [`judge`](super::judge) says; half of its error is for the medians and half for the 99th percentiles.

use doorbell_results::configuration::Configuration;
use doorbell_results::machine::Machine;
use doorbell_results::machine::virtualisation::Virtualisation;
use std::collections::BTreeMap;

use doorbell_results::record::series::Quantity;
use doorbell_results::record::variant::Variant;
use doorbell_results::record::verdict::Status;
use doorbell_results::record::{Reference, ResultFile};

use super::judge::{ERROR, Family, Sample};
use super::missed::Missed;
use super::ratio::{Ratio, Standing};
use super::slices::Apart;
use super::statistics::median;

mod emulators;
mod matching;
mod obstacle;
mod slices;
mod unlike;

pub use super::ratio::RELEVANT;
pub use emulators::apart;
use matching::matched;
pub use obstacle::Obstacle;
pub use unlike::unlike;

/// One configuration of both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedConfiguration<'result> {
    /// What was run, as the baseline has it.
    pub configuration: &'result Configuration,
    /// The same, as the candidate has it: on another machine other CPUs may stand for the same placement.
    pub candidate: &'result Configuration,
    pub quantity: Quantity,
    /// The [level](Family::level) of the baseline's medians, nanoseconds.
    pub baseline_p50_ns: f64,
    /// Blocks used, of baseline and candidate.
    pub blocks: [usize; 2],
    /// The ratio of the levels before the machine's own change is taken out; without a reference it is that of `p50`.
    pub measured: f64,
    /// How much of it is the machine's own change, where both runs have a reference: how much that changed.
    pub machine: Option<f64>,
    /// The medians, the machine's own change taken out; what the verdict is about. Its interval has no ends where there are too few
    /// blocks.
    pub p50: Ratio,
    /// The 99th percentiles, likewise; for the reader, tails decide no verdict.
    pub p99: Option<Ratio>,
    /// Wake-ups of baseline and candidate that never came, and are in no figure here.
    pub missed: [Missed; 2],
    /// What else explains a difference of its figures, for which their intervals are wider.
    pub doubt: Option<Obstacle>,
    pub standing: Standing,
    /// Whether it is the harness itself.
    pub is_harness: bool,
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
    /// Whether the baseline has figures of it, wherever the candidate's are: a check of it has nothing to go by.
    pub had: bool,
}

/// A comparison of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'result> {
    /// The baseline and the candidate.
    pub files: [&'result ResultFile; 2],
    /// The configurations both have, in the order of the baseline's plan.
    pub rows: Vec<ComparedConfiguration<'result>>,
    /// The configurations that are not compared.
    pub unmatched: Vec<Unmatched<'result>>,
    /// Why nothing of the two is held against each other, where that is so.
    pub refused: Option<String>,
    /// The least difference that matters, as a share.
    pub relevant: f64,
}

impl<'result> Comparison<'result> {
    /// The rows that were asked for: the harness itself stands beside others to be read, and is a row of its own where there is no other.
    pub fn asked(&self) -> impl Iterator<Item = &ComparedConfiguration<'result>> {
        let alone = self.rows.iter().all(|row| row.is_harness);
        self.rows.iter().filter(move |row| alone || !row.is_harness)
    }

    /// Whether some configuration is slower.
    pub fn has_regression(&self) -> bool {
        self.asked().any(|row| row.standing == Standing::Slower)
    }

    /// Whether there is a verdict on every configuration.
    pub fn is_decided(&self) -> bool {
        !self.rows.is_empty() && self.asked().all(|row| row.standing != Standing::Inconclusive)
    }

    /// How it stands; `doubted` where something else leaves open what nothing else would.
    pub fn status(&self, doubted: bool) -> Status {
        match (self.has_regression(), self.is_open() || self.rows.is_empty() || doubted) {
            (true, _) => Status::Failed,
            (false, true) => Status::Inconclusive,
            (false, false) => Status::Passed,
        }
    }

    /// Whether some configuration may be slower by as much as matters, without that having been shown.
    pub fn is_open(&self) -> bool {
        let open = |row: &ComparedConfiguration<'_>| {
            row.standing == Standing::Inconclusive && row.p50.high > 1.0 + self.relevant
        };
        self.unmatched.iter().any(|configuration| configuration.gone) || self.asked().any(open)
    }
}

/// Compares `candidate` with `baseline`; differences of less than `relevant`, a share, are none.
pub fn compare<'result>(
    baseline: &'result ResultFile,
    candidate: &'result ResultFile,
    relevant: f64,
) -> Comparison<'result> {
    let refused = apart(baseline, candidate).or_else(|| unlike(baseline, candidate));
    judged([baseline, candidate], refused, relevant, ERROR, Family::apart, slices::apart)
}

/// Compares two results whose blocks of one number were measured beside each other, so that what the machine did to a block falls out; `looks`
/// times, of which each may be the last.
pub fn compare_beside<'result>(
    baseline: &'result ResultFile,
    candidate: &'result ResultFile,
    relevant: f64,
    looks: usize,
) -> Comparison<'result> {
    let error = ERROR / looks.max(1) as f64;
    judged(
        [baseline, candidate],
        apart(baseline, candidate),
        relevant,
        error,
        |pairs| Family::alternated(&pairs.iter().flatten().cloned().collect::<Vec<Sample>>()),
        slices::beside,
    )
}

fn judged<'result>(
    files: [&'result ResultFile; 2],
    refused: Option<String>,
    relevant: f64,
    error: f64,
    family: impl Fn(&[[Sample; 2]]) -> Family,
    sliced: impl Fn(&[&slices::Both], f64) -> Vec<Option<Apart>>,
) -> Comparison<'result> {
    let [first, second] = files.map(ResultFile::variants);
    if let Some(reason) = refused {
        let unmatched = |variant: &Variant<'result>| Unmatched {
            configuration: variant.configuration,
            reason: reason.clone(),
            gone: false,
            had: true,
        };
        return Comparison {
            files,
            rows: Vec::new(),
            unmatched: first.iter().map(unmatched).collect(),
            refused: Some(reason),
            relevant,
        };
    }
    let (pairs, unmatched) = matched(&first, &second, files[1].partial);
    let measured: Vec<Pair> =
        pairs.into_iter().filter_map(|(variant, other)| Pair::of(files, [variant, other])).collect();
    let both = slices::both(
        files,
        [&first[..], &second[..]],
        measured.iter().map(|pair| pair.variants.map(|variant| variant.configuration)),
    );
    let took_turns: Vec<&slices::Both> = both.iter().flatten().collect();
    // Half is for the medians, of slices and of blocks, and half for the 99th percentiles.
    let error = if took_turns.is_empty() { error / 2.0 } else { error / 4.0 };
    let raw = family(&measured.iter().map(|pair| pair.samples(Block::p50, false)).collect::<Vec<_>>());
    let [p50, p99] = [Block::p50, Block::p99].map(|figure| {
        let samples: Vec<[Sample; 2]> =
            measured.iter().map(|pair| pair.samples(figure, pair.machine.is_some())).collect();
        let places: Vec<(usize, usize)> = (0..samples.len()).map(|pair| (2 * pair, 2 * pair + 1)).collect();
        let family = family(&samples);
        let ratios = family.ratios(&places, error).into_iter().zip(places);
        ratios
            .map(|(ratio, (before, after))| {
                let estimate = || Some(family.level(after)? / family.level(before)?);
                ratio.or_else(|| Some(Ratio { estimate: estimate()?, low: 0.0, high: f64::INFINITY }))
            })
            .collect::<Vec<Option<Ratio>>>()
    });
    let mut aparts = sliced(&took_turns, error).into_iter();
    let rows = measured.iter().enumerate().zip(p50.into_iter().zip(p99));
    let rows = rows.filter_map(|((place, pair), (p50, p99))| {
        let Some(both) = &both[place] else {
            let levels_ns = [raw.level(2 * place)?, raw.level(2 * place + 1)?];
            return Some(pair.row(files, levels_ns, p50?, p99, relevant));
        };
        let p50 = aparts.next().flatten().map(Apart::ratio);
        let levels_ns = both.levels_ns()?;
        let measured = levels_ns[1] / levels_ns[0];
        let machine = p50.map(|ratio| measured / ratio.estimate);
        let open = Ratio { estimate: measured, low: 0.0, high: f64::INFINITY };
        let pair = Pair { machine, blocks: pair.blocks.clone(), ..*pair };
        Some(pair.row(files, levels_ns, p50.unwrap_or(open), p99, relevant))
    });
    let rows = rows.collect();
    Comparison { files, rows, unmatched, refused: None, relevant }
}

/// How far from in proportion a mechanism may follow the reference, as a standard deviation of the exponent: over 1700 trials
/// each of futex, eventfd and pipe on a core whose speed varied by 16 % the exponents were 1.01, 0.96 and 0.95.
const EXPONENT_SPREAD: f64 = 0.05;

/// Whether the reference of both runs can only have moved by the machine's own doing: with another kernel, other mitigations,
/// another processor, other settings of it, under another hypervisor or none, it is part of what is compared.
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
        && under(first) == under(second)
        && first.power == second.power
}

/// What the kernel itself runs under, firmware of the same product apart.
fn under(machine: &Machine) -> impl PartialEq {
    let Virtualisation { guest, hypervisor, product, .. } = &machine.virtualisation;
    (*guest, hypervisor.clone(), product.clone())
}

/// A block's figures, nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Block {
    p50_ns: f64,
    p99_ns: f64,
    reference: Option<Reference>,
}

impl Block {
    fn p50(&self, referred: bool) -> Option<f64> {
        if referred { Some(self.reference?.ratio) } else { Some(self.p50_ns) }
    }

    fn p99(&self, referred: bool) -> Option<f64> {
        if referred { Some(self.p99_ns / self.reference?.round_trip_ns) } else { Some(self.p99_ns) }
    }
}

fn blocks(variant: &Variant, quantity: Quantity) -> BTreeMap<u32, Block> {
    let figures = variant.usable().filter_map(|record| {
        let series = record.series.get(&quantity).filter(|series| series.p50_ns > 0.0)?;
        let block = Block { p50_ns: series.p50_ns, p99_ns: series.p99_ns, reference: record.reference };
        Some((record.block, block))
    });
    figures.collect()
}

/// The blocks that have a reference, where most of both runs have: a busy block may be too short of slices. Else all.
fn paired(both: [BTreeMap<u32, Block>; 2]) -> [BTreeMap<u32, Block>; 2] {
    let with = both.each_ref().map(|blocks| {
        let with = blocks.iter().filter(|(_, block)| block.reference.is_some());
        with.map(|(number, block)| (*number, *block)).collect::<BTreeMap<u32, Block>>()
    });
    let most = with.iter().zip(&both).all(|(with, all)| with.len() * 4 >= all.len() * 3);
    if most { with } else { both }
}

/// A configuration of both runs with its blocks.
struct Pair<'variant, 'result> {
    variants: [&'variant Variant<'result>; 2],
    quantity: Quantity,
    blocks: [BTreeMap<u32, Block>; 2],
    /// How many times as long the reference took in the second run, where both have one.
    machine: Option<f64>,
}

impl<'variant, 'result> Pair<'variant, 'result> {
    fn of(files: [&ResultFile; 2], variants: [&'variant Variant<'result>; 2]) -> Option<Self> {
        let quantity = variants[0].headline();
        let blocks = paired(variants.map(|variant| blocks(variant, quantity)));
        if blocks.iter().any(BTreeMap::is_empty) {
            return None;
        }
        let level = |blocks: &BTreeMap<u32, Block>| {
            let levels: Option<Vec<f64>> =
                blocks.values().map(|block| Some(block.reference?.round_trip_ns)).collect();
            median(&levels?)
        };
        let machine = || Some(level(&blocks[1])? / level(&blocks[0])?);
        let machine = machine().filter(|_| same_system(files));
        Some(Self { variants, quantity, blocks, machine })
    }

    /// Of both runs: as multiples of the reference, if `referred`.
    fn samples(&self, figure: fn(&Block, bool) -> Option<f64>, referred: bool) -> [Sample; 2] {
        self.blocks.each_ref().map(|blocks| {
            blocks.iter().filter_map(|(number, block)| Some((*number, figure(block, referred)?))).collect()
        })
    }

    fn row(
        &self,
        files: [&ResultFile; 2],
        levels_ns: [f64; 2],
        p50: Ratio,
        p99: Option<Ratio>,
        relevant: f64,
    ) -> ComparedConfiguration<'result> {
        let mut row = ComparedConfiguration {
            configuration: self.variants[0].configuration,
            candidate: self.variants[1].configuration,
            quantity: self.quantity,
            baseline_p50_ns: levels_ns[0],
            blocks: self.blocks.each_ref().map(BTreeMap::len),
            measured: levels_ns[1] / levels_ns[0],
            machine: self.machine,
            p50,
            p99,
            missed: self.variants.map(|variant| Missed::of(variant)),
            doubt: None,
            standing: Standing::Inconclusive,
            is_harness: self.variants[0].is_harness(),
        };
        row.doubt = obstacle::found(&row, files, self.variants);
        let follows = self.machine.map_or(0.0, |machine| machine.ln().abs() * EXPONENT_SPREAD);
        let widened = |ratio: Ratio| {
            let ratio = ratio.doubted(follows);
            row.doubt.as_ref().map_or(ratio, |doubt| doubt.widen(ratio))
        };
        (row.p50, row.p99) = (widened(p50), p99.map(widened));
        row.standing = row.p50.standing(relevant);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

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

    /// "1 the same within 2.5 %, 1 inconclusive", and status 4, of the same program twice: the open one was the harness.
    #[test]
    fn the_harness_stands_beside_what_was_asked_for_and_decides_nothing() {
        let configurations = [sample::configuration("futex"), sample::configuration("null")];
        let run = |null: f64| {
            sample::result(&configurations, 10, |configuration, block| {
                let own = 1.0 + 0.001 * f64::from(block % 3);
                own * if configuration.subject == "null" { null } else { 16_000.0 }
            })
        };
        let (first, second) = (run(20.0), run(30.0));
        let compared = compare(&first, &second, RELEVANT);
        assert_eq!(compared.rows.len(), 2);
        assert!(compared.is_decided() && !compared.has_regression() && !compared.is_open(), "{compared:?}");
        let mut alone = compared.clone();
        alone.rows.retain(|row| row.is_harness);
        assert!(alone.has_regression(), "{alone:?}");
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
                let different = comparison
                    .rows
                    .iter()
                    .any(|row| matches!(row.standing, Standing::Slower | Standing::Faster));
                [comparison.rows.iter().all(|row| row.standing == Standing::Slower), different]
            })
            .collect();
        let count = |which: usize| verdicts.iter().filter(|verdict| verdict[which]).count();
        (count(0), count(1))
    }

    /// A quiet machine that drifts by a few percent from run to run.
    const DRIFTING: Noise = Noise { own: 0.01, drift: 0.05, exponent: 0.96 };

    #[test]
    fn two_runs_of_the_same_thing_are_called_different_in_fewer_than_one_in_twenty_comparisons() {
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
            compare(&first, &second, RELEVANT).rows[0].standing
        };
        assert_eq!(verdict(0.9), Standing::Faster);
        assert!(matches!(verdict(1.01), Standing::Same { .. }));
        assert_eq!(verdict(1.03), Standing::Slower);
    }

    pub(super) fn plain(level: f64) -> ResultFile {
        sample::result(&[sample::configuration("futex")], 8, |_, block| {
            level * (1.0 + 0.001 * f64::from(block % 4))
        })
    }

    pub(super) fn only(first: &ResultFile, second: &ResultFile) -> Standing {
        compare(first, second, RELEVANT).rows[0].standing
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
            (row.standing, row.measured, row.machine, row.p50.estimate)
        };
        let (verdict, measured, machine, estimate) = comparison_of(8000.0, 8800.0);
        assert!(matches!(verdict, Standing::Same { .. }), "{verdict:?}");
        assert!((measured - 1.1).abs() < 0.001 && (estimate - 1.0).abs() < 0.001, "{measured} {estimate}");
        assert!((machine.unwrap() - 1.1).abs() < 0.001);
        assert_eq!(comparison_of(8000.0, 8000.0).0, Standing::Slower);
    }

    /// "0.915" beside "as measured 0.800", of a host of two speeds, in one row and with nothing taken out.
    #[test]
    fn where_nothing_is_taken_out_the_ratio_as_measured_is_the_ratio() {
        let at = |slow: u32| {
            sample::result(&[sample::configuration("futex")], 12, |_, block| {
                if block < slow { 20_000.0 } else { 16_000.0 }
            })
        };
        let (first, second) = (at(8), at(4));
        let compared = compare(&first, &second, RELEVANT);
        let row = &compared.rows[0];
        assert!((row.measured / row.p50.estimate - 1.0).abs() < 1e-9, "{row:?}");
        let after_ns = compare(&second, &first, RELEVANT).rows[0].baseline_p50_ns;
        assert!((after_ns / row.baseline_p50_ns / row.measured - 1.0).abs() < 1e-9, "{row:?}");
    }

    #[test]
    fn between_two_kernels_the_reference_is_part_of_what_is_compared() {
        let (first, mut second) = (paired(16_000.0, 8000.0), paired(17_600.0, 8800.0));
        second.machine.kernel.release = Some("another".to_owned());
        let comparison = compare(&first, &second, RELEVANT);
        assert_eq!((comparison.rows[0].machine, comparison.has_regression()), (None, true));
    }

    /// "The same within 1.3 %" of a guest and the bare machine below it, of which the guest took 1.43 times as long: what both share with their
    /// references was taken out.
    #[test]
    fn between_a_machine_and_its_guest_and_between_two_governors_it_is_too() {
        let compared = |change: fn(&mut Machine)| {
            let (first, mut second) = (paired(16_000.0, 8000.0), paired(17_600.0, 8800.0));
            change(&mut second.machine);
            let comparison = compare(&first, &second, RELEVANT);
            (comparison.rows[0].machine.is_none(), comparison.has_regression())
        };
        assert_eq!(compared(|_| {}), (false, false));
        assert_eq!(compared(|machine| machine.virtualisation.guest ^= true), (true, true));
        assert_eq!(
            compared(|machine| machine.virtualisation.hypervisor = Some("Xen".to_owned())),
            (true, true)
        );
        let governors = |machine: &mut Machine| {
            machine.power.governors.clear();
            machine.power.idle_governor = Some("another".to_owned());
        };
        assert_eq!(compared(governors), (true, true));
    }

    #[test]
    fn without_a_reference_in_most_blocks_the_medians_are_compared_as_they_are() {
        let (first, mut second) = (paired(16_000.0, 8000.0), paired(17_600.0, 8800.0));
        second.records[0].reference = None;
        assert!(matches!(only(&first, &second), Standing::Same { .. }));
        second.records[1].reference = None;
        second.records[2].reference = None;
        let comparison = compare(&first, &second, RELEVANT);
        assert_eq!((comparison.rows[0].machine, comparison.has_regression()), (None, true));
    }
}
