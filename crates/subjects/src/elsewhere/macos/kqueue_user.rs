// SPDX-License-Identifier: MIT OR Apache-2.0
//! EVFILT_USER of kqueue: the event loop of BSD, woken from another thread.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    Explanation, Fault, Host, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};

/// The notifier triggers, the waiter takes the event.
#[derive(Debug)]
pub struct KqueueUser;

/// The queue, which both ends hold.
#[derive(Debug)]
pub struct QueueLink(Arc<OwnedFd>);

#[derive(Debug)]
pub struct QueueEnd(Arc<OwnedFd>);

fn event(flags: u16, fflags: u32) -> libc::kevent {
    libc::kevent { ident: 1, filter: libc::EVFILT_USER, flags, fflags, data: 0, udata: ptr::null_mut() }
}

/// Changes the queue by `event`.
fn change(queue: &OwnedFd, event: &libc::kevent) -> io::Result<()> {
    // SAFETY: one event that lives through the call, and room for none.
    match unsafe { libc::kevent(queue.as_raw_fd(), event, 1, ptr::null_mut(), 0, ptr::null()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn fresh() -> Result<OwnedFd, OpenError> {
    // SAFETY: takes nothing.
    let queue = match unsafe { libc::kqueue() } {
        -1 => return Err(OpenError::call("kqueue", io::Error::last_os_error())),
        // SAFETY: the call has just made it.
        queue => unsafe { OwnedFd::from_raw_fd(queue) },
    };
    change(&queue, &event(libc::EV_ADD | libc::EV_CLEAR, 0)).map_err(OpenError::of("kevent(EV_ADD)"))?;
    Ok(queue)
}

impl Mechanism for KqueueUser {
    type Link = QueueLink;
    const NAME: &'static str = "kqueue-user";
    const COALESCES: bool = true;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "EVFILT_USER of a kqueue",
            how: "The notifier calls kevent with NOTE_TRIGGER, the waiter kevent for one event, which EV_CLEAR resets.",
            kernel: "A flag of the queue: set under its lock, and whoever sleeps in kevent is made runnable.",
            limits: "Two notifications before the waiter looks are one. A queue is not inherited by fork. Never run here: type-checked only.",
            sources: &["kqueue(2), EVFILT_USER"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        fresh().map(drop).map_err(|error| Unavailable::because(error.to_string()))
    }
}

impl Link for QueueLink {
    type Notifier = QueueEnd;
    type Waiter = QueueEnd;
    fn open(_: &Site) -> Result<Self, OpenError> {
        Ok(Self(Arc::new(fresh()?)))
    }
    fn waiter(&self) -> Result<QueueEnd, OpenError> {
        Ok(QueueEnd(self.0.clone()))
    }
    fn notifier(&self) -> Result<QueueEnd, OpenError> {
        Ok(QueueEnd(self.0.clone()))
    }
}

impl Notifier for QueueEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        change(&self.0, &event(0, libc::NOTE_TRIGGER)).map_err(Fault::of("kevent(NOTE_TRIGGER)"))
    }
}

impl QueueEnd {
    #[inline]
    fn take(&self, timeout: Option<Duration>) -> Result<bool, Fault> {
        let ends = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let rest =
                ends.map(|ends| ends.saturating_duration_since(Instant::now())).map(|rest| libc::timespec {
                    tv_sec: libc::time_t::try_from(rest.as_secs()).unwrap_or(libc::time_t::MAX),
                    tv_nsec: rest.subsec_nanos().into(),
                });
            let mut came = event(0, 0);
            let rest = rest.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: no change, room for one event, and a time that lives through the call or none.
            match unsafe { libc::kevent(self.0.as_raw_fd(), ptr::null(), 0, &raw mut came, 1, rest) } {
                -1 => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(Fault::new("kevent", error));
                    }
                }
                events => return Ok(events > 0),
            }
        }
    }
}

impl Waiter for QueueEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.take(None)? {}
        Ok(())
    }
    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.take(Some(timeout)).map(Woken::when)
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.take(Some(Duration::ZERO))
    }
}
