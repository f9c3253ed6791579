// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the io_uring mechanisms share: a ring, and waiting for its next completion.

use std::time::Duration;

use io_uring::cqueue::more;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, squeue};
use rustix::io::Errno;

use super::deadline::Deadline;
use super::{Fault, OpenError, Unavailable};

/// A ring of one side. Set up without flags: completions are posted
/// as they happen, so that a look needs no system call.
pub(crate) struct Ring(pub(super) IoUring);

/// Submissions a ring holds: no side has more than one under way.
const ENTRIES: u32 = 8;

impl Ring {
    pub(super) fn new() -> Result<Self, OpenError> {
        IoUring::new(ENTRIES).map(Self).map_err(refused)
    }

    /// Queues `entry` without telling the kernel.
    ///
    /// # Safety
    /// What `entry` points to must live as long as the kernel may use it.
    pub(super) unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<(), Fault> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.submission().push(entry) }.map_err(Fault::of("io_uring submission"))
    }

    /// Tells the kernel what was queued.
    #[inline]
    pub(super) fn submit(&self) -> Result<(), Fault> {
        loop {
            match self.0.submit() {
                Ok(_) => return Ok(()),
                Err(error) if interrupted(&error) => {}
                Err(error) => return Err(Fault::new("io_uring_enter", error)),
            }
        }
    }

    /// The next completion's result if there is one: see [`Ring::look_whole`].
    #[inline]
    pub(super) fn look(&mut self) -> Result<Option<i32>, Fault> {
        Ok(self.look_whole()?.map(|completion| completion.result))
    }

    /// The next completion if there is one.
    ///
    /// Completions that found the ring full wait in the kernel until somebody enters it: a waiter
    /// that only looked would never see them.
    #[inline]
    pub(super) fn look_whole(&mut self) -> Result<Option<Completion>, Fault> {
        let found = self.next();
        if found.is_some() || !self.0.submission().cq_overflow() {
            return Ok(found);
        }
        self.submit()?;
        Ok(self.next())
    }

    #[inline]
    fn next(&mut self) -> Option<Completion> {
        let completion = self.0.completion().next()?;
        Some(Completion { result: completion.result(), goes_on: more(completion.flags()) })
    }

    /// The result of what [`Ring::wait_whole`] waits for.
    #[inline]
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> Result<Option<i32>, Fault> {
        Ok(self.wait_whole(timeout)?.map(|completion| completion.result))
    }

    /// Tells the kernel what was queued and sleeps until something is
    /// completed; none when the time ran out.
    #[inline]
    pub(super) fn wait_whole(&mut self, timeout: Option<Duration>) -> Result<Option<Completion>, Fault> {
        let deadline = timeout.map(Deadline::after);
        loop {
            if let Some(found) = self.look_whole()? {
                return Ok(Some(found));
            }
            let entered = match deadline {
                None => self.0.submit_and_wait(1),
                Some(deadline) => {
                    let rest = Timespec::from(deadline.rest().unwrap_or_default());
                    self.0.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&rest))
                }
            };
            match entered {
                Ok(_) => {}
                Err(error) if interrupted(&error) => {}
                Err(error) if Errno::from_io_error(&error) == Some(Errno::TIME) => return self.look_whole(),
                Err(error) => return Err(Fault::new("io_uring_enter", error)),
            }
        }
    }
}

/// No ring can be had.
pub(crate) fn refused(error: impl std::fmt::Display) -> OpenError {
    OpenError::with_cure(
        "io_uring_setup",
        error,
        "/proc/sys/kernel/io_uring_disabled must be 0, and a container's seccomp profile must allow io_uring",
    )
}

/// What became of an operation.
pub(super) struct Completion {
    pub(super) result: i32,
    /// Whether more of it will follow.
    pub(super) goes_on: bool,
}

fn interrupted(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::Interrupted
}

/// What an operation's result says.
#[inline]
pub(super) fn outcome(result: i32) -> Result<i32, Errno> {
    if result < 0 { Err(Errno::from_raw_os_error(-result)) } else { Ok(result) }
}

/// Whether the kernel gives a ring, with a timed wait, that knows the operation `code`, called
/// `name`, which kernels have since version `since`.
pub(super) fn probe(code: u8, name: &str, since: &str) -> Result<(), Unavailable> {
    let ring = Ring::new()?;
    let mut known = Probe::new();
    let asked = ring.0.submitter().register_probe(&mut known);
    asked.map_err(OpenError::of("io_uring_register(IORING_REGISTER_PROBE)"))?;
    if !known.is_supported(code) {
        let reason = format!("this kernel's io_uring has no {name} (kernel {since} brought it)");
        return Err(Unavailable::because(reason));
    }
    if !ring.0.params().is_feature_ext_arg() {
        return Err(Unavailable::because(
            "this kernel's io_uring has no timed wait (kernel 5.11 brought it)",
        ));
    }
    Ok(())
}
