// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ping-pong: there and back, each side notifies when it was notified.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use super::pause::pause_until;
use super::slowdown::Slowdown;
use super::{Role, wait_by_policy};
use crate::control::Step;
use crate::mechanism::{Fault, Link, Mechanism, Notifier, Waiter, Woken};
use crate::proof::Sleeper;
use crate::side::{Side, SideError};
use doorbell_machine::clock::Now;
use doorbell_results::configuration::{Timing, WaitPolicy};
use doorbell_results::machine::clock::Ticks;
use doorbell_results::record::Tally;
use doorbell_results::record::subject::Waits;

const THERE: usize = 0;
const BACK: usize = 1;

pub(super) fn initiate<M: Mechanism>(
    there: &M::Link,
    back: &M::Link,
    side: &mut Side,
) -> Result<(), SideError> {
    side.step(Step::Meets, 0);
    let mut waiter = back.waiter()?;
    side.control.meet(2, 1);
    let mut notifier = there.notifier()?;
    side.control.meet(2, 2);

    let warmup = super::warmup_rounds(&side.configuration);
    if keeps_its_cpu::<M>(side.configuration.wait)
        && side.configuration.timing == Timing::Around
        && side.configuration.pattern.gap_ns() == 0
        && side.configuration.size == 0
        && side.configuration.injected_slowdown_ppm.is_none()
    {
        ring_to_ring(&mut notifier, &mut waiter, warmup, side)
    } else {
        stamped::<M>(&mut notifier, &mut waiter, warmup, side)
    }
}

/// Whether a waiter may be awake again some hundred nanoseconds after it rang, of which clock
/// readings would be a good part: all of these are timed in one way, so that what is ranked
/// together holds the same.
pub(super) fn keeps_its_cpu<M: Mechanism>(policy: WaitPolicy) -> bool {
    match M::WAITS {
        Waits::Spins | Waits::Yields | Waits::Adapts => true,
        Waits::Blocks => policy == WaitPolicy::Spin,
        Waits::Nothing => false,
    }
}

/// The whole round trip from ring to ring, one clock reading each,
/// taken while the answer is under way.
///
/// A cache-line round trip is some 100 ns: a clock reading (10 to 20 ns) between awake and the next
/// ring would be part of it. Read after the ring, it overlaps with the link's way to the other core
/// and costs the figure nothing.
fn ring_to_ring(
    notifier: &mut impl Notifier,
    waiter: &mut impl Waiter,
    warmup: u64,
    side: &mut Side,
) -> Result<(), SideError> {
    let clock = side.clock;
    let policy = side.configuration.wait;
    for sequence in 1..=warmup {
        side.step(Step::Notifies, sequence);
        notifier.notify()?;
        side.step(Step::Waits, sequence);
        while wait_by_policy(waiter, policy, clock)? == Woken::TimedOut {}
    }
    let count = side.configuration.until.count.unwrap_or(u64::MAX);
    let opened = side.open_window();
    let ends = end_of_window(side, opened);
    let mut rounds = 0;
    notifier.notify()?;
    let mut rung = clock.now();
    loop {
        while wait_by_policy(waiter, policy, clock)? == Woken::TimedOut {
            side.tally.timeouts += 1;
        }
        if rounds >= count || rung >= ends || side.interrupted() {
            break;
        }
        notifier.notify()?;
        let now = clock.now();
        side.times.round_trip.record(clock.ps(now.saturating_sub(rung)));
        rung = now;
        rounds += 1;
        side.step(Step::Waits, warmup + rounds);
    }
    side.close_window(opened);
    side.tally.sent = rounds;
    side.tally.seen = rounds;
    side.tally.warmup = warmup;
    finish(notifier, side, warmup + rounds + 2)
}

/// One round in so many has a reading between the call and the wait where rounds follow one another
/// at once: what the call and the wait take is known from some hundred of them, and a reading in
/// each would be a third of what the harness adds to a round trip.
pub(super) const PARTED: u64 = 16;

