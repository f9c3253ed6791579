// SPDX-License-Identifier: MIT OR Apache-2.0
//! A signal read from a signalfd.

use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::{read, retry_on_intr};

use super::c_call::result;
use super::descriptor::readable;
use super::signal::{Reception, SignalLink, by_signal, queued_signals};
use super::{Carries, Explanation, Fault, Mechanism, OpenError, Unavailable, Waiter, Woken};

pub(crate) struct SignalSignalfd;

pub(crate) struct SignalReader(OwnedFd);

/// A signalfd for the signals of `set`.
fn signalfd(set: &libc::sigset_t) -> Result<SignalReader, OpenError> {
    // SAFETY: the set lives through the call; -1 asks for a new descriptor, which is ours alone.
    // JUSTIFICATION: rustix has no signalfd.
    unsafe {
        result(libc::signalfd(-1, set, libc::SFD_CLOEXEC))
            .map(|fd| SignalReader(OwnedFd::from_raw_fd(fd)))
            .map_err(OpenError::of("signalfd"))
    }
}

impl Mechanism for SignalSignalfd {
    type Link = SignalLink<Self>;
    const NAME: &'static str = "signal-signalfd";
    const COALESCES: bool = false;
    const CARRIES: Carries = Carries::Word;

    const EXPLANATION: Explanation = Explanation {
        summary: "signal, read from a signalfd",
        how: by_signal!("reads one struct signalfd_siginfo from a signalfd."),
        kernel: "Send: as for every signal, and the signalfd's wait queue is woken too. Read: \
            dequeue under the signal lock, or sleep on that queue, then copy 128 bytes out.",
        limits: queued_signals!(
            "Who reads takes the signals of the reading thread and its process, whoever made the \
             descriptor. The timed wait is ppoll(2) before the read, a check is the same with a timeout of 0."
        ),
        sources: &["signalfd(2), sigqueue(3), tgkill(2)", "Linux fs/signalfd.c"],
    };

    fn available() -> Result<(), Unavailable> {
        // SAFETY: a set is plain data, valid when zero: the empty one.
        let none = unsafe { std::mem::zeroed() };
        signalfd(&none)?;
        Ok(())
    }
}

impl Reception for SignalSignalfd {
    type Waiter = SignalReader;
    fn begin(set: libc::sigset_t) -> Result<SignalReader, OpenError> {
        signalfd(&set)
    }
}

impl Waiter for SignalReader {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        let mut taken = [0; size_of::<libc::signalfd_siginfo>()];
        retry_on_intr(|| read(&self.0, &mut taken)).map(drop).map_err(Fault::of("read(signalfd)"))
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        if !readable(&self.0, timeout)? {
            return Ok(Woken::TimedOut);
        }
        self.wait()?;
        Ok(Woken::Notified)
    }
}
