// SPDX-License-Identifier: MIT OR Apache-2.0
//! An eventfd, waited for by reading it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, dup, read, write};

use super::{
    Explanation, Fault, Host, Line, Mechanism, Memory, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};

/// A counter in the kernel behind a descriptor; the waiter reads it.
#[derive(Debug)]
pub struct EventfdRead;

/// The eventfd; one for each direction, since a shared one would let a side read its own token.
#[derive(Debug)]
pub struct EventfdLine(OwnedFd);

/// Either end.
#[derive(Debug)]
pub struct EventfdEnd(OwnedFd);

impl Mechanism for EventfdRead {
    type Line = EventfdLine;
    const NAME: &'static str = "eventfd";
    const MEMORY: Memory = Memory::Merges;

    fn explanation() -> Explanation {
        Explanation {
            summary: "eventfd, waited for with read(2)",
            how: "The notifier writes 1 to the eventfd; the waiter blocks in read(2), which takes the whole sum and \
                  sets it to zero.",
            kernel: "Write: add under the context's lock, wake the wait queue. Read: sleep on that queue while the \
                     sum is zero.",
            limits: "Eight bytes a call; notifications before a read merge into one sum. Blocks the writer at 2^64-2.",
            sources: &["eventfd(2)", "Linux fs/eventfd.c"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        eventfd(0, EventfdFlags::CLOEXEC)
            .map(drop)
            .map_err(|error| Unavailable::because(format!("eventfd(2) is refused here: {error}")))
    }
}

impl Line for EventfdLine {
    type Notifier = EventfdEnd;
    type Waiter = EventfdEnd;
    fn open(_: &Site) -> Result<Self, OpenError> {
        eventfd(0, EventfdFlags::CLOEXEC).map(Self).map_err(|error| OpenError::call("eventfd", error))
    }
    fn waiter(&self) -> Result<EventfdEnd, OpenError> {
        dup(&self.0).map(EventfdEnd).map_err(|error| OpenError::call("dup", error))
    }
    fn notifier(&self) -> Result<EventfdEnd, OpenError> {
        self.waiter()
    }
}

impl Notifier for EventfdEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        write(&self.0, &1_u64.to_ne_bytes()).map(drop).map_err(|error| Fault::new("write(eventfd)", error))
    }
}

impl EventfdEnd {
    fn ready(&self, timeout: &Timespec) -> Result<bool, Fault> {
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(Fault::new("poll(eventfd)", error)),
        }
    }
}

impl Waiter for EventfdEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        loop {
            match read(&self.0, &mut [0; 8]) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Fault::new("read(eventfd)", error)),
            }
        }
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        if self.ready(&timeout)? {
            self.wait()?;
            return Ok(Woken::Notified);
        }
        Ok(Woken::TimedOut)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        let ready = self.ready(&Timespec { tv_sec: 0, tv_nsec: 0 })?;
        if ready {
            self.wait()?;
        }
        Ok(ready)
    }
}
