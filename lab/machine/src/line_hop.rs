// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a cache line moves between two CPUs.

use super::clock::Now;
use super::pinned::both;
use doorbell_results::machine::clock::Clock;
use doorbell_results::machine::line_hop::*;
use doorbell_results::machine::topology::Topology;
use std::io;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// A word with two cache lines to itself: CPUs fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU32);

/// Tells the answering thread that it is over.
const OVER: u32 = u32::MAX;

/// One side of an exchange: two threads that answer each other through a line each.
#[derive(Debug)]
pub struct Exchange<'lines> {
    there: &'lines Line,
    back: &'lines Line,
    round: u32,
}

impl Exchange<'_> {
    /// There and back, with no clock between them: two hops.
    #[inline]
    pub fn round_trip(&mut self) {
        self.round += 1;
        // Pairs with the Acquire load of the other thread.
        self.there.0.store(self.round, Release);
        while self.back.0.load(Acquire) != self.round {}
    }
}

/// Runs `act` on the first of `cpus` with a thread on the second that answers, once both are there.
pub fn exchange<T: Send>(cpus: [u32; 2], act: impl FnOnce(&mut Exchange<'_>) -> T + Send) -> io::Result<T> {
    let (there, back) = (Line::default(), Line::default());
    let first = || {
        let mut exchange = Exchange { there: &there, back: &back, round: 0 };
        // The first answer comes when the other thread has been born and moved to its CPU.
        exchange.round_trip();
        let done = act(&mut exchange);
        there.0.store(OVER, Release);
        done
    };
    let second = || {
        let mut seen = 0;
        while seen != OVER {
            let now = there.0.load(Acquire);
            if now != seen {
                seen = now;
                // Pairs with the Acquire load in `round_trip`.
                back.0.store(now, Release);
            }
        }
    };
    Ok(both(cpus, first, second)?.0)
}

/// The hops of each pair of different CPUs that `topology` would have
/// measured; takes some milliseconds a pair.
pub fn measure(clock: Clock, topology: &Topology) -> Vec<LineHop> {
    let pairs = topology.pairs().into_iter().filter_map(|pair| pair.cpus).filter(|[a, b]| a != b);
    // A pair whose threads cannot be pinned is one that the run will not be able to use either.
    pairs.filter_map(|cpus| of(clock, cpus).ok()).collect()
}

fn of(clock: Clock, cpus: [u32; 2]) -> io::Result<LineHop> {
    const ROUND_TRIPS: u64 = 50;
    const LONGEST: Duration = Duration::from_millis(3);
    let mut batches = exchange(cpus, |exchange| {
        let until = clock.now().saturating_add(clock.ticks(LONGEST));
        let mut batches = Vec::new();
        while batches.is_empty() || clock.now() < until {
            let before = clock.now_awake();
            for _ in 0..ROUND_TRIPS {
                exchange.round_trip();
            }
            batches.push(clock.now_awake().saturating_sub(before));
        }
        batches
    })?;
    batches.sort_unstable();
    let hop_ns = |ticks: &u64| clock.ps(*ticks) as f64 / (2 * ROUND_TRIPS) as f64 / 1e3;
    Ok(LineHop {
        cpus,
        fastest_ns: batches.first().map_or(f64::INFINITY, hop_ns),
        median_ns: batches.get(batches.len() / 2).map(hop_ns),
    })
}