/// Every round with a reading before the call and after the wait, some with one in between.
fn stamped<M: Mechanism>(
    notifier: &mut impl Notifier,
    waiter: &mut impl Waiter,
    warmup: u64,
    side: &mut Side,
) -> Result<(), SideError> {
    let clock = side.clock;
    let policy = side.configuration.wait;
    let timing = side.configuration.timing;
    let gap = clock.ticks(Duration::from_nanos(side.configuration.pattern.gap_ns()));
    let shares_core = side.shares_core();
    let responder = &side.control.progress[Role::Respond.index()];
    let lonely = M::WAITS == Waits::Nothing;
    let count = side.configuration.until.count.unwrap_or(u64::MAX);
    let mut sleeper = if timing == Timing::Blocked { Some(Sleeper::of(side, 1)?) } else { None };
    let mut slowdown = side.configuration.injected_slowdown_ppm.map(|ppm| Slowdown::half_of(ppm, clock));

    let mut opened = side.open_window();
    let mut ends = end_of_window(side, opened);
    let mut sequence = 0;
    let mut last = clock.now();
    let mut owed = 0;
    while sequence < warmup.saturating_add(count)
        && (sequence <= warmup || last < ends)
        && !side.interrupted()
    {
        if sequence == warmup {
            side.tally = Tally { warmup, ..Tally::default() };
            side.times.clear();
            opened = side.open_window();
            ends = end_of_window(side, opened);
        }
        sequence += 1;
        if gap > 0 {
            side.step(Step::Pauses, sequence);
            pause_until(clock, last.saturating_add(gap), shares_core);
        }
        if let Some(sleeper) = &mut sleeper {
            side.step(Step::Proves, sequence);
            side.tally.proven_asleep += u64::from(sleeper.sleeps());
        }
        side.step(Step::Notifies, sequence);
        let before = clock.now();
        side.write_payload(THERE, sequence);
        if timing != Timing::Around {
            publish(side, THERE, sequence, before);
        }
        if let Some(slowdown) = &mut slowdown {
            slowdown.put_in();
        }
        let parted = gap > 0 || side.tally.sent.is_multiple_of(PARTED);
        // Across cores it says nothing, and its line lies with the other side.
        let ran = || if shares_core { responder.sequence.load(Relaxed) } else { 0 };
        let ran_before = if parted { ran() } else { 0 };
        notifier.notify()?;
        let notified = parted.then(|| clock.now());
        if timing != Timing::Around {
            rang(side, THERE, sequence);
        }
        // On one core the other side may have run inside the call,
        // whose time is then no cost of sending alone.
        let sent_alone = parted && ran() == ran_before;
        side.step(Step::Waits, sequence);
        let woke = if timing == Timing::Around || lonely {
            while wait_by_policy(waiter, policy, clock)? == Woken::TimedOut {
                side.tally.timeouts += 1;
            }
            clock.now_awake()
        } else {
            // Only this side ends the trial, so the answer comes before its end.
            let Some(woke) = await_message(waiter, side, BACK, sequence, &mut owed)? else { break };
            woke
        };
        side.read_payload(BACK);
        let awake = if side.configuration.size > 0 { clock.now_awake() } else { woke };
        let round_trip_ps = clock.ps(awake.saturating_sub(before));
        last = awake;
        side.tally.sent += 1;
        side.tally.seen += 1;
        side.times.round_trip.record(round_trip_ps);
        if let Some(notified) = notified {
            if sent_alone {
                side.times.notify.record(clock.ps(notified.saturating_sub(before)));
            }
            side.times.around_wait.record(clock.ps(awake.saturating_sub(notified)));
        }
        if timing != Timing::Around && !lonely {
            let sent = side.control.mail[BACK].stamps[0].sent.load(Relaxed);
            side.times.wake.record(clock.ps(awake.saturating_sub(sent)));
        }
    }
    if sequence <= warmup {
        // Interrupted before anything was to be recorded.
        side.forget_warmup(sequence);
    }
    side.close_window(opened);
    finish(notifier, side, sequence + 1)
}

/// The responder's side: the same loop for every timing, with the
/// stamps only where they are asked for.
pub(super) fn respond<M: Mechanism>(
    there: &M::Link,
    back: &M::Link,
    side: &mut Side,
) -> Result<(), SideError> {
    side.step(Step::Meets, 0);
    let mut waiter = there.waiter()?;
    side.control.meet(2, 1);
    let mut notifier = back.notifier()?;
    side.control.meet(2, 2);
    if M::WAITS == Waits::Nothing {
        // Nobody would ever wake this side.
        side.step(Step::Finished, 0);
        return Ok(());
    }
    if side.configuration.timing == Timing::Around && side.configuration.size == 0 {
        echo(&mut notifier, &mut waiter, side)
    } else {
        echo_stamped(&mut notifier, &mut waiter, side)
    }
}

