// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference of a ping-pong: bare futex hand-overs between the same two sides, a slice of them between two slices of
//! the mechanism.
//!
//! WHY: a CPU that shares its core with others whom this machine cannot see is now fast, now slow, by a factor of 1.5 and
//! for some milliseconds to a second at a time. Medians of runs, and primitive costs measured before and after a trial, then differ
//! by whole percents for no reason of their own. What is done within some tens of microseconds of each other is fast or slow
//! together: across two cores the ratio of two loops spread by 0.3 to 0.9 % where slices had 1 to 4 rounds, and by up to 44 % where
//! they had 64.
//!
//! HOW: the initiator announces a slice during a round of the mechanism, always after as many; the responder, having answered that
//! round, answers [`ROUNDS`] hand-overs. Neither that round nor the first after the slice is recorded, and the windows of counters
//! and times stand still over both, the initiator's from the announcement, the responder's by its own count of rounds.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bare;
use crate::control::Step;
use crate::mechanism::{Link, Mechanism, Notifier, Waiter};
use crate::side::{Side, SideError, Suspended};
use doorbell_machine::clock::Now;
use doorbell_machine::fixed_work;
use doorbell_results::configuration::{Configuration, Pattern, Timing, WaitPolicy};
use doorbell_results::record;
use doorbell_results::record::Histogram;
use doorbell_results::record::subject::Waits;

/// Hand-overs, there and back, of a slice. An odd number has a middle one, and the first finds the caches as the mechanism left
/// them.
const ROUNDS: usize = 3;

/// Recorded rounds of a slice of the mechanism, beside the two around it that are not recorded: a third of the trial is the
/// reference's. A fixed number, for a slice that ends by the clock ends the sooner the slower its rounds are.
const SLICE: usize = 5;

/// Slices that are kept: 5 s of a trial at 80 µs each, and later ones are left out.
const SLICES: usize = 1 << 16;

/// Whether both sides of `configuration` stop for the reference: where the mechanism sleeps as a bare futex does, pinned, back to back and
/// without a message. What spins, sleeps long or carries much is made of other things and follows it less.
pub(super) fn fits<M: Mechanism>(configuration: &Configuration) -> bool {
    M::WAITS == Waits::Blocks
        && configuration.pattern == Pattern::PingPong { gap_ns: 0 }
        && configuration.timing == Timing::Around
        && matches!(configuration.wait, WaitPolicy::Block | WaitPolicy::Timeout { .. })
        && configuration.size == 0
        && !configuration.without_reference
        // Left to the scheduler, the sides may stand elsewhere after a slice than before.
        && configuration.placement.cpus.is_some()
}

/// One side's ends of the reference's links.
#[derive(Debug)]
pub(super) struct Ends {
    notifier: bare::Notifier,
    waiter: bare::Waiter,
}

impl Ends {
    /// The ends of the side that notifies over `out` and waits on `home`.
    pub(super) fn take(out: &bare::Link, home: &bare::Link) -> Result<Self, SideError> {
        Ok(Self { waiter: home.waiter()?, notifier: out.notifier()? })
    }
}

/// The responder's reference: answers slices, and keeps its window open over as many rounds as the initiator's.
#[derive(Debug)]
pub(super) struct Answerer {
    ends: Ends,
    /// Rounds of the mechanism since the last slice; none before the first.
    since: Option<usize>,
    suspended: Option<Suspended>,
}

impl Answerer {
    pub(super) fn new(ends: Ends) -> Self {
        Self { ends, since: None, suspended: None }
    }

    /// After a round of the mechanism was answered, which `announced` a slice or did not.
    #[inline]
    pub(super) fn answered(
        &mut self,
        announced: bool,
        side: &mut Side,
        sequence: u64,
    ) -> Result<(), SideError> {
        if announced {
            self.suspended.get_or_insert_with(|| side.suspend_window());
            for round in 0..ROUNDS as u64 {
                // Another number each time: a hand-over is progress, however long a slice takes on a busy machine.
                side.step(Step::Compares, sequence + round);
                self.ends.waiter.wait()?;
                self.ends.notifier.notify()?;
            }
            self.since = Some(0);
        } else if let Some(rounds) = &mut self.since {
            *rounds += 1;
            // The first round after the slice is not recorded, nor is the one after those that are.
            if *rounds == 1 {
                self.resume(side);
            } else if *rounds == 1 + SLICE {
                self.suspended = Some(side.suspend_window());
            }
        }
        Ok(())
    }

