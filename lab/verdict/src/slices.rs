// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether one thing takes longer than another where things take turns every millisecond.
//!
//! SUMMARY: a run is some twenty *pairs* of processes, one after the other. In each, every thing
//! stands in many *slices* of about a millisecond, in random order. What comes out is how many
//! times as long one thing takes as another, with an interval ([`Levels::apart`]); which things may
//! be the fastest, and how far the others are behind ([`best`](super::best)); what a run may say
//! before its end ([`looks`](super::looks)); and how a run stands to runs of other days
//! ([`across`](super::across)).
//!
//! DETAILS: everything is done in logarithms. A machine of two
//! speeds, 1.6 apart, is what this must stand.
//! - A slice is y, the logarithm of the mean of the middle half of its rounds: a tick of the kernel
//!   in one round of twenty is none of the thing's.
//! - *Neighbours* tell how fast the machine was just then (unless they are more than 2.5 times off,
//!   and so tell of themselves): z = y − ½(e₋ + e₊), where e = y − μ of the slices before and
//!   after in the same turn, one at its ends. μ, the usual y of a thing, is the trimmed mean of
//!   its z: six passes, which begin with medians (J. S. Papadakis, *Méthode statistique pour des
//!   expériences sur champ*, 1937). The fifth at each end is left out of z, never of y: of two
//!   speeds it would leave out one. A pass goes (k − 1)/k of the way, k being the things of a
//!   class: all of the way would turn an error of two things that alternate into its opposite, pass
//!   for pass, and it would be the same in every pair.
//! - *Pairs*: D is the trimmed mean of a thing's z in one pair of processes. How two processes lie
//!   in memory lasts as long as they do, so that slices of one pair say nothing of that, however
//!   many they are; the pair is what is counted (T. Kalibera, R. Jones, *Rigorous benchmarking in
//!   reasonable time*, 2013). δ is the difference of the D of two things in one pair. Of B pairs a
//!   tenth at each end is left out, for another program that runs for a second spoils one or two of
//!   twenty: d is the mean of the h that are left, and s its standard error, the root of Σ(δ −
//!   δ̄)²/(h(h − 1)), those left out counting as the nearest that is not (K. K. Yuen, *The
//!   two-sample trimmed t for unequal population variances*, 1974).
//! - What neighbours took out comes back as the mean of its class, the things that share turns with
//!   each other. Between two of one class it cancels. Between classes, such as spinning and
//!   sleeping, it does not: nothing but the clock tells there which was the slow moment, and
//!   intervals are as much wider as that makes them.
//! - *Lasting speeds*: where pairs resemble the one before, they tell less than as many independent
//!   ones. r is that correlation, of all things of the class together, plus what B pairs hide of
//!   it, (1 + 4r)/B (M. G. Kendall, *Note on bias in the estimation of autocorrelation*, 1954),
//!   within 0 and 0.8. With f = (1 + r)/(1 − r) (M. S. Bartlett, *Some aspects of the
//!   time-correlation problem*, 1935) half an interval is t · s · √(f / max(0.2, (h − f)/(h − 1))),
//!   t being Student's with max(3, (h − 1)(1 − r²)/(1 + r²)) degrees of freedom.
//! - *Together*: all intervals of a run hold in 95 of 100 runs, as t is that of the share of the
//!   error that each gets (C. E. Bonferroni, 1936). Two things are the same within x if their
//!   interval lies within 1 + x: that they were not told apart says nothing.
//!
//! EXAMPLE: the machine is slow, 1.6 times, from the sixth slice of the turn on.
//!
//! ```text
//! slice             futex   pipe  futex   pipe  futex   pipe  futex   pipe  futex   pipe
//! time, ns           4000   5000   4040   5050   3980   8080   6400   7920   6464   8000
//! y                 8.294  8.517  8.304  8.527  8.289  8.997  8.764  8.977  8.774  8.987
//! z, last pass      8.527  8.747  8.532  8.760  8.277  9.000  8.527  8.737  8.542  8.742
//! ```
//!
//! The two slices at the step are half of it away, one up and one down, and the trimmed means leave
//! them out: D is 8.529 of futex and 8.750 of pipe, 1.247 times as much, where the means of the
//! times make it 1.368. Over six pairs D of pipe less D of futex was 0.223, 0.230, 0.219, 0.226,
//! 0.221, 0.225: d = 0.2240, s = 0.0016. r is 0, f is 1, t is 2.571 for one interval of 95 %, and
//! half of it is 0.0041. Pipe takes 1.251 times as long as futex, 1.246 to 1.256.
//!
//! Simulated (`cargo test -p doorbell-verdict --test slices -- --ignored --nocapture`): see
//! `book/repeatability.md`.

