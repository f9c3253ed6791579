// SPDX-License-Identifier: MIT OR Apache-2.0
//! One comparison: what the peer measures, our run of the same, and how both are carried out.

use crate::shuffle::Shuffle;
use serde::{Deserialize, Serialize};

/// Of so many rounds one may have to be repeated.
const REPEATED: usize = 10;

/// Takes one figure, in the comparison's unit.
pub type Measure = Box<dyn Fn() -> anyhow::Result<f64>>;

/// One peer's figure and ours.
pub struct Comparison {
    /// Its name: the peer and what of it.
    pub name: &'static str,
    /// What the figure is: protocol, placement, divisor, mean or median.
    pub what: &'static str,
    /// How far from 1 the ratio may lie and agree.
    pub within: f64,
    /// The unit of both figures.
    pub unit: &'static str,
    /// The peer's command line, as it can be typed.
    pub command: String,
    /// The arguments of `doorbell`.
    pub arguments: String,
    /// Runs the peer once.
    pub theirs: Measure,
    /// Runs ours once.
    pub ours: Measure,
}

/// The figures of every round: one line of the raw output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub name: String,
    pub unit: String,
    /// The peer's.
    pub theirs: Vec<f64>,
    /// Ours.
    pub ours: Vec<f64>,
    /// Why rounds were run again: one side of them had no figure.
    #[serde(default)]
    pub repeated: Vec<String>,
}

impl Comparison {
    /// Runs both sides `rounds` times, the order within a round
    /// shuffled, after one round that is thrown away.
    ///
    /// A round in which one side has no figure (`doorbell` gives none
    /// for a trial that cannot be true) is run again; the error is
    /// returned if that happens in more than one of [`REPEATED`].
    pub fn measure(&self, rounds: usize, shuffle: &mut Shuffle) -> anyhow::Result<Measured> {
        self.round(shuffle)?;
        let (mut theirs, mut ours, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        while ours.len() < rounds {
            match self.round(shuffle) {
                Ok([their_figure, our_figure]) => {
                    theirs.push(their_figure);
                    ours.push(our_figure);
                }
                Err(error) if repeated.len() >= rounds / REPEATED => return Err(error),
                Err(error) => repeated.push(format!("{error:#}")),
            }
        }
        Ok(Measured { name: self.name.to_owned(), unit: self.unit.to_owned(), theirs, ours, repeated })
    }

    fn round(&self, shuffle: &mut Shuffle) -> anyhow::Result<[f64; 2]> {
        let mut figures = [0.0; 2];
        for side in shuffle.order(2) {
            figures[side] = [&self.theirs, &self.ours][side]()?;
        }
        Ok(figures)
    }
}
