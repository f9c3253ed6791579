// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ping-pong in slices: both sides hold their ends open, and come
//! back to them whenever it is their turn.
//!
//! HOW: the side that notifies first tells the other by a word that is written before a
//! notification and read after the wake-up it makes: from this round on it is recorded, or this
//! round is the slice's last. Neither of these two rounds is timed. The counters of both sides
//! cover the same rounds, the last one included: each reads them right after a wake-up.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{miscounted, not_taken};
use crate::bench::resident::{Resident, Span};
use crate::bench::rounds::Rounds;
use crate::control::{Step, Told};
use crate::mechanism::{Link, Mechanism, Notifier, Woken};
use crate::role::ping::{PARTED, keeps_its_cpu};
use crate::role::slowdown::Slowdown;
use crate::role::{Role, wait_by_policy};
use crate::side::{Side, SideError};
use crate::site::Word;
use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::Ticks;
use doorbell_results::record::subject::Waits;

const THERE: usize = 0;
const BACK: usize = 1;

/// One side's ends of a ping-pong, there and back.
pub(crate) struct PingPong<'links, M: Mechanism> {
    out: &'links M::Link,
    home: &'links M::Link,
    waiter: Option<<M::Link as Link>::Waiter>,
    notifier: Option<<M::Link as Link>::Notifier>,
    slowdown: Option<Slowdown>,
    shares_core: bool,
    /// The round it is at, over all slices.
    sequence: u64,
    /// Rounds of the slice under way that were timed.
    timed: Rounds,
}

/// Where a slice is. In each state but the last nothing is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Head,
    /// The other side is told in this round.
    Tells,
    /// From ring to ring the round before is timed, which this side's
    /// own reading of its counters is part of.
    First,
    Recorded,
}

impl<'links, M: Mechanism> PingPong<'links, M> {
    pub(crate) fn new(there: &'links M::Link, back: &'links M::Link, role: Role, side: &Side) -> Self {
        let (out, home) = if role == Role::Initiate { (there, back) } else { (back, there) };
        let half = |ppm| Slowdown::half_of(ppm, side.clock);
        Self {
            out,
            home,
            waiter: None,
            notifier: None,
            slowdown: side.configuration.injected_slowdown_ppm.map(half),
            shares_core: side.shares_core(),
            sequence: 0,
            timed: Rounds::default(),
        }
    }
}

