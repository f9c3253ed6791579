// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for any of several futexes at once: `futex_waitv(2)`.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Wait, WaitFlags, WaitPtr, WaitvFlags};
use rustix::time::ClockId;

use super::deadline::{Deadline, monotonic};
use super::futex::FutexNotifier;
use super::watched_word::WordReader;
use super::{
    Explanation, Fault, Link, Mechanism, Notifier, Notifiers, OpenError, Site, Unavailable, Waiter, Woken,
    Word,
};

pub(crate) struct FutexWaitv;

/// Words of a link: as many sources as a small server waits for. The
/// kernel takes 128 (`FUTEX_WAITV_MAX`).
const WORDS: usize = 8;

pub(crate) struct FutexWaitvLink([&'static Word; WORDS]);

/// The writer of all words, each in its turn.
pub(crate) struct RoundNotifier {
    words: [FutexNotifier; WORDS],
    next: usize,
}

/// The sleeper, with the value it saw last in each word.
pub(crate) struct AnyWaiter([WordReader; WORDS]);

fn entry(reader: &WordReader) -> Wait {
    let mut wait = Wait::new();
    wait.val = reader.seen.into();
    wait.uaddr = WaitPtr::new(reader.word.as_ptr().cast());
    wait.flags = WaitFlags::SIZE_U32;
    wait
}

impl Mechanism for FutexWaitv {
    type Link = FutexWaitvLink;
    const NAME: &'static str = "futex-waitv";
    const COALESCES: bool = true;
    const USUAL: bool = false;
    const NOTIFIERS: Notifiers = Notifiers::One;

    const EXPLANATION: Explanation = Explanation {
        summary: "any of eight futexes, waited for at once (futex_waitv)",
        how: "A link has eight words, as a waiter has that serves eight sources. The notifier \
            stores the next number in one of them, another each time, and calls FUTEX_WAKE on \
            it. The waiter looks at all eight and calls futex_waitv with the numbers it saw \
            last; the kernel sleeps only if every word still holds its own.",
        kernel: "Wake: as for the futex. Wait: the thread is queued on the buckets of all \
            words, one after the other, each compared under its bucket's lock; if one has \
            changed, or once woken, it is taken off all of them.",
        limits: "Kernel 5.16. A wait costs a look-up and two locks a word, whoever rings. At \
            most 128 words. Two notifications before the waiter looks are one. The timed wait \
            is futex_waitv's own, until a time of CLOCK_MONOTONIC.",
        sources: &[
            "futex_waitv(2)",
            "Linux kernel/futex/waitwake.c, futex_wait_multiple; Documentation/userspace-api/futex2.rst",
        ],
    };

    fn available() -> Result<(), Unavailable> {
        // A word that no longer holds the number: the kernel that knows the call says so at once.
        static WORD: std::sync::OnceLock<Word> = std::sync::OnceLock::new();
        let waits = [entry(&WordReader { word: WORD.get_or_init(Word::default), seen: 1 })];
        match futex::waitv(&waits, WaitvFlags::empty(), None, ClockId::Monotonic) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(Unavailable::because(format!(
                "futex_waitv is refused here: {error} (kernel 5.16 brought it)"
            ))),
        }
    }
}

impl Link for FutexWaitvLink {
    type Notifier = RoundNotifier;
    type Waiter = AnyWaiter;
    fn open(site: &Site) -> Result<Self, OpenError> {
        let mut words = [site.word()?; WORDS];
        for word in &mut words[1..] {
            *word = site.word()?;
        }
        Ok(Self(words))
    }
    fn waiter(&self) -> Result<AnyWaiter, OpenError> {
        Ok(AnyWaiter(self.0.map(WordReader::new)))
    }
    fn notifier(&self) -> Result<RoundNotifier, OpenError> {
        Ok(RoundNotifier { words: self.0.map(|word| FutexNotifier::new(word, Flags::empty())), next: 0 })
    }
}

impl Notifier for RoundNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let own = self.next % WORDS;
        self.next = own + 1;
        self.words[own].notify()
    }
}

impl AnyWaiter {
    /// Whether any word has changed since the last look.
    #[inline]
    fn rung(&mut self) -> bool {
        // All are looked at: what is left out would wake the next wait for nothing.
        self.0.iter_mut().fold(false, |rung, word| word.has_rung() | rung)
    }

    fn sleep(&self, until: Option<&rustix::event::Timespec>) -> Result<(), Fault> {
        let waits = self.0.each_ref().map(entry);
        match futex::waitv(&waits, WaitvFlags::empty(), until, ClockId::Monotonic) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(error) => Err(Fault::new("futex_waitv", error)),
        }
    }
}

impl Waiter for AnyWaiter {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.rung() {
            self.sleep(None)?;
        }
        Ok(())
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let (deadline, until) = (Deadline::after(timeout), monotonic(timeout));
        let until = rustix::event::Timespec { tv_sec: until.tv_sec, tv_nsec: until.tv_nsec };
        while !self.rung() {
            if deadline.rest().is_none() {
                return Ok(Woken::TimedOut);
            }
            self.sleep(Some(&until))?;
        }
        Ok(Woken::Notified)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        Ok(self.rung())
    }
}
