// SPDX-License-Identifier: MIT OR Apache-2.0
//! A futex waited for through io_uring.

use std::time::Duration;

use io_uring::opcode;
use rustix::io::Errno;
use rustix::thread::futex::Flags;

use super::futex::FutexNotifier;
use super::uring::{self, Ring, outcome};
use super::watched_word::{WordReader, WordWaiter};
use super::{Explanation, Fault, Link, Mechanism, Notifiers, OpenError, Site, Unavailable, Word};

pub(crate) struct FutexIoUring;

pub(crate) struct FutexIoUringLink(&'static Word);

/// The end that waits for completions.
pub(crate) struct FutexRingWaiter {
    ring: Ring,
    word: WordReader,
    /// Whether a futex wait is under way. One from before may still be queued on the word when a
    /// look has seen the word change: the wake that follows every change completes it, and the
    /// waiter only looks once more.
    waiting: bool,
}

/// `FUTEX2_SIZE_U32` without `FUTEX2_PRIVATE`: a word of 32 bits that
/// processes share (linux/futex.h).
const FUTEX2_SIZE_U32: u32 = 2;

/// Every wake is meant (`FUTEX_BITSET_MATCH_ANY`).
const ANY: u64 = 0xffff_ffff;

impl Mechanism for FutexIoUring {
    type Link = FutexIoUringLink;
    const NAME: &'static str = "futex-io-uring";
    const COALESCES: bool = true;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "futex, waited for by an operation of io_uring",
        how: "The notifier stores the next number and calls FUTEX_WAKE, as for the futex. The \
            waiter submits IORING_OP_FUTEX_WAIT with the number it saw last and sleeps in \
            io_uring_enter(2) until it is completed, in one call for both: a ring can so wait \
            for words and descriptors at once.",
        kernel: "The operation queues itself on the futex's hash bucket, after the same \
            comparison as FUTEX_WAIT. The wake-up finds it there, queues task work for the \
            waiter and wakes it; the waiter posts the completion and returns.",
        limits: "Kernel 6.7. Two notifications before the waiter looks are one. Rings are closed to many \
                 containers and can be disabled for all (kernel.io_uring_disabled). The timed wait is \
                 io_uring_enter's own (IORING_ENTER_EXT_ARG); a look reads the word.",
        sources: &["io_uring_enter(2), futex(2), futex_wait(2)", "Linux io_uring/futex.c"],
    };

    fn available() -> Result<(), Unavailable> {
        uring::probe(opcode::FutexWait::CODE, "IORING_OP_FUTEX_WAIT", "6.7")
    }
}

impl Link for FutexIoUringLink {
    type Notifier = FutexNotifier;
    type Waiter = FutexRingWaiter;
    fn open(site: &Site) -> Result<Self, OpenError> {
        site.word().map(Self)
    }
    fn waiter(&self) -> Result<FutexRingWaiter, OpenError> {
        Ok(FutexRingWaiter { ring: Ring::new()?, word: WordReader::new(self.0), waiting: false })
    }
    fn notifier(&self) -> Result<FutexNotifier, OpenError> {
        Ok(FutexNotifier::new(self.0, Flags::empty()))
    }
}

impl WordWaiter for FutexRingWaiter {
    #[inline]
    fn word(&mut self) -> &mut WordReader {
        &mut self.word
    }
    #[inline]
    fn between_looks(&mut self, timeout: Option<Duration>) -> Result<(), Fault> {
        if !self.waiting {
            let word = self.word.word.as_ptr();
            let wait = opcode::FutexWait::new(word, self.word.seen.into(), ANY, FUTEX2_SIZE_U32).build();
            // SAFETY: the word is never given back.
            unsafe { self.ring.push(&wait) }?;
            self.waiting = true;
        }
        let Some(result) = self.ring.wait(timeout)? else { return Ok(()) };
        self.waiting = false;
        match outcome(result) {
            // The word no longer held the number: it has rung already.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(Fault::new("IORING_OP_FUTEX_WAIT", error)),
        }
    }
}
