// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a channel did not do what it was asked.

use crate::error::{FORKED, WaitError};
use crate::peer::PeerId;
use doorbell_core::violation::PeerViolation;
use std::fmt;

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
                "the channel is full; the receiver is behind, or has not given back the room of \
                 what it received: it does so by eighths of the ring, and when it looks for the \
                 next message",
            ),
            Self::TimedOut => f.write_str("there was no room before the deadline; the receiver is behind"),
            Self::NoReceiver => f.write_str(
                "the channel is full, and nobody has taken its receiving end yet; take it first, \
                 or wait for it with a deadline",
            ),
            Self::TooLong { length, longest } => write!(
                f,
                "a message of {length} bytes does not fit: this channel takes up to {longest}; \
                 make its ring larger"
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
