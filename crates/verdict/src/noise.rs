// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often verdicts are wrong, and what they find, on the noise of stored runs.
//!
//! A survey of equal things is made of what each block of a stored one had above and below its variants' levels: some neighbouring blocks
//! of it, in each of which the variants of one placement change places. What the machine did to a block, how long it was slow, and how the
//! noise of a trial is shaped are as they were; only that all are equal is made up. It is judged as any survey is.
//!
//! Comparisons of two runs are made of stored runs of one plan: any two of them, whole and as they were, so that what the machine did
//! between them is in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::answer::{SHARE, judged, pairs};
use super::by_block::{is_referred, samples};
use super::compare::RELEVANT;
use super::judge::{ERROR, Family, Sample};
use super::ratio::Standing;
use doorbell_results::record::question::By;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{ResultFile, Variant};

/// The noise of one stored survey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// What was judged.
    pub variants: Vec<Residuals>,
    /// Which of them a survey compares with which.
    pub pairs: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Residuals {
    pub subject: String,
    /// Where its sides ran; those of one placement change places.
    pub relation: String,
    /// Whether a reference ran inside its trials: those that had one are noisy in another way than those that had none.
    pub referred: bool,
    /// What a comparison goes by, the multiple of the reference or nanoseconds: its level, in logarithms.
    pub level: f64,
    /// The slowdown that was put in on purpose, parts per million.
    #[serde(default)]
    pub slowed_ppm: u32,
    /// By block above the level, in logarithms, ten-thousandths.
    pub residuals: BTreeMap<u32, i32>,
}

impl Residuals {
    /// What was run and where, whatever was put in.
    fn of_the_same(&self, other: &Self) -> bool {
        (&self.subject, &self.relation, self.referred) == (&other.subject, &other.relation, other.referred)
    }

    fn sample(&self) -> Sample {
        let figures = self.residuals.iter();
        figures.map(|(block, residual)| (*block, (self.level + f64::from(*residual) * UNIT).exp())).collect()
    }
}

const UNIT: f64 = 1e-4;

/// What came of so many made-up surveys.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    pub surveys: u32,
    pub blocks: u32,
    /// Surveys that called something different.
    pub wrong: u32,
    /// For each placement the least difference that is found in 95 of 100 places, as a share: of mechanisms that had a reference
    /// inside their trials, and of the others.
    pub finds: BTreeMap<(String, bool), f64>,
}

/// What came of so many comparisons of two stored runs of one thing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparisons {
    /// Pairs of runs without a slowdown, and those of them that were called different somewhere.
    pub equal: u32,
    pub wrong: u32,
    /// For each placement, of pairs whose second was slowed: how many were compared, and how many were found slower.
    pub slowed: BTreeMap<String, [u32; 2]>,
    /// For each placement the least slowdown that is found in 95 of 100 pairs without one, as a share.
    pub finds: BTreeMap<String, f64>,
}

impl Noise {
    /// What `result`, a survey or a ping of several configurations, has above and below its levels.
    pub fn of(result: &ResultFile) -> Self {
        let variants = result.variants();
        let judged = judged(&variants);
        let samples = samples(&judged, Quantity::RoundTrip, By::P50);
        let family = Family::alternated(&samples);
        let by_itself = |variant: &Variant| {
            let figures = variant.usable().filter_map(|record| {
                let own = || Some(record.series.get(&Quantity::RoundTrip)?.p50_ns);
                let figure =
                    if is_referred(variant) { record.reference.map(|found| found.ratio) } else { own() };
                Some((record.block, figure?))
            });
            Family::alternated(&[figures.collect()]).level(0).map_or(0.0, f64::ln)
        };
        let residuals = |(index, (variant, sample)): (usize, (&&Variant, &Sample))| Residuals {
            subject: variant.configuration.subject.clone(),
            relation: variant.configuration.placement.relation.clone(),
            referred: is_referred(variant),
            level: by_itself(variant),
            slowed_ppm: variant.configuration.injected_slowdown_ppm.unwrap_or(0),
            residuals: match family.level(index) {
                Some(level) => sample
                    .iter()
                    .map(|(block, value)| (*block, ((value / level).ln() / UNIT).round() as i32))
                    .collect(),
                None => BTreeMap::new(),
            },
        };
        Self {
            variants: judged.iter().zip(&samples).enumerate().map(residuals).collect(),
            pairs: pairs(&judged),
        }
    }

