// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run tells while it goes on: one line when it begins, then one for each trial that ended.
//! The result file has all of it, and more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::Series;
use super::record::rank::rank;
use super::record::series::Quantity;

/// Bins of a doubling, of which a time seen lies within 1.1 % of the middle.
const BINS: f64 = 32.0;

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The process that runs it.
    pub process: u32,
    /// Its words.
    pub command_line: Vec<String>,
    /// The experiment.
    pub experiment: String,
    /// Trials planned at the most.
    pub trials: usize,
}

/// A trial that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Which of the run's it was, from 1.
    pub number: usize,
    /// Its configuration, as far as those of the run differ.
    pub label: String,
    /// What its figures are of, and they; none where it has none.
    pub times: Option<(Quantity, Series)>,
    /// What interfered with it, in words.
    pub interference: Vec<String>,
}

/// What a run told up to now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// Its first line; none before that was read.
    pub head: Option<Head>,
    /// Trials that ended.
    pub done: usize,
    /// How many of them ended otherwise than well.
    pub without_figures: usize,
    /// Each configuration, in the order in which they first ended.
    pub configurations: Vec<Seen>,
}

/// What was seen of a configuration up to now.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its label.
    pub label: String,
    /// What its times are of.
    pub quantity: Quantity,
    /// Samples by bin.
    bins: BTreeMap<u32, u64>,
    /// Samples.
    pub count: u64,
    /// The longest time, nanoseconds, the trial that had it, and what interfered with that.
    pub longest: (f64, usize, Vec<String>),
    /// The trial that ended last.
    pub latest: usize,
}

impl Run {
    /// Takes a line; one that is not of these, or whose histogram is none, is left.
    pub fn take(&mut self, line: &[u8]) {
        if self.head.is_none() {
            self.head = serde_json::from_slice(line).ok();
            return;
        }
        let Ok(trial) = serde_json::from_slice::<Trial>(line) else { return };
        self.done += 1;
        let Some((quantity, series)) = trial.times else {
            self.without_figures += 1;
            return;
        };
        let Ok(counters) = series.counters() else { return };
        let known = |seen: &Seen| seen.label == trial.label && seen.quantity == quantity;
        let place = self.configurations.iter().position(known).unwrap_or_else(|| {
            let (bins, longest) = (BTreeMap::new(), (0.0, 0, Vec::new()));
            let label = trial.label.clone();
            self.configurations.push(Seen { label, quantity, bins, count: 0, longest, latest: 0 });
            self.configurations.len() - 1
        });
        let seen = &mut self.configurations[place];
        for (ps, count) in counters.iter() {
            let bin = (ps.max(1) as f64).log2() * BINS;
            *seen.bins.entry(bin as u32).or_default() += count;
            seen.count = seen.count.saturating_add(count);
        }
        seen.latest = trial.number;
        if series.max_ns > seen.longest.0 {
            seen.longest = (series.max_ns, trial.number, trial.interference);
        }
    }
}

impl Seen {
    /// The time at quantile `q`, nanoseconds.
    pub fn quantile_ns(&self, q: f64) -> f64 {
        let wanted = rank(q, self.count);
        let mut below = 0;
        let at = self.bins.iter().find(|(_, count)| {
            below += **count;
            below >= wanted
        });
        at.map_or(0.0, |(bin, _)| ((f64::from(*bin) + 0.5) / BINS).exp2() / 1e3).min(self.longest.0)
    }

    /// The distribution in bars of `bars` a doubling, a divisor of 32: where each begins, as a
    /// number of bars from 1 ps, and its samples.
    pub fn bars(&self, bars: u32) -> Vec<(u32, u64)> {
        let mut merged = BTreeMap::<u32, u64>::new();
        for (bin, count) in &self.bins {
            *merged.entry(bin * bars / BINS as u32).or_default() += count;
        }
        merged.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Histogram;

    fn line(value: &impl Serialize) -> Vec<u8> {
        serde_json::to_vec(value).unwrap()
    }

    fn run() -> Run {
        let mut run = Run::default();
        let head =
            Head { process: 7, command_line: vec!["doorbell".into()], experiment: "ping".into(), trials: 9 };
        run.take(&line(&head));
        run
    }

    fn trial(number: usize, ns: std::ops::Range<u64>) -> Trial {
        let mut histogram = Histogram::new();
        ns.for_each(|ns| histogram.record(ns * 1000));
        let interference = vec![format!("met in {number}")];
        let times = Some((Quantity::Wake, Series::from(&histogram)));
        Trial { number, label: "futex".into(), times, interference }
    }

    #[test]
    fn the_distribution_grows_with_each_trial_and_its_longest_time_keeps_its_reason() {
        let mut run = run();
        for (number, ns) in [(1, 1000..2000), (2, 5000..5001), (3, 1000..2000)] {
            run.take(&line(&trial(number, ns)));
        }
        let seen = &run.configurations[0];
        assert_eq!((run.configurations.len(), run.done, seen.count, seen.latest), (1, 3, 2001, 3));
        assert!((seen.quantile_ns(0.5) / 1500.0 - 1.0).abs() < 0.02, "{}", seen.quantile_ns(0.5));
        assert_eq!((seen.longest.1, seen.longest.2.as_slice()), (2, &["met in 2".to_owned()][..]));
        assert_eq!(seen.bars(8).iter().map(|(_, count)| count).sum::<u64>(), 2001);
        assert!(seen.bars(8).len() < seen.bars(32).len());
    }

    #[test]
    fn what_is_no_line_of_a_run_changes_nothing() {
        let mut run = run();
        let before = run.clone();
        for line in [&b""[..], b"{}", b"[1]", b"\xff\xfe", b"{\"number\":1}"] {
            run.take(line);
        }
        assert_eq!(run, before);
        let mut broken = trial(1, 5..6);
        broken.times.as_mut().unwrap().1.histogram = "????".into();
        run.take(&line(&broken));
        assert_eq!(run.configurations, []);
        run.take(&line(&Trial { times: None, ..trial(2, 5..6) }));
        assert_eq!((run.done, run.without_figures), (2, 1));
    }
}
