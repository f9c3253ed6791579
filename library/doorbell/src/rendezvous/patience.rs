// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long one side of a rendezvous waits for the other.

use super::{RendezvousError, os};
use crate::deadline::Deadline;
use crate::wait::interrupt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a host waits for a caller's next packet. Other callers are served meanwhile.
pub const HOST_PATIENCE: Duration = Duration::from_secs(2);

/// How long a joiner waits for room in the host's queue and for its offer,
/// in all, if it does not say otherwise. Many times [`HOST_PATIENCE`]: a
/// host that is busy turning away silent callers gets to an honest one.
pub const JOIN_PATIENCE: Duration = Duration::from_secs(30);

/// How long the packets of the other side are waited for.
pub(super) struct Patience<'a> {
    whole: Duration,
    deadline: Deadline,
    /// When this thread's [`Interrupt`](crate::wait::Interrupt) was last asked.
    asked: Cell<Instant>,
    /// What this thread must do lest it wait for itself, again and again.
    pub(super) meanwhile: Option<&'a dyn Fn()>,
}

/// Another thread may have a part in what `meanwhile` does, and its end is told to nobody.
const MEANWHILE_AGAIN: Duration = Duration::from_millis(2);

/// How often this thread's [`Interrupt`](crate::wait::Interrupt) is asked: a signal just before a
/// system call does not end it.
const ASKED_EVERY: Duration = Duration::from_secs(1);

impl Patience<'_> {
    pub(super) fn of(whole: Duration) -> Self {
        let asked = Cell::new(Instant::now());
        Self { whole, deadline: Deadline::after(whole), asked, meanwhile: None }
    }

    /// The same, until the same moment.
    pub(super) fn with<'b>(&self, meanwhile: &'b dyn Fn()) -> Patience<'b> {
        let Self { whole, deadline, .. } = *self;
        Patience { whole, deadline, asked: self.asked.clone(), meanwhile: Some(meanwhile) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.deadline.passed()
    }

    pub(super) fn timed_out(&self) -> RendezvousError {
        RendezvousError::TimedOut { after: self.whole }
    }

    /// How long a call may sleep, for the kernel, to which nothing is
    /// for ever and all time too long.
    pub(super) fn stretch(&self) -> Duration {
        let most = if interrupt::is_set() { ASKED_EVERY } else { Duration::from_secs(1 << 31) };
        let left = Duration::try_from(self.deadline.remaining()).unwrap_or(Duration::MAX);
        left.clamp(Duration::from_micros(1), most)
    }

    /// After a call that ended with `result`, because of a signal or
    /// for want of anything else: is it to be made again?
    pub(super) fn go_on<T>(&self, result: Result<T, Errno>) -> Result<(), RendezvousError> {
        let signal = result.is_err_and(|errno| errno == Errno::INTR);
        let ask = signal || self.asked.get().elapsed() >= ASKED_EVERY;
        if ask {
            self.asked.set(Instant::now());
        }
        if ask && interrupt::asked() {
            return Err(RendezvousError::Interrupted);
        }
        Ok(())
    }

    /// Sleeps until there is a packet at `socket`.
    pub(super) fn wait(&self, socket: &impl AsFd) -> Result<(), RendezvousError> {
        if self.is_over() {
            return Err(self.timed_out());
        }
        let most = if self.meanwhile.is_some() { MEANWHILE_AGAIN } else { self.stretch() };
        self.sleep(&mut [PollFd::new(socket, PollFlags::IN)], most)
    }

    /// Sleeps for `most`, or for what is left, or until one of `files` can be read.
    pub(super) fn sleep(&self, files: &mut [PollFd<'_>], most: Duration) -> Result<(), RendezvousError> {
        let stretch = Timespec::try_from(self.stretch().min(most)).ok();
        match poll(files, stretch.as_ref()) {
            result @ (Ok(0) | Err(Errno::INTR)) => self.go_on(result),
            Ok(_) => Ok(()),
            Err(errno) => Err(os("poll")(errno)),
        }
    }
}