    fn blocks(&self) -> u32 {
        let last = self.variants.iter().filter_map(|variant| variant.residuals.keys().next_back()).max();
        last.map_or(0, |last| last + 1)
    }

    /// A survey of equal things from `blocks` neighbouring blocks.
    fn equal(&self, blocks: u32, random: &mut fastrand::Rng) -> Vec<Sample> {
        let first = random.u32(0..=self.blocks().saturating_sub(blocks));
        let mut samples = vec![Sample::new(); self.variants.len()];
        for block in first..first + blocks {
            let mut alike: BTreeMap<(&str, bool), Vec<(usize, i32)>> = BTreeMap::new();
            for (index, variant) in self.variants.iter().enumerate() {
                if let Some(residual) = variant.residuals.get(&block) {
                    alike.entry((&variant.relation, variant.referred)).or_default().push((index, *residual));
                }
            }
            for group in alike.into_values() {
                let mut residuals: Vec<i32> = group.iter().map(|(_, residual)| *residual).collect();
                random.shuffle(&mut residuals);
                for ((index, _), residual) in group.into_iter().zip(residuals) {
                    samples[index].insert(block, (f64::from(residual) * UNIT).exp());
                }
            }
        }
        samples
    }
}

/// Judges `surveys` surveys of equal things with `blocks` blocks each; none without a run that has as many.
pub fn calibrate(noises: &[Noise], blocks: u32, surveys: u32, seed: u64) -> Option<Calibration> {
    let fit: Vec<&Noise> = noises.iter().filter(|noise| noise.blocks() >= blocks).collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut wrong = 0;
    let mut found_from: BTreeMap<(String, bool), Vec<f64>> = BTreeMap::new();
    for _ in 0..surveys {
        let noise = fit.get(random.usize(0..fit.len().max(1)))?;
        let referred = noise.variants.iter().map(|variant| variant.referred).collect();
        let family = Family::alternated(&noise.equal(blocks, &mut random)).referred(referred);
        let ratios = family.ratios(&noise.pairs, SHARE);
        let known = || noise.pairs.iter().zip(&ratios).filter_map(|(pair, ratio)| Some((*pair, (*ratio)?)));
        wrong += u32::from(known().any(|(_, ratio)| {
            [ratio, ratio.inverse()].iter().any(|ratio| ratio.behind(RELEVANT) == Standing::Slower)
        }));
        for ((a, b), ratio) in known() {
            let [a, b] = [a, b].map(|variant| &noise.variants[variant]);
            if a.relation == b.relation {
                let from = (1.0 / ratio.low).max((1.0 + RELEVANT) / ratio.estimate) - 1.0;
                found_from.entry((a.relation.clone(), a.referred && b.referred)).or_default().push(from);
            }
        }
    }
    let finds = found_from.into_iter().filter_map(|(place, from)| Some((place, in_95(from)?))).collect();
    Some(Calibration { surveys, blocks, wrong, finds })
}

/// The least of which 95 of 100 are not more.
fn in_95(mut from: Vec<f64>) -> Option<f64> {
    let place = (from.len() as f64 * 0.95).ceil() as usize;
    from.sort_by(f64::total_cmp);
    from.get(place.checked_sub(1)?).copied()
}

