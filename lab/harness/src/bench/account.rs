// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a side counts for one configuration, over all slices of it that were recorded.

use serde::{Deserialize, Serialize};

use crate::usage::Usage;
use doorbell_results::machine::clock::Ticks;

#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(super) opened: Option<Opened>,
    pub(super) used: Usage,
    pub(super) window: Ticks,
    pub(super) readings: u64,
    pub(super) cpus: Vec<u32>,
    pub(super) migrations: Option<u64>,
    /// Where the slice under way stands.
    pub(crate) at: Place,
    /// What came of each.
    pub(crate) slices: Vec<Seen>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) turn: u32,
    pub(crate) place: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub turn: u32,
    pub place: u32,
    /// Rounds or wake-ups that were timed; of the side that times none all that its counters cover.
    pub rounds: u32,
    /// Mean of the middle half of the rounds or wake-ups,
    /// nanoseconds; 0 of the side that times none.
    pub middle_ns: f64,
    pub switches: u64,
}

/// What was read where the recorded part of a slice began.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) usage: Usage,
    pub(super) at: Ticks,
    pub(super) cpu: u32,
    pub(super) migrations: Option<u64>,
}