use std::collections::BTreeMap;

use super::ratio::Ratio;
use super::statistics::{median, student};
use doorbell_results::plan::FEWEST_BLOCKS;

/// The chance that some interval of a run does not hold.
pub const ERROR: f64 = 0.05;

/// The share of slices that a trimmed mean leaves out at each end.
const TRIMMED: f64 = 0.2;

/// The share of pairs that are left out at each end.
const PAIRS_OUT: f64 = 0.1;

/// How often neighbours are taken out.
const PASSES: usize = 6;

/// A neighbour further than this from what is usual of it, in logarithms (2.5 times), tells of
/// itself, such as whether it slept or spun, or of a CPU that was taken away from it; of a machine
/// whose speeds are 1.6 apart it tells nothing.
const MOST_SPEED: f64 = 0.916;

/// Fewer pairs, or blocks, than this are no evidence.
pub const FEWEST_PAIRS: usize = FEWEST_BLOCKS as usize;

/// What one thing took in each pair or block: a figure above 0.
pub type Sample = BTreeMap<u32, f64>;

/// No more than this is believed of how much a pair resembles the one before: of more, no run of
/// some pairs can tell anything.
const MOST_RESEMBLANCE: f64 = 0.8;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    pub thing: usize,
    /// The pair of processes that ran it.
    pub pair: u32,
    /// The turn within the pair, and the place within the turn.
    pub turn: u64,
    pub place: u32,
    /// The mean of the middle half of its recorded rounds.
    pub middle_ns: f64,
}

/// What each thing takes, pair by pair.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Levels {
    /// D of each thing by pair, in logarithms, with what the class of the thing shares.
    by_pair: Vec<BTreeMap<u32, f64>>,
    /// Of each thing the first of those it shares turns with.
    class: Vec<usize>,
}

/// How far two things are apart, in logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Apart {
    /// By how much the second takes longer.
    pub by: f64,
    pub half: f64,
}

impl Apart {
    /// The middle of `deltas`, pair by pair, neighbours of which
    /// resemble each other by `r`, with an interval that fails in the
    /// share `error` of runs; none of fewer than [`FEWEST_PAIRS`].
    pub(super) fn of(mut deltas: Vec<f64>, r: f64, error: f64) -> Option<Self> {
        if deltas.len() < FEWEST_PAIRS {
            return None;
        }
        let by = middle(&mut deltas)?;
        let (count, out) = (deltas.len(), left_out(deltas.len(), PAIRS_OUT));
        let (nearest, kept) = ([deltas[out], deltas[count - out - 1]], (count - 2 * out) as f64);
        let counted = deltas.iter().map(|delta| delta.clamp(nearest[0], nearest[1]));
        let mean = mean(counted.clone())?;
        let squares: f64 = counted.map(|delta| (delta - mean).powi(2)).sum();
        let standard_error = (squares / (kept * (kept - 1.0))).sqrt();
        let f = (1.0 + r) / (1.0 - r);
        let freedom = ((kept - 1.0) * (1.0 - r * r) / (1.0 + r * r)).max(3.0);
        let seen = ((kept - f) / (kept - 1.0)).max(0.2);
        let half = student(1.0 - error / 2.0, freedom) * standard_error * (f / seen).sqrt();
        Some(Self { by, half })
    }

