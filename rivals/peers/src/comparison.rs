// SPDX-License-Identifier: MIT OR Apache-2.0
//! One comparison: what the peer measures, our run of the same, and how both are carried out.

/// Of so many rounds one may have to be repeated.
const REPEATED: u32 = 10;

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

/// The figures of every round.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The peer's.
    pub theirs: Vec<f64>,
    /// Ours.
    pub ours: Vec<f64>,
    /// Why rounds were run again: one side of them had no figure.
    pub repeated: Vec<String>,
}

impl Comparison {
    /// Runs both sides `rounds` times, the order within a round drawn by lot, after one round that is thrown away.
    ///
    /// A round in which one side has no figure (`doorbell` gives none for a trial that cannot be true) is run again; the error
    /// is returned if that happens in more than one of [`REPEATED`].
    pub fn measure(&self, rounds: u32) -> anyhow::Result<Measured> {
        self.round()?;
        let mut measured = Measured { theirs: Vec::new(), ours: Vec::new(), repeated: Vec::new() };
        while measured.ours.len() < rounds as usize {
            match self.round() {
                Ok((theirs, ours)) => {
                    measured.theirs.push(theirs);
                    measured.ours.push(ours);
                }
                Err(error) if measured.repeated.len() >= (rounds / REPEATED) as usize => return Err(error),
                Err(error) => measured.repeated.push(format!("{error:#}")),
            }
        }
        Ok(measured)
    }

    fn round(&self) -> anyhow::Result<(f64, f64)> {
        if fastrand::bool() {
            let theirs = (self.theirs)()?;
            Ok((theirs, (self.ours)()?))
        } else {
            let ours = (self.ours)()?;
            Ok(((self.theirs)()?, ours))
        }
    }
}
