// SPDX-License-Identifier: MIT OR Apache-2.0
//! The repeatability study: how often comparisons on this machine say what is true.
//!
//! A round is three runs, one after the other: the plan, the plan again, and the plan with a
//! slowdown put in on purpose. The second compared with the first should not be called different;
//! the third compared with the second should be slower.

use serde::{Deserialize, Serialize};

use super::compare::{Comparison, RELEVANT};
use super::ratio::{Ratio, Standing};
use doorbell_results::configuration::Configuration;

/// The version of the layout of a study's file.
pub const STUDY_VERSION: u32 = 2;

/// A study: what was compared and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// See [`STUDY_VERSION`].
    pub study_version: u32,
    /// The command line that added the last rounds.
    pub command_line: Vec<String>,
    /// The slowdown put in, parts per million.
    pub slowdown_ppm: u32,
    pub blocks: u32,
    /// The configurations of each run.
    pub configurations: Vec<Configuration>,
    /// What was found, round by round.
    pub rounds: Vec<Round>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Of two runs of the same thing.
    pub same: Vec<Finding>,
    /// Of a run that was slowed with one that was not.
    pub slowed: Vec<Finding>,
}

/// What a comparison said about a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The place of the configuration in [`Study::configurations`].
    pub configuration: usize,
    /// The ratio of the medians as measured.
    pub measured: f64,
    /// The ratio with the machine's own change taken out, and its interval.
    pub ratio: [f64; 3],
}

impl Finding {
    /// How the second run stands to the first.
    pub fn standing(&self) -> Standing {
        let [low, estimate, high] = self.ratio;
        Ratio { estimate, low, high }.standing(RELEVANT)
    }
}

fn differs(standing: Standing) -> bool {
    matches!(standing, Standing::Slower | Standing::Faster)
}

impl Study {
    /// What a comparison found, to be kept in a round. Configurations
    /// that the study does not have are left out.
    pub fn findings(&self, comparison: &Comparison) -> Vec<Finding> {
        let place = |configuration: &Configuration| {
            let mut plain = configuration.clone();
            plain.injected_slowdown_ppm = None;
            self.configurations.iter().position(|known| *known == plain)
        };
        comparison
            .rows
            .iter()
            .filter_map(|row| {
                Some(Finding {
                    configuration: place(row.configuration)?,
                    measured: row.measured,
                    // JSON has no infinity, which an interval of too few blocks reaches to.
                    ratio: [row.p50.low, row.p50.estimate, row.p50.high.min(f64::MAX)],
                })
            })
            .collect()
    }

