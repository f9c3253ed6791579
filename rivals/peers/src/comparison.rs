// SPDX-License-Identifier: MIT OR Apache-2.0
//! One comparison: what the peer measures, our run of the same, and how both are carried out.

/// Takes one figure, in the comparison's unit.
pub type Measure = Box<dyn Fn() -> anyhow::Result<f64>>;

/// One peer's figure and ours.
pub struct Comparison {
    /// Its name: the peer and what of it.
    pub name: &'static str,
    /// What the figure is: protocol, placement, divisor, mean or median.
    pub what: &'static str,
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
}

impl Comparison {
    /// Runs both sides `rounds` times, the order within a round drawn by lot, after one round that is thrown away.
    pub fn measure(&self, rounds: u32) -> anyhow::Result<Measured> {
        (self.theirs)()?;
        (self.ours)()?;
        let mut measured = Measured { theirs: Vec::new(), ours: Vec::new() };
        for _ in 0..rounds {
            if fastrand::bool() {
                measured.theirs.push((self.theirs)()?);
                measured.ours.push((self.ours)()?);
            } else {
                measured.ours.push((self.ours)()?);
                measured.theirs.push((self.theirs)()?);
            }
        }
        Ok(measured)
    }
}
