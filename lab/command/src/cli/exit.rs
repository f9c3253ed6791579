// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the command ends: every exit status and what it means, and the one rule for runs.

use std::process::ExitCode;

use doorbell_results::record::ResultFile;
use doorbell_results::record::verdict::Status;
use doorbell_verdict::unmeasured::unmeasured;

/// What help and manual page say of the exit status.
pub const STATUSES: &str = "EXIT STATUS, of every verb\n  \
    0    done: all that was asked for and that this machine has was measured\n  \
    1    could not run, or not all of it: a trial hung or died, or nothing that was asked for was measured; what was is kept\n  \
    2    wrong usage\n  \
    3    a threshold was broken, or a comparison found a regression\n  \
    4    this machine is unfit to measure, or a verdict is inconclusive\n  \
    130  interrupted; what was measured is kept, marked partial\n\n\
    Of several the first of 130, 3, 1, 4 counts. What a machine lacks is skipped by name and is no failure as long as anything was \
    measured.";

/// How a verb ended; the numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: could not run, or not all of it.
    Failed,
    /// 2: wrong usage.
    Usage,
    /// 3: a threshold was broken, or a comparison found a regression.
    Regression,
    /// 4: this machine is unfit to measure, or a verdict is inconclusive.
    Unfit,
    /// 130: interrupted; what was measured is kept.
    Interrupted,
    /// What a command that was run for the user ended with.
    Of(u8),
}

impl Exit {
    /// How a run ends the command, whatever verb it was of.
    pub fn of_run(result: &ResultFile) -> Self {
        match (result.partial, unmeasured(result)) {
            (true, _) => Self::Interrupted,
            (false, Some(_)) => Self::Failed,
            (false, None) => Self::Done,
        }
    }

    /// How a verb ends the command of which something could not be written.
    pub fn and_unwritten(self) -> Self {
        match self {
            Self::Interrupted | Self::Regression => self,
            _ => Self::Failed,
        }
    }

    /// How a run ends it of which a verdict was asked: a limit that was seen to be broken is so
    /// whatever else was not measured.
    pub fn and_verdict(self, verdict: Self) -> Self {
        match (self, verdict) {
            (Self::Done, verdict) | (Self::Failed, verdict @ Self::Regression) => verdict,
            (run, _) => run,
        }
    }
}

impl From<Status> for Exit {
    /// How a verdict ends the command.
    fn from(status: Status) -> Self {
        match status {
            Status::Answered | Status::Passed => Self::Done,
            Status::Failed => Self::Regression,
            Status::Inconclusive => Self::Unfit,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Regression => 3,
            Exit::Unfit => 4,
            Exit::Interrupted => 130,
            Exit::Of(status) => status,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_endings_the_first_of_interrupted_broken_failed_and_open_counts() {
        let order = [Exit::Interrupted, Exit::Regression, Exit::Failed, Exit::Unfit, Exit::Done];
        for run in [Exit::Interrupted, Exit::Failed, Exit::Done] {
            for verdict in [Exit::Regression, Exit::Unfit, Exit::Done] {
                let first = order.into_iter().find(|exit| [run, verdict].contains(exit)).unwrap();
                assert_eq!(run.and_verdict(verdict), first, "{run:?}, {verdict:?}");
            }
            let first = order.into_iter().find(|exit| [run, Exit::Failed].contains(exit)).unwrap();
            assert_eq!(run.and_unwritten(), first, "{run:?}");
        }
    }
}