fn echo(notifier: &mut impl Notifier, waiter: &mut impl Waiter, side: &mut Side) -> Result<(), SideError> {
    let (clock, policy) = (side.clock, side.configuration.wait);
    let mut slowdown = side.configuration.injected_slowdown_ppm.map(|ppm| Slowdown::half_of(ppm, clock));
    let warmup = super::warmup_rounds(&side.configuration);
    let mut opened = side.open_window();
    let mut sequence = 0;
    let mut warm = false;
    loop {
        // One round early: what opening the window costs must not
        // fall into the first round that is recorded.
        if !warm && sequence + 1 >= warmup {
            warm = true;
            side.tally = Tally::default();
            opened = side.open_window();
        }
        side.step(Step::Waits, sequence);
        while wait_by_policy(waiter, policy, clock)? == Woken::TimedOut {
            side.tally.timeouts += 1;
        }
        // Pairs with the Release store in `finish`.
        if side.control.stop.load(Acquire) != 0 {
            side.close_window(opened);
            side.step(Step::Finished, sequence);
            return Ok(());
        }
        if let Some(slowdown) = &mut slowdown {
            slowdown.put_in();
        }
        notifier.notify()?;
        sequence += 1;
    }
}

fn echo_stamped(
    notifier: &mut impl Notifier,
    waiter: &mut impl Waiter,
    side: &mut Side,
) -> Result<(), SideError> {
    let (clock, policy) = (side.clock, side.configuration.wait);
    let stamps = side.configuration.timing != Timing::Around;
    let warmup = super::warmup_rounds(&side.configuration);
    let mut opened = side.open_window();
    let mut sequence = 0;
    let mut warm = false;
    let mut owed = 0;
    let mut slowdown = side.configuration.injected_slowdown_ppm.map(|ppm| Slowdown::half_of(ppm, clock));
    loop {
        // One round early, as in `echo`.
        if !warm && sequence + 1 >= warmup {
            warm = true;
            side.tally = Tally::default();
            side.times.clear();
            opened = side.open_window();
        }
        side.step(Step::Waits, sequence);
        let entered = clock.now();
        sequence += 1;
        let woke = if stamps {
            await_message(waiter, side, THERE, sequence, &mut owed)?
        } else {
            while wait_by_policy(waiter, policy, clock)? == Woken::TimedOut {
                side.tally.timeouts += 1;
            }
            // Pairs with the Release store in `finish`.
            (side.control.stop.load(Acquire) == 0).then(|| clock.now_awake())
        };
        let Some(woke) = woke else {
            side.close_window(opened);
            side.step(Step::Finished, sequence - 1);
            return Ok(());
        };
        side.read_payload(THERE);
        if stamps {
            let awake = if side.configuration.size > 0 { clock.now_awake() } else { woke };
            let sent = side.control.mail[THERE].stamps[0].sent.load(Relaxed);
            side.times.wake.record(clock.ps(awake.saturating_sub(sent)));
            side.times.around_wait.record(clock.ps(awake.saturating_sub(entered)));
        }
        if let Some(slowdown) = &mut slowdown {
            slowdown.put_in();
        }
        side.write_payload(BACK, sequence);
        side.step(Step::Notifies, sequence);
        if stamps {
            publish(side, BACK, sequence, clock.now());
        }
        notifier.notify()?;
        if stamps {
            rang(side, BACK, sequence);
        }
    }
}

/// Waits for message `sequence` and tells when it woke; none if the trial was over first. `owed`
/// counts the notifications still to come whose messages were seen when a wait had run out: they
/// are no wakes of their own.
#[inline(always)]
fn await_message(
    waiter: &mut impl Waiter,
    side: &mut Side,
    direction: usize,
    sequence: u64,
    owed: &mut u64,
) -> Result<Option<Ticks>, Fault> {
    loop {
        let woken = wait_by_policy(waiter, side.configuration.wait, side.clock)?;
        let woke = side.clock.now_awake();
        // Pairs with the Release store in `publish`: whoever sees the number sees the stamp.
        let there = side.control.mail[direction].published.0.load(Acquire) >= sequence;
        // A message sent after the wake did not cause it: the
        // notification was an owed one, and its own follows.
        let owed_one = *owed > 0 && there && side.control.mail[direction].stamps[0].sent.load(Relaxed) > woke;
        match woken {
            Woken::Notified if there && !owed_one => return Ok(Some(woke)),
            // Pairs with the Release store in `finish`.
            Woken::Notified if side.control.stop.load(Acquire) != 0 => return Ok(None),
            Woken::Notified if *owed > 0 => *owed -= 1,
            Woken::Notified => side.tally.spurious += 1,
            Woken::TimedOut if there => {
                // Pairs with the Release store in `rang`, and before
                // the look, which finds what was rung by now.
                let rung = side.control.mail[direction].rung.0.load(Acquire) >= sequence;
                // It may have come since the wait gave up: then it is not late.
                let came = waiter.poll()?;
                if !came && !rung {
                    // The other side is about to ring: the next wait hears it.
                    side.tally.timeouts += 1;
                    continue;
                }
                if !came {
                    side.tally.late += 1;
                    *owed += 1;
                }
                // Either way this side knows of it only now.
                return Ok(Some(side.clock.now_awake()));
            }
            Woken::TimedOut => side.tally.timeouts += 1,
        }
    }
}

