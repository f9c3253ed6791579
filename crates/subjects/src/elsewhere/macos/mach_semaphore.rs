// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Mach semaphore: a count behind a port.

use std::sync::Arc;
use std::time::Duration;

use super::{
    Explanation, Fault, Host, Link, Mechanism, Notifier, OpenError, Site, Unavailable, Waiter, Woken,
};

/// `mach_port_t` and `kern_return_t` (mach/port.h, mach/kern_return.h).
type Port = u32;
type Answer = libc::c_int;

const SUCCESS: Answer = 0;
/// `KERN_ABORTED`: a signal or the like ended the wait.
const ABORTED: Answer = 14;
/// `KERN_OPERATION_TIMED_OUT`.
const TIMED_OUT: Answer = 49;
/// `SYNC_POLICY_FIFO` (mach/sync_policy.h).
const FIFO: libc::c_int = 0;

/// `mach_timespec_t` (mach/clock_types.h).
#[repr(C)]
struct Time {
    seconds: u32,
    nanoseconds: i32,
}

unsafe extern "C" {
    static mach_task_self_: Port;
    fn semaphore_create(task: Port, semaphore: *mut Port, policy: libc::c_int, value: libc::c_int) -> Answer;
    fn semaphore_destroy(task: Port, semaphore: Port) -> Answer;
    fn semaphore_signal(semaphore: Port) -> Answer;
    fn semaphore_wait(semaphore: Port) -> Answer;
    fn semaphore_timedwait(semaphore: Port, wait: Time) -> Answer;
}

/// The notifier signals, the waiter waits.
#[derive(Debug)]
pub struct MachSemaphore;

/// A semaphore, destroyed when the last of its holders is gone.
#[derive(Debug)]
struct Made(Port);

impl Made {
    fn new() -> Result<Self, Answer> {
        let mut port = 0;
        // SAFETY: `mach_task_self_` is set before any code of ours runs; the port is ours to be written.
        match unsafe { semaphore_create(mach_task_self_, &raw mut port, FIFO, 0) } {
            SUCCESS => Ok(Self(port)),
            answer => Err(answer),
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: the port is one that `new` made, and nobody uses it any more.
        unsafe { semaphore_destroy(mach_task_self_, self.0) };
    }
}

#[derive(Debug)]
pub struct MachLink(Arc<Made>);

#[derive(Debug)]
pub struct MachEnd(Arc<Made>);

fn fault(call: &'static str, answer: Answer) -> Fault {
    Fault::new(call, format!("kern_return_t {answer}"))
}

impl Mechanism for MachSemaphore {
    type Link = MachLink;
    const NAME: &'static str = "mach-semaphore";
    const COALESCES: bool = false;
    const PROCESSES: bool = false;

    fn explanation() -> Explanation {
        Explanation {
            summary: "Mach semaphore",
            how: "The notifier calls semaphore_signal, the waiter semaphore_wait. It is a port right: another process would have to be sent it.",
            kernel: "A count and a queue in the kernel: a signal adds one, or makes the first waiter runnable and gives it what would have been \
                     added.",
            limits: "Mesa semantics: who was woken does not run at once. semaphore_signal_all wakes those who wait at that moment and adds nothing, \
                     so that who comes a moment later sleeps (`doorbell model mach-semaphore`); it is not used here. Never run here: \
                     type-checked only.",
            sources: &["mach/semaphore.h", "Kernel Programming Guide, Synchronization Primitives (Apple)"],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        Made::new()
            .map(drop)
            .map_err(|answer| Unavailable::because(format!("semaphore_create: kern_return_t {answer}")))
    }
}

impl Link for MachLink {
    type Notifier = MachEnd;
    type Waiter = MachEnd;
    fn open(_: &Site) -> Result<Self, OpenError> {
        let made = Made::new()
            .map_err(|answer| OpenError::call("semaphore_create", format!("kern_return_t {answer}")))?;
        Ok(Self(Arc::new(made)))
    }
    fn waiter(&self) -> Result<MachEnd, OpenError> {
        Ok(MachEnd(self.0.clone()))
    }
    fn notifier(&self) -> Result<MachEnd, OpenError> {
        Ok(MachEnd(self.0.clone()))
    }
}

impl Notifier for MachEnd {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        // SAFETY: the port is open as long as this holds it.
        match unsafe { semaphore_signal(self.0.0) } {
            SUCCESS => Ok(()),
            answer => Err(fault("semaphore_signal", answer)),
        }
    }
}

impl Waiter for MachEnd {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        loop {
            // SAFETY: as above.
            match unsafe { semaphore_wait(self.0.0) } {
                SUCCESS => return Ok(()),
                ABORTED => {}
                answer => return Err(fault("semaphore_wait", answer)),
            }
        }
    }
    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let ends = std::time::Instant::now() + timeout;
        loop {
            let rest = ends.saturating_duration_since(std::time::Instant::now());
            let seconds = u32::try_from(rest.as_secs()).unwrap_or(u32::MAX);
            let wait = Time { seconds, nanoseconds: rest.subsec_nanos().cast_signed() };
            // SAFETY: as above.
            match unsafe { semaphore_timedwait(self.0.0, wait) } {
                SUCCESS => return Ok(Woken::Notified),
                TIMED_OUT => return Ok(Woken::TimedOut),
                ABORTED => {}
                answer => return Err(fault("semaphore_timedwait", answer)),
            }
        }
    }
    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        self.wait_for(Duration::ZERO).map(|woken| woken == Woken::Notified)
    }
}
