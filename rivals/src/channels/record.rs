// SPDX-License-Identifier: MIT OR Apache-2.0
//! One block of one channel, as it is written down.

use crate::channels::letter::Tally;
use crate::channels::link::Kind;
use crate::channels::variant::Waiting;
use crate::partner::Place;
use serde::Serialize;

/// Where the sides run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    OneCore,
    TwoCores,
}

/// One line of the raw output. Times are in nanoseconds.
#[derive(Serialize)]
pub struct Record {
    pub channel: &'static str,
    pub waiting: Waiting,
    pub ours: bool,
    pub place: Place,
    pub placement: Placement,
    pub kind: Kind,
    pub size: usize,
    pub round: usize,
    /// As which of the round's blocks of this kind and placement it ran.
    pub turn: usize,
    /// Round trips or messages that were timed.
    pub count: u64,
    /// Median of the round trips, or mean time of a message of a stream.
    pub ns: f64,
    pub elapsed_ns: f64,
    /// Of both sides, for each round trip or message.
    pub cpu_ns: f64,
    pub sent: u64,
    #[serde(flatten)]
    pub tally: Tally,
    pub late: u64,
}