/// Publishes a message: its stamp, then its number.
#[inline(always)]
fn publish(side: &Side, direction: usize, sequence: u64, now: Ticks) {
    let mail = &side.control.mail[direction];
    mail.stamps[0].sent.store(now, Relaxed);
    // Pairs with the Acquire loads of `published` on the other side:
    // whoever sees the number sees the stamp.
    mail.published.0.store(sequence, Release);
}

/// Says that the notification of message `sequence` was sent.
#[inline(always)]
fn rang(side: &Side, direction: usize, sequence: u64) {
    // Pairs with the Acquire load in `await_message`: whoever sees
    // the number finds the notification by a look.
    side.control.mail[direction].rung.0.store(sequence, Release);
}

/// The reading at which a time-limited window ends.
fn end_of_window(side: &Side, opened: Ticks) -> Ticks {
    side.configuration
        .until
        .time_ns
        .map_or(Ticks::MAX, |ns| opened.saturating_add(side.clock.ticks(Duration::from_nanos(ns))))
}

/// Tells the other side to stop, and wakes it to hear that.
fn finish(notifier: &mut impl Notifier, side: &mut Side, sequence: u64) -> Result<(), SideError> {
    side.control.stop.store(1, Release);
    side.step(Step::Notifies, sequence);
    notifier.notify()?;
    side.step(Step::Finished, sequence);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_side::side;
    use crate::scripted::{Script, Wake};

    /// How long each of the messages 1 to `count` took to be awaited,
    /// ticks; none where the waiter was awake before it.
    fn awaited(wakes: &[Wake], count: u64) -> (Vec<Option<Ticks>>, Tally) {
        let mut side = side(None, 0);
        side.configuration.wait = WaitPolicy::Timeout { timeout_ns: 1000 };
        let mut waiter = Script::of(&side, wakes).waiter().unwrap();
        let mut owed = 0;
        let times = (1..=count).map(|sequence| {
            let woke = await_message(&mut waiter, &mut side, THERE, sequence, &mut owed).unwrap().unwrap();
            // What was sent after the wake has its stamp once the script goes on.
            waiter.poll().unwrap();
            woke.checked_sub(side.control.mail[THERE].stamps[0].sent.load(Relaxed))
        });
        (times.collect(), side.tally)
    }

    #[test]
    fn a_message_found_after_a_wait_ran_out_behind_its_notification_is_late() {
        let (times, tally) = awaited(&[Wake::timed_out(&[1], &[])], 1);
        assert!(times[0].is_some(), "awake before the notifier's call");
        assert_eq!(tally, Tally { late: 1, ..Tally::default() });
    }

    #[test]
    fn a_message_whose_notification_is_about_to_be_sent_when_a_wait_runs_out_is_the_next_waits() {
        let (times, tally) = awaited(&[Wake::timed_out(&[], &[1]), Wake::notified(&[], &[])], 1);
        assert!(times[0].is_some(), "awake before the notifier's call");
        assert_eq!(tally, Tally { timeouts: 1, ..Tally::default() });
    }

    #[test]
    fn the_notification_of_a_late_message_is_not_the_next_ones() {
        let wakes = [Wake::timed_out(&[1], &[]), Wake::notified(&[], &[2]), Wake::notified(&[], &[])];
        let (times, tally) = awaited(&wakes, 2);
        assert!(times[1].is_some(), "awake before the notifier's call");
        assert_eq!(tally, Tally { late: 1, ..Tally::default() });
    }
}
