// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receiver without a handler: what is sent to it is read and
//! polled through descriptors, by any thread.
//!
//! Such a receiver belongs to no thread and never runs, so no CPU takes its notifications: they are
//! always the kernel's vector, whose handler runs in hard interrupts, in the middle of anything.
//! Three things are to be kept apart:
//!
//! - **The UPID** is at *rest* (SN set, on no list: senders only post) or *armed* (SN clear, on a
//!   processor's list, NV the kernel's vector). Whoever may have to sleep arms it; an interrupt
//!   that finds nobody in the queues puts it to rest.
//! - **Counts**, one for each vector. A post is one bit of PIR, and posts that meet there are one.
//!   It is counted when it is *noticed*: by the interrupt, or by the read that takes it.
//! - **The queues** of those who wait, one for each vector. Their lock may be held by the
//!   interrupted code (always so with PREEMPT_RT), so the interrupt only notes which queues are to
//!   be woken, and work outside hard interrupts wakes them.
//!
//! The rules that keep a wake-up from being lost:
//!
//! 1. Who waits is in the queue before it arms, and looks after that.
//! 2. The interrupt clears ON before it takes PIR.
//! 3. Arming clears ON: what it stood for is looked at next.
//! 4. Whoever turns a bit of PIR into a count wakes that vector's queue. A look that only looks
//!    leaves the bit alone, and a read takes its own vector's alone.
//! 5. Rest is decided and entered under the lock that arming takes, and only where nobody is
//!    queued. That somebody was just woken does not count: it may never look again.
//! 6. The work is free to be queued again before it takes what is to be woken.
//! 7. Who is moved off a processor that goes off-line is looked at after the move.
//! 8. Interrupts have a share of each processor's time. Where it is used up, all that are armed
//!    there are *throttled*: SN is set though somebody waits, until a timer clears it and looks, in
//!    this order.
//!
//! The mistakes are these rules broken; [`check`](super::check) finds what each of them loses.

mod config;
mod describe;
mod hazard;
mod replay;
mod state;
mod steps;

pub use super::{ReplayError, Replayed};
pub use config::{Config, Waiter};
pub use hazard::Hazard;
pub use replay::replay;
pub use state::State;
pub use steps::{Action, Polled};

use super::{Configuration, Property, Protocol, Step, search::property};

impl Configuration for Config {
    type Hazard = Hazard;
    type Protocol = Polled;

    const ALL: &'static [Self] = &[
        Self::LEVEL,
        Self::SHARED,
        Self::READER,
        Self::SEMAPHORE,
        Self::EXCLUSIVE,
        Self::TOLD,
        Self::MULTISHOT,
        Self::VECTORS,
        Self::HOT_PLUG,
        Self::THROTTLED,
        Self::THROTTLED_HOT_PLUG,
    ];

    fn name(self) -> &'static str {
        self.name
    }

    fn protocol(self, hazard: Option<Hazard>) -> Polled {
        Polled { config: self, hazard }
    }
}

/// Somebody sleeps in front of something to read.
pub const SLEEPS: Property = property("woken", "a waiter sleeps for ever although its vector can be read");
/// A waiter that is told each time was not told.
pub const UNTOLD: Property =
    property("told", "a post was noticed by nobody on behalf of a waiter that is told of each");
/// The next post does not interrupt.
pub const UNREACHABLE: Property =
    property("reachable", "a waiter sleeps, and the next post sends no interrupt that would wake it");
/// The interrupted code holds the lock.
pub const DEADLOCK: Property =
    property("lock", "an interrupt waits for a lock that the code it interrupted holds");
/// A sender cannot finish.
pub const STUCK: Property = property("finishes", "a sender cannot finish");
/// One post, read twice.
pub const READ_TWICE: Property = property("counts", "more was read than was posted");

impl Protocol for Polled {
    type State = State;
    type Action = Action;

    fn initial(&self) -> State {
        Polled::initial(self)
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        Polled::actions(self, state, actions);
    }

    fn step(&self, state: &State, action: Action) -> State {
        Polled::step(self, state, action)
    }

    fn interferes(&self, action: Action) -> bool {
        matches!(
            action,
            Action::TimeOut(_)
                | Action::Close(_)
                | Action::GoOffLine(_)
                | Action::ComeBack(_)
                | Action::Throttle(_)
        )
    }

    fn broken(&self, state: &State) -> Option<Property> {
        state.read_twice().then_some(READ_TWICE)
    }

    fn invariant(&self, state: &State) -> Option<Property> {
        self.broken_invariant(state)
    }

    fn unfinished(&self, state: &State) -> Option<Property> {
        self.undone(state)
    }

    fn lanes(&self) -> Vec<String> {
        describe::lanes(self)
    }

    fn describe(&self, before: &State, action: Action, after: &State) -> Step {
        describe::step(self, before, action, after)
    }
}
