// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pipe: one byte a notification.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use super::{
    Carries, Explanation, Fault, Host, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};

/// The notifier writes a byte, the waiter reads it.
#[derive(Debug)]
pub struct Pipe;

/// Both ends of a pipe.
#[derive(Debug)]
pub struct PipeLink {
    read: OwnedFd,
    write: OwnedFd,
}

#[derive(Debug)]
pub struct PipeEnd(File);

fn fresh() -> Result<PipeLink, OpenError> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } == -1 {
        return Err(OpenError::call("pipe", io::Error::last_os_error()));
    }
    // SAFETY: the call has just made both.
    let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    Ok(PipeLink { read, write })
}

impl Mechanism for Pipe {
    type Link = PipeLink;
    const NAME: &'static str = "pipe";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Message;
    const DESCRIPTOR: bool = true;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "pipe, one byte a notification",
            how: "The notifier writes one byte into a pipe; the waiter blocks in read(2) for one byte.",
            kernel: "A buffer under a lock; a write makes a sleeping reader runnable.",
            limits: "16 KiB at first, 64 KiB at most, then the writer blocks. The timed wait is poll(2), in milliseconds. Never run here: \
                     type-checked only.",
            sources: &["pipe(2), poll(2)"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        fresh().map(drop).map_err(|error| Unavailable::because(error.to_string()))
    }
}

impl Link for PipeLink {
    type Notifier = PipeEnd;
    type Waiter = PipeEnd;
    fn open(_: &Site) -> Result<Self, OpenError> {
        fresh()
    }
    fn waiter(&self) -> Result<PipeEnd, OpenError> {
        self.read.try_clone().map(File::from).map(PipeEnd).map_err(OpenError::of("dup"))
    }
    fn notifier(&self) -> Result<PipeEnd, OpenError> {
        self.write.try_clone().map(File::from).map(PipeEnd).map_err(OpenError::of("dup"))
    }
}

impl Notifier for PipeEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        self.0.write_all(&[1]).map_err(Fault::of("write"))
    }
}

impl PipeEnd {
    fn readable(&self, timeout: Duration) -> Result<bool, Fault> {
        let ends = Instant::now() + timeout;
        loop {
            let rest = ends.saturating_duration_since(Instant::now()).as_nanos().div_ceil(1_000_000);
            let mut watched = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one descriptor that is ours.
            match unsafe {
                libc::poll(&raw mut watched, 1, libc::c_int::try_from(rest).unwrap_or(libc::c_int::MAX))
            } {
                -1 => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(Fault::new("poll", error));
                    }
                }
                ready => return Ok(ready > 0),
            }
        }
    }
}

impl Waiter for PipeEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        self.0.read_exact(&mut [0]).map_err(Fault::of("read"))
    }
    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let ready = self.readable(timeout)?;
        if ready {
            self.wait()?;
        }
        Ok(Woken::when(ready))
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.wait_for(Duration::ZERO).map(|woken| woken == Woken::Notified)
    }
}
