// SPDX-License-Identifier: MIT OR Apache-2.0
//! The primitive cost of any signal between two cores: a cache line
//! that moves from one to the other.

use std::io;

use super::samples::Samples;
use doorbell_machine::clock::Now;
use doorbell_machine::line_hop::exchange;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::result::Primitive;

const ROUND_TRIPS: u64 = 50;
const BATCHES: usize = 200;

/// A sample is one hop: a batch of round trips divided by twice their number.
pub(super) fn measure(clock: Clock, cpus: [u32; 2]) -> io::Result<Primitive> {
    exchange(cpus, |exchange| {
        let mut samples = Samples::new(clock, BATCHES);
        while samples.wanting() {
            let before = clock.now_awake();
            for _ in 0..ROUND_TRIPS {
                exchange.round_trip();
            }
            samples.add(clock.now_awake().saturating_sub(before), 2 * ROUND_TRIPS);
        }
        samples.primitive("cache-line-hop")
    })
}
