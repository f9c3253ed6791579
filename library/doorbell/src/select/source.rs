// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a wait for unlike ends needs of each of them.

use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::wait::WaitEntry;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::fmt;

/// What [`Select`](super::Select) can wait for. Nobody else can implement it.
pub trait Selectable: Source {}
impl<E: Source + ?Sized> Selectable for E {}

/// What `Select` needs of an end.
pub trait Source {
    /// Is there something to be had, or told, at once? If not, whoever may be waiting for this side
    /// has been told what it must know before this side sleeps.
    fn look(&mut self) -> bool;

    /// Adds what there is to wait for, and says where it is to be woken, before the waiter arms.
    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>);
}

/// What one wait is made of.
#[derive(Default)]
pub struct Parts<'a> {
    /// The bells, and the waiters' places at them.
    pub entries: Vec<WaitEntry<'a>>,
    /// Of each end with a bell: may there be something?
    pub ready: Vec<Box<dyn Fn() -> bool + 'a>>,
    /// The descriptors.
    pub files: Vec<PollFd<'a>>,
    /// When one of the ends has something at the latest.
    pub until: Option<Deadline>,
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl<'a> Parts<'a> {
    pub(crate) fn add(&mut self, entry: WaitEntry<'a>, ready: impl Fn() -> bool + 'a) {
        self.entries.push(entry);
        self.ready.push(Box::new(ready));
    }
}

/// A descriptor, as one of the ends of a [`Select`](super::Select).
#[derive(Clone, Copy, Debug)]
pub struct File<F> {
    file: F,
    events: PollFlags,
}

impl<F: AsFd> File<F> {
    /// Waits until something can be read from `file`, or it is at its end, or in error.
    pub fn readable(file: F) -> Self {
        Self { file, events: PollFlags::IN }
    }

    /// Waits until something can be written to `file`, or it is in error.
    pub fn writable(file: F) -> Self {
        Self { file, events: PollFlags::OUT }
    }
}

impl<F: AsFd> Source for File<F> {
    fn look(&mut self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // What `poll` says of a descriptor that is none (POLLNVAL) is news too.
        !matches!(poll(&mut [PollFd::new(&self.file, self.events)], Some(&now)), Ok(0) | Err(Errno::INTR))
    }

    fn parts<'a>(&'a mut self, parts: &mut Parts<'a>) {
        parts.files.push(PollFd::new(&self.file, self.events));
    }
}

/// The place of an end in a wait, or why there was none.
pub(super) type Place = Result<Option<usize>, WaitError>;
