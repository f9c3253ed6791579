// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was found of a question or of a part of it: the one form of it, of which exit status,
//! sentences and files are made.

use doorbell_results::configuration::WaitPolicy;
use doorbell_results::record::verdict::Status;
use doorbell_results::record::{Outcome, Variant};
use doorbell_results::written::{plain, time};

use super::compare::Obstacle;
use super::missed::Missed;
use super::ratio::Ratio;

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// There is an answer, and nothing that it could break.
    Answered,
    /// What was asked for was shown to be kept.
    Passed,
    Failed(Reason),
    Inconclusive(Reason),
}

impl Verdict {
    pub fn status(&self) -> Status {
        match self {
            Self::Answered => Status::Answered,
            Self::Passed => Status::Passed,
            Self::Failed(_) => Status::Failed,
            Self::Inconclusive(_) => Status::Inconclusive,
        }
    }

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

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Reason {
    #[error("an emulator's times are no machine's")]
    Emulated,
    #[error("the run was interrupted before its time was up")]
    Interrupted,
    #[error("in {trials} of {of} trials a wait did not end")]
    Hung { trials: usize, of: usize },
    /// A trial has no figures.
    #[error(transparent)]
    Lacking(Lacking),
    #[error("{trials} trials were repeated because of interference: what they had seen is not here")]
    Repeated { trials: usize },
    #[error(
        "other programs used the CPUs in {trials} of {of} trials: stop them, or put the \
         load on purpose that the node will have (--load)"
    )]
    Interference { trials: usize, of: usize },
    #[error(
        "some {0} notifications were due and never sent: something held the notifier up, and how \
         long wake-ups would have taken then is not known; measure on a schedule (--pattern \
         open-loop), or leave the CPUs to it"
    )]
    Unsent(u64),
    /// Than the limit, and those among them that never came.
    #[error("{wakes} of {of} wake-ups took longer{}", of_them(*.missed))]
    Longer { wakes: u64, of: u64, missed: Missed },
    #[error("not one wake-up was timed")]
    NotTimed,
    #[error("{wakes} of {of} wake-ups took as long as the limit to 0.1 %, and no closer is any time known")]
    AtTheLimit { wakes: u64, of: u64 },
    #[error(
        "{wakes} of {of} wake-ups may lie on either side of the limit: the clocks of GPU and CPU \
         stand to each other within {}; run it on a quiet machine",
        time(*.within_ps as f64)
    )]
    TwoClocks { wakes: u64, of: u64, within_ps: u64 },
    #[error(
        "all wake-ups are of one trial, and how much they repeat each other for that cannot be \
         seen; give it more --blocks"
    )]
    OneTrial,
    #[error(
        "{wakes} wake-ups are too few: with none longer and the same design effect it takes \
         {takes:.0}; give it more --time and --blocks"
    )]
    FewWakes { wakes: u64, takes: f64 },
    #[error(
        "{wakes} of {of} wake-ups took longer, which is too near to what is allowed; give it more \
         --time"
    )]
    NearTheLimit { wakes: u64, of: u64 },
    #[error("beyond the limit")]
    BeyondTheLimit,
    /// The interval holds the limit; how many blocks would make it
    /// small enough, if that can be told.
    #[error("too near{}", .0.map_or_else(String::new, |blocks| format!("; about {blocks} blocks would do")))]
    TooWide(Option<u32>),
    /// The same, and something else explains a part of the difference.
    #[error(transparent)]
    Explained(Obstacle),
    #[error("the configuration has no figures")]
    NoFigures,
    #[error("no mechanism that serves the needs has figures")]
    NothingServes,
    #[error(
        "{trials} trials of some configuration are fewer than the {takes} it takes; run it with \
         more --blocks"
    )]
    FewTrials { trials: usize, takes: usize },
    #[error("there is only one way to wait with figures: nothing to compare")]
    OneWait,
    /// A way to wait could cost so many times as much as `what`, an
    /// interval that is not known of too few blocks.
    #[error("{}; run it with more --blocks", could_cost(*.wait, *.ratio, *.what))]
    CouldCost { wait: WaitPolicy, ratio: Option<Ratio>, what: Least },
}

fn of_them(missed: Missed) -> String {
    let missed = missed.told();
    if missed.is_empty() { missed } else { format!(", of them {missed}") }
}

fn could_cost(wait: WaitPolicy, ratio: Option<Ratio>, what: Least) -> String {
    let way = match wait {
        WaitPolicy::Block => "to sleep at once".to_owned(),
        WaitPolicy::SpinThenBlock { spin_ns } => format!("to spin {}", time(spin_ns as f64 * 1e3)),
        WaitPolicy::Spin | WaitPolicy::Timeout { .. } => "to spin".to_owned(),
    };
    let Some(ratio) = ratio else { return way };
    let (least, what) = match what {
        Least::Least => (1.0, "the least"),
        Least::Leading => (0.0, "what leads"),
    };
    format!("{way} could cost {} to {} times {what}", plain(ratio.low.max(least)), plain(ratio.high))
}

/// What a cost is a multiple of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Least {
    Least,
    Leading,
}

/// Why a trial has no figures.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Lacking {
    #[error("a trial was not run: {0}")]
    Skipped(String),
    #[error("a trial failed: {0}")]
    Failed(String),
    /// Its figures broke these rules.
    #[error("the figures of a trial cannot be true ({})", .0.join(", "))]
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