    pub(super) fn resume(&mut self, side: &mut Side) {
        self.suspended.take().into_iter().for_each(|suspended| side.resume_window(suspended));
    }
}

/// The initiator's reference: decides when it is due, and keeps what came of it.
#[derive(Debug)]
pub(super) struct Reference {
    ends: Ends,
    /// Its round trips, picoseconds.
    slice_ps: Vec<u64>,
    /// The median of the last slice of the reference, in the logarithm; none before the first.
    last: Option<f64>,
    /// Its hand-overs, there and back.
    rounds: u64,
    ratios: Vec<f64>,
    round_trips: Vec<f64>,
    /// What a fixed piece of work took, once a slice.
    work: Histogram,
}

impl Reference {
    /// With all memory it will need, written to, so that nothing is allocated and no page is faulted in between two rounds.
    pub(super) fn new(ends: Ends) -> Self {
        let written = |length: usize| {
            let mut slices = vec![f64::MAX; length];
            slices.clear();
            slices
        };
        let mut slice_ps = vec![u64::MAX; SLICE];
        slice_ps.clear();
        Self {
            ends,
            slice_ps,
            last: None,
            rounds: 0,
            ratios: written(SLICES),
            round_trips: written(SLICES),
            work: Histogram::new(),
        }
    }

    /// Whether a slice of it is due. Not before the mechanism has had one: a trial of a few rounds is all its.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.slice_ps.len() >= SLICE
    }

    /// Announces a slice, before a notification of the mechanism that then tells the responder.
    pub(super) fn announce(side: &Side) {
        // Pairs with the Acquire load in `is_announced`, by way of the mechanism's notification.
        side.control.reference.store(1, Release);
    }

    /// Whether the initiator announced a slice.
    #[inline(always)]
    pub(super) fn is_announced(side: &Side) -> bool {
        side.control.reference.load(Acquire) != 0
    }

    /// Keeps a round trip of the mechanism.
    #[inline]
    pub(super) fn note(&mut self, round_trip_ps: u64) {
        if self.slice_ps.len() < SLICE {
            self.slice_ps.push(round_trip_ps);
        }
    }

    /// Runs a slice that was announced.
    pub(super) fn measure(&mut self, side: &mut Side, sequence: u64) -> Result<(), SideError> {
        // The next notification of the mechanism is behind all hand-overs below: whoever it wakes sees this.
        side.control.reference.store(0, Relaxed);
        let clock = side.clock;
        let before = clock.now_awake();
        fixed_work::piece(sequence);
        self.work.record(clock.ps(clock.now_awake().saturating_sub(before)));
        let mut round_trips_ps = [0; ROUNDS];
        for (round, round_trip_ps) in (0..).zip(&mut round_trips_ps) {
            side.step(Step::Compares, sequence + round);
            let before = clock.now();
            self.ends.notifier.notify()?;
            self.ends.waiter.wait()?;
            *round_trip_ps = clock.ps(clock.now_awake().saturating_sub(before)).max(1);
        }
        let median_ps = median(&mut round_trips_ps);
        let now = ln_ns(median_ps);
        if let Some(last) = self.last
            && self.ratios.len() < SLICES
        {
            self.ratios.push(ln_ns(median(&mut self.slice_ps)) - f64::midpoint(last, now));
            self.round_trips.push(now);
        }
        self.last = Some(now);
        self.slice_ps.clear();
        self.rounds += ROUNDS as u64;
        Ok(())
    }

    pub(super) fn found(&mut self) -> Option<record::Reference> {
        record::Reference::of(&mut self.ratios, &mut self.round_trips, self.rounds)
    }

    /// How long a fixed piece of work took in each slice.
    pub(super) fn work(self) -> Histogram {
        self.work
    }
}

/// The middle one; 1 of none.
fn median(values: &mut [u64]) -> u64 {
    let middle = values.len() / 2;
    if values.is_empty() { 1 } else { *values.select_nth_unstable(middle).1 }
}

fn ln_ns(ps: u64) -> f64 {
    (ps as f64 / 1000.0).ln()
}