    /// The same as a multiple.
    pub fn ratio(self) -> Ratio {
        let [low, estimate, high] = [self.by - self.half, self.by, self.by + self.half].map(f64::exp);
        Ratio { estimate, low, high }
    }
}

impl Levels {
    /// Of so many things; slices without a time above 0 say nothing.
    pub fn of(things: usize, slices: &[Slice]) -> Self {
        let mut slices: Vec<(Slice, f64)> = slices
            .iter()
            .map(|slice| (*slice, slice.middle_ns.ln()))
            .filter(|(slice, y)| slice.thing < things && y.is_finite())
            .collect();
        slices.sort_by_key(|(slice, _)| (slice.pair, slice.turn, slice.place));
        let class = classes(things, &slices);
        let z = without_neighbours(&class, &slices);
        // What stands in turns of its own has no neighbours, and raw times are not trimmed.
        let alone = |thing: usize| class.iter().filter(|other| **other == class[thing]).count() == 1;
        let mut own: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
        let mut shared: BTreeMap<(usize, u32), (f64, f64)> = BTreeMap::new();
        for ((slice, y), z) in slices.iter().zip(&z) {
            own.entry((slice.thing, slice.pair)).or_default().push(*z);
            let (sum, count) = shared.entry((class[slice.thing], slice.pair)).or_default();
            (*sum, *count) = (*sum + (y - z), *count + 1.0);
        }
        let mut by_pair = vec![BTreeMap::new(); things];
        for ((thing, pair), mut values) in own {
            let (sum, count) = shared[&(class[thing], pair)];
            let out = if alone(thing) { 0.0 } else { TRIMMED };
            by_pair[thing].insert(pair, trimmed_mean(&mut values, out) + sum / count);
        }
        Self { by_pair, class }
    }

    /// Of things whose levels in logarithms are known by pair, all of one class.
    pub fn known(by_pair: Vec<BTreeMap<u32, f64>>) -> Self {
        let class = vec![0; by_pair.len()];
        Self { by_pair, class }
    }

    /// Of things that had a trial of their own in each block.
    pub fn of_blocks(samples: &[Sample]) -> Self {
        Self::known(samples.iter().map(logarithms).collect())
    }

    /// With what those things took in each block that have no slices; they share turns with nobody.
    #[must_use]
    pub fn with_blocks(mut self, samples: &[Sample]) -> Self {
        for (levels, sample) in self.by_pair.iter_mut().zip(samples) {
            if levels.is_empty() {
                *levels = logarithms(sample);
            }
        }
        self
    }

    /// What a thing takes, in the unit of its figures; none of what has none.
    pub fn level(&self, thing: usize) -> Option<f64> {
        Some(middle(&mut self.by_pair.get(thing)?.values().copied().collect::<Vec<f64>>())?.exp())
    }

    /// Those of `things` that have figures, by their levels, the quickest first.
    pub fn ranked(&self, things: impl IntoIterator<Item = usize>) -> Vec<(usize, f64)> {
        let known = things.into_iter().filter_map(|thing| Some((thing, self.level(thing)?)));
        let mut ranked: Vec<(usize, f64)> = known.collect();
        ranked.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        ranked
    }

    /// D of a thing by pair, in logarithms.
    pub fn of_thing(&self, thing: usize) -> &BTreeMap<u32, f64> {
        &self.by_pair[thing]
    }

    pub fn class(&self, thing: usize) -> usize {
        self.class[thing]
    }

    pub fn pairs(&self, thing: usize) -> usize {
        self.by_pair[thing].len()
    }

    /// How much longer `b` takes than `a`, with an interval that fails in the share `error` of
    /// runs; none of fewer than [`FEWEST_PAIRS`] pairs that have both.
    pub fn apart(&self, a: usize, b: usize, error: f64) -> Option<Apart> {
        let deltas = self.by_pair[a].iter().filter_map(|(pair, a)| Some(self.by_pair[b].get(pair)? - a));
        let deltas: Vec<f64> = deltas.collect();
        Apart::of(deltas, self.resemblance(a, b), error)
    }

