// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of the pair tests of rt-tests: a sender stamps and releases, a receiver acquires and
//! stamps, then sleeps a while before it lets the sender go on.
//!
//! One way, closed loop, the receiver asleep for as long as its own pause took: the
//! protocol of `ptsematest`, `svsematest`, `pmqtest` and `sigwaittest`, which differ
//! in the means alone. Their `-i` is [`PAUSE`]. Stamps are taken with the system's
//! clock, as theirs are, and not with the counter: where a reading of it is not next
//! to nothing beside a hand-over, it is part of both figures or of neither.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use crate::mechanism::{Fault, Links};
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_machine::clock::Now;
use doorbell_machine::clock::monotonic_ns;

/// What the receiver sleeps between two rounds: `-i 200`.
const PAUSE: Duration = Duration::from_micros(200);

/// Rounds before anything is recorded.
const WARMUP: u64 = 50;

/// A means of handing over, opened before the sides part: what one side does with it and the other.
pub(super) trait Handover: Send + Sync + 'static {
    /// What the side of `role` needs once, in its own process or thread, before they meet.
    fn begin(&self, role: Role) -> Result<(), Fault> {
        let _ = role;
        Ok(())
    }
    /// The sender releases; the stamp is taken just before.
    fn release(&self) -> Result<(), Fault>;
    /// The sender waits until the receiver lets it go on.
    fn turn(&self) -> Result<(), Fault>;
    /// The receiver waits for the release; the stamp is taken just after.
    fn acquire(&self) -> Result<(), Fault>;
    /// What the receiver does before its pause.
    fn note(&self) -> Result<(), Fault> {
        Ok(())
    }
    /// The receiver lets the sender go on.
    fn allow(&self) -> Result<(), Fault>;
}

pub(super) struct OneWay<H: Handover>(pub(super) H);

impl<H: Handover> Links for OneWay<H> {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        self.0.begin(role)?;
        side.control.meet(2, 1);
        if role.index() == 0 { send(&self.0, side) } else { receive(&self.0, side) }
    }
}

fn send(sender: &impl Handover, side: &mut Side) -> Result<(), SideError> {
    let clock = side.clock;
    let stamp = &side.control.mail[0].stamps[0];
    let count = side.configuration.until.count.unwrap_or(u64::MAX);
    let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
    let mut opened = side.open_window();
    let mut round = 0_u64;
    loop {
        if round == WARMUP {
            opened = side.open_window();
        }
        round += 1;
        let elapsed = clock.now().saturating_sub(opened);
        let last = round > WARMUP
            && (round - WARMUP > count
                || side.interrupted()
                || window.is_some_and(|window| elapsed >= window));
        if last {
            // Pairs with the Acquire load in `receive`: said before the last release.
            side.control.stop.store(1, Release);
        }
        // The one step of a round: a second one, after the release, would be part of what is measured.
        side.step(Step::Operates, round);
        // Made visible by the hand-over itself, which orders it before the receiver's load.
        stamp.sent.store(monotonic_ns(), Relaxed);
        sender.release()?;
        if last {
            break;
        }
        sender.turn()?;
    }
    side.close_window(opened);
    side.tally.sent = round - WARMUP - 1;
    side.tally.warmup = WARMUP;
    side.step(Step::Finished, round);
    Ok(())
}

fn receive(receiver: &impl Handover, side: &mut Side) -> Result<(), SideError> {
    let stamp = &side.control.mail[0].stamps[0];
    let mut opened = side.open_window();
    let mut round = 0_u64;
    loop {
        side.step(Step::Waits, round);
        receiver.acquire()?;
        let awake = monotonic_ns();
        // The sender does not wait after its last release: on one core it first closes its window, half a
        // millisecond that is no hand-over.
        if side.control.stop.load(Acquire) != 0 {
            break;
        }
        round += 1;
        let sent = stamp.sent.load(Relaxed);
        if round > WARMUP {
            side.times.operation.record(awake.saturating_sub(sent) * 1000);
        }
        receiver.note()?;
        side.step(Step::Pauses, round);
        std::thread::sleep(PAUSE);
        if round == WARMUP {
            // While the sender still waits for its turn: the time it
            // takes would otherwise be part of the first hand-over.
            opened = side.open_window();
        }
        side.step(Step::Notifies, round);
        receiver.allow()?;
    }
    side.close_window(opened);
    side.tally.seen = round - WARMUP;
    side.step(Step::Finished, round);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_harness::control::Control;
    use doorbell_harness::fake_side::side;
    use std::sync::atomic::AtomicU64;

    /// Lets the sender go on by sleeping `NAPS` times in the round
    /// that ends the warm-up, and is told to stop after it.
    struct Napper {
        control: &'static Control,
        round: AtomicU64,
    }

    const NAPS: u64 = 1000;

    impl Handover for Napper {
        fn release(&self) -> Result<(), Fault> {
            unreachable!("it receives")
        }
        fn turn(&self) -> Result<(), Fault> {
            unreachable!("it receives")
        }
        fn acquire(&self) -> Result<(), Fault> {
            let last = self.round.fetch_add(1, Relaxed) + 1 > WARMUP;
            self.control.stop.store(u32::from(last), Release);
            Ok(())
        }
        fn allow(&self) -> Result<(), Fault> {
            if self.round.load(Relaxed) == WARMUP {
                (0..NAPS).for_each(|_| std::thread::sleep(Duration::from_nanos(1)));
            }
            Ok(())
        }
    }

    /// The window was once opened after the sender had been let go: on two cores, or preempted on
    /// one, the first sample was the time of the opening.
    #[test]
    fn the_receivers_window_is_open_before_the_sender_may_go_on() {
        let mut side = side(None, 0);
        receive(&Napper { control: side.control, round: AtomicU64::new(0) }, &mut side).unwrap();
        // On a busy machine a nap may be over before the thread has left its CPU, which is then no switch,
        // or none by its own will.
        assert!(side.counters.voluntary_switches >= NAPS / 10, "{:?}", side.counters);
        assert_eq!(side.times.operation.count(), 0);
    }
}
