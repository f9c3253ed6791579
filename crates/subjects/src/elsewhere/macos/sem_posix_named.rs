// SPDX-License-Identifier: MIT OR Apache-2.0
//! A named POSIX semaphore, which macOS has while it lacks the unnamed one.

use std::ffi::CString;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    Explanation, Fault, Host, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};

/// The notifier posts, the waiter waits.
#[derive(Debug)]
pub struct SemPosixNamed;

#[derive(Debug)]
struct Made(*mut libc::sem_t);

// SAFETY: made for concurrent callers.
unsafe impl Send for Made {}
// SAFETY: as above.
unsafe impl Sync for Made {}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: opened by `named`, and not used after this.
        unsafe { libc::sem_close(self.0) };
    }
}

/// A fresh semaphore whose name is gone again at once: nothing outlives the process.
fn named(name: &str) -> Result<Made, OpenError> {
    let name = CString::new(name).map_err(OpenError::of("sem_open"))?;
    // SAFETY: the name ends in a zero; rights and value go as promoted integers, as the prototype's dots have it.
    let made = unsafe {
        libc::sem_open(name.as_ptr(), libc::O_CREAT | libc::O_EXCL, 0o600 as libc::c_uint, 0 as libc::c_uint)
    };
    if made == libc::SEM_FAILED {
        return Err(OpenError::call("sem_open", io::Error::last_os_error()));
    }
    // SAFETY: as above.
    unsafe { libc::sem_unlink(name.as_ptr()) };
    Ok(Made(made))
}

#[derive(Debug)]
pub struct NamedLink(Arc<Made>);

#[derive(Debug)]
pub struct NamedEnd(Arc<Made>);

/// Between two looks of a timed wait.
const LOOK: Duration = Duration::from_micros(100);

fn last(call: &'static str) -> Fault {
    Fault::new(call, io::Error::last_os_error())
}

impl Mechanism for SemPosixNamed {
    type Link = NamedLink;
    const NAME: &'static str = "sem-posix-named";
    const COALESCES: bool = false;
    const TIMED: bool = false;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "named POSIX semaphore",
            how: "sem_open makes it, the name is removed at once, and both threads use what was opened: sem_post and sem_wait.",
            kernel: "A Mach semaphore behind a descriptor; every call enters the kernel.",
            limits: "There is no sem_timedwait: the timed wait looks with sem_trywait every 100 µs. Names have 31 letters at most. Never run \
                     here: type-checked only.",
            sources: &["sem_open(2), sem_wait(2), sem_post(2) of macOS"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        let name = format!("/doorbell-{:x}-probe", std::process::id());
        named(&name).map(drop).map_err(|error| Unavailable::because(error.to_string()))
    }
}

impl Link for NamedLink {
    type Notifier = NamedEnd;
    type Waiter = NamedEnd;
    fn open(site: &Site) -> Result<Self, OpenError> {
        // A name that is taken is refused, never shared.
        let name = format!("/doorbell-{:x}-{:x}", std::process::id(), site.fresh());
        Ok(Self(Arc::new(named(&name)?)))
    }
    fn waiter(&self) -> Result<NamedEnd, OpenError> {
        Ok(NamedEnd(self.0.clone()))
    }
    fn notifier(&self) -> Result<NamedEnd, OpenError> {
        Ok(NamedEnd(self.0.clone()))
    }
}

impl Notifier for NamedEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        // SAFETY: open as long as this holds it.
        if unsafe { libc::sem_post(self.0.0) } == -1 { Err(last("sem_post")) } else { Ok(()) }
    }
}

impl Waiter for NamedEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        // SAFETY: as above.
        while unsafe { libc::sem_wait(self.0.0) } == -1 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return Err(last("sem_wait"));
            }
        }
        Ok(())
    }
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let ends = Instant::now() + timeout;
        loop {
            if self.poll()? {
                return Ok(Woken::Notified);
            }
            let rest = ends.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Ok(Woken::TimedOut);
            }
            std::thread::sleep(rest.min(LOOK));
        }
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        loop {
            // SAFETY: as above.
            if unsafe { libc::sem_trywait(self.0.0) } == 0 {
                return Ok(true);
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(false),
                io::ErrorKind::Interrupted => {}
                _ => return Err(Fault::new("sem_trywait", error)),
            }
        }
    }
}
