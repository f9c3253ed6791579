// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a wait failed.

use crate::peer::PeerId;
use rustix::io::Errno;
use std::fmt;

pub(crate) const FORKED: &str =
    "this end belongs to the process that forked this one; take a child's ends in the child, after the fork";

/// A call that made no file, and what it reported.
pub(crate) type Unmade = (&'static str, Errno);

/// Why a wait ended without what it waited for (and not because of its deadline).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// The kernel reported that a peer closed its end of the rendezvous or died. Whatever it had
    /// rung before was delivered first.
    PeerGone(PeerId),
    /// A signal handler ran in the waiting thread, which had asked to be
    /// told ([`Bell::set_interruptible`](crate::Bell::set_interruptible)).
    /// Nothing was taken: wait again to go on.
    Interrupted,
    /// Every waiter slot at this bell is taken by another handle.
    NoWaiterSlot {
        /// How many the bell has. [`Offer::eventfds`](crate::rendezvous::Offer::eventfds) and
        /// [`Bell::with_eventfds`](crate::Bell::with_eventfds) set the number of eventfds.
        slots: usize,
    },
    /// The wait needs a waiter slot, which lasts as long as the connection to the maker of the
    /// bell's segment; and this process has hung up since it joined, or was forked from the one
    /// that joined. Or the waiter slot is of user interrupts, and who made it has ended.
    HungUp,
    /// This is a copy, which a forked child has of its parent's end,
    /// or service. Nothing was touched.
    Forked,
    /// More bells than this way of waiting can wait for at once.
    TooManyBells {
        /// For how many it can.
        most: usize,
    },
    /// The kernel or the build cannot do this.
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
    /// A system call failed in a way that no correct use explains.
    Os {
        /// The call.
        call: &'static str,
        /// What it reported.
        errno: Errno,
    },
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerGone(peer) => write!(f, "{peer} closed its end or died; accept a successor or stop"),
            Self::Interrupted => f.write_str("a signal came; wait again to go on"),
            Self::NoWaiterSlot { slots } => write!(
                f,
                "all {slots} eventfd slots of this bell are taken; drop a handle that holds one, \
                 or offer more when the bell is made"
            ),
            Self::HungUp => f.write_str(
                "the maker of this bell's segment takes this process for gone; keep the connection \
                 it was met in, or wait by a way that takes no slot",
            ),
            Self::Forked => f.write_str(FORKED),
            Self::TooManyBells { most } => write!(
                f,
                "this way of waiting waits for at most {most} bells at once; use `Eventfd`, or wait for fewer"
            ),
            Self::Unsupported { what, errno } => {
                write!(f, "{what} is not available here: {errno}; choose another way of waiting")
            }
            Self::Os { call, errno } => write!(f, "{call} failed: {errno}"),
        }
    }
}

impl std::error::Error for WaitError {}

/// The maker of the segment takes this process for gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HungUp;

impl From<HungUp> for WaitError {
    fn from(_: HungUp) -> Self {
        Self::HungUp
    }
}
