// SPDX-License-Identifier: MIT OR Apache-2.0
//! The primitive cost of waking a sleeper on another core: a futex wake, one way.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::thread::futex::{self, Flags};

use super::samples::Samples;
use crate::site::Word;
use doorbell_machine::clock::Now;
use doorbell_machine::pinned::both;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::result::Primitive;

const WAKES: usize = 400;

/// Tells the second thread that it is over.
const OVER: u32 = u32::MAX;

/// One direction: the number of the last wake and the moment just before it was sent.
#[derive(Debug, Default)]
struct Direction {
    number: Word,
    sent: AtomicU64,
}

impl Direction {
    fn wake(&self, number: u32, clock: Clock) {
        self.sent.store(clock.now(), Relaxed);
        // Pairs with the Acquire load in `wait`: who sees the number sees the stamp.
        self.number.store(number, Release);
        // Whether somebody slept is the other side's to say.
        let _ = futex::wake(&self.number.0, Flags::PRIVATE, 1);
    }

    /// Waits for a number other than `seen`, and takes the time if
    /// the wait slept: the kernel's answer to a sleeper that was
    /// woken is success, to one that need not sleep it is `EAGAIN`.
    fn wait(&self, seen: u32, clock: Clock, samples: &mut Samples) -> u32 {
        let mut slept = false;
        loop {
            let number = self.number.load(Acquire);
            if number != seen {
                if slept {
                    samples.add(clock.now_awake().saturating_sub(self.sent.load(Relaxed)), 1);
                }
                return number;
            }
            slept = futex::wait(&self.number.0, Flags::PRIVATE, seen, None).is_ok();
        }
    }
}

/// Two threads wake each other in turn, each going to sleep at once; a sample is from just before a
/// wake to the first instruction of the woken, on either side.
pub(super) fn measure(clock: Clock, cpus: [u32; 2]) -> io::Result<Primitive> {
    let (there, back) = (Direction::default(), Direction::default());
    let first = || {
        // The first answer comes when the other thread has been born and moved to its CPU.
        there.wake(1, clock);
        back.wait(0, clock, &mut Samples::new(clock, 1));
        let mut samples = Samples::new(clock, WAKES);
        let mut number = 1;
        // A machine that never sleeps between two wakes takes no sample: the rounds are bounded too.
        while samples.wanting() && (number as usize) < 4 * WAKES {
            number += 1;
            there.wake(number, clock);
            back.wait(number - 1, clock, &mut samples);
        }
        there.wake(OVER, clock);
        samples
    };
    let second = || {
        let mut samples = Samples::new(clock, WAKES);
        let mut seen = 0;
        loop {
            seen = there.wait(seen, clock, &mut samples);
            if seen == OVER {
                return samples;
            }
            back.wake(seen, clock);
        }
    };
    let (first, second) = both(cpus, first, second)?;
    Ok(first.and(second).primitive("two-core-wake"))
}
