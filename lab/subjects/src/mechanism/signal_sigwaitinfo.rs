// SPDX-License-Identifier: MIT OR Apache-2.0
//! A signal taken by `sigwaitinfo(2)`.

use std::ptr;
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};

use super::c_call::result;
use super::deadline::{Deadline, posix};
use super::signal::{Reception, SignalLink, by_signal, queued_signals};
use super::{Carries, Explanation, Fault, Mechanism, OpenError, Waiter, Woken};

pub(crate) struct SignalSigwaitinfo;

/// The end that takes signals of a set.
pub(crate) struct Taker(libc::sigset_t);

impl Mechanism for SignalSigwaitinfo {
    type Link = SignalLink<Self>;
    const NAME: &'static str = "signal-sigwaitinfo";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Word;

    const EXPLANATION: Explanation = Explanation {
        summary: "signal, taken with sigwaitinfo(2)",
        how: by_signal!("takes it with sigwaitinfo(2); no handler runs."),
        kernel: "Send: find the task, check permissions, allocate a queue entry, append it \
            under the signal lock, wake the task if it waits for this signal. Wait: dequeue if \
            there is one, else sleep; the signal's data are copied out.",
        limits: queued_signals!(
            "The timed wait is sigtimedwait(2), a check is the same with a timeout of 0."
        ),
        sources: &[
            "sigwaitinfo(2), sigqueue(3), tgkill(2), signal(7)",
            "Linux kernel/signal.c, do_sigtimedwait",
            "rt-tests sigwaittest: this mechanism",
        ],
    };
}

impl Reception for SignalSigwaitinfo {
    type Waiter = Taker;
    fn begin(set: libc::sigset_t) -> Result<Taker, OpenError> {
        Ok(Taker(set))
    }
}

impl Taker {
    #[inline]
    fn take(&self, timeout: Duration) -> Result<(), Errno> {
        let timeout = posix(timeout);
        // SAFETY: set and time live through the call; a null pointer asks for no data.
        // JUSTIFICATION: rustix has no sigtimedwait.
        result(unsafe { libc::sigtimedwait(&raw const self.0, ptr::null_mut(), &raw const timeout) })
            .map(drop)
    }
}

impl Waiter for Taker {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        // SAFETY: the set lives through the call; a null pointer asks for no data.
        // JUSTIFICATION: rustix has no sigwaitinfo.
        retry_on_intr(|| result(unsafe { libc::sigwaitinfo(&raw const self.0, ptr::null_mut()) }))
            .map(drop)
            .map_err(Fault::of("sigwaitinfo"))
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = Deadline::after(timeout);
        let mut rest = timeout;
        loop {
            match self.take(rest) {
                Ok(()) => return Ok(Woken::Notified),
                Err(Errno::AGAIN) => return Ok(Woken::TimedOut),
                Err(Errno::INTR) => rest = deadline.rest().unwrap_or_default(),
                Err(error) => return Err(Fault::new("sigtimedwait", error)),
            }
        }
    }
}
