// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was found of a question or of a part of it: the one form of it, of which exit status,
//! sentences and files are made.

use doorbell_results::configuration::WaitPolicy;
use doorbell_results::record::Outcome;
use doorbell_results::record::Variant;
use doorbell_results::record::verdict::Status;
use doorbell_results::written::{plain, time};
use std::fmt;

use super::compare::Obstacle;
use super::missed::Missed;
use super::ratio::Ratio;

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// There is an answer, and nothing that it could break.
    Answered,
    /// What was asked for was shown to be kept.
    Passed,
    /// It was shown to be broken.
    Failed(Reason),
    /// Neither was shown.
    Inconclusive(Reason),
}

impl Verdict {
    /// How it stands.
    pub fn status(&self) -> Status {
        match self {
            Self::Answered => Status::Answered,
            Self::Passed => Status::Passed,
            Self::Failed(_) => Status::Failed,
            Self::Inconclusive(_) => Status::Inconclusive,
        }
    }

    /// Why it failed or is inconclusive.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Answered | Self::Passed => None,
            Self::Failed(reason) | Self::Inconclusive(reason) => Some(reason),
        }
    }

    /// That of `all` together: the first that failed, else the first
    /// that is inconclusive, else the first; none of nothing.
    pub fn of_all<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let rank = |verdict: &&Self| match verdict {
            Self::Failed(_) => 0,
            Self::Inconclusive(_) => 1,
            Self::Answered | Self::Passed => 2,
        };
        all.into_iter().min_by_key(rank).cloned()
    }
}

/// Why something failed or is inconclusive.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Times are an emulator's.
    Emulated,
    Interrupted,
    /// Waits did not end in so many of all trials.
    Hung {
        trials: usize,
        of: usize,
    },
    /// A trial has no figures.
    Lacking(Lacking),
    /// Trials that were repeated because of interference.
    Repeated {
        trials: usize,
    },
    /// Other programs used the CPUs in so many of all trials.
    Interference {
        trials: usize,
        of: usize,
    },
    /// Due and never sent.
    Unsent(u64),
    /// Wake-ups that took longer than the limit, and those among them that never came.
    Longer {
        wakes: u64,
        of: u64,
        missed: Missed,
    },
    NotTimed,
    /// Wake-ups that took as long as the limit, as far as a histogram knows.
    AtTheLimit {
        wakes: u64,
        of: u64,
    },
    /// Wake-ups so near to the limit that they may be on either side
    /// of it, as far as the clocks of GPU and CPU are known.
    TwoClocks {
        wakes: u64,
        of: u64,
        within_ps: u64,
    },
    OneTrial,
    /// Fewer wake-ups than it takes, whatever the limit is.
    FewWakes {
        wakes: u64,
        takes: f64,
    },
    /// So many took longer, and that is too near to what is allowed.
    NearTheLimit {
        wakes: u64,
        of: u64,
    },
    /// What was seen lies beyond the limit.
    BeyondTheLimit,
    /// The interval holds the limit; how many blocks would make it
    /// small enough, if that can be told.
    TooWide(Option<u32>),
    /// The same, and something else explains a part of the difference.
    Explained(Obstacle),
    NoFigures,
    NothingServes,
    /// Fewer trials of something than it takes.
    FewTrials {
        trials: usize,
        takes: usize,
    },
    OneWait,
    /// A way to wait could cost so many times as much as `what`, an
    /// interval that is not known of too few blocks.
    CouldCost {
        wait: WaitPolicy,
        ratio: Option<Ratio>,
        what: Least,
    },
}

/// What a cost is a multiple of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Least {
    Least,
    Leading,
}

/// Why a trial has no figures.
#[derive(Debug, Clone, PartialEq)]
pub enum Lacking {
    Skipped(String),
    Failed(String),
    /// Its figures broke these rules.
    Implausible(Vec<String>),
}