impl<M: Mechanism> Resident for PingPong<'_, M> {
    fn take_waiter(&mut self) -> Result<(), SideError> {
        self.waiter = Some(self.home.waiter()?);
        Ok(())
    }

    fn take_notifier(&mut self) -> Result<(), SideError> {
        self.notifier = Some(self.out.notifier()?);
        Ok(())
    }

    fn is_lonely(&self) -> bool {
        M::WAITS == Waits::Nothing
    }

    fn run(&mut self, side: &mut Side, span: &Span) -> Result<u32, SideError> {
        let Self { waiter: Some(waiter), notifier: Some(notifier), slowdown, shares_core, timed, .. } = self
        else {
            return Err(not_taken());
        };
        timed.begin();
        let (clock, policy, shares_core) = (side.clock, side.configuration.wait, *shares_core);
        let ring_to_ring = keeps_its_cpu::<M>(policy) && side.configuration.size == 0 && slowdown.is_none();
        let responder = &side.control.progress[Role::Respond.index()];
        // Across cores it says nothing, and its line lies with the other side.
        let ran = || if shares_core { responder.sequence.load(Relaxed) } else { 0 };
        let (mut sequence, mut recorded, mut unrecorded) = (self.sequence, 0_u32, 0_u64);
        let mut last = clock.now();
        let mut over = last.saturating_add(span.head);
        let mut latest = Ticks::MAX;
        let mut phase = Phase::Head;
        loop {
            sequence += 1;
            let before = if ring_to_ring {
                last
            } else {
                side.step(Step::Notifies, sequence);
                clock.now()
            };
            side.write_payload(THERE, sequence);
            if let Some(slowdown) = slowdown {
                slowdown.put_in();
            }
            let parted = !ring_to_ring && u64::from(recorded).is_multiple_of(PARTED);
            let ran_before = if parted { ran() } else { 0 };
            notifier.notify()?;
            let notified = if ring_to_ring || parted { clock.now() } else { before };
            // On one core the other side may have run inside the
            // call, whose time is then no cost of sending alone.
            let sent_alone = parted && ran() == ran_before;
            let mut round_ps = 0;
            if ring_to_ring {
                round_ps = clock.ps(notified.saturating_sub(last));
                last = notified;
            }
            side.step(Step::Waits, sequence);
            // Timed before this ring's answer: what the answer takes is the next round's.
            if ring_to_ring && phase == Phase::Recorded {
                side.times.round_trip.record(round_ps);
            }
            while wait_by_policy(waiter, policy, clock)? == Woken::TimedOut {
                side.tally.timeouts += u64::from(phase == Phase::Recorded);
            }
            let awake = if ring_to_ring { notified } else { clock.now_awake() };
            side.read_payload(BACK);
            match phase {
                Phase::Recorded => {
                    if !ring_to_ring {
                        let awake = if side.configuration.size > 0 { clock.now_awake() } else { awake };
                        round_ps = clock.ps(awake.saturating_sub(before));
                        side.times.round_trip.record(round_ps);
                        if parted {
                            if sent_alone {
                                side.times.notify.record(clock.ps(notified.saturating_sub(before)));
                            }
                            side.times.around_wait.record(clock.ps(awake.saturating_sub(notified)));
                        }
                    }
                    recorded += 1;
                    timed.add(round_ps);
                    let enough = awake >= over && recorded >= span.fewest;
                    if enough || awake >= latest || u64::from(recorded) >= span.most || side.interrupted() {
                        break;
                    }
                }
                Phase::First => phase = Phase::Recorded,
                Phase::Tells => {
                    let opened = side.open_slice();
                    over = opened.saturating_add(span.recorded.unwrap_or(0));
                    latest = opened.saturating_add(span.longest);
                    phase = if ring_to_ring { Phase::First } else { Phase::Recorded };
                }
                Phase::Head => {
                    unrecorded += 1;
                    if awake >= over || side.interrupted() {
                        if span.recorded.is_none() {
                            break;
                        }
                        Told::Record(sequence + 1).tell(side.control);
                        phase = Phase::Tells;
                    }
                }
            }
        }
        side.tally.warmup += unrecorded;
        // The rounds that both sides' counters cover: one more, and
        // from ring to ring two, than those that are timed.
        let more = if M::WAITS == Waits::Nothing { 0 } else { 1 + u64::from(ring_to_ring) };
        let counted = u64::from(recorded) + if recorded == 0 { 0 } else { more };
        side.tally.sent += counted;
        side.tally.seen += counted;
        self.sequence = sequence;
        Ok(recorded)
    }

    fn part(&mut self, side: &mut Side) -> Result<(), SideError> {
        let Self { waiter: Some(waiter), notifier: Some(notifier), .. } = self else {
            return Err(not_taken());
        };
        if M::WAITS != Waits::Nothing {
            self.sequence += 1;
            Told::Last(self.sequence).tell(side.control);
            side.step(Step::Notifies, self.sequence);
            side.write_payload(THERE, self.sequence);
            notifier.notify()?;
            side.step(Step::Waits, self.sequence);
            while wait_by_policy(waiter, side.configuration.wait, side.clock)? == Woken::TimedOut {}
        }
        side.close_slice(self.timed.count(), &mut || self.timed.middle_ps());
        // Pairs with the Release store in `answer`.
        let answered = side.control.mail[BACK].published.0.load(Acquire);
        if M::WAITS != Waits::Nothing && answered != self.sequence {
            return Err(miscounted(self.sequence, answered));
        }
        Ok(())
    }

    fn answer(&mut self, side: &mut Side, next: &Word) -> Result<u32, SideError> {
        let Self { waiter: Some(waiter), notifier: Some(notifier), slowdown, .. } = self else {
            return Err(not_taken());
        };
        let (clock, policy) = (side.clock, side.configuration.wait);
        let began = self.sequence;
        let mut sequence = began;
        let (mut opened_at, mut timeouts) = (None, 0);
        let next = loop {
            side.step(Step::Waits, sequence);
            while wait_by_policy(waiter, policy, clock)? == Woken::TimedOut {
                timeouts += u64::from(opened_at.is_some());
            }
            sequence += 1;
            let told = Told::heard(side.control, began, sequence);
            if let Some(Told::Last(_)) = told {
                // Before the answer, after which the other side may write down what comes after that.
                let next = next.load(Acquire);
                if let Some(opened_at) = opened_at {
                    side.close_slice(u32::try_from(sequence - opened_at).unwrap_or(u32::MAX), &mut || 0.0);
                }
                side.read_payload(THERE);
                side.write_payload(BACK, sequence);
                // Pairs with the Acquire load in `part`.
                side.control.mail[BACK].published.0.store(sequence, Release);
                notifier.notify()?;
                break next;
            }
            if told.is_some() && opened_at.is_none() {
                opened_at = Some(sequence);
                side.open_slice();
            }
            side.read_payload(THERE);
            if let Some(slowdown) = slowdown {
                slowdown.put_in();
            }
            side.write_payload(BACK, sequence);
            notifier.notify()?;
        };
        self.sequence = sequence;
        side.tally.timeouts += timeouts;
        Ok(next)
    }
}
