// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why one side of a rendezvous refused the other, as it says it to the other.

use rustix::io::Errno;
use std::fmt;

/// Why one side refused the other. It is said in the packet in whose place the refusal stands, and
/// counted where [`inspect`](crate::service::inspect) finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It did not say, or said what this version has no word for.
    Unsaid,
    /// As many clients are there as the service takes.
    Full {
        /// How many.
        most: u32,
    },
    /// A process of a user whom it does not let in.
    OtherUser {
        /// Which.
        uid: u32,
    },
    /// A packet that was waited for did not come in time.
    TooSlow,
    /// The place of one who says nothing was needed for another.
    Crowded,
    /// More memory than it takes from one it does not trust.
    TooMuchMemory,
    /// More eventfds than it takes from one it does not trust.
    TooMany,
    /// Memory of another version, of unknown features, or in huge pages.
    Unusable,
    /// The memory is lent out already, and the other side is not trusted.
    Lent,
    /// The memory's maker takes the process for gone.
    HungUp,
    /// The other side broke the protocol.
    Violation,
    /// No descriptor is left.
    NoDescriptors,
    /// No memory is left.
    NoMemory,
    /// The kernel, or a filter, does not let it signal a peer that is
    /// not trusted (`io_setup`, `io_submit`).
    NoSignals {
        /// What the kernel said.
        errno: Errno,
    },
    /// Another system call failed.
    Os {
        /// What the kernel said.
        errno: Errno,
    },
}

/// In the upper bits: no number of a holder has them, which stands in the same place of an offer.
const TAG: u64 = 0xdbee << 48;

impl Reason {
    /// As it travels, which is never 0.
    pub(crate) fn word(self) -> u64 {
        let errno = |errno: Errno| errno.raw_os_error().unsigned_abs();
        let (kind, operand) = match self {
            Self::Unsaid => (1, 0),
            Self::Full { most } => (2, most),
            Self::OtherUser { uid } => (3, uid),
            Self::TooSlow => (4, 0),
            Self::Crowded => (5, 0),
            Self::TooMuchMemory => (6, 0),
            Self::TooMany => (7, 0),
            Self::Unusable => (8, 0),
            Self::Lent => (9, 0),
            Self::HungUp => (10, 0),
            Self::Violation => (11, 0),
            Self::NoDescriptors => (12, 0),
            Self::NoMemory => (13, 0),
            Self::NoSignals { errno: said } => (14, errno(said)),
            Self::Os { errno: said } => (15, errno(said)),
        };
        TAG | kind << 32 | u64::from(operand)
    }

    /// What the other side said, which may be anything. `None` if it is no refusal.
    pub(crate) fn of_word(word: u64) -> Option<Self> {
        if word >> 48 != TAG >> 48 {
            return None;
        }
        let operand = word as u32;
        // What no kernel says is none.
        let errno = Errno::from_raw_os_error(
            i32::try_from(operand).ok().filter(|said| (1..4096).contains(said)).unwrap_or(libc::EIO),
        );
        Some(match word >> 32 & 0xffff {
            2 => Self::Full { most: operand },
            3 => Self::OtherUser { uid: operand },
            4 => Self::TooSlow,
            5 => Self::Crowded,
            6 => Self::TooMuchMemory,
            7 => Self::TooMany,
            8 => Self::Unusable,
            9 => Self::Lent,
            10 => Self::HungUp,
            11 => Self::Violation,
            12 => Self::NoDescriptors,
            13 => Self::NoMemory,
            14 => Self::NoSignals { errno },
            15 => Self::Os { errno },
            _ => Self::Unsaid,
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsaid => f.write_str("no reason was given"),
            Self::Full { most } => write!(f, "there are as many clients as the service takes ({most})"),
            Self::OtherUser { uid } => {
                write!(f, "processes of user {uid} are not let in; say so by `Users` if they are to be")
            }
            Self::TooSlow => f.write_str("the next packet did not come in time"),
            Self::Crowded => f.write_str("its place was needed for another caller"),
            Self::TooMuchMemory => {
                f.write_str("the memory offered is more than is taken from one who is not trusted")
            }
            Self::TooMany => {
                f.write_str("more eventfds are offered than are taken from one who is not trusted")
            }
            Self::Unusable => f.write_str("the memory is of another version, or in huge pages"),
            Self::Lent => f.write_str("the memory is lent out by trusted ends already"),
            Self::HungUp => f.write_str("the memory's maker takes the process that offers it for gone"),
            Self::Violation => f.write_str("the protocol was broken"),
            Self::NoDescriptors => {
                f.write_str("no descriptor is left; raise `ulimit -n`, or have fewer clients")
            }
            Self::NoMemory => f.write_str("no memory is left"),
            Self::NoSignals { errno } => write!(
                f,
                "peers that are not trusted cannot be signalled ({errno}); raise fs.aio-max-nr, or \
                 let the filter pass io_setup and io_submit"
            ),
            Self::Os { errno } => write!(f, "the system said: {errno}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Errno, Reason};

    #[test]
    fn each_reason_arrives_as_it_was_sent_and_what_nobody_sends_is_none() {
        let errno = Errno::AGAIN;
        for reason in [
            Reason::Unsaid,
            Reason::Full { most: 1024 },
            Reason::OtherUser { uid: u32::MAX },
            Reason::TooSlow,
            Reason::Crowded,
            Reason::TooMuchMemory,
            Reason::TooMany,
            Reason::Unusable,
            Reason::Lent,
            Reason::HungUp,
            Reason::Violation,
            Reason::NoDescriptors,
            Reason::NoMemory,
            Reason::NoSignals { errno },
            Reason::Os { errno },
        ] {
            assert_eq!(Reason::of_word(reason.word()), Some(reason));
        }
        assert_eq!([0, 2, 1 << 47].map(Reason::of_word), [None; 3], "numbers of holders");
        assert_eq!(Reason::of_word(Reason::Unsaid.word() | 0xfff << 32), Some(Reason::Unsaid));
        for errno in [0, 4096, u64::from(u32::MAX)] {
            let lie = (Reason::Os { errno: Errno::PERM }.word() & !0xffff_ffff) | errno;
            assert_eq!(Reason::of_word(lie), Some(Reason::Os { errno: Errno::IO }));
        }
    }
}
