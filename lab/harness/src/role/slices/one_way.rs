// SPDX-License-Identifier: MIT OR Apache-2.0
//! One way in slices: a notifier that notifies after each gap, a waiter that takes what comes.
//!
//! HOW: at most one notification is under way, for the notifier waits until its message was taken.
//! It says by a word, written before a notification and read after the wake-up it makes, from
//! which message on wake-ups are recorded, and which is the slice's last. The message that says so
//! first comes without a gap and is not recorded: by it the waiter comes here. The last one is
//! recorded like others, so that a slice of one long gap is one wake-up.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::not_taken;
use crate::bench::resident::{Resident, Span};
use crate::bench::rounds::Rounds;
use crate::control::{STAMPS, Step, Told};
use crate::mechanism::{Link, Mechanism, Notifier, Woken};
use crate::role::call_cost::CallCost;
use crate::role::due::Gaps;
use crate::role::pause::pause_until;
use crate::role::wait_by_policy;
use crate::side::{Side, SideError};
use crate::site::Word;
use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::record::subject::Waits;

const THERE: usize = 0;

pub(super) struct OneWay<'links, M: Mechanism> {
    there: &'links M::Link,
    waiter: Option<<M::Link as Link>::Waiter>,
    notifier: Option<<M::Link as Link>::Notifier>,
    notifies: bool,
    shares_core: bool,
    gaps: Gaps,
    cost: CallCost,
    /// The message it is at, over all slices.
    sequence: u64,
    /// Messages of the slice under way that are recorded, the last
    /// one included, which `part` sends.
    recorded: u32,
    /// What their wake-ups took.
    timed: Rounds,
}

impl<'links, M: Mechanism> OneWay<'links, M> {
    pub(super) fn new(there: &'links M::Link, side: &Side) -> Self {
        Self {
            there,
            waiter: None,
            notifier: None,
            notifies: side.role.index() == 0,
            shares_core: side.shares_core(),
            gaps: Gaps::of(&side.configuration, side.clock),
            cost: CallCost::of_gap(side.configuration.pattern.gap_ns()),
            sequence: 0,
            recorded: 0,
            timed: Rounds::default(),
        }
    }