    /// For each of `pairs`, (a, b), how many times as long `b` takes as `a`: all intervals hold
    /// together but for the share `error` of runs.
    pub fn ratios(&self, pairs: &[(usize, usize)], error: f64) -> Vec<Option<Ratio>> {
        let each = error / pairs.len().max(1) as f64;
        pairs.iter().map(|(a, b)| Some(self.apart(*a, *b, each)?.ratio())).collect()
    }

    /// How much each pair resembles the one before in what sets the things of the classes of `a`
    /// and `b` apart from each other.
    pub fn resemblance(&self, a: usize, b: usize) -> f64 {
        let of = |thing: &usize| [self.class[a], self.class[b]].contains(&self.class[*thing]);
        let things: Vec<usize> = (0..self.by_pair.len()).filter(of).collect();
        let mut all: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (pair, level) in things.iter().flat_map(|thing| &self.by_pair[*thing]) {
            all.entry(*pair).or_default().push(*level);
        }
        let shared: BTreeMap<u32, f64> =
            all.into_iter().filter_map(|(pair, levels)| Some((pair, mean(levels.into_iter())?))).collect();
        let series = things.iter().map(|thing| {
            self.by_pair[*thing].iter().map(|(pair, level)| level - shared[pair]).collect::<Vec<f64>>()
        });
        resemblance(&series.collect::<Vec<_>>())
    }
}

/// z of slices in the order of time.
fn without_neighbours(class: &[usize], slices: &[(Slice, f64)]) -> Vec<f64> {
    let mut of: Vec<Vec<f64>> = vec![Vec::new(); class.len()];
    slices.iter().for_each(|(slice, y)| of[slice.thing].push(*y));
    let mut usual: Vec<f64> = of.iter().map(|values| median(values).unwrap_or(0.0)).collect();
    let mut z = Vec::new();
    for _ in 0..PASSES {
        z = without(slices, &usual);
        of.iter_mut().for_each(Vec::clear);
        slices.iter().zip(&z).for_each(|((slice, _), z)| of[slice.thing].push(*z));
        for (thing, usual) in usual.iter_mut().enumerate() {
            let things = class.iter().filter(|other| **other == class[thing]).count() as f64;
            *usual += (trimmed_mean(&mut of[thing], TRIMMED) - *usual) * (things - 1.0) / things;
        }
    }
    z
}

/// What slices take without what their neighbours have above their `usual`.
fn without(slices: &[(Slice, f64)], usual: &[f64]) -> Vec<f64> {
    let together = |a: usize, b: usize| {
        let [a, b] = [a, b].map(|at| slices.get(at).map(|(slice, _)| (slice.pair, slice.turn)));
        a.is_some() && a == b
    };
    let above = |at: usize| {
        let above = slices[at].1 - usual[slices[at].0.thing];
        (above.abs() <= MOST_SPEED).then_some(above)
    };
    (0..slices.len())
        .map(|at| {
            let before = if at > 0 && together(at - 1, at) { above(at - 1) } else { None };
            let behind = if together(at, at + 1) { above(at + 1) } else { None };
            slices[at].1 - mean(before.into_iter().chain(behind)).unwrap_or(0.0)
        })
        .collect()
}

/// Of each thing the first of those that it shares turns with.
fn classes(things: usize, slices: &[(Slice, f64)]) -> Vec<usize> {
    let mut class: Vec<usize> = (0..things).collect();
    for turn in slices.chunk_by(|(a, _), (b, _)| (a.pair, a.turn) == (b.pair, b.turn)) {
        let known: Vec<usize> = turn.iter().map(|(slice, _)| class[slice.thing]).collect();
        let first = known.iter().copied().min().unwrap_or(0);
        if known.iter().any(|known| *known != first) {
            class.iter_mut().filter(|class| known.contains(class)).for_each(|class| *class = first);
        }
    }
    class
}

