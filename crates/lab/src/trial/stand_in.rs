// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands in for a trial in tests: a side without a host, and a waiter that wakes by a script.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use super::arena::Arena;
use super::control::{Control, STAMPS};
use super::role::Role;
use super::side::{Side, Times};
use crate::machine::clock::Clock;
use crate::machine::clock::Now;
use crate::mechanism::null::NullEnd;
use crate::mechanism::{
    Explanation, Fault, Host, Line, Mechanism, OpenError, Site, Unavailable, Waiter, Woken,
};
use crate::record::{SideCounters, Tally, sample};

/// A responder that may run on `cpus`, with messages of `size` bytes, by the monotonic clock.
pub(crate) fn side(cpus: Option<[u32; 2]>, size: usize) -> Side {
    let arena = Arena::map(size_of::<Control>() + 2 * size + 8192).unwrap();
    let mut cell = sample::cell("futex");
    cell.placement.cpus = cpus;
    cell.size = size as u32;
    Side {
        clock: Clock::MONOTONIC,
        cell,
        control: Control::place(arena).unwrap(),
        payload: [arena.bytes(size).unwrap(), arena.bytes(size).unwrap()],
        received: vec![u8::MAX; size],
        role: Role::Respond,
        times: Times::default(),
        tally: Tally::default(),
        before: None,
        left_out: 0,
        yardstick_lines: None,
        yardstick: None,
        counters: SideCounters::default(),
        figures: Vec::new(),
        journal: None,
        io: None,
    }
}

/// One return from a wait: what was sent by then, and what is sent after the waiter woke but before it looks.
#[derive(Debug, Clone, Copy)]
pub(in crate::trial) struct Wake {
    /// Messages sent before the wait returns.
    pub(in crate::trial) before: &'static [u64],
    /// Messages sent between the return and the waiter's look at what was sent.
    pub(in crate::trial) after: &'static [u64],
    /// How the wait ends.
    pub(in crate::trial) woken: Woken,
    /// Whether the notifier has said by then that it is over.
    pub(in crate::trial) over: bool,
}

impl Wake {
    /// A notification that wakes.
    pub(in crate::trial) fn notified(before: &'static [u64], after: &'static [u64]) -> Self {
        Self { before, after, woken: Woken::Notified, over: false }
    }
    /// A wait that runs out, and a look at the mechanism that finds nothing.
    pub(in crate::trial) fn timed_out(before: &'static [u64], after: &'static [u64]) -> Self {
        Self { woken: Woken::TimedOut, ..Self::notified(before, after) }
    }
    /// The last notification.
    pub(in crate::trial) fn over() -> Self {
        Self { over: true, ..Self::notified(&[], &[]) }
    }
}

/// The stamp of a message that is sent after the waiter woke, whenever that is: it gets its own once the waiter has looked.
const LATER: u64 = u64::MAX / 2;

/// A mechanism whose notifications merge, and whose wakes are a script's.
#[derive(Debug)]
pub(in crate::trial) struct Scripted;

/// The script, and the words by which the waiter is told.
#[derive(Debug)]
pub(in crate::trial) struct Script {
    control: &'static Control,
    wakes: VecDeque<Wake>,
}

impl Script {
    /// `wakes` in turn, for the waiter of `side`; what rendezvous it makes find the notifier there already.
    pub(in crate::trial) fn of(side: &Side, wakes: &[Wake]) -> Self {
        side.control.arrived.fetch_add(2, Release);
        Self { control: side.control, wakes: wakes.iter().copied().collect() }
    }
}

/// The waiter that follows it.
#[derive(Debug)]
pub(in crate::trial) struct Player {
    control: &'static Control,
    wakes: VecDeque<Wake>,
    later: &'static [u64],
}

impl Player {
    fn send(&self, messages: &[u64], at: u64) {
        let mail = &self.control.mail[0];
        for &number in messages {
            // A ping-pong has one message at a time under way, and keeps its stamp in the first place.
            for place in [0, number as usize % STAMPS] {
                mail.stamps[place].sent.store(at, Relaxed);
                mail.stamps[place].due.store(at, Relaxed);
            }
            mail.published.0.store(number, Release);
        }
    }

    /// The waiter has looked: what was sent later than its wake gets the stamp of a moment after that, which then passes.
    fn looked(&mut self) {
        let now = Clock::MONOTONIC.now();
        let later = std::mem::take(&mut self.later);
        self.send(later, now);
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
        self.send(wake.before, Clock::MONOTONIC.now());
        self.send(wake.after, LATER);
        self.later = wake.after;
        if wake.over {
            self.control.stop.store(1, Release);
        }
        Ok(wake.woken)
    }

    /// Finds nothing.
    fn poll(&mut self) -> Result<bool, Fault> {
        self.looked();
        Ok(false)
    }
}

impl Mechanism for Scripted {
    type Line = Script;
    const NAME: &'static str = "scripted";
    const COALESCES: bool = true;
    fn explanation() -> Explanation {
        unreachable!("it is no mechanism of the command")
    }
    fn available(_: &Host) -> Result<(), Unavailable> {
        Ok(())
    }
}

impl Line for Script {
    type Notifier = NullEnd;
    type Waiter = Player;
    fn open(_: &Site) -> Result<Self, OpenError> {
        unreachable!("made by the test itself")
    }
    fn waiter(&self) -> Result<Player, OpenError> {
        Ok(Player { control: self.control, wakes: self.wakes.clone(), later: &[] })
    }
    fn notifier(&self) -> Result<NullEnd, OpenError> {
        Ok(NullEnd)
    }
}
