// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a means of notification is to the harness.
//!
//! A mechanism is a [`Mechanism`]; what it opens is a [`Link`], one direction of notification with
//! a [`Notifier`] at one end and a [`Waiter`] at the other.
//!
//! The traits are generic on purpose: a trial's loop is compiled once per mechanism, so that no
//! indirect call stands between the waiter's last look and the notifier's next act.
//! A system call does not hide one: behind `dyn` a round trip by eventfd on one core took 2.9 % longer,
//! 120 ns for four calls (Intel Xeon, Linux 6.18, 2026-11-29). That is far more than a call that was
//! predicted; what a system call does to the predictions may be the cause.
//! [`Entry`](crate::entry::Entry) erases the type again at the level of a whole role ("initiate a
//! ping-pong", "absorb one-way notifications"), where a call costs nothing that is measured.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use doorbell_results::record::subject::{Carries, Notification, Notifiers, Waits};

use crate::site::{OpenError, Site};

/// Why a mechanism cannot be had on this machine; shown by `doorbell
/// list` and stored with the skipped trial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unavailable {
    /// What is lacking and, where there is one, the cure: "kernel 6.1
    /// has no io_uring futex (needs 6.7)".
    pub reason: String,
}

impl Unavailable {
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl From<OpenError> for Unavailable {
    fn from(refused: OpenError) -> Self {
        Self::because(refused.to_string())
    }
}

/// What `doorbell explain NAME` prints, in plain sentences.
#[derive(Debug, Clone, Copy)]
pub struct Explanation {
    /// One line for `doorbell list`.
    pub summary: &'static str,
    /// How the two sides use it.
    pub how: &'static str,
    /// What the kernel (or the CPU) does between notify and awake.
    pub kernel: &'static str,
    /// Limits one meets: counts, sizes, permissions, coalescing, fairness.
    pub limits: &'static str,
    /// Manual pages, kernel sources, papers.
    pub sources: &'static [&'static str],
}

/// A notification that failed in a way the mechanism does not expect;
/// ends the trial and is stored in its record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {cause}")]
pub struct Fault {
    pub call: &'static str,
    pub cause: String,
}

impl Fault {
    pub fn new(call: &'static str, cause: impl std::fmt::Display) -> Self {
        Self { call, cause: cause.to_string() }
    }
    pub fn of<E: std::fmt::Display>(call: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::new(call, cause)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    Notified,
    TimedOut,
}

impl Woken {
    #[inline]
    pub fn when(notified: bool) -> Self {
        if notified { Self::Notified } else { Self::TimedOut }
    }
}

pub trait Mechanism: Sync + 'static {
    type Link: Link;
    /// The name on the command line and in result files: lower case, words joined by `-`.
    const NAME: &'static str;
    const WAITS: Waits = Waits::Blocks;
    /// Whether two notifications before a wait are one wake-up, see [`Notification::coalesces`].
    const COALESCES: bool;
    /// Whether the waiting end is a descriptor that `poll` and `epoll` take together with others.
    const DESCRIPTOR: bool = false;
    /// Whether a notification may be dropped on its way. Those of such a mechanism carry their
    /// number, see [`Waiter::number`].
    const DROPS: bool = false;
    /// Whether its waiter learns nothing unless a thread of the notifier's answers, which runs
    /// where the notifier does.
    const ANSWERS: bool = false;
    /// Whether it is a protocol above sockets: measured by name and
    /// by `doorbell io --net`, and left out where all are.
    const ABOVE_SOCKETS: bool = false;
    /// Whether it is measured where all are asked for. What is another's variant for a pattern of
    /// its own is measured where it is named.
    const USUAL: bool = true;
    /// How many notifiers a link may have, as it is used here.
    const NOTIFIERS: Notifiers = Notifiers::Several;
    /// What a notification can bring along, by its manual: what is
    /// measured carries a byte, or nothing.
    const CARRIES: Carries = Carries::Nothing;
    /// Whether giving up a wait after some time is part of the
    /// waiting call, and no work of a timer beside it.
    const TIMED: bool = true;
    /// Whether it also joins two threads of one process.
    const THREADS: bool = true;
    /// Whether it also joins two processes.
    const PROCESSES: bool = true;
    /// All of that together, as it is stored with what was measured.
    const NOTIFICATION: Notification = Notification {
        waits: Self::WAITS,
        coalesces: Self::COALESCES,
        drops: Self::DROPS,
        descriptor: Self::DESCRIPTOR,
        timed: Self::TIMED,
        notifiers: Self::NOTIFIERS,
        carries: Self::CARRIES,
        processes: Self::PROCESSES,
        threads: Self::THREADS,
    };
    /// The text of `doorbell explain`.
    const EXPLANATION: Explanation;
    /// Whether this machine has it: unless it says more, whether it has what a link is made of.
    fn available() -> Result<(), Unavailable> {
        Self::Link::available()
    }
}

/// One direction of notification, opened before the two sides part, so that both inherit it.
///
/// The waiter's end is taken first, then the notifier's; the first
/// wait and the first notification follow.
///
/// A link must not own anything that outlives the trial: what the file system or System V keeps is
/// registered with [`Site::leave_note`] before it is made.
pub trait Link: Sized + Send + Sync + 'static {
    type Notifier: Notifier;
    type Waiter: Waiter;
    /// Whether this machine has what it is made of. Asks the kernel by trying, not by version,
    /// wherever that is possible.
    fn available() -> Result<(), Unavailable> {
        Ok(())
    }
    /// Opens the link in the trial's host, before the sides exist.
    fn open(site: &Site) -> Result<Self, OpenError>;
    /// Takes the waiting end, in the waiter's own process or thread. Runs before any
    /// [`Link::notifier`] of this line.
    fn waiter(&self) -> Result<Self::Waiter, OpenError>;
    /// Takes the notifying end, in the notifier's own process or
    /// thread, after the waiter stands ready.
    fn notifier(&self) -> Result<Self::Notifier, OpenError>;
}

pub trait Notifier {
    /// Notifies the waiter once. Must not wait for it, except where
    /// the mechanism itself does (a full pipe).
    fn notify(&mut self) -> Result<(), Fault>;
    /// CPU time that a thread of its own has used for it so far, nanoseconds; 0 where it has none.
    fn helper_ns(&self) -> u64 {
        0
    }
}

pub trait Waiter {
    /// Whether it can stand in an epoll set beside others: its descriptor is then readable when,
    /// and only when, there is something to consume.
    const IN_A_SET: bool = false;
    /// The descriptor that stands there.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// Waits until a notification can be consumed, and consumes it.
    /// Returns early only with a fault.
    fn wait(&mut self) -> Result<(), Fault>;
    /// As [`Waiter::wait`], giving up after `timeout`. Uses the mechanism's own timed wait.
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault>;
    /// One look without waiting; consumes the notification if there is one.
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        Ok(self.wait_for(Duration::ZERO)? == Woken::Notified)
    }
    /// The number that the notification consumed last carries: which one of its link it is, counted
    /// from 1 and going on at 0 after [`u32::MAX`]. None where notifications carry none.
    fn number(&self) -> Option<u32> {
        None
    }
    /// Requests it has sent so far, where it has to ask for what it waits for.
    fn requests(&self) -> Option<u64> {
        None
    }
}
