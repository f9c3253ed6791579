// SPDX-License-Identifier: MIT OR Apache-2.0
//! One way: a notifier that notifies after each gap, a waiter that takes what comes.

use super::arrivals::{Arrival, Arrivals, Sent};
use super::call_cost::CallCost;
use super::due::Gaps;
use super::in_set::InSet;
use super::pause::pause_until;
use super::{Role, wait_by_policy};
use crate::anatomy::cut::Stamps;
use crate::control::{Mail, STAMPS, Step};
use crate::mechanism::{Link, Mechanism, Notifier, Waiter, Woken};
use crate::proof::Sleeper;
use crate::side::{Side, SideError};
use doorbell_machine::clock::Now;
use doorbell_results::configuration::{Pattern, Timing};
use doorbell_results::figure::request::{HELPER, REQUESTS};
use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{Figure, Tally};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;
const THERE: usize = 0;

/// How long after the end a waiter listens for notifications that
/// were sent and may have been dropped: far longer than a notifier is
/// held up between saying that it is over and its last notification.
const LAST_CALL: Duration = Duration::from_secs(2);

/// How long a notifier waits for a message to be taken before it
/// holds that its notification was dropped.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// A notifier that is later than due by more than this was held up: it is far more than a timer is
/// late on a machine that does nothing else (50 µs of timer slack, an exit from idle, a virtual
/// machine's way back), and less than a time slice of the scheduler.
const HELD_UP: Duration = Duration::from_millis(1);

/// How often a notifier that stays looks whether it may go.
const LOOK: Duration = Duration::from_millis(1);

pub(super) fn emit<M: Mechanism>(there: &M::Link, side: &mut Side) -> Result<(), SideError> {
    side.step(Step::Meets, 0);
    side.control.meet(2, 1);
    let mut notifier = there.notifier()?;
    side.control.meet(2, 2);
    let clock = side.clock;
    let mut gaps = Gaps::of(&side.configuration, clock);
    let open_loop = matches!(side.configuration.pattern, Pattern::OpenLoop { .. });
    let shares_core = side.shares_core();
    let give_up = M::DROPS.then(|| clock.ticks(GIVEN_UP));
    let taken = |mail: &Mail, number: u64| {
        if M::WAITS != Waits::Nothing {
            // A notifier that spun would keep its own thread from
            // answering for a time slice of the scheduler's.
            await_taken(mail, number, clock, shares_core || M::ANSWERS, give_up);
        }
    };
    let mail = &side.control.mail[THERE];
    let mut sleeper =
        if side.configuration.timing == Timing::Blocked { Some(Sleeper::of(side, 1)?) } else { None };

    let warmup = super::warmup_rounds(&side.configuration);
    let count = side.configuration.until.count.unwrap_or(u64::MAX);
    let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
    let mut helped = notifier.helper_ns();
    let mut cost = CallCost::of_gap(side.configuration.pattern.gap_ns());
    let lead = if open_loop { cost.lead(clock) } else { 0 };
    let held_up_from = clock.ticks(HELD_UP);
    let mut held_up: Ticks = 0;
    let mut opened = side.open_window();
    let mut sequence = 0_u64;
    let mut last = clock.now();
    while sequence < warmup.saturating_add(count)
        && (sequence <= warmup || window.is_none_or(|window| last.saturating_sub(opened) < window))
        && !side.interrupted()
    {
        if sequence == warmup {
            side.times.clear();
            side.tally = Tally { warmup, ..Tally::default() };
            helped = notifier.helper_ns();
            cost.clear();
            held_up = 0;
            opened = side.open_window();
            last = clock.now();
        }
        let looks = cost.looks_at(sequence.saturating_sub(warmup));
        sequence += 1;
        let due = last.saturating_add(gaps.following());
        side.step(Step::Pauses, sequence);
        pause_until(clock, if looks { due.saturating_sub(lead) } else { due }, shares_core);
        // A stamp is reused after STAMPS messages, a message's bytes
        // after one: who was there before must have been taken.
        let ahead = if open_loop && side.configuration.size == 0 { STAMPS as u64 } else { 1 };
        side.step(Step::AwaitsTaken, sequence);
        taken(mail, sequence.saturating_sub(ahead));
        if let Some(sleeper) = &mut sleeper {
            side.step(Step::Proves, sequence);
            side.tally.proven_asleep += u64::from(sleeper.sleeps());
        }
        side.step(Step::Notifies, sequence);
        let stamp = &mail.stamps[sequence as usize % STAMPS];
        let looked = looks.then(|| {
            let looked = CallCost::begin();
            while clock.now() < due {
                std::hint::spin_loop();
            }
            looked
        });
        let before = clock.now();
        let late = before.saturating_sub(due);
        if late > held_up_from {
            held_up += late;
        }
        side.write_payload(THERE, sequence);
        stamp.sent.store(before, Relaxed);
        stamp.due.store(if open_loop { due } else { before }, Relaxed);
        // Pairs with the Acquire load in `absorb`: whoever sees the number sees the stamp.
        mail.published.0.store(sequence, Release);
        notifier.notify()?;
        let mut notified = clock.now();
        // Pairs with the Acquire load in `absorb`: whoever sees the
        // number finds the notification by a look.
        mail.rung.0.store(sequence, Release);
        // On one core the waiter may have run inside the call: it ended when that ran. Pairs with the
        // Release store in `absorb`.
        if shares_core && mail.taken.0.load(Acquire) >= sequence {
            notified = notified.min(stamp.woke.load(Relaxed)).max(before);
        }
        let lasted_ps = clock.ps(notified.saturating_sub(before));
        side.times.notify.record(lasted_ps);
        if let Some(looked) = &looked {
            cost.end(looked, lasted_ps / 1000);
        }
        side.tally.sent += 1;
        if open_loop {
            last = due;
        } else {
            side.step(Step::AwaitsTaken, sequence);
            taken(mail, sequence);
            last = clock.now();
        }
    }
    if sequence <= warmup {
        // Interrupted before anything was to be recorded.
        side.forget_warmup(sequence);
        cost.clear();
    }
    side.close_window(opened);
    side.counters.call_ns = cost.mean_ns();
    let keeps_a_gap = !open_loop && side.configuration.pattern.gap_ns() > 0;
    side.counters.held_up_ns = keeps_a_gap.then(|| clock.ps(held_up) / 1000);
    let helped = notifier.helper_ns().saturating_sub(helped);
    if helped > 0 && side.tally.sent > 0 {
        side.figures.push(Figure {
            name: HELPER.to_owned(),
            value: helped as f64 / side.tally.sent as f64,
            unit: "ns".to_owned(),
            formula: format!("{helped} ns in the window / {} events", side.tally.sent),
        });
    }
    // Pairs with the Acquire load in `absorb`.
    side.control.stop.store(1, Release);
    notifier.notify()?;
    side.step(Step::Finished, sequence);
    if M::ANSWERS {
        await_finished(side);
    }
    Ok(())
}

