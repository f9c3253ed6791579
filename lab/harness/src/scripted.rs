// SPDX-License-Identifier: MIT OR Apache-2.0
//! A waiter that wakes by a script, for the tests of roles.

use super::control::{Control, STAMPS};
use super::side::Side;
use crate::mechanism::{Explanation, Fault, Link, Mechanism, Notifier, Waiter, Woken};
use crate::site::{OpenError, Site};
use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::Clock;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;
#[derive(Debug)]
pub(crate) struct Nobody;

impl Notifier for Nobody {
    fn notify(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// One return from a wait: what was sent by then, and what is sent
/// after the waiter woke but before it looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wake {
    /// Messages sent before the wait returns.
    pub(crate) before: &'static [u64],
    /// Messages sent between the return and the waiter's look at what was sent.
    pub(crate) after: &'static [u64],
    pub(crate) woken: Woken,
    /// Whether the notifier's calls for those sent before have returned; not yet for those after.
    pub(crate) rung: bool,
    /// Whether the notifier has said by then that it is over.
    pub(crate) over: bool,
}

impl Wake {
    pub(crate) fn notified(before: &'static [u64], after: &'static [u64]) -> Self {
        Self { before, after, woken: Woken::Notified, rung: true, over: false }
    }
    /// A wait that runs out, and a look at the mechanism that finds nothing.
    pub(crate) fn timed_out(before: &'static [u64], after: &'static [u64]) -> Self {
        Self { woken: Woken::TimedOut, ..Self::notified(before, after) }
    }
    pub(crate) fn over() -> Self {
        Self { over: true, ..Self::notified(&[], &[]) }
    }
}

/// The stamp of a message that is sent after the waiter woke, whenever that is: it gets its own
/// once the waiter has looked.
const LATER: u64 = u64::MAX / 2;

/// A mechanism whose notifications merge, and whose wakes are a script's.
#[derive(Debug)]
pub(crate) struct Scripted;

/// The script, and the words by which the waiter is told.
#[derive(Debug)]
pub(crate) struct Script {
    control: &'static Control,
    wakes: VecDeque<Wake>,
}

impl Script {
    /// `wakes` in turn, for the waiter of `side`; what rendezvous it
    /// makes find the notifier there already.
    pub(crate) fn of(side: &Side, wakes: &[Wake]) -> Self {
        side.control.arrived.fetch_add(2, Release);
        Self { control: side.control, wakes: wakes.iter().copied().collect() }
    }
}

/// The waiter that follows it.
#[derive(Debug)]
pub(crate) struct Player {
    control: &'static Control,
    wakes: VecDeque<Wake>,
    later: &'static [u64],
}

impl Player {
    fn send(&self, messages: &[u64], at: u64, rung: bool) {
        let mail = &self.control.mail[0];
        for &number in messages {
            // A ping-pong has one message at a time under way, and keeps its stamp in the first place.
            for place in [0, number as usize % STAMPS] {
                mail.stamps[place].sent.store(at, Relaxed);
                mail.stamps[place].due.store(at, Relaxed);
            }
            mail.published.0.store(number, Release);
            if rung {
                mail.rung.0.store(number, Release);
            }
        }
    }

    /// The waiter has looked: what was sent later than its wake gets the stamp of a moment after
    /// that, which then passes.
    fn looked(&mut self) {
        let now = Clock::MONOTONIC.now();
        let later = std::mem::take(&mut self.later);
        self.send(later, now, true);
        while Clock::MONOTONIC.now() <= now {
            std::hint::spin_loop();
        }
    }
}

impl Waiter for Player {
    fn wait(&mut self) -> Result<(), Fault> {
        self.wait_for(Duration::MAX).map(drop)
    }

    fn wait_for(&mut self, _: Duration) -> Result<Woken, Fault> {
        self.looked();
        let wake = self.wakes.pop_front().ok_or_else(|| Fault::new("wait", "the script is over"))?;
        self.send(wake.before, Clock::MONOTONIC.now(), wake.rung);
        self.send(wake.after, LATER, false);
        self.later = wake.after;
        if wake.over {
            self.control.stop.store(1, Release);
        }
        Ok(wake.woken)
    }

    fn poll(&mut self) -> Result<bool, Fault> {
        self.looked();
        Ok(false)
    }
}

impl Mechanism for Scripted {
    type Link = Script;
    const NAME: &'static str = "scripted";
    const COALESCES: bool = true;
    const EXPLANATION: Explanation =
        Explanation { summary: "", how: "", kernel: "", limits: "", sources: &[] };
}

impl Link for Script {
    type Notifier = Nobody;
    type Waiter = Player;
    fn open(_: &Site) -> Result<Self, OpenError> {
        unreachable!("made by the test itself")
    }
    fn waiter(&self) -> Result<Player, OpenError> {
        Ok(Player { control: self.control, wakes: self.wakes.clone(), later: &[] })
    }
    fn notifier(&self) -> Result<Nobody, OpenError> {
        Ok(Nobody)
    }
}
