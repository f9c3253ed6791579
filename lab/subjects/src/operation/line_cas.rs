// SPDX-License-Identifier: MIT OR Apache-2.0
//! core-to-core-latency's default test: compare-and-swap on one cache line by two cores in turn.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::time::Duration;

use super::alone::batch;
use super::figures::figure;
use super::{Explanation, Form, Links, Operation, PLAIN};
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_machine::clock::Now;
use doorbell_results::record::series::Quantity;

const PING: u32 = 0;
const PONG: u32 = 1;

pub(super) const OPERATION: Operation = Operation {
    name: "line-cas",
    form: Form::two_sides("round", 1000),
    explanation: Explanation {
        summary: "the protocol of core-to-core-latency: compare-and-swap on one line by two \
            cores in turn",
        how: "One side swaps PING for PONG, the other PONG for PING, each trying until it \
            succeeds; nothing else is in the loop. A sample is the time of a batch of round \
            trips divided by its size.",
        kernel: "Nothing. Every failed try still fetches the line for writing, so this is a \
            contended line's cost.",
        limits: "Two cores only: on one, each side would spin out its time slice. The tool \
            prints half a round trip.",
        sources: &["core-to-core-latency 1.2.0, bench/cas.rs"],
    },
    usual: false,
    shares_a_core: false,
    open: |site, _| Ok(Box::new(Line(&site.word()?.0))),
    classic: |record| {
        let mean = record.series.get(&Quantity::Operation)?.mean_ns;
        let formula = "mean round trip / 2";
        Some(figure("core-to-core-latency as printed", mean / 2.0, "ns", formula))
    },
    ..PLAIN
};

struct Line(&'static AtomicU32);

impl Line {
    #[inline(always)]
    fn swap(&self, from: u32, to: u32) {
        while self.0.compare_exchange(from, to, AcqRel, Relaxed).is_err() {}
    }
}

/// Batches before anything is recorded.
const WARMUP: u64 = 20;

impl Links for Line {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        side.control.meet(2, 1);
        // Three at least: see where `follow` looks for the end.
        let batch = batch(side).max(3);
        if role.index() == 0 {
            self.lead(batch, side)
        } else {
            self.follow(batch, side)
        }
        Ok(())
    }
}

impl Line {
    fn lead(&self, batch: u32, side: &mut Side) {
        let clock = side.clock;
        let per_sample = u64::from(batch);
        let count = side.configuration.until.count.unwrap_or(u64::MAX);
        let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
        let mut opened = side.open_window();
        let mut done = 0;
        let mut batches = 0_u64;
        loop {
            if batches == WARMUP {
                opened = side.open_window();
                done = 0;
            }
            let before = clock.now_awake();
            let last = batches >= WARMUP
                && (done + per_sample >= count
                    || side.interrupted()
                    || window.is_some_and(|window| before.saturating_sub(opened) >= window));
            if last {
                // Pairs with the Acquire load in `follow`, which comes after the other side's second swap of
                // this batch, and so after the first of this side.
                side.control.stop.store(1, Release);
            }
            for _ in 0..batch {
                self.swap(PONG, PING);
            }
            let after = clock.now_awake();
            batches += 1;
            done += per_sample;
            if batches > WARMUP {
                side.times.operation.record(clock.ps(after.saturating_sub(before)) / per_sample);
            }
            side.step(Step::Operates, batches);
            if last {
                break;
            }
        }
        side.close_window(opened);
        side.tally.sent = done;
        side.tally.seen = done;
        side.tally.warmup = WARMUP * per_sample;
        side.step(Step::Finished, batches);
    }

    fn follow(&self, batch: u32, side: &mut Side) {
        let opened = side.open_window();
        let mut batches = 0;
        loop {
            for _ in 1..batch {
                self.swap(PING, PONG);
            }
            // Looked for before the last swap: after it, the leader
            // might have announced the end of the next batch.
            let last = side.control.stop.load(Acquire) != 0;
            self.swap(PING, PONG);
            batches += 1;
            side.step(Step::Operates, batches);
            if last {
                break;
            }
        }
        side.close_window(opened);
        side.step(Step::Finished, batches);
    }
}
