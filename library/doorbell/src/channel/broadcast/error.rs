// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a subscription did not come about.

use crate::channel::AttachError;
use crate::mapping::MapError;
use crate::rendezvous::RendezvousError;
use doorbell_core::violation::PeerViolation;
use std::fmt;

/// Why a subscription did not come about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The lane could not be had.
    Attach(AttachError),
    /// The log could not be handed over, or made, or mapped.
    Meet(RendezvousError),
    /// The publisher's next admission over this connection is for
    /// another lane: join in the order of admission.
    OtherLane {
        /// The lane asked for.
        asked: u32,
        /// The lane that was admitted.
        admitted: u64,
    },
    /// What the publisher said about its log cannot be.
    Violation(PeerViolation),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attach(error) => error.fmt(f),
            Self::Meet(error) => error.fmt(f),
            Self::OtherLane { asked, admitted } => write!(
                f,
                "the publisher admitted lane {admitted} first, not lane {asked}; join in the order \
                 of admission, over a new connection"
            ),
            Self::Violation(violation) => violation.fmt(f),
        }
    }
}

impl std::error::Error for JoinError {}

impl From<AttachError> for JoinError {
    fn from(error: AttachError) -> Self {
        Self::Attach(error)
    }
}

impl From<RendezvousError> for JoinError {
    fn from(error: RendezvousError) -> Self {
        Self::Meet(error)
    }
}

impl From<MapError> for JoinError {
    fn from(error: MapError) -> Self {
        Self::Meet(error.into())
    }
}
