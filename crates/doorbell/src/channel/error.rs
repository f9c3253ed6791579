// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a channel did not do what it was asked.

use crate::error::{FORKED, HungUp, WaitError};
use crate::peer::PeerId;
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
    /// The segment was joined, and this process has hung up on its maker since, or was forked from the one that joined.
    HungUp,
    /// There is no memory for another ring.
    NoMemory,
    /// A trusted end, which lends out memory as it lies there, on a segment that somebody untrusted shares.
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
                "{lanes} lanes share {receivers} receivers here; attach a `Gather`, which takes from all lanes of a receiver"
            ),
            Self::TooManyBells { most } => write!(
                f,
                "this way of waiting waits for at most {most} bells at once; use `Eventfd`, or lanes that share a bell"
            ),
            Self::HungUp => f.write_str(
                "the maker of this segment takes this process for gone; join again, in the process that is to attach",
            ),
            Self::NoMemory => f.write_str("there is no memory for another ring"),
            Self::Untrusted => f.write_str(
                "an untrusted peer shares this segment; attach an untrusted end, or use a segment of trusted peers",
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

/// Why a message was not sent. Nothing of it can be seen by the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// There is no room now.
    Full,
    /// There was no room before the deadline.
    TimedOut,
    /// There is no room, and nobody has taken the receiving end yet.
    NoReceiver,
    /// The message can never be sent over this channel.
    TooLong {
        /// Its length.
        length: u64,
        /// The longest that can be sent.
        longest: u64,
    },
    /// The receiver has left. Another may attach; then sending works again.
    Closed,
    /// The kernel reported that the receiver's process went.
    PeerGone(PeerId),
    /// The receiver broke the protocol. Nothing more can be sent.
    Violation(PeerViolation),
    /// This is a copy, which a forked child has of its parent's end. Nothing was written.
    Forked,
    /// Waiting for room failed.
    Wait(WaitError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str(
                "the channel is full; the receiver is behind, or has not given back the room of what it received: it does so by eighths of the ring, and when it looks for the next message",
            ),
            Self::TimedOut => f.write_str("there was no room before the deadline; the receiver is behind"),
            Self::NoReceiver => f.write_str(
                "the channel is full, and nobody has taken its receiving end yet; take it first, or wait for it with a deadline",
            ),
            Self::TooLong { length, longest } => write!(
                f,
                "a message of {length} bytes does not fit: this channel takes up to {longest}; make its ring larger"
            ),
            Self::Closed => f.write_str("the receiver has left the channel"),
            Self::PeerGone(peer) => write!(f, "{peer}, the receiver, closed its end or died"),
            Self::Violation(violation) => violation.fmt(f),
            Self::Forked => f.write_str(FORKED),
            Self::Wait(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SendError {}

impl From<PeerViolation> for SendError {
    fn from(violation: PeerViolation) -> Self {
        Self::Violation(violation)
    }
}

impl From<WaitError> for SendError {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Forked => Self::Forked,
            error => Self::Wait(error),
        }
    }
}

/// Why there was no message. All that had been committed was received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvError {
    /// The sender has left. Another may attach; then receiving works again.
    Closed,
    /// The kernel reported that the sender's process went.
    PeerGone(PeerId),
    /// The sender broke the protocol. Nothing more can be received from it.
    Violation(PeerViolation),
    /// This is a copy, which a forked child has of its parent's end.
    Forked,
    /// There is no memory for a copy of a message, which is gone.
    NoMemory {
        /// How long it was.
        length: usize,
    },
    /// This subscriber of a broadcast was too slow, and the publisher does not wait for it.
    Dropped,
    /// Waiting failed.
    Wait(WaitError),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the sender has left the channel"),
            Self::NoMemory { length } => {
                write!(f, "there is no memory for a copy of a message of {length} bytes, which is lost")
            }
            Self::Dropped => f.write_str(
                "this subscriber was too slow and has been dropped; subscribe again, or receive faster",
            ),
            Self::PeerGone(peer) => write!(f, "{peer}, the sender, closed its end or died"),
            Self::Violation(violation) => violation.fmt(f),
            Self::Forked => f.write_str(FORKED),
            Self::Wait(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecvError {}

impl From<PeerViolation> for RecvError {
    fn from(violation: PeerViolation) -> Self {
        Self::Violation(violation)
    }
}

impl From<WaitError> for RecvError {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Forked => Self::Forked,
            error => Self::Wait(error),
        }
    }
}
