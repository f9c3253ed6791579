// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seats: tokens that belong to one waiter while it holds them.

use crate::error::WaitError;
use crate::meeting::Line;
use crate::process::Process;
use crate::site::Site;
use doorbell_core::fault;
use doorbell_core::wake::{SEATS, Seat};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The seats one waiter holds at one bell. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Seats {
    site: Arc<Site>,
    eventfd: Option<u32>,
    semaphore: Option<u32>,
    /// A forked child has a copy, which holds no seat.
    process: Process,
    /// While a seat is held: when this process hangs up on who made the board, that one gives its seats to others. Given
    /// up last.
    line: Option<Arc<Line>>,
}

impl Seats {
    pub(crate) fn new(site: &Arc<Site>) -> Self {
        Self {
            site: Arc::clone(site),
            eventfd: None,
            semaphore: None,
            process: Process::current(),
            line: None,
        }
    }

    /// The eventfd seat held, and the eventfd's number. Takes one if none is held.
    pub(crate) fn take_eventfd(&mut self) -> Result<(Seat, usize), WaitError> {
        if let Some(held) = self.eventfd() {
            return Ok(held);
        }
        let seats = self.site.eventfds().len();
        let none = WaitError::NoSeat { kind: "eventfd", seats };
        let line = self.site.origin().line()?;
        let index = take(&self.site, 0, seats).ok_or(none)?;
        (self.eventfd, self.line) = (Some(index), line);
        self.eventfd().ok_or(none)
    }

    pub(crate) fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// Takes a semaphore seat unless one is held already.
    pub(crate) fn take_semaphore(&mut self) -> Result<(), WaitError> {
        if !self.site.lives().all_trusted() {
            let what = "a semaphore that an untrusted peer can overwrite";
            return Err(WaitError::Unsupported { what, errno: Errno::PERM });
        }
        if self.semaphore.is_none() {
            let seats = SEATS as usize;
            let line = self.site.origin().line()?;
            let index =
                take(&self.site, seats, seats).ok_or(WaitError::NoSeat { kind: "semaphore", seats })?;
            (self.semaphore, self.line) = (Some(index), line);
        }
        Ok(())
    }

    /// The eventfd seat held, and the eventfd's number.
    pub(crate) fn eventfd(&self) -> Option<(Seat, usize)> {
        let index = self.eventfd?;
        Some((Seat::eventfd(index)?, index as usize))
    }

    /// The semaphore seat held, and the semaphore's number.
    pub(crate) fn semaphore(&self) -> Option<(Seat, usize)> {
        let index = self.semaphore?;
        Some((Seat::semaphore(index)?, index as usize))
    }
}

fn take(site: &Site, first: usize, count: usize) -> Option<u32> {
    let holders = site.record().seat_holders.get(first..first + count)?;
    let free = holders.iter().position(|holder| {
        fault::point();
        holder.compare_exchange(0, site.holder(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })?;
    u32::try_from(free).ok()
}

impl Drop for Seats {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return;
        }
        let holders = &self.site.record().seat_holders;
        // A token may still come for an armed bit: the next holder consumes it before it arms. It may be another's
        // already: a peer that is gone for us may have given our seats away.
        let free = |index: usize| {
            let ours = self.site.holder();
            fault::point();
            let _ = holders[index].compare_exchange(ours, 0, Ordering::Release, Ordering::Relaxed);
        };
        if let Some(index) = self.eventfd {
            free(index as usize);
        }
        if let Some(index) = self.semaphore {
            free(SEATS as usize + index as usize);
        }
    }
}
