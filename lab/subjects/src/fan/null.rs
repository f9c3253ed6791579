// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nobody is notified: each receiver is woken by a timer of its own, at a moment drawn at random.
//!
//! What remains is the fan-out's bookkeeping: the notifier's walk through the receivers without a
//! post, and each receiver's stamp. No receiver's moment depends on its number or on another's, so
//! if latency or order went with the number, the bookkeeping would be what orders them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use super::{Fan, FanEntry, Needs};
use crate::mechanism::{self, Fault, Mechanism as _, Notifier, OpenError, Waiter, Woken, Word};
use doorbell_machine::clock::Now;
use doorbell_results::machine::clock::{Clock, Ticks};

/// Time for each receiver's wake and bookkeeping, so that few of them meet: some wake-ups long.
const EACH: Duration = Duration::from_micros(25);

/// The shortest time over which the moments of a round are strewn.
const SHORTEST: Duration = Duration::from_millis(1);

/// The least time from the start of a round to the first moment: the
/// notifier has walked through all receivers by then.
const LEAD: Duration = Duration::from_millis(5);

/// How often a receiver looks whether the notifier has, where it has not.
const LOOK: Duration = Duration::from_micros(200);

const FOREVER: Duration = Duration::from_secs(365 * 86_400);

#[derive(Clone, Copy)]
struct Schedule {
    clock: Clock,
    /// From the start of a round to the first moment, ticks.
    lead: Ticks,
    /// Over how long the moments of a round are strewn, ticks.
    window: Ticks,
    /// Zero until the first round's moment is known.
    begun: &'static Word,
    /// The first round and the interval, ticks.
    times: &'static [AtomicU64; 2],
    /// Rounds through which the notifier has walked.
    walked: &'static AtomicU64,
}

impl Schedule {
    /// When receiver `number` wakes in `round`.
    #[inline]
    fn due(&self, number: u32, round: u64) -> Ticks {
        let [first, interval] = self.times.each_ref().map(|time| time.load(Relaxed));
        let lot = mixed(u64::from(number) << 32 ^ round) % self.window.max(1);
        first.wrapping_add(round.wrapping_mul(interval)).wrapping_add(self.lead).wrapping_add(lot)
    }
}

/// A number in which every bit depends on every bit of `seed` (the
/// finalizer of SplitMix64, Steele, Lea and Flood 2014).
fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

pub(super) struct Timer {
    schedule: Schedule,
    number: u32,
    round: u64,
}

pub(super) struct Nobody;

impl Notifier for Nobody {
    #[inline]
    fn notify(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Timer {
    /// Sleeps until the next moment is known, then until it has come or `timeout` is over.
    fn sleep(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        while self.schedule.begun.load(Acquire) == 0 {
            await_word(self.schedule.begun)?;
        }
        let clock = self.schedule.clock;
        let due = self.schedule.due(self.number, self.round);
        let gives_up = clock.now().saturating_add(clock.ticks(timeout));
        let until = due.min(gives_up);
        loop {
            let now = clock.now();
            if now >= until {
                break;
            }
            std::thread::sleep(Duration::from_nanos(clock.ps(until - now) / 1000 + 1));
        }
        if due > gives_up {
            return Ok(Woken::TimedOut);
        }
        // Pairs with the Release store in `walked`. A notifier that
        // was held up must not make this wake one for nothing.
        while self.schedule.walked.load(Acquire) <= self.round {
            std::thread::sleep(LOOK);
        }
        self.round += 1;
        Ok(Woken::Notified)
    }
}

impl Waiter for Timer {
    fn wait(&mut self) -> Result<(), Fault> {
        self.sleep(FOREVER).map(drop)
    }
    fn wait_for(&mut self, timeout: Duration) -> Result<Woken, Fault> {
        self.sleep(timeout)
    }
    fn poll(&mut self) -> Result<bool, Fault> {
        self.sleep(Duration::ZERO).map(|woken| woken == Woken::Notified)
    }
}

fn await_word(word: &Word) -> Result<(), Fault> {
    use rustix::io::Errno;
    use rustix::thread::futex;
    match futex::wait(&word.0, futex::Flags::empty(), 0, None) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(Fault::new("futex(FUTEX_WAIT)", error)),
    }
}

fn tell_all(word: &Word) {
    use rustix::thread::futex;
    // An error would leave the receivers asleep, and the watchdog would say so.
    let _ = futex::wake(&word.0, futex::Flags::empty(), i32::MAX.cast_unsigned());
}

/// The kernel lets a timer be 50 µs late, to serve several at once; here each is to be alone.
fn punctual() -> Result<(), OpenError> {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))
        .map_err(OpenError::of("prctl(PR_SET_TIMERSLACK)"))
}

impl Fan for Schedule {
    type Notifier = Nobody;
    type Waiter = Timer;
    fn waiter(&self, number: u32) -> Result<Timer, OpenError> {
        punctual()?;
        Ok(Timer { schedule: *self, number, round: 0 })
    }
    fn notifier(&self, _: u32) -> Result<Nobody, OpenError> {
        Ok(Nobody)
    }
    fn begins(&self, first: Ticks, interval: Ticks) {
        self.times[0].store(first, Relaxed);
        self.times[1].store(interval, Relaxed);
        // Pairs with the Acquire load in `Timer::sleep`: whoever sees the word sees the times.
        self.begun.store(1, Release);
        tell_all(self.begun);
    }
    fn walked(&self, rounds: u64) {
        // Pairs with the Acquire load in `Timer::sleep`.
        self.walked.store(rounds, Release);
    }
    #[inline(always)]
    fn due(&self, number: u32, round: u64) -> Option<Ticks> {
        Some(self.due(number, round))
    }
    fn interval(&self, asked: Duration) -> Duration {
        // As long again for those who are late.
        asked.max(2 * Duration::from_nanos(self.clock.ps(self.lead + self.window) / 1000))
    }
}

pub(super) const NULL: FanEntry = FanEntry {
    name: "null",
    summary: "no post at all: each receiver wakes by a timer of its own at a random moment",
    available: || Ok(()),
    needs: |_| Needs::default(),
    notification: mechanism::null::Null::NOTIFICATION,
    shared: false,
    open: |site, context| {
        let window = SHORTEST.max(EACH * context.receivers);
        Ok(Box::new(Schedule {
            clock: context.clock,
            lead: context.clock.ticks(LEAD.max(window)),
            window: context.clock.ticks(window),
            begun: site.word()?,
            times: site.place()?,
            walked: site.place()?,
        }))
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_lie_within_the_window_and_do_not_go_with_the_number() {
        let begun: &'static Word = Box::leak(Box::default());
        let times: &'static [AtomicU64; 2] = Box::leak(Box::default());
        times[1].store(1_000_000, Relaxed);
        let walked: &'static AtomicU64 = Box::leak(Box::default());
        let schedule = Schedule { clock: Clock::MONOTONIC, lead: 0, window: 50_000, begun, times, walked };
        for round in 0..20 {
            let start = round * 1_000_000;
            let moments: Vec<Ticks> = (0..2000).map(|number| schedule.due(number, round)).collect();
            assert!(moments.iter().all(|due| (start..start + 50_000).contains(due)));
            let [low, high] = [&moments[..1000], &moments[1000..]]
                .map(|half| half.iter().map(|due| (due - start) as f64).sum::<f64>() / 1000.0);
            // The mean of 1000 draws from 50,000 has a standard
            // deviation of 456: ten of them for the difference of two.
            assert!((low - high).abs() < 6500.0, "{low} {high}");
        }
    }
}
