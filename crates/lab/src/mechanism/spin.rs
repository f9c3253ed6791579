// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spinning on a shared word: the cheapest wake there is, paid for with a whole core.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use super::{
    Explanation, Fault, Host, Line, Mechanism, Memory, Notifier, OpenError, Site, Unavailable, Waiter, Waits,
    Woken, Word,
};

/// The notifier increments a word, the waiter reads it in a loop.
#[derive(Debug)]
pub struct Spin;

/// The shared word.
#[derive(Debug)]
pub struct SpinLine(&'static Word);

/// The only writer of the word.
#[derive(Debug)]
pub struct SpinNotifier {
    word: &'static Word,
    rung: u32,
}

/// The reader, with the value it saw last.
#[derive(Debug)]
pub struct SpinWaiter {
    word: &'static Word,
    seen: u32,
}

impl Mechanism for Spin {
    type Line = SpinLine;
    const NAME: &'static str = "spin";
    const WAITS: Waits = Waits::Spins;
    const MEMORY: Memory = Memory::Merges;

    fn explanation() -> Explanation {
        Explanation {
            summary: "spin on a shared word",
            how: "The notifier stores the next number in a word of shared memory; the waiter loads it until it changes.",
            kernel: "Nothing. The cache line moves from the writer's core to the reader's: two coherence messages a hop.",
            limits: "Burns a whole core while waiting; on one shared core the waiter holds up its notifier until the \
                     scheduler intervenes, a time slice later.",
            sources: &[
                "Intel SDM vol. 3A §10.4, cache coherence",
                "core-to-core-latency, c2clat: the bare form of this test",
            ],
        }
    }

    fn available(_: &Host) -> Result<(), Unavailable> {
        Ok(())
    }
}

impl Line for SpinLine {
    type Notifier = SpinNotifier;
    type Waiter = SpinWaiter;
    fn open(site: &Site) -> Result<Self, OpenError> {
        Ok(Self(site.word()?))
    }
    fn waiter(&self) -> Result<SpinWaiter, OpenError> {
        Ok(SpinWaiter { word: self.0, seen: self.0.load(Relaxed) })
    }
    fn notifier(&self) -> Result<SpinNotifier, OpenError> {
        Ok(SpinNotifier { word: self.0, rung: self.0.load(Relaxed) })
    }
}

impl Notifier for SpinNotifier {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        self.rung = self.rung.wrapping_add(1);
        // Pairs with the Acquire loads of `SpinWaiter`: what was written before the ring is visible after the wait.
        self.word.store(self.rung, Release);
        Ok(())
    }
}

impl Waiter for SpinWaiter {
    #[inline]
    fn wait(&mut self) -> Result<(), Fault> {
        loop {
            let now = self.word.load(Acquire);
            if now != self.seen {
                self.seen = now;
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        let start = Instant::now();
        loop {
            if self.poll()? {
                return Ok(Woken::Notified);
            }
            if start.elapsed() >= timeout {
                return Ok(Woken::TimedOut);
            }
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn poll(&mut self) -> Result<bool, Fault> {
        let now = self.word.load(Acquire);
        let rung = now != self.seen;
        self.seen = now;
        Ok(rung)
    }
}