    /// Notifies of one more message, and waits until it was taken; when that was.
    fn send(&mut self, side: &mut Side, records: bool) -> Result<Ticks, SideError> {
        let Some(notifier) = &mut self.notifier else { return Err(not_taken()) };
        let clock = side.clock;
        self.sequence += 1;
        let mail = &side.control.mail[THERE];
        side.step(Step::Notifies, self.sequence);
        let looked = (records && self.cost.looks_at(side.tally.sent)).then(CallCost::begin);
        let stamp = &mail.stamps[self.sequence as usize % STAMPS];
        side.write_payload(THERE, self.sequence);
        let before = clock.now();
        stamp.sent.store(before, Relaxed);
        // Pairs with the Acquire load in `answer`: whoever sees the
        // number sees the stamp and what was told.
        mail.published.0.store(self.sequence, Release);
        notifier.notify()?;
        let mut notified = clock.now();
        // On one core the waiter may have run inside the call, which then ended when that ran. Pairs with
        // the Release store in `answer`.
        if self.shares_core && mail.taken.0.load(Acquire) >= self.sequence {
            notified = notified.min(stamp.woke.load(Relaxed)).max(before);
        }
        if records {
            let lasted_ps = clock.ps(notified.saturating_sub(before));
            side.times.notify.record(lasted_ps);
            if let Some(looked) = &looked {
                self.cost.end(looked, lasted_ps / 1000);
            }
            side.tally.sent += 1;
        } else {
            side.tally.warmup += 1;
        }
        side.step(Step::AwaitsTaken, self.sequence);
        // Pairs with the Release store in `answer`: the waiter has done with the stamp and the bytes.
        while mail.taken.0.load(Acquire) < self.sequence {
            // A notifier that spun would keep its own thread from
            // answering for a time slice of the scheduler's.
            if self.shares_core || M::ANSWERS { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        Ok(clock.now())
    }

    /// Lets the next gap pass.
    fn pause(&mut self, side: &Side, since: Ticks) {
        side.step(Step::Pauses, self.sequence);
        pause_until(side.clock, since.saturating_add(self.gaps.following()), self.shares_core);
    }
}

/// Whether a slice that has `recorded` messages may have one more
/// after the one that is due after `now`.
fn has_room(now: Ticks, gap: Ticks, over: Ticks, recorded: u64, most: u64) -> bool {
    recorded < most && now.saturating_add(gap.saturating_mul(2)) <= over
}

impl<M: Mechanism> Resident for OneWay<'_, M> {
    fn take_waiter(&mut self) -> Result<(), SideError> {
        if !self.notifies {
            self.waiter = Some(self.there.waiter()?);
        }
        Ok(())
    }

    fn take_notifier(&mut self) -> Result<(), SideError> {
        if self.notifies {
            self.notifier = Some(self.there.notifier()?);
        }
        Ok(())
    }

    fn is_lonely(&self) -> bool {
        M::WAITS == Waits::Nothing
    }

    fn run(&mut self, side: &mut Side, span: &Span) -> Result<u32, SideError> {
        let clock: Clock = side.clock;
        let gap = clock.ticks(std::time::Duration::from_nanos(side.configuration.pattern.gap_ns()));
        let begun = clock.now();
        self.recorded = 0;
        let mut last = begun;
        // Gaps that fit into the head; of longer ones none, for who
        // slept so long has forgotten what was before.
        while last.saturating_add(gap).saturating_sub(begun) <= span.head && !side.interrupted() {
            last = self.send(side, false)?;
            self.pause(side, last);
        }
        let Some(length) = span.recorded.filter(|_| !side.interrupted()) else { return Ok(0) };
        Told::Record(self.sequence + 1).tell(side.control);
        last = self.send(side, false)?;
        let over = side.open_slice().saturating_add(length);
        self.recorded = 1;
        while has_room(last, gap, over, self.recorded.into(), span.most) && !side.interrupted() {
            self.pause(side, last);
            last = self.send(side, true)?;
            self.recorded += 1;
        }
        self.pause(side, last);
        Ok(self.recorded)
    }

    fn part(&mut self, side: &mut Side) -> Result<(), SideError> {
        Told::Last(self.sequence + 1).tell(side.control);
        self.send(side, self.recorded > 0)?;
        side.close_slice(self.recorded, &mut || 0.0);
        side.counters.call_ns = self.cost.mean_ns();
        Ok(())
    }

    fn answer(&mut self, side: &mut Side, next: &Word) -> Result<u32, SideError> {
        let Some(waiter) = &mut self.waiter else { return Err(not_taken()) };
        let (clock, policy) = (side.clock, side.configuration.wait);
        let mail = &side.control.mail[THERE];
        let began = self.sequence;
        let mut opened = false;
        self.timed.begin();
        loop {
            side.step(Step::Waits, self.sequence);
            let entered = clock.now();
            if wait_by_policy(waiter, policy, clock)? == Woken::TimedOut {
                continue;
            }
            let woke = clock.now_awake();
            // Pairs with the Release store in `send`.
            let published = mail.published.0.load(Acquire);
            if published == self.sequence {
                // Woken by nothing, or by what merged with the notification before.
                continue;
            }
            let told = Told::heard(side.control, began, published);
            side.read_payload(THERE);
            let awake = if side.configuration.size > 0 { clock.now_awake() } else { woke };
            let stamp = &mail.stamps[published as usize % STAMPS];
            if opened {
                let wake_ps = clock.ps(awake.saturating_sub(stamp.sent.load(Relaxed)));
                side.times.wake.record(wake_ps);
                side.times.around_wait.record(clock.ps(woke.saturating_sub(entered)));
                side.tally.seen += 1;
                self.timed.add(wake_ps);
            }
            if self.shares_core {
                stamp.woke.store(woke, Relaxed);
            }
            self.sequence = published;
            if let Some(Told::Last(_)) = told {
                let next = next.load(Acquire);
                let recorded = self.timed.count();
                side.close_slice(recorded, &mut || self.timed.middle_ps());
                // Pairs with the Acquire loads in `send`.
                mail.taken.0.store(published, Release);
                return Ok(next);
            }
            if told.is_some() && !opened {
                opened = true;
                side.open_slice();
            }
            mail.taken.0.store(published, Release);
        }
    }
}
