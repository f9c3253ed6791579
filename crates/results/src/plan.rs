// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan: the configurations to run, in blocks whose order alternates, what is asked of them, and how they are shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::configuration::Configuration;
use crate::record::Subject;
use crate::record::question::Question;

/// Blocks without which a comparison concludes nothing: the spread between fewer says nothing. No experiment plans fewer
/// unless it is told to.
pub const FEWEST_BLOCKS: u32 = 4;

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The experiment's verb: `ping`, `pairs`, `switch`, …; a name, by which nothing is decided.
    pub experiment: String,
    /// How its result is shown.
    #[serde(default)]
    pub layout: Layout,
    /// Every configuration; each is run once in each block.
    pub configurations: Vec<Configuration>,
    /// Blocks: repetitions of all configurations, each in a random order of its own, so that drift of the machine falls on every
    /// configuration alike and an interval can be taken over blocks.
    #[serde(default = "fewest_blocks")]
    pub blocks: u32,
    /// Seed of the orders.
    #[serde(default)]
    pub seed: u64,
    /// What is asked of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// What could have been measured and is not among the configurations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Whether trials that others disturb are run again.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub repeat_on_interference: bool,
}

fn fewest_blocks() -> u32 {
    FEWEST_BLOCKS
}

fn yes() -> bool {
    true
}

fn is_yes(whether: &bool) -> bool {
    *whether
}

/// Which tables a result is shown in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Which mechanism serves which need, in words, and a table of all.
    Survey,
    /// Calls, switches and working sets, with what each was divided by.
    Operations,
    /// First, median and last receiver to wake.
    FanOut,
    /// Hand-offs, lives, memory and limits of tasks.
    Tasks,
    /// Transfers by way of waiting, with CPU time and interrupts.
    Io,
    /// Ways to wait for a message over a network.
    Net,
    /// What a wake costs after sleeps of several lengths, with idle states and without.
    Idle,
    /// A matrix of CPUs for each mechanism.
    Pairs,
    /// The stages of wakes.
    Stages,
    /// The slowest wakes, each with its cause.
    SlowWakes,
    /// A table for each quantity; also of a layout that this build does not know.
    #[default]
    #[serde(other)]
    Quantities,
}

/// Something that could have been measured and is not among the configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// What it is.
    pub subject: Subject,
    /// What the machine lacks for it; none where it lacks what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Plan {
    /// A plan that asks nothing, leaves nothing out, and repeats what others disturb.
    pub fn new(
        experiment: &str,
        layout: Layout,
        configurations: Vec<Configuration>,
        blocks: u32,
        seed: u64,
    ) -> Self {
        Self {
            experiment: experiment.to_owned(),
            layout,
            configurations,
            blocks,
            seed,
            question: None,
            left_out: Vec::new(),
            repeat_on_interference: true,
        }
    }

    /// How many trials with interference the run may repeat. On a machine that is never quiet, repeating everything would treble
    /// the run and change nothing.
    pub fn repeats(&self) -> usize {
        if self.repeat_on_interference { self.configurations.len() * self.blocks as usize / 5 + 1 } else { 0 }
    }
}
