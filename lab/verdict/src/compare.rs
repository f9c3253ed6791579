// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares runs, configuration by configuration: a ratio with an
//! interval, and one of the four verdicts.
//!
//! SUMMARY: a configuration is called slower or faster if it takes longer or shorter by at least
//! [`RELEVANT`], and by more than chance makes pairs of processes, or blocks, differ.
//!
//! DETAILS: what took turns in both runs is held against all others of its class, so
//! that the machine's own change falls out ([`across`](super::across)). What had
//! trials of its own gives one number a block, the logarithm of its median, and
//! nothing tells the machine's change from its own: where primitive costs moved as
//! well, they widen the interval ([`Obstacle`]). All intervals of a comparison hold
//! together; half of the error is for the medians and half for the 99th percentiles.

use doorbell_results::configuration::Configuration;
use doorbell_results::record::question::By;
use doorbell_results::record::variant::Variant;
use doorbell_results::record::verdict::Status;
use doorbell_results::record::{Quantity, ResultFile};

use super::by_block::samples;
use super::missed::Missed;
use super::provisional::{Provisional, provisional};
use super::ratio::{Ratio, Standing};
use super::slices::{Apart, ERROR, Levels, Sample};

mod emulators;
mod matching;
mod obstacle;
mod slices;
mod unlike;

pub use super::ratio::RELEVANT;
use emulators::apart;
use matching::matched;
pub use obstacle::Obstacle;
use unlike::unlike;

#[derive(Debug, Clone, PartialEq)]
pub struct ComparedConfiguration<'result> {
    /// What was run, as the baseline has it.
    pub configuration: &'result Configuration,
    /// The same, as the candidate has it: on another machine other
    /// CPUs may stand for the same placement.
    pub candidate: &'result Configuration,
    pub quantity: Quantity,
    /// The [level](Levels::level) of the baseline's medians, nanoseconds.
    pub baseline_p50_ns: f64,
    /// Blocks used, of baseline and candidate.
    pub blocks: [usize; 2],
    /// The ratio of the levels before the machine's own change is taken out; of what had trials of
    /// its own it is that of `p50`.
    pub measured: f64,
    /// How much of it is the machine's own change: what all others that took turns changed by. None
    /// where nothing tells it apart, and where both were measured at once.
    pub machine: Option<f64>,
    /// The medians, the machine's own change taken out; what the verdict is about. Its interval has
    /// no ends where there are too few blocks.
    pub p50: Ratio,
    /// The 99th percentiles, likewise; for the reader, tails decide no verdict.
    pub p99: Option<Ratio>,
    /// Wake-ups of baseline and candidate that never came, and are in no figure here.
    pub missed: [Missed; 2],
    /// What else explains a difference of its figures, for which their intervals are wider.
    pub doubt: Option<Obstacle>,
    pub standing: Standing,
    pub is_harness: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Unmatched<'result> {
    pub configuration: &'result Configuration,
    pub reason: String,
    /// Whether the baseline has figures of it and the candidate should have.
    pub gone: bool,
    /// Whether the baseline has figures of it, wherever the
    /// candidate's are: a check of it has nothing to go by.
    pub had: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'result> {
    pub files: [&'result ResultFile; 2],
    /// The configurations both have, in the order of the baseline's plan.
    pub rows: Vec<ComparedConfiguration<'result>>,
    pub unmatched: Vec<Unmatched<'result>>,
    /// Why nothing of the two is held against each other, where that is so.
    pub refused: Option<Incomparable>,
    /// The least difference that matters, as a share.
    pub relevant: f64,
}