/// Compares every stored run with every other one of the same configurations, as [`compare`](super::compare) does, half of the error being for
/// medians; none if there are no two.
pub fn compare_all(noises: &[Noise]) -> Option<Comparisons> {
    let plain = |noise: &&Noise| noise.variants.iter().all(|variant| variant.slowed_ppm == 0);
    let mut found = Comparisons::default();
    let mut found_from: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (place, first) in noises.iter().enumerate().filter(|(_, noise)| plain(noise)) {
        for (_, second) in noises.iter().enumerate().filter(|(other, _)| *other != place) {
            let pairs: Vec<(&Residuals, &Residuals)> = first.variants.iter().zip(&second.variants).collect();
            if pairs.is_empty()
                || first.variants.len() != second.variants.len()
                || !pairs.iter().all(|(a, b)| a.of_the_same(b))
            {
                continue;
            }
            let samples: Vec<[Sample; 2]> = pairs.iter().map(|(a, b)| [a.sample(), b.sample()]).collect();
            let places: Vec<(usize, usize)> = (0..pairs.len()).map(|pair| (2 * pair, 2 * pair + 1)).collect();
            let ratios = Family::apart(&samples).ratios(&places, ERROR / 2.0);
            let verdicts = ratios.iter().map(|ratio| ratio.map(|ratio| ratio.standing(RELEVANT)));
            if plain(&second) {
                let different = |verdict| matches!(verdict, Some(Standing::Slower | Standing::Faster));
                found.equal += 1;
                found.wrong += u32::from(verdicts.into_iter().any(different));
                for ((variant, _), ratio) in pairs.iter().zip(&ratios) {
                    let from = ratio.map_or(f64::INFINITY, |ratio| {
                        (1.0 / ratio.low).max((1.0 + RELEVANT) / ratio.estimate) - 1.0
                    });
                    found_from.entry(variant.relation.clone()).or_default().push(from);
                }
            } else {
                for ((variant, _), verdict) in pairs.iter().zip(verdicts) {
                    let [all, slower] = found.slowed.entry(variant.relation.clone()).or_default();
                    *all += 1;
                    *slower += u32::from(verdict == Some(Standing::Slower));
                }
            }
        }
    }
    found.finds = found_from.into_iter().filter_map(|(place, from)| Some((place, in_95(from)?))).collect();
    (found.equal > 0).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    /// A survey of ten mechanisms that differ widely, on a machine whose trials are slow by a third now and then.
    fn survey(blocks: u32) -> ResultFile {
        let configurations: Vec<_> =
            ["futex", "pipe", "eventfd", "spin", "sem-posix", "tcp", "udp", "fifo", "unix-stream", "umwait"]
                .iter()
                .map(|subject| sample::configuration(subject))
                .collect();
        let random = std::cell::RefCell::new(fastrand::Rng::with_seed(4));
        sample::result(&configurations, blocks, |configuration, _| {
            let random = &mut *random.borrow_mut();
            let slow = if random.f64() < 0.22 { 1.35 } else { 1.0 };
            1000.0 * configuration.subject.len() as f64 * slow * (1.0 + 0.02 * random.f64())
        })
    }

    #[test]
    fn of_equal_things_made_of_a_two_speed_runs_noise_few_surveys_call_any_different() {
        let noise = Noise::of(&survey(30));
        assert_eq!((noise.variants.len(), noise.pairs.len()), (10, 45));
        let found = calibrate(&[noise], 9, 40, 1).unwrap();
        assert!(found.wrong <= 4, "{found:?}");
        // Without a reference two speeds hide what is smaller than they are apart.
        let from = found.finds[&("same-l3".to_owned(), false)];
        assert!((0.1..1.0).contains(&from), "{found:?}");
    }

    /// A survey of 40 blocks, 60 blocks of two mechanisms, and 14 rounds of `doorbell study futex eventfd pipe` (three runs each, the third
    /// slowed by 5 %), recorded on two virtual CPUs of a shared host on 2026-11-23 while nothing else ran.
    fn recorded() -> Vec<Noise> {
        serde_json::from_str(include_str!("../fixtures/noise-of-two-virtual-cpus.json")).unwrap()
    }

    #[test]
    fn of_equal_things_made_of_a_real_machines_noise_at_most_five_surveys_of_a_hundred_call_any_different() {
        // The survey alone: in a run of fewer things there is less to be wrong about.
        let found = calibrate(&recorded()[..1], 9, 100, 1).unwrap();
        assert!(found.wrong <= 2, "{found:?}");
    }

    #[test]
    fn of_a_real_machines_runs_few_of_one_thing_differ_and_slowdowns_of_five_percent_are_found() {
        // Half of the rounds: all of them take a minute, and give 3.3 % of 756, and 98 % and 100 % of 1,176 each.
        let found = compare_all(&recorded()[..23]).unwrap();
        assert!(found.equal >= 150 && found.wrong * 20 <= found.equal, "{found:?}");
        assert_eq!(found.slowed.len(), 2, "{found:?}");
        for [all, slower] in found.slowed.values() {
            assert!(*all > 250 && slower * 100 >= all * 95, "{found:?}");
        }
    }

    #[test]
    fn a_run_of_fewer_blocks_than_asked_for_has_no_noise_to_give() {
        assert_eq!(calibrate(&[Noise::of(&survey(8))], 9, 1, 1), None);
        assert_eq!(calibrate(&[], 9, 1, 1), None);
    }

    #[test]
    fn noise_survives_its_file() {
        let noise = Noise::of(&survey(6));
        let text = serde_json::to_string(&noise).unwrap();
        assert_eq!(serde_json::from_str::<Noise>(&text).unwrap(), noise);
    }
}
