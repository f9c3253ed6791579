// SPDX-License-Identifier: MIT OR Apache-2.0
//! A signal taken by a handler.

use std::cell::Cell;
use std::ptr;
use std::time::Duration;

use rustix::io::Errno;

use super::c_call::{errno, handle, result};
use super::deadline::{Deadline, posix};
use super::signal::{Reception, SignalLink, by_signal, number, queued_signals};
use super::{Carries, Explanation, Fault, Mechanism, OpenError, Waiter, Woken};

pub(crate) struct SignalHandler;

/// The end whose thread the handler interrupts; it stays in the thread that made it.
pub(crate) struct Interrupted {
    /// The thread's mask without the signal, in force only during the wait.
    open: libc::sigset_t,
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

thread_local! {
    /// Handler runs in this thread that no wait has consumed. Initialised at compile time and without a destructor:
    /// the handler's access is a plain one and allocates nothing.
    static HANDLED: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn count(_: libc::c_int) {
    HANDLED.set(HANDLED.get() + 1);
}

/// Takes one handler run if there was one.
#[inline]
fn take() -> bool {
    let some = HANDLED.get() > 0;
    HANDLED.set(HANDLED.get() - u64::from(some));
    some
}

impl Mechanism for SignalHandler {
    type Link = SignalLink<Self>;
    const NAME: &'static str = "signal-handler";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Word;

    const EXPLANATION: Explanation = Explanation {
        summary: "signal, taken by a handler during sigsuspend(2)",
        how: by_signal!(
            "opens the mask only inside sigsuspend(2), which returns once the handler, which \
             counts, has run. Mask and sleep change in one call: no signal falls between a \
             look and the sleep."
        ),
        kernel: "Send: as for every signal; the sleeper is woken. Wait: sleep with the other \
            mask; on the way back to user mode build a frame on the stack, run the handler, \
            and return from it with one more system call (rt_sigreturn).",
        limits: queued_signals!(
            "The handler may call next to nothing (signal-safety(7)). The timed wait is \
             ppoll(2) on no descriptor with the open mask, a check is the same with a timeout of 0."
        ),
        sources: &[
            "sigsuspend(2), sigaction(2), signal(7), signal-safety(7)",
            "Linux kernel/signal.c, get_signal; arch/x86/kernel/signal.c",
            "rt-tests signaltest: signals in a ring of threads",
        ],
    };
}

impl Reception for SignalHandler {
    type Waiter = Interrupted;
    fn begin(_: libc::sigset_t) -> Result<Interrupted, OpenError> {
        // SAFETY: the handler touches nothing but a thread-local count that needs no initialisation. The
        // set is plain data, valid when zero, and lives through the calls.
        // JUSTIFICATION: rustix has no signal masks.
        unsafe {
            handle(number(), count, 0).map_err(OpenError::of("sigaction"))?;
            let mut open: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut open);
            libc::sigdelset(&raw mut open, number());
            Ok(Interrupted { open, _of_this_thread: std::marker::PhantomData })
        }
    }
}

impl Waiter for Interrupted {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        while !take() {
            // SAFETY: the mask lives through the call.
            // JUSTIFICATION: rustix has no sigsuspend.
            unsafe { libc::sigsuspend(&raw const self.open) };
            let error = errno();
            if error != Errno::INTR {
                return Err(Fault::new("sigsuspend", error));
            }
        }
        Ok(())
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = Deadline::after(timeout);
        let mut rest = timeout;
        while !take() {
            let time = posix(rest);
            // SAFETY: no descriptors; time and mask live through the call.
            // JUSTIFICATION: rustix's poll takes no mask.
            match result(unsafe { libc::ppoll(ptr::null_mut(), 0, &raw const time, &raw const self.open) }) {
                Ok(_) => return Ok(Woken::TimedOut),
                Err(Errno::INTR) => rest = deadline.rest().unwrap_or_default(),
                Err(error) => return Err(Fault::new("ppoll", error)),
            }
        }
        Ok(Woken::Notified)
    }
}