impl<'result> Comparison<'result> {
    /// The rows that were asked for: the harness itself stands beside others to be read, and is a
    /// row of its own where there is no other.
    pub fn asked(&self) -> impl Iterator<Item = &ComparedConfiguration<'result>> {
        let alone = self.rows.iter().all(|row| row.is_harness);
        self.rows.iter().filter(move |row| alone || !row.is_harness)
    }

    pub fn has_regression(&self) -> bool {
        self.asked().any(|row| row.standing == Standing::Slower)
    }

    /// Whether there is a verdict on every configuration.
    pub fn is_decided(&self) -> bool {
        !self.rows.is_empty() && self.asked().all(|row| row.standing != Standing::Inconclusive)
    }

    /// Whether a regression is shown, none is, or that is open.
    pub fn status(&self) -> Status {
        let open = self.is_open() || self.rows.is_empty() || !self.doubts().is_empty();
        Status::of(self.has_regression(), open)
    }

    /// What keeps a comparison in which no regression was seen from being passed.
    pub fn doubts(&self) -> Vec<Doubt> {
        let [baseline, candidate] = self.files;
        let foreign = candidate.emulated() || candidate.machine.kernel.stand_in.is_some();
        let partial = [("baseline", baseline), ("candidate", candidate)];
        let partial = partial.into_iter().filter(|(_, file)| file.partial);
        let provisional = self.files.into_iter().find_map(provisional);
        foreign
            .then_some(Doubt::Foreign)
            .into_iter()
            .chain(partial.map(|(which, _)| Doubt::Partial(which)))
            .chain(provisional.map(Doubt::Provisional))
            .collect()
    }

    /// Whether some configuration may be slower by as much as
    /// matters, without that having been shown.
    pub fn is_open(&self) -> bool {
        let open = |row: &ComparedConfiguration<'_>| {
            row.standing == Standing::Inconclusive && row.p50.high > 1.0 + self.relevant
        };
        self.unmatched.iter().any(|configuration| configuration.gone) || self.asked().any(open)
    }
}

/// What makes a comparison say less than its figures do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The candidate's times are an emulator's, or another system's than the one it names.
    Foreign,
    /// The run of this name was interrupted.
    Partial(&'static str),
    Provisional(Provisional),
}

/// Why nothing of two results is held against each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// One is an emulator's and the other is not, or they are two emulators'.
    #[error(
        "{0}; their times have nothing in common: compare two results of one emulator, take both \
         on this machine, or take the guest's with `doorbell vm run --accel kvm`"
    )]
    Emulators(String),
    /// Their sides inherited unlike scheduling, or unlike quotas.
    #[error(
        "{0}, and such times are not compared: measure both alike (a run sets policy, nice value \
         and timer slack back itself, where this user may), or one beside the other with \
         `doorbell compare --live`"
    )]
    Scheduling(String),
}

impl Incomparable {
    /// What differs, without the advice.
    pub fn reason(&self) -> &str {
        let (Self::Emulators(reason) | Self::Scheduling(reason)) = self;
        reason
    }
}

/// Why the two are not compared where one was measured after the other, `None` if they are.
pub fn incomparable(baseline: &ResultFile, candidate: &ResultFile) -> Option<Incomparable> {
    let emulators = apart(baseline, candidate).map(Incomparable::Emulators);
    emulators.or_else(|| unlike(baseline, candidate).map(Incomparable::Scheduling))
}

/// Compares `candidate` with `baseline`; differences of less than `relevant`, a share, are none.
pub fn compare<'result>(
    baseline: &'result ResultFile,
    candidate: &'result ResultFile,
    relevant: f64,
) -> Comparison<'result> {
    compare_with_runs(baseline, &[], candidate, relevant)
}

/// As [`compare`], where there are `more` runs of the baseline's plan, at other times: where these
/// are four or more, what took turns is held against the mean of all, within what they show to
/// differ from run to run ([`across`](super::across)).
pub fn compare_with_runs<'result>(
    baseline: &'result ResultFile,
    more: &[&ResultFile],
    candidate: &'result ResultFile,
    relevant: f64,
) -> Comparison<'result> {
    let refused = incomparable(baseline, candidate);
    judged(more, [baseline, candidate], refused, relevant, ERROR, When::Apart)
}

/// Compares two results whose blocks of one number were measured beside each other, so that what
/// the machine did to a block falls out; `looks` times, of which each may be the last.
pub fn compare_beside<'result>(
    baseline: &'result ResultFile,
    candidate: &'result ResultFile,
    turns: Turns,
    relevant: f64,
    looks: usize,
) -> Comparison<'result> {
    let error = ERROR / looks.max(1) as f64;
    let refused = apart(baseline, candidate).map(Incomparable::Emulators);
    judged(&[], [baseline, candidate], refused, relevant, error, When::Beside(turns))
}

/// What two programs that were measured beside each other took turns by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turns {
    /// Slices: their turns and places are those of both, and each has
    /// the other's slices for neighbours.
    Slices,
    Blocks,
}

