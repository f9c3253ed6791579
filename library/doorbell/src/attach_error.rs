// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an end of a lane could not be had.

use crate::error::HungUp;
use doorbell_core::violation::PeerViolation;
use std::fmt;

/// Why an end of a lane could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachError {
    /// The segment was not made for channels.
    NoChannels,
    /// There is no lane of this number.
    NoLane {
        /// The number asked for.
        lane: u32,
        /// How many there are.
        lanes: u32,
    },
    /// Somebody is at this end of the lane already, or at every lane.
    Taken {
        /// The number asked for, or of the last lane tried.
        lane: u32,
    },
    /// The lane belongs to a receiver that takes from several lanes.
    Shared {
        /// How many lanes the segment has.
        lanes: u32,
        /// How many receivers.
        receivers: u32,
    },
    /// The way of waiting cannot wait for another bell together with those it has.
    TooManyBells {
        /// For how many it can.
        most: usize,
    },
    /// The segment was joined, and this process has hung up on its
    /// maker since, or was forked from the one that joined.
    HungUp,
    /// There is no memory for another ring.
    NoMemory,
    /// A trusted end, which lends out memory as it lies there, on a
    /// segment that somebody untrusted shares.
    Untrusted,
    /// What lies in the memory is not a lane.
    Violation(PeerViolation),
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChannels => f.write_str("this segment has no channels; make it from `Offer::of_lanes`"),
            Self::NoLane { lane, lanes } => {
                write!(f, "there is no lane {lane}: the segment has {lanes}, from 0 on")
            }
            Self::Taken { lane } => {
                write!(f, "this end of lane {lane} is taken; choose another lane, or wait until it is left")
            }
            Self::Shared { lanes, receivers } => write!(
                f,
                "{lanes} lanes share {receivers} receivers here; attach a `Gather`, which takes \
                 from all lanes of a receiver"
            ),
            Self::TooManyBells { most } => write!(
                f,
                "this way of waiting waits for at most {most} bells at once; use `Eventfd`, or \
                 lanes that share a bell"
            ),
            Self::HungUp => f.write_str(
                "the maker of this segment takes this process for gone; join again, in the process \
                 that is to attach",
            ),
            Self::NoMemory => f.write_str("there is no memory for another ring"),
            Self::Untrusted => f.write_str(
                "an untrusted peer shares this segment; attach an untrusted end, or use a segment \
                 of trusted peers",
            ),
            Self::Violation(violation) => violation.fmt(f),
        }
    }
}

impl std::error::Error for AttachError {}

impl From<HungUp> for AttachError {
    fn from(_: HungUp) -> Self {
        Self::HungUp
    }
}

impl From<PeerViolation> for AttachError {
    fn from(violation: PeerViolation) -> Self {
        Self::Violation(violation)
    }
}
