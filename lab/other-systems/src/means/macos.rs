// SPDX-License-Identifier: MIT OR Apache-2.0
//! The means of macOS. Written by Apple's headers and manual pages and type-checked; nobody has run
//! them yet (`book/other-systems.md`).

use std::ffi::{CString, c_int};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{Kind, Means, USUAL};

pub(super) const ALL: &[Kind] = &[
    Kind {
        name: "sem-posix-named",
        what: "sem_open, sem_post, sem_wait; there is no unnamed one, and no timed wait",
        timed: false,
        open: || Ok(Arc::new(Named::new()?)),
        ..USUAL
    },
    Kind {
        name: "mach-semaphore",
        what: "semaphore_signal, semaphore_wait",
        open: || Ok(Arc::new(Mach::new()?)),
        ..USUAL
    },
];

struct Named(*mut libc::sem_t);

// SAFETY: made for concurrent callers.
unsafe impl Send for Named {}
// SAFETY: as above.
unsafe impl Sync for Named {}

impl Named {
    /// A fresh semaphore whose name is gone again at once: nothing outlives the process. A name
    /// that is taken is refused.
    fn new() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("/doorbell-{:x}-{:x}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let name = CString::new(name)?;
        let flags = libc::O_CREAT | libc::O_EXCL;
        // SAFETY: the name ends in a zero; rights and value go as
        // promoted integers, as the prototype's dots have it.
        let made = unsafe { libc::sem_open(name.as_ptr(), flags, 0o600 as libc::c_uint, 0 as libc::c_uint) };
        if made == libc::SEM_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        unsafe { libc::sem_unlink(name.as_ptr()) };
        Ok(Self(made))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        // SAFETY: opened by `new`, and not used after this.
        unsafe { libc::sem_close(self.0) };
    }
}

impl Means for Named {
    fn post(&self) -> io::Result<()> {
        // SAFETY: open as long as this holds it.
        if unsafe { libc::sem_post(self.0) } == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
    fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        if timeout.is_some() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "macOS has no sem_timedwait"));
        }
        // SAFETY: as above.
        while unsafe { libc::sem_wait(self.0) } == -1 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(true)
    }
}

/// `mach_port_t` and `kern_return_t` (mach/port.h, mach/kern_return.h).
type Port = u32;
type Answer = c_int;

/// `KERN_ABORTED`: a signal or the like ended the wait; `KERN_OPERATION_TIMED_OUT`.
const ABORTED: Answer = 14;
const TIMED_OUT: Answer = 49;

/// `mach_timespec_t` (mach/clock_types.h).
#[repr(C)]
struct Time {
    seconds: u32,
    nanoseconds: i32,
}

unsafe extern "C" {
    static mach_task_self_: Port;
    fn semaphore_create(task: Port, semaphore: *mut Port, policy: c_int, value: c_int) -> Answer;
    fn semaphore_destroy(task: Port, semaphore: Port) -> Answer;
    fn semaphore_signal(semaphore: Port) -> Answer;
    fn semaphore_wait(semaphore: Port) -> Answer;
    fn semaphore_timedwait(semaphore: Port, wait: Time) -> Answer;
}

struct Mach(Port);

fn kernel_said(answer: Answer) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::other(format!("kern_return_t {answer}"))) }
}

impl Mach {
    fn new() -> io::Result<Self> {
        let mut port = 0;
        // SAFETY: `mach_task_self_` is set before any code of ours
        // runs; the port is ours to be written. Policy 0 is FIFO.
        kernel_said(unsafe { semaphore_create(mach_task_self_, &raw mut port, 0, 0) }).map(|()| Self(port))
    }
}

impl Drop for Mach {
    fn drop(&mut self) {
        // SAFETY: the port is one that `new` made, and nobody uses it any more.
        unsafe { semaphore_destroy(mach_task_self_, self.0) };
    }
}

impl Means for Mach {
    fn post(&self) -> io::Result<()> {
        // SAFETY: the port is open as long as this holds it.
        kernel_said(unsafe { semaphore_signal(self.0) })
    }
    fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let ends = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let answer = match ends.map(|ends| ends.saturating_duration_since(Instant::now())) {
                // SAFETY: as above.
                None => unsafe { semaphore_wait(self.0) },
                Some(rest) => {
                    let seconds = u32::try_from(rest.as_secs()).unwrap_or(u32::MAX);
                    let wait = Time { seconds, nanoseconds: rest.subsec_nanos().cast_signed() };
                    // SAFETY: as above.
                    unsafe { semaphore_timedwait(self.0, wait) }
                }
            };
            match answer {
                TIMED_OUT => return Ok(false),
                ABORTED => {}
                answer => return kernel_said(answer).map(|()| true),
            }
        }
    }
}
