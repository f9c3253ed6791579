// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bare futex: a word in memory, and a kernel queue for those who sleep on its value.
//!
//! It stands here and not among the mechanisms because every comparison is made in multiples of it:
//! the harness runs it beside whatever is measured (`role/reference.rs`).

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use crate::deadline::relative;
use crate::mechanism::{Fault, Link, Notifier, Unavailable};
use crate::site::{OpenError, Site, Word};
use crate::watched_word::{WordNotifier, WordReader, WordWaiter};

/// The word, which the kernel keys by its page, or by its address alone where `PRIVATE`: for threads
/// of one process (`FUTEX_PRIVATE_FLAG`).
#[derive(Debug, Clone, Copy)]
pub struct FutexLink<const PRIVATE: bool = false>(&'static Word);

/// The only writer of the word.
#[derive(Debug)]
pub struct FutexNotifier {
    word: WordNotifier,
    flags: Flags,
}

#[derive(Debug)]
pub struct FutexWaiter {
    word: WordReader,
    flags: Flags,
}

impl<const PRIVATE: bool> FutexLink<PRIVATE> {
    const FLAGS: Flags = if PRIVATE { Flags::PRIVATE } else { Flags::empty() };
}

impl<const PRIVATE: bool> Link for FutexLink<PRIVATE> {
    type Notifier = FutexNotifier;
    type Waiter = FutexWaiter;
    fn available() -> Result<(), Unavailable> {
        match futex::wake(&Word::default().0, Flags::empty(), 1) {
            Ok(_) => Ok(()),
            Err(error) => Err(Unavailable::because(format!("futex(FUTEX_WAKE) is refused here: {error}"))),
        }
    }
    fn open(site: &Site) -> Result<Self, OpenError> {
        site.word().map(Self)
    }
    fn waiter(&self) -> Result<FutexWaiter, OpenError> {
        Ok(FutexWaiter { word: WordReader::new(self.0), flags: Self::FLAGS })
    }
    fn notifier(&self) -> Result<FutexNotifier, OpenError> {
        Ok(FutexNotifier::new(self.0, Self::FLAGS))
    }
}

impl FutexNotifier {
    /// The writer of `word`; there must be no other.
    pub fn new(word: &'static Word, flags: Flags) -> Self {
        Self { word: WordNotifier::new(word), flags }
    }
}

impl Notifier for FutexNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        let word = self.word.ring();
        futex::wake(word, self.flags, 1).map_err(Fault::of("futex(FUTEX_WAKE)"))?;
        Ok(())
    }
}

impl WordWaiter for FutexWaiter {
    #[inline]
    fn word(&mut self) -> &mut WordReader {
        &mut self.word
    }
    #[inline]
    fn between_looks(&mut self, timeout: Option<Duration>) -> Result<(), Fault> {
        let timeout = timeout.map(relative);
        match futex::wait(self.word.word, self.flags, self.word.seen, timeout.as_ref()) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(error) => Err(Fault::new("futex(FUTEX_WAIT)", error)),
        }
    }
}
