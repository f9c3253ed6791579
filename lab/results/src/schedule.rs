// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the notifications of an open loop are due, where that is not at even times.

use serde::{Deserialize, Serialize};

use crate::written::short;

/// How the gaps between due times are spread; their mean is the gap of the pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Schedule {
    /// As of many sources that know nothing of each other: gaps of
    /// every length, the longer the rarer.
    Exponential,
    /// The same, cut to these bounds.
    Between {
        /// The shortest gap, nanoseconds.
        shortest_ns: u64,
        /// The longest gap, nanoseconds.
        longest_ns: u64,
    },
    /// These gaps, one after another, over and over.
    Recorded {
        /// Nanoseconds.
        gaps_ns: Vec<u64>,
    },
}

/// Gaps that a recorded schedule may have: each trial of a result holds them.
pub const MOST_GAPS: usize = 1000;

impl Schedule {
    /// As it is shown: `exponential`, `10us..1ms`, `720 recorded gaps`.
    pub fn title(&self) -> String {
        match self {
            Self::Exponential => "exponential".to_owned(),
            Self::Between { shortest_ns, longest_ns } => {
                format!("{}..{}", short(*shortest_ns), short(*longest_ns))
            }
            Self::Recorded { gaps_ns } => format!("{} recorded gaps", gaps_ns.len()),
        }
    }

    /// The mean of recorded gaps, nanoseconds.
    pub fn recorded_mean_ns(gaps_ns: &[u64]) -> u64 {
        let sum: u128 = gaps_ns.iter().map(|gap| u128::from(*gap)).sum();
        u64::try_from(sum / (gaps_ns.len().max(1) as u128)).unwrap_or(u64::MAX)
    }

    /// What is wrong with it for gaps of `mean_ns` on average; none where they can be had.
    pub fn fault(&self, mean_ns: u64) -> Option<String> {
        match self {
            Self::Exponential => None,
            Self::Between { shortest_ns, longest_ns } if shortest_ns >= longest_ns => {
                let [shortest, longest] = [*shortest_ns, *longest_ns].map(short);
                let cure = format!("gaps that are all alike are --gap {longest}");
                Some(format!(
                    "the first gap is to be shorter than the second, and {shortest} is not shorter \
                     than {longest}; {cure}"
                ))
            }
            Self::Between { shortest_ns, longest_ns } => {
                let [shortest, longest, mean] = [*shortest_ns, *longest_ns, mean_ns].map(short);
                (!(*shortest_ns < mean_ns && mean_ns < *longest_ns)).then(|| {
                    format!(
                        "a mean gap of {mean}, which the rate makes, does not lie between \
                        {shortest} and {longest}"
                    )
                })
            }
            Self::Recorded { gaps_ns } => {
                if gaps_ns.is_empty() || gaps_ns.len() > MOST_GAPS {
                    return Some(format!("{} recorded gaps; there may be 1 to {MOST_GAPS}", gaps_ns.len()));
                }
                (Self::recorded_mean_ns(gaps_ns) != mean_ns)
                    .then(|| "recorded gaps have a mean of their own; leave the rate out".to_owned())
            }
        }
    }

    /// The gap at `place` of 0 to 1 of all gaps by length, nanoseconds; `steepness` is that of
    /// [`Schedule::steepness`]. Of no use for recorded gaps, which have an order.
    pub fn gap_ns(&self, mean_ns: u64, steepness: f64, place: f64) -> f64 {
        match self {
            Self::Between { shortest_ns, longest_ns } => {
                let width = longest_ns.saturating_sub(*shortest_ns) as f64;
                let part = if steepness.abs() < 1e-6 {
                    place
                } else {
                    // The inverse of (1 - e^-kx) / (1 - e^-k).
                    -(place * (-steepness).exp_m1()).ln_1p() / steepness
                };
                *shortest_ns as f64 + width * part.clamp(0.0, 1.0)
            }
            Self::Exponential | Self::Recorded { .. } => -(-place).ln_1p() * mean_ns as f64,
        }
    }

    /// How steep an exponential law is that is cut to the bounds and has the mean of `mean_ns`,
    /// over the width between them: 0 is even, and below 0 long gaps are the more frequent.
    pub fn steepness(&self, mean_ns: u64) -> f64 {
        let Self::Between { shortest_ns, longest_ns } = self else { return 0.0 };
        let width = longest_ns.saturating_sub(*shortest_ns).max(1) as f64;
        let wanted = mean_ns.saturating_sub(*shortest_ns) as f64 / width;
        // The mean over the width, which falls as the law gets steeper; exp_m1 keeps it exact near 0.
        let mean = |k: f64| if k.abs() < 1e-6 { 0.5 - k / 12.0 } else { 1.0 / k - 1.0 / k.exp_m1() };
        let (mut low, mut high) = (-700.0, 700.0);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if mean(middle) > wanted { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Gaps of 50us..50us cannot be 50us on average."
    #[test]
    fn what_is_wrong_with_two_gaps_is_said_so_that_it_can_be_put_right() {
        let fault = |shortest_ns, longest_ns| Schedule::Between { shortest_ns, longest_ns }.fault(50_000);
        let alike = fault(50_000, 50_000).unwrap();
        assert!(alike.contains("50us is not shorter than 50us") && alike.ends_with("--gap 50us"), "{alike}");
        let beyond = fault(100_000, 1_000_000).unwrap();
        assert!(beyond.starts_with("a mean gap of 50us") && beyond.ends_with("100us and 1ms"), "{beyond}");
        assert_eq!(fault(10_000, 1_000_000), None);
    }

    #[test]
    fn the_gaps_of_every_law_have_the_mean_they_should_and_stay_within_their_bounds() {
        let between = |shortest_ns, longest_ns| Schedule::Between { shortest_ns, longest_ns };
        let laws = [
            (Schedule::Exponential, 50_000),
            (between(10_000, 1_000_000), 50_000),
            (between(10_000, 1_000_000), 505_000),
            (between(10_000, 1_000_000), 900_000),
        ];
        for (law, mean_ns) in laws {
            let steepness = law.steepness(mean_ns);
            let gaps: Vec<f64> =
                (0..100_000).map(|n| law.gap_ns(mean_ns, steepness, (f64::from(n) + 0.5) / 1e5)).collect();
            let mean = gaps.iter().sum::<f64>() / 1e5;
            assert!((mean / mean_ns as f64 - 1.0).abs() < 0.001, "{law:?}: {mean}");
            if let Schedule::Between { shortest_ns, longest_ns } = law {
                assert!(gaps.iter().all(|gap| (shortest_ns as f64..=longest_ns as f64).contains(gap)));
            }
        }
    }

    #[test]
    fn a_mean_that_the_bounds_do_not_hold_and_gaps_that_are_too_many_are_refused() {
        let between = Schedule::Between { shortest_ns: 10_000, longest_ns: 1_000_000 };
        assert_eq!(between.fault(50_000), None);
        assert!(between.fault(5_000).is_some());
        let recorded = |gaps_ns: Vec<u64>| Schedule::Recorded { gaps_ns };
        assert_eq!(recorded(vec![1000, 3000]).fault(2000), None);
        assert!(recorded(vec![1000, 3000]).fault(1000).unwrap().contains("leave the rate out"));
        assert!(recorded(vec![1; MOST_GAPS + 1]).fault(1).is_some() && recorded(vec![]).fault(0).is_some());
    }
}
