// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeping on an eventfd that only this waiter takes tokens from.

use super::{Spot, Wait, after_signal, interruptible, with_waiters, woken};
use crate::deadline::Deadline;
use crate::error::WaitError;
use crate::site::Site;
use doorbell_core::wake::{Seat, Sleep, Slept, Waiter, wait_until};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::io::IoSliceMut;

/// Sleeps in `poll` on one of the bell's eventfds, of which it holds a seat from its first wait on.
///
/// To wait in an event loop instead, see [`Bell::into_fd`](crate::Bell::into_fd).
#[derive(Clone, Copy, Debug, Default)]
pub struct Eventfd;

impl Wait for Eventfd {
    const NAME: &'static str = "eventfd";

    #[inline]
    fn wait(
        &mut self,
        spots: &mut [Spot<'_>],
        mut ready: impl FnMut() -> bool,
        deadline: Option<Deadline>,
    ) -> Result<bool, WaitError> {
        if ready() {
            return Ok(true);
        }
        for spot in spots.iter_mut() {
            spot.listener.seats.take_eventfd()?;
        }
        let waited = with_waiters(spots, seat, |waiters| {
            wait_until(waiters, &mut Sleeper { spots, deadline }, ready)
        })?;
        for spot in spots {
            spot.listener.counters.slept(waited);
        }
        Ok(waited.ready)
    }
}

fn seat(spot: &Spot<'_>) -> Seat {
    held(spot).0
}

fn held(spot: &Spot<'_>) -> (Seat, usize) {
    spot.listener.seats.eventfd().expect("taken before the wait began")
}

struct Sleeper<'a, 'b> {
    spots: &'a [Spot<'b>],
    deadline: Option<Deadline>,
}

impl Sleep for Sleeper<'_, '_> {
    type Error = WaitError;

    fn consume(&mut self, index: usize) -> Result<(), WaitError> {
        let spot = &self.spots[index];
        consume_token(spot.site, held(spot).1)
    }

    fn sleep(&mut self, _: &[Waiter<'_>]) -> Result<Slept, WaitError> {
        let timeout = self.deadline.as_ref().map(Deadline::remaining);
        let polled = if let [spot] = self.spots {
            poll(&mut [until_readable(spot)], timeout.as_ref())
        } else {
            poll(&mut self.spots.iter().map(until_readable).collect::<Vec<_>>(), timeout.as_ref())
        };
        match polled {
            Ok(0) => Ok(Slept::TimedOut),
            Ok(_) => Ok(woken(self.deadline)),
            Err(Errno::INTR) => after_signal(interruptible(self.spots)),
            Err(errno) => Err(WaitError::Os { call: "poll", errno }),
        }
    }
}

fn until_readable<'a>(spot: &'a Spot<'_>) -> PollFd<'a> {
    PollFd::new(&spot.site.eventfds()[held(spot).1], PollFlags::IN)
}

/// Takes whatever tokens eventfd `index` of the bell holds. Never blocks.
pub(crate) fn consume_token(site: &Site, index: usize) -> Result<(), WaitError> {
    let eventfd = &site.eventfds()[index];
    let mut count = [0; 8];
    let consumed = if site.mapping().file().is_none() {
        // Never left this process and its children.
        rustix::io::read(eventfd, &mut count)
    } else {
        // A peer shares the file and with it the flag O_NONBLOCK. RWF_NOWAIT is ours alone.
        const AT_NO_OFFSET: u64 = u64::MAX;
        preadv2(eventfd, &mut [IoSliceMut::new(&mut count)], AT_NO_OFFSET, ReadWriteFlags::NOWAIT)
    };
    match consumed {
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(errno) => Err(WaitError::Os { call: "read(eventfd)", errno }),
    }
}