/// When two runs were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Apart,
    Beside(Turns),
}

/// How much longer the second of each pair takes by its blocks.
fn by_blocks(pairs: &[[Sample; 2]], error: f64, when: When) -> Vec<Option<Apart>> {
    let levels = Levels::of_blocks(&pairs.iter().flatten().cloned().collect::<Vec<Sample>>());
    let each = error / pairs.len().max(1) as f64;
    let of = |thing: usize| {
        let values = levels.of_thing(thing).values().copied().collect();
        Apart::of(values, levels.resemblance(thing, thing), each)
    };
    let apart = |pair: usize| match when {
        When::Apart => {
            let [before, after] = [of(2 * pair)?, of(2 * pair + 1)?];
            Some(Apart { by: after.by - before.by, half: before.half.hypot(after.half) })
        }
        When::Beside(_) => levels.apart(2 * pair, 2 * pair + 1, each),
    };
    (0..pairs.len()).map(apart).collect()
}

fn judged<'result>(
    more: &[&ResultFile],
    files: [&'result ResultFile; 2],
    refused: Option<Incomparable>,
    relevant: f64,
    error: f64,
    when: When,
) -> Comparison<'result> {
    let [first, second] = files.map(ResultFile::variants);
    if let Some(refused) = refused {
        let unmatched = |variant: &Variant<'result>| Unmatched {
            configuration: variant.configuration,
            reason: refused.reason().to_owned(),
            gone: false,
            had: true,
        };
        return Comparison {
            files,
            rows: Vec::new(),
            unmatched: first.iter().map(unmatched).collect(),
            refused: Some(refused),
            relevant,
        };
    }
    let (pairs, unmatched) = matched(&first, &second, files[1].partial);
    let measured: Vec<Pair> = pairs.into_iter().filter_map(Pair::of).collect();
    let both = slices::both(
        more,
        files,
        [&first[..], &second[..]],
        measured.iter().map(|pair| pair.variants.map(|variant| variant.configuration)),
        when == When::Beside(Turns::Slices),
    );
    let took_turns: Vec<&slices::Both> = both.iter().flatten().collect();
    // Half is for the medians, each of the same share, and half for the 99th percentiles.
    let error = error / 2.0;
    let of_turns = error * took_turns.len() as f64 / measured.len().max(1) as f64;
    let [p50, p99] = [By::P50, By::P99].map(|by| {
        let samples: Vec<[Sample; 2]> = measured.iter().map(|pair| pair.samples(by)).collect();
        let ratio = |(apart, samples): (Option<Apart>, &[Sample; 2])| {
            apart.map(Apart::ratio).or_else(|| {
                let levels = Levels::of_blocks(samples);
                Some(Ratio::open(levels.level(1)? / levels.level(0)?))
            })
        };
        by_blocks(&samples, error, when).into_iter().zip(&samples).map(ratio).collect::<Vec<_>>()
    });
    let aparts = match when {
        When::Apart => slices::apart(&took_turns, of_turns),
        When::Beside(_) => slices::beside(&took_turns, of_turns),
    };
    let mut aparts = aparts.into_iter();
    let rows = measured.iter().zip(&both).zip(p50.into_iter().zip(p99));
    let rows = rows.filter_map(|((pair, both), (p50, p99))| {
        let Some(both) = both else {
            let [level_ns, _] = pair.levels_ns()?;
            let p50 = p50?;
            let figures = Figures { level_ns, measured: p50.estimate, machine: None, p50, p99 };
            return Some(pair.row(files, figures, true, relevant));
        };
        let p50 = aparts.next().flatten().map(Apart::ratio);
        let [before_ns, after_ns] = both.levels_ns()?;
        let measured = after_ns / before_ns;
        let machine = p50.filter(|_| when == When::Apart).map(|p50| measured / p50.estimate);
        let p50 = p50.unwrap_or(Ratio::open(measured));
        let figures = Figures { level_ns: before_ns, measured, machine, p50, p99 };
        // What took turns stands against others that met the same machine.
        Some(pair.row(files, figures, false, relevant))
    });
    let rows = rows.collect();
    Comparison { files, rows, unmatched, refused: None, relevant }
}

struct Figures {
    level_ns: f64,
    measured: f64,
    machine: Option<f64>,
    p50: Ratio,
    p99: Option<Ratio>,
}

