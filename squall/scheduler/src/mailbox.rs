// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mail from one space to another: a page that only these two and the kernel can write.
//!
//! The receiver numbers the tasks that others may wake; such a number is a **door**. Waking is
//! setting the door's bit and then announcing it by the wake protocol of `doorbell_core::wake`: the
//! sender pays a system call only if the receiver has armed itself since it last collected its
//! mail. A hostile neighbour can set any bit, which costs the receiver a look, or clear bits, which
//! withholds its own mail. It reaches no third space: that one's mail lies in other pages.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use doorbell_core::wake::{WakeWords, Woken};

use crate::rotating::Rotating;

/// Doors that a space has towards each neighbour.
pub const DOORS: u32 = 64;

/// The kernel's mail: the alarm went off ([`crate::call::Call::Alarm`]).
pub const ALARM: u64 = 1;

/// The kernel's mail: a space that this one is connected with has ended. It may have died between
/// taking a waiter's bit (N4) and waking it (N6), and whoever waited for it waits for nobody now.
pub const GONE: u64 = 1 << 1;

/// The kernel's mail to the first space: all sleep, itself too, and nobody is left who could wake
/// one. It may end whom it likes.
pub const ALL_SLEEP: u64 = 1 << 2;

/// One direction of a connection.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Mailbox {
    words: WakeWords,
    doors: AtomicU64,
}

/// The page of a connection.
#[repr(C)]
#[derive(Debug)]
pub struct Connection {
    /// Mail for the space with the lower number, then for the one with the higher.
    pub to: [Mailbox; 2],
    /// For the two to agree on; never read by the kernel.
    pub scratch: [AtomicU64; 16],
    /// The document's queue, which two spaces share.
    pub rotating: Rotating,
}

const _: () = assert!(size_of::<Connection>() <= 4096);

impl Mailbox {
    /// Sender: knocks at `door` (below [`DOORS`]). Whoever is in `Woken` has to be told by
    /// [`crate::call::Call::Kick`].
    pub fn knock(&self, door: u32) -> Woken {
        // N1. Release: what was written for the receiver comes before the bit; pairs with `collect`.
        self.doors.fetch_or(1 << (door % DOORS), Release);
        self.words.announce()
    }

    /// Receiver: takes all knocks, as bits.
    pub fn collect(&self) -> u64 {
        // Acquire pairs with the Release in `knock`.
        self.doors.swap(0, AcqRel)
    }

    /// Receiver: whether there is a knock.
    pub fn has_knocks(&self) -> bool {
        // Acquire pairs with the Release in `knock`.
        self.doors.load(Acquire) != 0
    }

    /// The words of the wake protocol.
    pub fn words(&self) -> &WakeWords {
        &self.words
    }
}
