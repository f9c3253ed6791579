// SPDX-License-Identifier: MIT OR Apache-2.0
//! One way: a notifier that notifies after each gap, a waiter that takes what comes.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use super::pause::pause_until;
use super::wait_by_policy;
use crate::mechanism::{Line, Mechanism, Memory, Notifier, Waiter, Waits, Woken};
use crate::record::Tally;
use crate::trial::cell::{Pattern, Timing};
use crate::trial::control::{STAMPS, Step};
use crate::trial::proof::Sleeper;
use crate::trial::side::{Side, SideError};

const THERE: usize = 0;

/// How long after the end a waiter that counts listens for notifications that were sent and have not come: far longer
/// than a notifier is held up between saying that it is over and its last notification.
const LAST_CALL: Duration = Duration::from_secs(2);

/// The notifier's side.
pub(super) fn emit<M: Mechanism>(there: &M::Line, side: &mut Side) -> Result<(), SideError> {
    side.step(Step::Meets, 0);
    side.control.meet(2, 1);
    let mut notifier = there.notifier()?;
    side.control.meet(2, 2);
    let clock = side.clock;
    let gap = clock.ticks(Duration::from_nanos(side.cell.pattern.gap_ns()));
    let open_loop = matches!(side.cell.pattern, Pattern::OpenLoop { .. });
    let shares_core = side.cell.placement.cpus.is_some_and(|[a, b]| a == b);
    let mail = &side.control.mail[THERE];
    let mut sleeper = if side.cell.timing == Timing::Blocked { Some(Sleeper::of(side, 1)?) } else { None };

    let warmup = super::warmup_rounds(&side.cell);
    let count = side.cell.until.count.unwrap_or(u64::MAX);
    let window = side.cell.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
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
            opened = side.open_window();
            last = clock.now();
        }
        sequence += 1;
        let due = last.saturating_add(gap);
        side.step(Step::Pauses, sequence);
        pause_until(clock, due, shares_core);
        // A stamp is reused after STAMPS messages: the one before must have been taken.
        let must_have_taken = if open_loop { sequence.saturating_sub(STAMPS as u64) } else { sequence - 1 };
        side.step(Step::AwaitsTaken, sequence);
        while mail.taken.0.load(Acquire) < must_have_taken && M::WAITS != Waits::Nothing {
            if shares_core { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        if let Some(sleeper) = &mut sleeper {
            side.step(Step::Proves, sequence);
            side.tally.proven_asleep += u64::from(sleeper.sleeps());
        }
        side.step(Step::Notifies, sequence);
        let stamp = &mail.stamps[sequence as usize % STAMPS];
        let before = clock.now();
        side.write_payload(THERE, sequence);
        stamp.sent.store(before, Relaxed);
        stamp.due.store(if open_loop { due } else { before }, Relaxed);
        // Pairs with the Acquire load in `absorb`: whoever sees the number sees the stamp.
        mail.published.0.store(sequence, Release);
        notifier.notify()?;
        let notified = clock.now();
        side.times.notify.record(clock.ps(notified.saturating_sub(before)));
        side.tally.sent += 1;
        if open_loop {
            last = due;
        } else {
            side.step(Step::AwaitsTaken, sequence);
            while mail.taken.0.load(Acquire) < sequence && M::WAITS != Waits::Nothing {
                if shares_core { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
            last = clock.now();
        }
    }
    if sequence <= warmup {
        // Interrupted before anything was to be recorded.
        side.forget_warmup(sequence);
    }
    side.close_window(opened);
    // Pairs with the Acquire load in `absorb`.
    side.control.stop.store(1, Release);
    notifier.notify()?;
    side.step(Step::Finished, sequence);
    Ok(())
}

/// The waiter's side.
pub(super) fn absorb<M: Mechanism>(there: &M::Line, side: &mut Side) -> Result<(), SideError> {
    side.step(Step::Meets, 0);
    let mut waiter = there.waiter()?;
    side.control.meet(2, 1);
    side.control.meet(2, 2);
    if M::WAITS == Waits::Nothing {
        // Nobody would ever wake this side.
        side.step(Step::Finished, 0);
        return Ok(());
    }
    let clock = side.clock;
    let policy = side.cell.wait;
    let open_loop = matches!(side.cell.pattern, Pattern::OpenLoop { .. });
    let mail = &side.control.mail[THERE];
    let warmup = super::warmup_rounds(&side.cell);
    let mut opened = side.open_window();
    let mut seen = 0_u64;
    let mut warm = false;
    loop {
        // One message early, so that what opening the window costs falls into the warm-up; a merge may jump further.
        if !warm && seen + 1 >= warmup {
            warm = true;
            side.tally = Tally::default();
            opened = side.open_window();
        }
        side.step(Step::Waits, seen);
        let entered = clock.now();
        let ended = M::MEMORY == Memory::Counts && side.control.stop.load(Acquire) != 0;
        let woken =
            if ended { waiter.wait_for(LAST_CALL)? } else { wait_by_policy(&mut waiter, policy, clock)? };
        let woke = clock.now_awake();
        let published = mail.published.0.load(Acquire);
        if woken == Woken::TimedOut && ended {
            // Every message and the one that says it is over have been sent, and fewer have come: the mechanism drops
            // (UDP whose buffer was full). The last one to come was taken for a message. What was sent and not seen is
            // counted as lost where both tallies come together.
            side.tally.seen = side.tally.seen.saturating_sub(1);
            break;
        }
        if woken == Woken::TimedOut {
            if published == seen {
                side.tally.timeouts += 1;
                continue;
            }
            side.tally.late += 1;
        } else if published == seen {
            // Pairs with the Release store in `emit`; the last notification only says that it is over.
            if side.control.stop.load(Acquire) != 0 {
                break;
            }
            side.tally.spurious += 1;
            continue;
        }
        // With a message, the wake ends when the message has been read.
        side.read_payload(THERE);
        let awake = if side.cell.size > 0 { clock.now_awake() } else { woke };
        // A mechanism that counts wakes once per message; one that merges may bring several at once.
        let upto = if M::MEMORY == Memory::Counts { seen + 1 } else { published };
        if !warm && upto > warmup {
            // A merge jumps over the end of the warm-up: what it brings beyond counts.
            warm = true;
            side.tally = Tally::default();
            opened = side.open_window();
        }
        let first = seen;
        while seen < upto {
            let stamp = &mail.stamps[(seen + 1) as usize % STAMPS];
            // Published when this side was awake already: it is not what woke it, and its own notification follows.
            if seen > first && stamp.sent.load(Relaxed) > woke {
                break;
            }
            seen += 1;
            if seen > warmup {
                side.times.wake.record(clock.ps(awake.saturating_sub(stamp.sent.load(Relaxed))));
                if open_loop {
                    side.times.response.record(clock.ps(awake.saturating_sub(stamp.due.load(Relaxed))));
                }
                side.tally.seen += 1;
            }
        }
        side.tally.merged += seen - first - 1;
        if seen > warmup {
            side.times.around_wait.record(clock.ps(woke.saturating_sub(entered)));
        }
        mail.taken.0.store(seen, Release);
        // The last notification may have merged with the one before it, and would then wake nobody.
        if M::MEMORY == Memory::Merges
            && side.control.stop.load(Acquire) != 0
            && seen == mail.published.0.load(Acquire)
        {
            break;
        }
    }
    side.close_window(opened);
    side.step(Step::Finished, seen);
    Ok(())
}