/// Stays until the waiter is done: the thread that answers it ends with this side.
fn await_finished(side: &Side) {
    let waiter = &side.control.progress[Role::Absorb.index()];
    while ![Step::Finished, Step::Reports].map(|step| step as u32).contains(&waiter.step.load(Relaxed)) {
        std::thread::sleep(LOOK);
    }
}

/// Waits until message `number` was taken, or until `give_up` has passed.
#[inline]
fn await_taken(mail: &Mail, number: u64, clock: Clock, shares_core: bool, give_up: Option<Ticks>) {
    // Pairs with the Release store in `absorb`: the waiter has done with the stamps and bytes it took.
    if mail.taken.0.load(Acquire) >= number {
        return;
    }
    let end = give_up.map(|ticks| clock.now().saturating_add(ticks));
    while mail.taken.0.load(Acquire) < number && end.is_none_or(|end| clock.now() < end) {
        if shares_core { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
}

pub(super) fn absorb<M: Mechanism>(there: &M::Link, side: &mut Side) -> Result<(), SideError> {
    side.step(Step::Meets, 0);
    let waiter = there.waiter()?;
    match side.configuration.beside {
        Some(beside) => absorb_with::<M, _>(InSet::of(waiter, beside)?, side),
        None => absorb_with::<M, _>(waiter, side),
    }
}

fn absorb_with<M: Mechanism, W: Waiter>(mut waiter: W, side: &mut Side) -> Result<(), SideError> {
    side.control.meet(2, 1);
    side.control.meet(2, 2);
    if M::WAITS == Waits::Nothing {
        // Nobody would ever wake this side.
        side.step(Step::Finished, 0);
        return Ok(());
    }
    let clock = side.clock;
    let shares_core = side.shares_core();
    let policy = side.configuration.wait;
    let open_loop = matches!(side.configuration.pattern, Pattern::OpenLoop { .. });
    let mail = &side.control.mail[THERE];
    let warmup = super::warmup_rounds(&side.configuration);
    let mut opened = side.open_window();
    let mut arrivals = Arrivals::default();
    let journal = side.journal.clone();
    let mut asked = waiter.requests();
    let mut warm = false;
    loop {
        // One message early, so that what opening the window costs
        // falls into the warm-up; a merge may jump further.
        if !warm && arrivals.seen + 1 >= warmup {
            warm = true;
            side.tally = Tally::default();
            asked = waiter.requests();
            opened = side.open_window();
        }
        side.step(Step::Waits, arrivals.seen);
        let entered = clock.now();
        // Pairs with the Release store in `emit`.
        let over = side.control.stop.load(Acquire) != 0;
        let last_call = M::DROPS && over;
        let mut woken =
            if last_call { waiter.wait_for(LAST_CALL)? } else { wait_by_policy(&mut waiter, policy, clock)? };
        let mut woke = clock.now_awake();
        // Pairs with the Release store in `emit`: whoever sees the number sees the stamp.
        let mut published = mail.published.0.load(Acquire);
        let mut rung = 0;
        if woken == Woken::TimedOut {
            if published == arrivals.seen {
                if last_call {
                    // Even the notification that says it is over was dropped.
                    break;
                }
                side.tally.timeouts += 1;
                continue;
            }
            // Pairs with the Release store in `emit`, and before the look, which finds what was rung by now.
            rung = mail.rung.0.load(Acquire);
            // It may have come since the wait gave up: then it is not late.
            woken = Woken::when(waiter.poll()?);
            // Either way this side knows of it only now.
            woke = clock.now_awake();
            // What merged into a notification just consumed has no other.
            published = mail.published.0.load(Acquire);
            if woken == Woken::TimedOut && last_call {
                // What was sent and not seen is counted as lost where both tallies come together.
                break;
            }
            if woken == Woken::TimedOut && rung <= arrivals.seen {
                // The wait gave up while the notifier was about to ring: the next one hears it, or ends
                // after the ring, and then it is late.
                side.tally.timeouts += 1;
                continue;
            }
        }
        let before_wake = sent_before(mail, arrivals.seen, published, woke);
        let arrival = match woken {
            Woken::TimedOut => Arrival::Messages(arrivals.seen + 1, rung),
            Woken::Notified => {
                let sent = Sent { last: published, before_wake, over: side.control.stop.load(Acquire) != 0 };
                arrivals.notified(M::COALESCES, waiter.number(), sent, &mut side.tally)
            }
        };
        let (first, last) = match arrival {
            Arrival::Messages(first, last) => (first, last),
            Arrival::Nothing => continue,
            Arrival::Over => break,
        };
        // With a message, the wake ends when the message has been read.
        side.read_payload(THERE);
        let awake = if side.configuration.size > 0 { clock.now_awake() } else { woke };
        if !warm && last > warmup {
            // A merge jumps over the end of the warm-up: what it brings beyond counts.
            warm = true;
            side.tally = Tally::default();
            opened = side.open_window();
        }
        for number in first..=last {
            let stamp = &mail.stamps[number as usize % STAMPS];
            let (sent, due) = (stamp.sent.load(Relaxed), stamp.due.load(Relaxed));
            if number <= warmup {
                continue;
            }
            side.tally.seen += 1;
            // A notifier that gave up waiting may have written the stamp of a later message over it.
            if M::DROPS && mail.published.0.load(Acquire) + 1 >= number + STAMPS as u64 {
                continue;
            }
            if shares_core {
                stamp.woke.store(woke, Relaxed);
            }
            side.times.wake.record(clock.ps(awake.saturating_sub(sent)));
            if open_loop {
                side.times.response.record(clock.ps(awake.saturating_sub(due)));
            }
        }
        arrivals.seen = last;
        side.tally.merged += last - first;
        if woken == Woken::TimedOut {
            arrivals.late(M::COALESCES, last + 1 - first, &mut side.tally);
        }
        if last > warmup {
            side.times.around_wait.record(clock.ps(woke.saturating_sub(entered)));
        }
        if let Some(journal) = &journal
            && last > warmup
        {
            let sent = mail.stamps[last as usize % STAMPS].sent.load(Relaxed);
            let stamps =
                Stamps { sequence: last, sent, woke, read: awake, rescued: woken == Woken::TimedOut };
            journal.woke(&stamps, last - first, clock);
        }
        // Pairs with the Acquire loads in `await_taken`.
        mail.taken.0.store(last, Release);
        // The last notification may have merged with the one before it, and would then wake nobody.
        if M::COALESCES && side.control.stop.load(Acquire) != 0 && last == mail.published.0.load(Acquire) {
            break;
        }
    }
    side.close_window(opened);
    if let (Some(before), Some(after)) = (asked, waiter.requests())
        && side.tally.seen > 0
    {
        let requests = after - before;
        side.figures.push(Figure {
            name: REQUESTS.to_owned(),
            value: requests as f64 / side.tally.seen as f64,
            unit: "count".to_owned(),
            formula: format!("{requests} requests in the window / {} events", side.tally.seen),
        });
    }
    side.step(Step::Finished, arrivals.seen);
    Ok(())
}

/// The last message up to `published` that was sent before this side
/// woke, `seen` if none was: at most a few are younger.
#[inline]
fn sent_before(mail: &Mail, seen: u64, published: u64, woke: Ticks) -> u64 {
    let mut last = published;
    while last > seen && mail.stamps[last as usize % STAMPS].sent.load(Relaxed) > woke {
        last -= 1;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_side::side;
    use crate::scripted::{Script, Scripted, Wake};
    use doorbell_results::configuration::{Until, WaitPolicy};
    use doorbell_results::record::Series;

    /// A waiter that `wakes` as told, under `wait`, in an open loop
    /// whose first message is its warm-up.
    fn woken(wait: WaitPolicy, wakes: &[Wake]) -> Side {
        let mut side = side(None, 0);
        side.configuration.pattern = Pattern::OpenLoop { gap_ns: 1000 };
        side.configuration.until = Until::count(9);
        side.configuration.wait = wait;
        let script = Script::of(&side, wakes);
        absorb::<Scripted>(&script, &mut side).unwrap();
        side
    }

    fn shortest_wake_ns(side: &Side) -> f64 {
        Series::from(&side.times.wake).min_ns
    }

    /// A wake that took a message together with the one before it once left that message's own
    /// notification to pass for the cause of the next one, which was sent after it: awake
    /// before the notifier's call.
    #[test]
    fn the_notification_of_a_message_taken_with_the_one_before_is_not_the_next_ones() {
        let side = woken(
            WaitPolicy::Block,
            &[
                Wake::notified(&[1], &[]),
                // Message 3 is sent, and its notification still to come.
                Wake::notified(&[2, 3], &[]),
                Wake::notified(&[], &[4]),
                Wake::notified(&[], &[]),
                Wake::over(),
            ],
        );
        assert!(shortest_wake_ns(&side) > 0.001, "a wake-up of {} ns", shortest_wake_ns(&side));
        assert_eq!(side.times.wake.count(), 3);
        assert_eq!(side.tally, Tally { seen: 3, merged: 1, ..Tally::default() });
    }

    /// The same, and the notifier ends before the waiter has looked.
    #[test]
    fn a_message_sent_after_the_wake_is_not_forgotten_at_the_end() {
        let side = woken(
            WaitPolicy::Block,
            &[
                Wake::notified(&[1], &[]),
                Wake::notified(&[2, 3], &[]),
                Wake { over: true, ..Wake::notified(&[], &[4]) },
                Wake::notified(&[], &[]),
            ],
        );
        assert!(shortest_wake_ns(&side) > 0.001);
        assert_eq!(side.tally, Tally { seen: 3, merged: 1, ..Tally::default() });
    }

    /// A time-out of 10 ms with notifications 10 ms apart once
    /// counted as rescues what had not been sent when it ran out.
    #[test]
    fn a_message_whose_notification_is_about_to_be_sent_when_a_wait_runs_out_is_the_next_waits() {
        for about_to in [Wake::timed_out(&[], &[2]), Wake { rung: false, ..Wake::timed_out(&[2], &[]) }] {
            let side = woken(
                WaitPolicy::Timeout { timeout_ns: 1000 },
                &[Wake::notified(&[1], &[]), about_to, Wake::notified(&[], &[]), Wake::over()],
            );
            assert!(shortest_wake_ns(&side) > 0.001, "a wake-up of {} ns", shortest_wake_ns(&side));
            assert_eq!(side.tally, Tally { seen: 1, timeouts: 1, ..Tally::default() });
        }
    }

    #[test]
    fn a_message_found_after_a_wait_ran_out_behind_its_notification_is_late() {
        let wait = WaitPolicy::Timeout { timeout_ns: 1000 };
        let side = woken(
            wait,
            &[
                Wake::notified(&[1], &[]),
                Wake::timed_out(&[2], &[]),
                // The notification of the late message.
                Wake::notified(&[], &[]),
                Wake::notified(&[3], &[]),
                Wake::over(),
            ],
        );
        assert!(shortest_wake_ns(&side) > 0.001, "a wake-up of {} ns", shortest_wake_ns(&side));
        assert_eq!(side.tally, Tally { seen: 2, late: 1, ..Tally::default() });
    }

    /// Only clocks out of step make the one message that a
    /// notification can stand for later than its wake.
    #[test]
    fn a_message_that_alone_can_have_woken_the_waiter_is_taken_whatever_its_stamp() {
        let side =
            woken(WaitPolicy::Block, &[Wake::notified(&[1], &[]), Wake::notified(&[], &[2]), Wake::over()]);
        assert_eq!((side.tally.seen, side.times.wake.count()), (1, 1));
        assert!(shortest_wake_ns(&side) <= 0.001, "the record shows it");
    }
}
