// SPDX-License-Identifier: MIT OR Apache-2.0
//! The floor of any signal between two cores: a cache line that moves from one to the other.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::samples::Samples;
use crate::machine::clock::Clock;
use crate::machine::pinned::both;
use crate::mechanism::Word;
use crate::record::result::Floor;

const ROUND_TRIPS: u64 = 50;
const BATCHES: usize = 200;

/// Tells the second thread that it is over.
const OVER: u32 = u32::MAX;

/// Two threads answer each other through a line each; a sample is one hop: a batch of round trips divided by twice
/// their number, with no clock between them.
pub(super) fn measure(clock: Clock, cpus: [u32; 2]) -> io::Result<Floor> {
    let (there, back) = (Word::default(), Word::default());
    let first = || {
        let mut round = 0;
        let mut round_trip = || {
            round += 1;
            there.store(round, Release);
            while back.load(Acquire) != round {}
        };
        // The first answer comes when the other thread has been born and moved to its CPU.
        round_trip();
        let mut samples = Samples::new(clock, BATCHES);
        while samples.wanting() {
            let before = clock.now_awake();
            for _ in 0..ROUND_TRIPS {
                round_trip();
            }
            samples.add(clock.now_awake().saturating_sub(before), 2 * ROUND_TRIPS);
        }
        there.store(OVER, Release);
        samples.floor("cache-line-hop")
    };
    let second = || {
        let mut seen = 0;
        while seen != OVER {
            let now = there.load(Acquire);
            if now != seen {
                seen = now;
                back.store(now, Release);
            }
        }
    };
    Ok(both(cpus, first, second)?.0)
}