struct Pair<'variant, 'result> {
    variants: [&'variant Variant<'result>; 2],
    quantity: Quantity,
}

impl<'variant, 'result> Pair<'variant, 'result> {
    fn of((before, after): (&'variant Variant<'result>, &'variant Variant<'result>)) -> Option<Self> {
        let pair = Self { variants: [before, after], quantity: before.headline() };
        pair.samples(By::P50).iter().all(|sample| !sample.is_empty()).then_some(pair)
    }

    /// Of both runs.
    fn samples(&self, by: By) -> [Sample; 2] {
        self.variants.map(|variant| samples(&[variant], self.quantity, by).remove(0))
    }

    fn levels_ns(&self) -> Option<[f64; 2]> {
        let levels = Levels::of_blocks(&self.samples(By::P50));
        Some([levels.level(0)?, levels.level(1)?])
    }

    /// With what else explains it, by the machine's primitive costs, too, where they `may`.
    fn row(
        &self,
        files: [&ResultFile; 2],
        Figures { level_ns, measured, machine, p50, p99 }: Figures,
        primitives_may: bool,
        relevant: f64,
    ) -> ComparedConfiguration<'result> {
        let mut row = ComparedConfiguration {
            configuration: self.variants[0].configuration,
            candidate: self.variants[1].configuration,
            quantity: self.quantity,
            baseline_p50_ns: level_ns,
            blocks: self.samples(By::P50).map(|sample| sample.len()),
            measured,
            machine,
            p50,
            p99,
            missed: self.variants.map(|variant| Missed::of(variant)),
            doubt: None,
            standing: Standing::Inconclusive,
            is_harness: self.variants[0].is_harness(),
        };
        row.doubt = obstacle::found(&row, files, self.variants, primitives_may);
        let widened = |ratio: Ratio| row.doubt.as_ref().map_or(ratio, |doubt| doubt.widen(ratio));
        (row.p50, row.p99) = (widened(p50), p99.map(widened));
        row.standing = row.p50.standing(relevant);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    fn normal(random: &mut fastrand::Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// `base`, a run of futex and pipe, with times that are `slowdown` times longer than they
    /// should be, and blocks that spread by `own`.
    fn run(base: &ResultFile, slowdown: f64, own: f64, random: &mut fastrand::Rng) -> ResultFile {
        let mut result = base.clone();
        for series in result.records.iter_mut().flat_map(|record| record.series.values_mut()) {
            let times = slowdown * (own * normal(random)).exp();
            series.p50_ns *= times;
            series.p99_ns *= times;
        }
        result
    }

    /// "1 the same within 2.5 %, 1 inconclusive", and status 4, of
    /// the same program twice: the open one was the harness.
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

    /// How many of `times` comparisons find the configuration slower,
    /// and how many find any difference at all.
    fn found(slowdown: f64, own: f64, times: u64) -> (usize, usize) {
        let base = base();
        let verdicts: Vec<[bool; 2]> = (0..times)
            .map(|seed| {
                let mut random = fastrand::Rng::with_seed(seed);
                let first = run(&base, 1.0, own, &mut random);
                let second = run(&base, slowdown, own, &mut random);
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

    #[test]
    fn two_runs_of_the_same_thing_are_called_different_in_fewer_than_one_in_twenty_comparisons() {
        for own in [0.002, 0.01, 0.05] {
            let (_, different) = found(1.0, own, 100);
            assert!(different <= 5, "{different} of 100 with blocks that spread by {own}");
        }
    }

    #[test]
    fn a_slowdown_of_five_percent_is_found_in_nineteen_of_twenty() {
        let (slower, _) = found(1.05, 0.01, 100);
        assert!(slower >= 95, "{slower} of 100");
    }

    pub(super) fn plain(level: f64) -> ResultFile {
        sample::result(&[sample::configuration("futex")], 8, |_, block| {
            level * (1.0 + 0.001 * f64::from(block % 4))
        })
    }

    pub(super) fn only(first: &ResultFile, second: &ResultFile) -> Standing {
        compare(first, second, RELEVANT).rows[0].standing
    }

    /// "0.915" beside "as measured 0.800", of a host of two speeds,
    /// in one row and with nothing taken out.
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
}