/// The correlation of neighbours in all `series` together, with what
/// series of their length hide of it.
fn resemblance(series: &[Vec<f64>]) -> f64 {
    let (mut next, mut all, mut longest) = (0.0, 0.0, 0);
    for values in series {
        let middle = mean(values.iter().copied()).unwrap_or(0.0);
        next += values.windows(2).map(|two| (two[0] - middle) * (two[1] - middle)).sum::<f64>();
        all += values.iter().map(|value| (value - middle).powi(2)).sum::<f64>();
        longest = longest.max(values.len());
    }
    let seen = if all > 0.0 { next / all } else { 0.0 };
    (seen + (1.0 + 4.0 * seen) / longest.max(1) as f64).clamp(0.0, MOST_RESEMBLANCE)
}

fn logarithms(sample: &Sample) -> BTreeMap<u32, f64> {
    let logarithms = sample.iter().map(|(pair, value)| (*pair, value.ln()));
    logarithms.filter(|(_, value)| value.is_finite()).collect()
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// The mean of pairs without a tenth at each end, which it sorts; none of none.
pub(super) fn middle(pairs: &mut [f64]) -> Option<f64> {
    (!pairs.is_empty()).then(|| trimmed_mean(pairs, PAIRS_OUT))
}

/// How many of `count` values the share `out` leaves out at each end.
fn left_out(count: usize, out: f64) -> usize {
    (out * count as f64) as usize
}

/// The mean without the share `out` of the values at each end; 0 of nothing.
fn trimmed_mean(values: &mut [f64], out: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let out = left_out(values.len(), out);
    mean(values[out..values.len() - out].iter().copied()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(times: &[(usize, f64)]) -> Vec<Slice> {
        let slices = (0..).zip(times);
        slices
            .map(|(place, (thing, middle_ns))| Slice {
                thing: *thing,
                pair: 0,
                turn: 0,
                place,
                middle_ns: *middle_ns,
            })
            .collect()
    }

    #[test]
    fn the_example_of_the_page_is_what_is_computed() {
        let page = include_str!("slices.rs");
        let times = [4000.0, 5000.0, 4040.0, 5050.0, 3980.0, 8080.0, 6400.0, 7920.0, 6464.0, 8000.0];
        let times: Vec<(usize, f64)> = (0..).zip(times).map(|(place, ns)| (place % 2, ns)).collect();
        let slices: Vec<(Slice, f64)> =
            turn(&times).into_iter().map(|slice| (slice, slice.middle_ns.ln())).collect();
        let line = |name: &str, values: &[f64]| {
            let values: Vec<String> = values.iter().map(|value| format!("{value:.3}")).collect();
            format!("//! {name:<17} {}\n", values.join("  "))
        };
        let y: Vec<f64> = slices.iter().map(|(_, y)| *y).collect();
        for told in [line("y", &y), line("z, last pass", &without_neighbours(&[0, 0], &slices))] {
            assert!(page.contains(&told), "{told}");
        }
        let deltas = [0.223, 0.230, 0.219, 0.226, 0.221, 0.225];
        let levels =
            |of: &dyn Fn(f64) -> f64| (0..).zip(deltas).map(|(pair, delta)| (pair, of(delta))).collect();
        let levels = Levels::known(vec![levels(&|_| 0.0), levels(&|delta| delta)]);
        let apart = levels.apart(0, 1, ERROR).unwrap();
        let ratio = apart.ratio();
        let told = [
            format!("d = {:.4}", apart.by),
            format!("half of it is {:.4}", apart.half),
            format!("{:.3} times as long as futex, {:.3} to {:.3}", ratio.estimate, ratio.low, ratio.high),
        ];
        for told in told {
            assert!(page.contains(&told), "{told}");
        }
    }
}
