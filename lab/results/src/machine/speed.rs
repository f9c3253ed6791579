// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a fixed piece of work is from one moment to the next:
//! what the ground itself does to every figure.

use serde::{Deserialize, Serialize};

use crate::record::Histogram;
use crate::record::populations::populations;

/// How fast a fixed piece of work was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Speed {
    /// What it takes at the greatest speed, nanoseconds: the median
    /// of the shortest group, or of all where there is one.
    pub work_ns: f64,
    /// A second speed, where the times fall into groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    /// The standard deviation of the medians of some ten milliseconds each, in logarithms: what a
    /// figure of one trial is off by, whatever it is of.
    pub spread: f64,
    /// Stretches of that length that were looked at.
    pub stretches: u32,
}

/// A second speed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Slow {
    /// How many times as long the work takes then.
    pub ratio: f64,
    /// The share of the time, 0 to 1.
    pub share: f64,
}

/// Trials of a comparison for which it is said what a machine is fit for.
const TRIALS: f64 = 10.0;

/// Standard errors of the difference of two such samples that 95 of
/// 100 stay below (Student's t of 18 degrees).
const ERRORS: f64 = 2.10;

/// Fewest stretches of which a spread is told.
const FEWEST: usize = 8;

impl Speed {
    /// From all times together and the medians of stretches, nanoseconds; none of too few.
    pub fn of(whole: &Histogram, medians_ns: &[f64]) -> Option<Self> {
        let logarithms: Vec<f64> = medians_ns.iter().map(|ns| ns.ln()).filter(|ln| ln.is_finite()).collect();
        if logarithms.len() < FEWEST || whole.count() == 0 {
            return None;
        }
        let count = logarithms.len() as f64;
        let mean = logarithms.iter().sum::<f64>() / count;
        let squares: f64 = logarithms.iter().map(|ln| (ln - mean).powi(2)).sum();
        let groups = populations(whole);
        // The shortest group against all longer ones by the largest
        // of those; interrupts are no speed, and no group either.
        let slow = groups.split_first().and_then(|(quick, others)| {
            let largest = others.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
            let share = others.iter().map(|group| group.share).sum();
            Some(Slow { ratio: largest.p50_ns / quick.p50_ns, share })
        });
        let work_ns = groups.first().map_or(whole.quantile(0.5) as f64 / 1000.0, |quick| quick.p50_ns);
        Some(Self {
            work_ns,
            slow,
            spread: (squares / (count - 1.0)).sqrt(),
            stretches: u32::try_from(logarithms.len()).unwrap_or(u32::MAX),
        })
    }

    /// The least difference, as a share, that ten trials of each of two things can show here where
    /// nothing takes the machine's own speed out.
    pub fn fit_for(&self) -> f64 {
        (ERRORS * self.spread * (2.0 / TRIALS).sqrt()).exp_m1()
    }

    /// In words: "this host runs at two speeds, 1.00 and 1.35, the slower 22 % of the time".
    pub fn title(&self) -> String {
        match self.slow {
            Some(Slow { ratio, share }) => format!(
                "this host runs at two speeds, 1.00 and {ratio:.2}, the slower {:.0} % of the time",
                share * 100.0
            ),
            None => "this host runs at one speed".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches of a host that is slow by `ratio` in every `nth` of them.
    fn host(ratio: f64, nth: usize) -> Speed {
        let mut random = fastrand::Rng::with_seed(5);
        let mut whole = Histogram::new();
        let mut medians = Vec::new();
        for stretch in 0..100 {
            let speed = if stretch % nth == 0 { ratio } else { 1.0 };
            let times: Vec<f64> =
                (0..101).map(|_| 200.0 * speed * (1.0 + 0.02 * (random.f64() - 0.5))).collect();
            times.iter().for_each(|ns| whole.record((ns * 1000.0) as u64));
            medians.push(times[50]);
        }
        Speed::of(&whole, &medians).unwrap()
    }

    #[test]
    fn a_host_of_two_speeds_is_told_with_their_ratio_and_how_often_it_is_slow() {
        let two = host(1.35, 5);
        assert_eq!(two.title(), "this host runs at two speeds, 1.00 and 1.35, the slower 20 % of the time");
        assert!((two.work_ns - 200.0).abs() < 2.0 && (0.10..0.15).contains(&two.fit_for()), "{two:?}");
        let one = host(1.0, 5);
        assert_eq!((one.slow, one.title().as_str()), (None, "this host runs at one speed"));
        assert!(one.fit_for() < 0.01, "{one:?}");
    }

    #[test]
    fn few_stretches_tell_nothing() {
        let mut whole = Histogram::new();
        whole.record_many(200_000, 7);
        assert_eq!(Speed::of(&whole, &[200.0; 7]), None);
    }
}
