// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan: the configurations to run, in blocks whose order
//! alternates, what is asked of them, and how they are shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use bench::Bench;

use crate::configuration::Configuration;
use crate::record::Subject;
use crate::record::question::Question;

pub mod bench;
pub mod semaphores;

/// Blocks without which no verdict is reached: that the differences of five blocks of a pair all
/// have one sign comes by chance in 2 of 2⁵ runs, which is more than 1 of 20, and of six in 2 of
/// 2⁶. No experiment plans fewer unless it is told to.
pub const FEWEST_BLOCKS: u32 = 6;

/// What is to be run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Plan {
    /// The experiment's verb: `ping`, `pairs`, `switch`, …; a name, by which nothing is decided.
    pub experiment: String,
    /// The sections in which its result is told, by name; none is a table for each quantity. A name
    /// that a reader does not know is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<String>,
    /// The part that a subject plays in what is told: `control`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    /// Whose claims the result can speak to, by name.
    pub claims: Option<String>,
    /// Every configuration; each is run once in each block.
    pub configurations: Vec<Configuration>,
    /// Blocks: repetitions of all configurations, each in a random
    /// order of its own, so that drift of the machine falls on every
    /// configuration alike and an interval can be taken over blocks.
    #[serde(default = "fewest_blocks")]
    pub blocks: u32,
    /// Seed of the orders.
    #[serde(default)]
    pub seed: u64,
    /// What is asked of the result.
    pub question: Option<Question>,
    /// What could have been measured and is not among the configurations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// After how many blocks the run is looked at, and ends if what is asked of it is decided;
    /// empty where it ends after its blocks whatever they show. Each look could be wrong by
    /// itself, so they share the error that one judgement may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<u32>,
    /// How the configurations that can be measured in slices are;
    /// none where all have trials of their own.
    pub bench: Option<Bench>,
    /// Whether trials that met interference are run again.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub repeat_on_interference: bool,
}

fn fewest_blocks() -> u32 {
    FEWEST_BLOCKS
}

fn yes() -> bool {
    true
}

/// Something that could have been measured and is not among the configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// A plan that asks nothing, leaves nothing out, and repeats what met interference.
    pub fn new(experiment: &str, configurations: Vec<Configuration>, blocks: u32, seed: u64) -> Self {
        Self {
            experiment: experiment.to_owned(),
            sections: Vec::new(),
            parts: BTreeMap::new(),
            claims: None,
            configurations,
            blocks,
            seed,
            question: None,
            left_out: Vec::new(),
            looks: Vec::new(),
            bench: None,
            repeat_on_interference: true,
        }
    }

    /// The same, looked at after its blocks and after so many
    /// doublings of them, until what is asked of it is decided.
    #[must_use]
    pub fn until_decided(self, doublings: u32) -> Self {
        let looks = (0..=doublings).map(|doubled| self.blocks.saturating_mul(1 << doubled)).collect();
        Self { looks, ..self }
    }

    /// The same with this number of blocks, whatever they show; unchanged with none.
    #[must_use]
    pub fn with_blocks(self, blocks: Option<u32>) -> Self {
        match blocks {
            Some(blocks) => Self { blocks, looks: Vec::new(), ..self },
            None => self,
        }
    }

    /// The most blocks that are run.
    pub fn most_blocks(&self) -> u32 {
        self.looks.last().copied().unwrap_or(self.blocks)
    }

    pub fn has_section(&self, name: &str) -> bool {
        self.sections.iter().any(|section| section == name)
    }

    pub fn plays(&self, subject: &str, part: &str) -> bool {
        self.parts.get(subject).is_some_and(|plays| plays == part)
    }

    /// How many trials with interference the run may repeat. On a machine that is never quiet,
    /// repeating everything would treble the run and change nothing.
    pub fn repeats(&self) -> usize {
        if self.repeat_on_interference { self.configurations.len() * self.blocks as usize / 5 + 1 } else { 0 }
    }
}
