// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fixed piece of work, to see how fast the machine is at a moment: a chain of multiplications,
//! each of which waits for the one before, so that it takes as many cycles on a given processor
//! however much that does at once, and touches no memory.

use std::hint::black_box;
use std::time::Duration;

use super::clock::Now;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::speed::Speed;
use doorbell_results::record::Histogram;

/// Multiplications of a piece: some 200 ns at 3 cycles each and 3 GHz.
const STEPS: u32 = 200;

/// Stretches of a reading, how long each is, and the pieces after which the CPU is left alone for a
/// moment, so that a scheduler has no reason to end a time slice within one.
const STRETCHES: usize = 16;
const STRETCH: Duration = Duration::from_millis(5);

/// Does one piece; returns what keeps a compiler from leaving it out.
#[inline(never)]
pub fn piece(seed: u64) -> u64 {
    let mut value = black_box(seed) | 1;
    for _ in 0..STEPS {
        value = value.wrapping_mul(6_364_136_223_846_793_005);
    }
    black_box(value)
}

/// How fast it is now, in some 80 ms on whichever CPU this thread has.
pub fn speed(clock: Clock) -> Option<Speed> {
    let mut whole = Histogram::new();
    let mut medians_ns = Vec::with_capacity(STRETCHES);
    let mut seed = 1;
    for _ in 0..STRETCHES {
        let mut stretch = Histogram::new();
        let ends = clock.now().saturating_add(clock.ticks(STRETCH));
        loop {
            let before = clock.now_awake();
            seed = piece(seed);
            let after = clock.now_awake();
            stretch.record(clock.ps(after.saturating_sub(before)));
            if after >= ends {
                break;
            }
        }
        medians_ns.push(stretch.quantile(0.5) as f64 / 1000.0);
        whole.add(&stretch);
    }
    Speed::of(&whole, &medians_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_done_and_its_speed_told() {
        assert_eq!(piece(1), piece(1));
        assert_ne!(piece(1), piece(3));
        let speed = speed(Clock::MONOTONIC).unwrap();
        assert!(speed.work_ns > 0.0 && speed.stretches as usize == STRETCHES && speed.fit_for() >= 0.0);
    }
}
