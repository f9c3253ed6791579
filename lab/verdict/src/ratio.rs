// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many times as long one thing takes as another, and how the one stands to the other by that.

use doorbell_results::record::verdict::Status;

/// The least difference that is called one, as a share. The drift between two runs that primitive
/// costs do not see is of this size; a smaller difference needs variants interleaved in one run.
pub const RELEVANT: f64 = 0.025;

/// How many times as long one thing takes as another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Above 1: it takes longer.
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// What a ratio says of the first thing against the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    Slower,
    Faster,
    /// Whatever the difference is, it is less than this share.
    Same {
        within: f64,
    },
    /// It could be no difference, or one that matters.
    Inconclusive,
}

impl Standing {
    /// What that is where to be slower is to fail.
    pub fn status(self) -> Status {
        match self {
            Self::Slower => Status::Failed,
            Self::Faster | Self::Same { .. } => Status::Passed,
            Self::Inconclusive => Status::Inconclusive,
        }
    }
}

impl Ratio {
    /// How it stands, if differences of less than `relevant`, a share,
    /// do not matter: the whole interval beyond 1 and the estimate
    /// beyond what matters, or the whole interval within it, or neither.
    pub fn standing(self, relevant: f64) -> Standing {
        let most = 1.0 + relevant;
        let within = self.high.max(1.0 / self.low) - 1.0;
        if within <= relevant {
            Standing::Same { within }
        } else if self.low > 1.0 && self.estimate >= most {
            Standing::Slower
        } else if self.high < 1.0 && self.estimate <= 1.0 / most {
            Standing::Faster
        } else {
            Standing::Inconclusive
        }
    }

    /// How what is held against the best of several stands: of what surely takes longer it is no
    /// question whether it is the best, however little longer it takes.
    pub fn behind(self, relevant: f64) -> Standing {
        match self.standing(relevant) {
            Standing::Inconclusive if self.low > 1.0 => Standing::Slower,
            standing => standing,
        }
    }

    /// With an interval without ends: nothing is known but the estimate.
    pub fn open(estimate: f64) -> Self {
        Self { estimate, low: 0.0, high: f64::INFINITY }
    }

    /// With an interval that reaches to what the ratio is if
    /// something else took `factor` times as long for all of it.
    #[must_use]
    pub fn explained_by(self, factor: f64) -> Self {
        Self { low: self.low.min(self.low / factor), high: self.high.max(self.high / factor), ..self }
    }

    #[must_use]
    pub fn inverse(self) -> Self {
        Self { estimate: 1.0 / self.estimate, low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_stands_in_one_of_four_ways() {
        let standing = |low, estimate, high| Ratio { estimate, low, high }.standing(0.025);
        assert_eq!(standing(1.01, 1.05, 1.09), Standing::Slower);
        assert_eq!(standing(0.91, 0.95, 0.99), Standing::Faster);
        assert!(
            matches!(standing(0.99, 1.0, 1.02), Standing::Same { within } if (within - 0.02).abs() < 1e-9)
        );
        assert_eq!(standing(0.97, 1.0, 1.01), Standing::Inconclusive);
        assert_eq!(
            standing(1.001, 1.02, 1.04),
            Standing::Inconclusive,
            "shown, and perhaps too small to matter"
        );
    }

    #[test]
    fn what_else_explains_a_difference_widens_the_interval() {
        let ratio = Ratio { estimate: 1.3, low: 1.2, high: 1.4 };
        let primitive = ratio.explained_by(1.1);
        assert!((primitive.low - 1.2 / 1.1).abs() < 1e-9 && (primitive.high - 1.4).abs() < 1e-9);
        assert_eq!(
            primitive.standing(0.025),
            Standing::Slower,
            "a machine slower by a tenth does not make it slower by three"
        );
        assert!((ratio.inverse().high - 1.0 / 1.2).abs() < 1e-12);
    }
}