impl Lacking {
    /// Why some trial of `variant` has none, if one has.
    pub fn of(variant: &Variant) -> Option<Self> {
        variant.records.iter().find_map(|record| match &record.outcome {
            Outcome::Done | Outcome::Partial | Outcome::Hung { .. } => None,
            Outcome::Skipped { reason } => Some(Self::Skipped(reason.clone())),
            Outcome::Failed { cause } => Some(Self::Failed(cause.clone())),
            Outcome::Implausible { violations } => {
                Some(Self::Implausible(violations.iter().map(|broken| broken.rule.clone()).collect()))
            }
        })
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped(reason) => write!(f, "a trial was not run: {reason}"),
            Self::Failed(cause) => write!(f, "a trial failed: {cause}"),
            Self::Implausible(rules) => {
                write!(f, "the figures of a trial cannot be true ({})", rules.join(", "))
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emulated => f.write_str("an emulator's times are no machine's"),
            Self::Interrupted => f.write_str("the run was interrupted before its time was up"),
            Self::Hung { trials, of } => write!(f, "in {trials} of {of} trials a wait did not end"),
            Self::Lacking(lacking) => lacking.fmt(f),
            Self::Repeated { trials } => write!(
                f,
                "{trials} trials were repeated because of interference: what they had seen is not here"
            ),
            Self::Interference { trials, of } => write!(
                f,
                "other programs used the CPUs in {trials} of {of} trials: stop them, or put the \
                 load on purpose that the node will have (--load)"
            ),
            Self::Unsent(count) => write!(
                f,
                "some {count} notifications were due and never sent: something held the notifier \
                 up, and how long wake-ups would have taken then is not known; measure on a \
                 schedule (--pattern open-loop), or leave the CPUs to it"
            ),
            Self::Longer { wakes, of, missed } => {
                let missed = missed.told();
                let missed = if missed.is_empty() { missed } else { format!(", of them {missed}") };
                write!(f, "{wakes} of {of} wake-ups took longer{missed}")
            }
            Self::NotTimed => f.write_str("not one wake-up was timed"),
            Self::AtTheLimit { wakes, of } => write!(
                f,
                "{wakes} of {of} wake-ups took as long as the limit to 0.1 %, and no closer is any time known"
            ),
            Self::TwoClocks { wakes, of, within_ps } => write!(
                f,
                "{wakes} of {of} wake-ups may lie on either side of the limit: the clocks of GPU \
                 and CPU stand to each other within {}; run it on a quiet machine",
                time(*within_ps as f64)
            ),
            Self::OneTrial => f.write_str(
                "all wake-ups are of one trial, and how much they repeat each other for that \
                 cannot be seen; give it more --blocks",
            ),
            Self::FewWakes { wakes, takes } => write!(
                f,
                "{wakes} wake-ups are too few: with none longer and the same design effect it \
                 takes {takes:.0}; give it more --time and --blocks"
            ),
            Self::NearTheLimit { wakes, of } => write!(
                f,
                "{wakes} of {of} wake-ups took longer, which is too near to what is allowed; give \
                 it more --time"
            ),
            Self::BeyondTheLimit => f.write_str("beyond the limit"),
            Self::TooWide(Some(blocks)) => write!(f, "too near; about {blocks} blocks would do"),
            Self::TooWide(None) => f.write_str("too near"),
            Self::Explained(obstacle) => obstacle.fmt(f),
            Self::NoFigures => f.write_str("the configuration has no figures"),
            Self::NothingServes => f.write_str("no mechanism that serves the needs has figures"),
            Self::FewTrials { trials, takes } => write!(
                f,
                "{trials} trials of some configuration are fewer than the {takes} it takes; run it \
                 with more --blocks"
            ),
            Self::OneWait => f.write_str("there is only one way to wait with figures: nothing to compare"),
            Self::CouldCost { wait, ratio, what } => {
                match wait {
                    WaitPolicy::Block => f.write_str("to sleep at once")?,
                    WaitPolicy::SpinThenBlock { spin_ns } => {
                        write!(f, "to spin {}", time(*spin_ns as f64 * 1e3))?
                    }
                    WaitPolicy::Spin | WaitPolicy::Timeout { .. } => f.write_str("to spin")?,
                }
                if let Some(ratio) = ratio {
                    let (least, what) = match what {
                        Least::Least => (1.0, "the least"),
                        Least::Leading => (0.0, "what leads"),
                    };
                    write!(
                        f,
                        " could cost {} to {} times {what}",
                        plain(ratio.low.max(least)),
                        plain(ratio.high)
                    )?;
                }
                f.write_str("; run it with more --blocks")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_the_one_that_failed_counts_before_the_inconclusive_and_that_before_what_passed() {
        let open = Verdict::Inconclusive(Reason::OneTrial);
        let failed = Verdict::Failed(Reason::BeyondTheLimit);
        let of = |all: &[&Verdict]| Verdict::of_all(all.iter().copied()).map(|verdict| verdict.status());
        assert_eq!(of(&[&Verdict::Passed, &open, &failed]), Some(Status::Failed));
        assert_eq!(of(&[&Verdict::Passed, &open]), Some(Status::Inconclusive));
        assert_eq!(of(&[&Verdict::Passed]), Some(Status::Passed));
        assert_eq!(of(&[]), None);
    }
}
