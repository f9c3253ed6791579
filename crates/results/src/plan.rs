// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan: the cells to run, in blocks whose order alternates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;

/// Blocks without which a comparison concludes nothing: the spread between fewer says nothing. No experiment plans fewer
/// unless it is told to.
pub const FEWEST_BLOCKS: u32 = 4;

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The experiment's verb: `ping`, `pairs`, `switch`, `fanout`, `tasks`, `io`, `net`, `idle`, `survey`.
    pub experiment: String,
    /// Every cell; each is run once in each block.
    pub cells: Vec<Cell>,
    /// Blocks: repetitions of all cells, each in a random order of its own, so that drift of the machine falls on every
    /// cell alike and an interval can be taken over blocks.
    pub blocks: u32,
    /// Seed of the orders.
    pub seed: u64,
}

/// The experiment that asks how long a wake may take at worst.
pub const GATE: &str = "gate";

impl Plan {
    /// How many disturbed trials the run may do over. On a machine that is never quiet, repeating everything would treble
    /// the run and mend nothing; and where the worst is asked for, a trial left out because it was disturbed would be the very
    /// answer left out.
    pub fn repeats(&self) -> usize {
        if self.experiment == GATE { 0 } else { self.cells.len() * self.blocks as usize / 5 + 1 }
    }
}
