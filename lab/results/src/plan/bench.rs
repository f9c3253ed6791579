// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a run on the bench goes: in slices between resident sides,
//! which are made anew for every pair.

use serde::{Deserialize, Serialize};

use crate::configuration::Configuration;

/// How the time of a run on the bench is cut up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bench {
    /// So many nanoseconds a pair may take, with all that is done around its slices: then nothing
    /// has another turn that had one. None where each configuration goes on to its own end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair_ns: Option<u64>,
    /// Pairs of sides, each a life of two processes or threads: what statistics are made of.
    pub pairs: u32,
    /// Length of a slice, nanoseconds, its head included; longer
    /// where a hundred rounds take longer.
    pub slice_ns: u64,
    /// Head of a slice that is not recorded, nanoseconds.
    pub head_ns: u64,
    /// What is not recorded at the begin of a turn beside that, nanoseconds.
    pub washout_ns: u64,
    /// What takes turns beside configurations that would have nobody
    /// to take turns with; the turns say no more of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Configuration>,
    /// Configurations that take turns, by what a turn holds; those in
    /// none are measured in trials of their own.
    pub turns: Vec<Turn>,
}

/// What follows one another in random order between the same two sides at the same place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Turn {
    /// What its configurations do to the CPUs, which the next one finds.
    pub class: Class,
    /// Places of its configurations in the plan, from 0.
    pub configurations: Vec<u32>,
}

/// What a configuration does to the CPUs it runs on. Those of
/// different classes would change each other's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Keeps its CPU busy while it waits.
    Spinning,
    /// Gives its CPU away, back to back.
    Blocking,
    /// Sleeps between one notification and the next.
    LongGaps,
}
