// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long one side of a rendezvous waits for the other.

use super::{RendezvousError, os};
use crate::deadline::Deadline;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::time::Duration;

/// How long a host waits for a caller's next packet. Other callers are served meanwhile.
pub const HOST_PATIENCE: Duration = Duration::from_secs(2);

/// How long a joiner waits for room in the host's queue and for its offer, in all, if it does not say otherwise. Many times
/// [`HOST_PATIENCE`]: a host that is busy turning away silent callers gets to an honest one.
pub const JOIN_PATIENCE: Duration = Duration::from_secs(30);

/// How long the packets of the other side are waited for.
pub(super) struct Patience<'a> {
    whole: Duration,
    deadline: Deadline,
    /// Does a signal that this thread handles end it?
    interruptible: bool,
    /// What this thread must do lest it wait for itself, again and again.
    pub(super) meanwhile: Option<&'a dyn Fn()>,
}

/// Another thread may have a part in what `meanwhile` does, and its end is told to nobody.
const MEANWHILE_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

impl Patience<'_> {
    pub(super) fn of(whole: Duration) -> Self {
        Self { whole, deadline: Deadline::after(whole), interruptible: false, meanwhile: None }
    }

    pub(super) fn interruptible(self, interruptible: bool) -> Self {
        Self { interruptible, ..self }
    }

    /// The same, until the same moment.
    pub(super) fn with<'b>(&self, meanwhile: &'b dyn Fn()) -> Patience<'b> {
        let Self { whole, deadline, interruptible, .. } = *self;
        Patience { whole, deadline, interruptible, meanwhile: Some(meanwhile) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.deadline.passed()
    }

    pub(super) fn timed_out(&self) -> RendezvousError {
        RendezvousError::TimedOut { after: self.whole }
    }

    /// What is left, for the kernel, to which nothing is for ever and all time too long.
    pub(super) fn left(&self) -> Duration {
        let left = Duration::try_from(self.deadline.remaining()).unwrap_or(Duration::MAX);
        left.clamp(Duration::from_micros(1), Duration::from_secs(1 << 31))
    }

    /// After a call that a signal ended: is it to be made again?
    pub(super) fn after_signal(&self) -> Result<(), RendezvousError> {
        if self.interruptible { Err(RendezvousError::Interrupted) } else { Ok(()) }
    }

    /// Sleeps until there is a packet at `socket`.
    pub(super) fn wait(&self, socket: &impl AsFd) -> Result<(), RendezvousError> {
        if self.is_over() {
            return Err(self.timed_out());
        }
        let left = self.deadline.remaining();
        let left = if self.meanwhile.is_some() { left.min(MEANWHILE_AGAIN) } else { left };
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&left)) {
            Ok(_) => Ok(()),
            Err(Errno::INTR) => self.after_signal(),
            Err(errno) => Err(os("poll")(errno)),
        }
    }
}
