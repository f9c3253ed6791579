// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doorbell io` measures: I/O engines, one file each.
//!
//! Every way transfers one block at a time, straight between the device and the same aligned
//! buffer, at random places, and the next begins when the last is done. They differ in nothing but
//! in how the completion is waited for: an interrupt, looking at the device's queue, sleeping first
//! and looking then, or a thread of the kernel that does the looking.
//!
//! Adding a way is adding a file here and one line in [`all`].

// Also what the files here are made of.
use crate::mechanism::{Explanation, Fault, Links, OpenError, Unavailable};
use doorbell_results::configuration::Direction;
use doorbell_results::nearest::{self, Unknown};
use doorbell_results::record::Subject;
use std::os::fd::BorrowedFd;
mod buffer;
mod drive;
mod family;
mod figures;
mod null;
pub mod prepare;
mod ring;
pub mod scratch;
mod sync;
mod sync_hipri;
pub mod target;
mod uring;
mod uring_hybrid;
mod uring_iopoll;
mod uring_sqpoll;
mod uring_sqpoll_iopoll;
use buffer::Buffer;
pub use doorbell_results::record::subject::Noticed;
use drive::Drive;
pub(crate) use drive::other_threads_ns;
pub use family::Transfers;

/// Sets a way up in the thread that transfers.
type Opens = for<'buffer> fn(Place<'buffer>) -> Result<Box<dyn Transfer + 'buffer>, OpenError>;

/// A way to transfer a block and to wait for it.
#[derive(Debug)]
pub struct Engine {
    /// The name on the command line and in result files.
    pub name: &'static str,
    /// The text of `doorbell explain`.
    pub explanation: Explanation,
    /// How a completion is noticed.
    noticed: Noticed,
    /// Whether a thread of the kernel works for it beside the waiter, which needs a CPU of its own.
    pub kernel_thread: bool,
    /// Whether this kernel has it.
    pub available: fn() -> Result<(), Unavailable>,
    open: Opens,
}

impl Engine {
    /// What it is, as it is stored with what was measured.
    pub fn subject(&self) -> Subject {
        Subject::IoEngine { noticed: self.noticed, kernel_thread: self.kernel_thread }
    }
}

/// What a way transfers between.
pub(crate) struct Place<'buffer> {
    /// The file or device, open for `direction`, without the page cache.
    file: BorrowedFd<'buffer>,
    /// One block of memory, aligned as the device wants it.
    buffer: &'buffer Buffer,
    /// To or from the device.
    direction: Direction,
    /// A CPU for the kernel's thread, where there is one to spare.
    thread_cpu: Option<u32>,
}

pub(crate) trait Transfer {
    /// Transfers the block at `offset` bytes and returns once it is done.
    fn once(&mut self, offset: u64) -> Result<(), Fault>;
}

/// Every way, in the order `doorbell list` shows. The one list to extend.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [&'static Engine] {
    &[
        &null::ENGINE,
        &sync::ENGINE,
        &sync_hipri::ENGINE,
        &uring::ENGINE,
        &uring_iopoll::ENGINE,
        &uring_hybrid::ENGINE,
        &uring_sqpoll::ENGINE,
        &uring_sqpoll_iopoll::ENGINE,
    ]
}

/// The control of every run: the loop, its clock readings and its counts, without a transfer.
pub const CONTROL: &str = "io-null";

/// The way called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static Engine, Unknown> {
    nearest::find("I/O engine", all().iter().copied(), |engine| engine.name, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_a_misspelt_one_meets_the_nearest() {
        let mut names = std::collections::BTreeSet::new();
        for engine in all() {
            assert!(names.insert(engine.name), "{} is used twice", engine.name);
            assert_eq!(find(engine.name).unwrap().name, engine.name);
        }
        assert_eq!(find("uring-iopol").err().unwrap().nearest, Some("uring-iopoll"));
        assert_eq!(find("rendezvous").err().unwrap().nearest, None);
    }
}
