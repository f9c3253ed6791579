// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a peer did that no correct peer does.

use core::fmt;

/// The other side wrote something into shared memory, or sent something at the rendezvous, that the
/// protocol forbids. It is broken or hostile.
///
/// This is never an I/O failure: the memory was there and could be read, its content was wrong.
/// Whoever gets this error stops using the connection: nothing read through it afterwards can be
/// trusted. Other peers of the same process are not concerned. Each variant carries the values that
/// were seen, as copied once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerViolation {
    /// The peer's index is further from ours than the ring is large.
    IndexOutOfRange {
        /// What the peer wrote.
        theirs: u64,
        /// Our own index.
        ours: u64,
        /// The ring's capacity, from private memory.
        capacity: u64,
    },
    /// The peer's index moved backwards.
    IndexWentBack {
        /// What the peer wrote now.
        now: u64,
        /// What it had written before.
        before: u64,
    },
    /// A length reaches beyond the space it is in.
    LengthOutOfRange {
        /// What the peer wrote.
        length: u64,
        /// How much there was.
        available: u64,
    },
    /// An offset or a count that must be a multiple of `unit` is not.
    Misaligned {
        /// What the peer wrote.
        value: u64,
        /// The unit.
        unit: u64,
    },
    /// A field has a value that means nothing.
    BadValue {
        /// The field's name in the layout.
        field: &'static str,
        /// What the peer wrote.
        value: u64,
    },
    /// The memory the peer offered can be resized under us: a seal is missing.
    NotSealed {
        /// The seals that were there (`F_GET_SEALS`).
        seals: u32,
        /// The seals that must be there.
        required: u32,
    },
    /// The memory the peer offered is smaller than its header says, or than the layout needs.
    TooSmall {
        /// Bytes that are there.
        size: u64,
        /// Bytes that are needed.
        needed: u64,
    },
    /// The peer sent another number of descriptors than the message announces.
    Descriptors {
        /// How many came.
        got: u64,
        /// How many were announced.
        announced: u64,
    },
}

impl fmt::Display for PeerViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer broke the protocol: ")?;
        match *self {
            Self::IndexOutOfRange { theirs, ours, capacity } => {
                write!(f, "its index {theirs:#x} is further than {capacity:#x} from ours, {ours:#x}")
            }
            Self::IndexWentBack { now, before } => {
                write!(f, "its index went from {before:#x} back to {now:#x}")
            }
            Self::LengthOutOfRange { length, available } => {
                write!(f, "length {length:#x} where {available:#x} bytes are")
            }
            Self::Misaligned { value, unit } => write!(f, "{value:#x} is not a multiple of {unit:#x}"),
            Self::BadValue { field, value } => write!(f, "{field} is {value:#x}, which means nothing"),
            Self::NotSealed { seals, required } => write!(
                f,
                "its memory has seals {seals:#x} and needs {required:#x}, so it could be resized under us"
            ),
            Self::TooSmall { size, needed } => {
                write!(f, "its memory has {size:#x} bytes and needs {needed:#x}")
            }
            Self::Descriptors { got, announced } => {
                write!(f, "it announced {announced} descriptors and sent {got}")
            }
        }?;
        f.write_str("; drop the connection")
    }
}

impl core::error::Error for PeerViolation {}
