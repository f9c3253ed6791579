// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shared word that the notifier changes and the waiter looks at:
//! what the futexes, spin, `sched_yield`, `umwait` and `mwaitx`
//! share. They differ in what the waiter does between two looks.

use std::marker::PhantomData;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use super::deadline::Deadline;
use crate::mechanism::{Fault, Link, Notifier, Waiter, Woken};
use crate::site::{OpenError, Site, Word};

/// What a waiter that never sleeps does between two looks.
pub trait Pause: Send + Sync + 'static {
    /// Lets a moment pass. May return at any time, and must return
    /// soon after `word` no longer holds `seen`.
    fn between_looks(word: &AtomicU32, seen: u32);
}

#[derive(Debug)]
pub struct WatchedLink<P> {
    word: &'static Word,
    pause: PhantomData<P>,
}

/// The only writer of a word; the word holds how often it rang.
#[derive(Debug)]
pub struct WordNotifier {
    word: &'static Word,
    rings: u32,
}

/// The reader, with the value it saw last.
#[derive(Debug)]
pub struct Watcher<P> {
    word: WordReader,
    pause: PhantomData<P>,
}

#[derive(Debug)]
pub struct WordReader {
    pub word: &'static Word,
    pub seen: u32,
}

/// A waiter that looks at a word.
pub trait WordWaiter {
    fn word(&mut self) -> &mut WordReader;
    /// Sleeps, or lets a moment pass, until the word may have
    /// changed, and no longer than `timeout`.
    fn between_looks(&mut self, timeout: Option<Duration>) -> Result<(), Fault>;
}

impl<P: Pause> Link for WatchedLink<P> {
    type Notifier = WordNotifier;
    type Waiter = Watcher<P>;
    fn open(site: &Site) -> Result<Self, OpenError> {
        Ok(Self { word: site.word()?, pause: PhantomData })
    }
    fn waiter(&self) -> Result<Watcher<P>, OpenError> {
        Ok(Watcher { word: WordReader::new(self.word), pause: PhantomData })
    }
    fn notifier(&self) -> Result<WordNotifier, OpenError> {
        Ok(WordNotifier::new(self.word))
    }
}

impl WordNotifier {
    /// The writer of `word`; there must be no other.
    pub fn new(word: &'static Word) -> Self {
        Self { word, rings: word.load(Relaxed) }
    }

    #[inline]
    pub fn ring(&mut self) -> &'static Word {
        self.rings = self.rings.wrapping_add(1);
        // Pairs with the Acquire load in `WordReader::has_rung`: what was
        // written before the ring is visible after the wait.
        self.word.store(self.rings, Release);
        self.word
    }
}

impl Notifier for WordNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        self.ring();
        Ok(())
    }
}

impl WordReader {
    /// A reader that has seen all there is by now.
    pub fn new(word: &'static Word) -> Self {
        Self { word, seen: word.load(Relaxed) }
    }

    /// Whether the word has changed since the last look.
    #[inline]
    pub fn has_rung(&mut self) -> bool {
        let now = self.word.load(Acquire);
        let rung = now != self.seen;
        self.seen = now;
        rung
    }
}

impl<P: Pause> WordWaiter for Watcher<P> {
    #[inline(always)]
    fn word(&mut self) -> &mut WordReader {
        &mut self.word
    }
    #[inline(always)]
    fn between_looks(&mut self, _: Option<Duration>) -> Result<(), Fault> {
        P::between_looks(self.word.word, self.word.seen);
        Ok(())
    }
}

impl<W: WordWaiter> Waiter for W {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        while !self.word().has_rung() {
            self.between_looks(None)?;
        }
        Ok(())
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let deadline = Deadline::after(timeout);
        while !self.word().has_rung() {
            let Some(rest) = deadline.rest() else { return Ok(Woken::TimedOut) };
            self.between_looks(Some(rest))?;
        }
        Ok(Woken::Notified)
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        Ok(self.word().has_rung())
    }
}
