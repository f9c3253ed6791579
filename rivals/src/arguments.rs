// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the comparisons have in common on their command lines.

use crate::clock::first_cpus;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct Common {
    /// Rounds: in each, every variant has one block, in shuffled order; a number of the
    /// comparison's own if not given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Only variants whose name holds one of these, and what they are set against.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// A file to which every block is added, one JSON object a line.
    #[arg(long)]
    pub raw: Option<PathBuf>,
    /// Of the shuffles.
    #[arg(long, default_value_t = 1)]
    pub seed: u32,
}

impl Common {
    pub fn rounds_or(&self, usual: usize) -> usize {
        self.rounds.map_or(usual, |rounds| rounds as usize)
    }

    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

#[derive(Args, Debug)]
pub struct Cpus {
    /// The two CPUs; the first for what runs on one. The first two
    /// that this process may use if not given.
    #[arg(long, value_delimiter = ',', num_args = 2)]
    cpus: Vec<usize>,
}

impl Cpus {
    /// The same one twice if this process may use but one.
    pub fn pair(&self) -> (usize, usize) {
        if let [first, second] = self.cpus[..] { (first, second) } else { first_cpus() }
    }
}