    /// The counts of one configuration, or of whole comparisons.
    pub fn score(&self, of: Scored) -> Score {
        let mut score = Score::default();
        for round in &self.rounds {
            score.same.add(&round.same, of, Wanted::NotDifferent);
            score.slowed.add(&round.slowed, of, Wanted::Slower);
        }
        score
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scored {
    /// Those on the configuration at this place.
    Configuration(usize),
    /// Those of the whole comparison: right about the same if no configuration is called different,
    /// right about a slowdown if some configuration is slower.
    Comparison,
}

/// How often the verdicts were right.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    /// Of two runs of the same thing: not called different.
    pub same: Count,
    /// Of a slowed run: "slower".
    pub slowed: Count,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Count {
    pub right: u32,
    /// Inconclusive: what is right of the same is among them, and of a slowdown it is not.
    pub open: u32,
    pub all: u32,
    /// For each ratio the least slowdown that would have been called slower in its place.
    pub found_from: Vec<f64>,
    /// The logarithms of the ratios.
    pub ratios: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    NotDifferent,
    Slower,
}

impl Count {
    fn add(&mut self, findings: &[Finding], of: Scored, wanted: Wanted) {
        let chosen: Vec<&Finding> = findings
            .iter()
            .filter(|finding| of == Scored::Comparison || of == Scored::Configuration(finding.configuration))
            .collect();
        self.all += 1;
        if chosen.is_empty() {
            // A run that left nothing to compare is a round in which the truth was not told.
            self.open += 1;
            return;
        }
        let all = |which: fn(Standing) -> bool| chosen.iter().all(|finding| which(finding.standing()));
        let right = match wanted {
            Wanted::Slower => !all(|standing| standing != Standing::Slower),
            Wanted::NotDifferent => all(|standing| !differs(standing)),
        };
        let open =
            all(|standing| !differs(standing)) && !all(|standing| matches!(standing, Standing::Same { .. }));
        self.right += u32::from(right);
        self.open += u32::from(open);
        self.ratios.extend(chosen.iter().map(|finding| finding.ratio[1].ln()));
        self.found_from.extend(chosen.iter().map(|finding| {
            let [low, estimate, _] = finding.ratio;
            (1.0 / low).max((1.0 + RELEVANT) / estimate) - 1.0
        }));
    }

    /// The least slowdown that would have been found in 95 of 100 of these places; none of no
    /// ratios, or of intervals without ends.
    pub fn finds(&self) -> Option<f64> {
        let mut sorted = self.found_from.clone();
        sorted.sort_by(f64::total_cmp);
        let place = (sorted.len() as f64 * 0.95).ceil() as usize;
        sorted.get(place.checked_sub(1)?).copied().filter(|finds| finds.is_finite())
    }

    /// The mean ratio and the spread between rounds, as shares; none of fewer than two.
    pub fn spread(&self) -> Option<(f64, f64)> {
        let count = self.ratios.len() as f64;
        if count < 2.0 {
            return None;
        }
        let mean = self.ratios.iter().sum::<f64>() / count;
        let squares: f64 = self.ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        Some((mean.exp() - 1.0, (squares / (count - 1.0)).sqrt()))
    }

    /// The interval in which the true share of right verdicts lies with 95 %: Wilson's (E. B.
    /// Wilson, *Probable inference, the law of succession, and statistical inference*, Journal
    /// of the American Statistical Association 22, 1927). None of no verdicts.
    pub fn interval(&self) -> Option<(f64, f64)> {
        const Z: f64 = 1.96;
        if self.all == 0 {
            return None;
        }
        let (all, share) = (f64::from(self.all), f64::from(self.right) / f64::from(self.all));
        let center = share + Z * Z / (2.0 * all);
        let reach = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt();
        let whole = 1.0 + Z * Z / all;
        Some((((center - reach) / whole).max(0.0), ((center + reach) / whole).min(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use doorbell_results::record::sample;

    fn study(rounds: &[(f64, f64)]) -> Study {
        let configurations = vec![sample::configuration("futex"), sample::configuration("pipe")];
        let mut study = Study {
            study_version: STUDY_VERSION,
            command_line: Vec::new(),
            slowdown_ppm: 50_000,
            blocks: 8,
            configurations: configurations.clone(),
            rounds: Vec::new(),
        };
        let run = |futex: f64| {
            sample::result(&configurations, 8, |configuration, block| {
                let level = if configuration.subject == "futex" { futex } else { 1.0 };
                16_000.0 * level * (1.0 + f64::from(block % 3) * 1e-4)
            })
        };
        for &(again, slowed) in rounds {
            let (first, second, mut third) = (run(1.0), run(again), run(slowed));
            third
                .records
                .iter_mut()
                .for_each(|record| record.configuration.injected_slowdown_ppm = Some(50_000));
            third
                .plan
                .configurations
                .iter_mut()
                .for_each(|configuration| configuration.injected_slowdown_ppm = Some(50_000));
            let same = study.findings(&compare(&first, &second, RELEVANT));
            let slowed = study.findings(&compare(&second, &third, RELEVANT));
            study.rounds.push(Round { same, slowed });
        }
        study
    }

    #[test]
    fn right_verdicts_are_counted_for_each_configuration_and_for_whole_comparisons() {
        let study = study(&[(1.0, 1.05), (1.0, 1.0), (1.1, 1.2)]);
        let futex = study.score(Scored::Configuration(0));
        assert_eq!((futex.same.right, futex.same.all), (2, 3));
        assert_eq!((futex.slowed.right, futex.slowed.all), (2, 3));
        let pipe = study.score(Scored::Configuration(1));
        assert_eq!((pipe.same.right, pipe.slowed.right), (3, 0));
        // Not called slower below what matters.
        assert!((2.4..2.7).contains(&(100.0 * pipe.same.finds().unwrap())), "{:?}", pipe.same);
        let whole = study.score(Scored::Comparison);
        assert_eq!((whole.same.right, whole.slowed.right), (2, 2));
    }

    #[test]
    fn a_round_without_figures_is_one_that_cannot_tell() {
        let mut study = study(&[(1.0, 1.05), (1.0, 1.05)]);
        study.rounds[1].slowed.clear();
        let futex = study.score(Scored::Configuration(0));
        assert_eq!((futex.slowed.right, futex.slowed.open, futex.slowed.all), (1, 1, 2));
        assert_eq!(study.score(Scored::Comparison).slowed.all, 2);
    }

    #[test]
    fn the_interval_of_a_share_is_wilsons() {
        let count = |right, all| Count { right, all, ..Count::default() };
        assert_eq!(count(0, 0).interval(), None);
        // Newcombe's example of 1998: 81 of 263 is 0.2553 to 0.3662.
        let (low, high) = count(81, 263).interval().unwrap();
        assert!((low - 0.2553).abs() < 1e-4 && (high - 0.3662).abs() < 1e-4, "{low} {high}");
        assert!(count(100, 100).interval().unwrap().0 > 0.96);
    }

    #[test]
    fn a_study_survives_its_file() {
        let mut study = study(&[(1.0, 1.05)]);
        let few = sample::result(&study.configurations, 4, |_, _| 16_000.0);
        let same = study.findings(&compare(&few, &few, RELEVANT));
        study.rounds.push(Round { same, slowed: Vec::new() });
        assert_eq!(study.score(Scored::Comparison).same.finds(), None, "too few blocks find nothing");
        let text = serde_json::to_string(&study).unwrap();
        assert_eq!(serde_json::from_str::<Study>(&text).unwrap(), study);
    }
}
