// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bare cache-line ping-pong: two loops, two words, nothing of the harness in between.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use super::alone::batch;
use super::{Explanation, Form, Links, Operation, PLAIN, Word};
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_machine::clock::Now;

/// Told in place of a round's number when it is over; rounds stay below it.
const OVER: u32 = u32::MAX;

/// Batches before anything is recorded.
const WARMUP: u32 = 20;

pub(super) const OPERATION: Operation = Operation {
    name: "cache-line",
    form: Form::two_sides("round", 1000),
    explanation: Explanation {
        summary: "bare cache-line ping-pong: the limit of what spinning can reach",
        how: "Each side spins on a word that the other writes; a thousand rounds stand between two \
            clock readings and nothing else does, no sequence number, no step, no histogram.",
        kernel: "Nothing. Two cache lines move between two cores, once each per round.",
        limits: "Needs two cores; on one, a round lasts two time slices.",
        sources: &["c2clat and core-to-core-latency time the same exchange"],
    },
    shares_a_core: false,
    open: |site, _| Ok(Box::new(Words { there: site.word()?, back: site.word()? })),
    ..PLAIN
};

struct Words {
    there: &'static Word,
    back: &'static Word,
}

impl Links for Words {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        side.control.meet(2, 1);
        if role.index() == 0 {
            self.lead(side);
        } else {
            self.follow(side);
        }
        Ok(())
    }
}

impl Words {
    #[inline(always)]
    fn rounds(&self, from: u32, count: u32) {
        for round in from..from + count {
            // Pairs with the Acquire load of the other side, as its store pairs with the load below.
            self.there.store(round, Release);
            while self.back.load(Acquire) != round {
                std::hint::spin_loop();
            }
        }
    }

    fn lead(&self, side: &mut Side) {
        let clock = side.clock;
        let batch = batch(side);
        let mut next = 1;
        for _ in 0..WARMUP {
            self.rounds(next, batch);
            next += batch;
            side.step(Step::Operates, u64::from(next));
        }
        let count = side.configuration.until.count.unwrap_or(u64::MAX);
        let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
        let opened = side.open_window();
        let mut before = opened;
        let mut done = 0;
        // Rounds are numbered in 32 bits, which also ends a run of an hour or so.
        while done < count
            && next < OVER - batch
            && !side.interrupted()
            && window.is_none_or(|window| before.saturating_sub(opened) < window)
        {
            self.rounds(next, batch);
            next += batch;
            let after = clock.now();
            side.times.operation.record(clock.ps(after.saturating_sub(before)) / u64::from(batch));
            before = after;
            done += u64::from(batch);
            side.step(Step::Operates, done);
        }
        side.close_window(opened);
        self.there.store(OVER, Release);
        side.tally.sent = done;
        side.tally.seen = done;
        side.tally.warmup = u64::from(WARMUP * batch);
        side.step(Step::Finished, done);
    }

    fn follow(&self, side: &mut Side) {
        let opened = side.open_window();
        let mut seen = 0;
        loop {
            let now = self.there.load(Acquire);
            if now == seen {
                std::hint::spin_loop();
                continue;
            }
            if now == OVER {
                break;
            }
            seen = now;
            self.back.store(now, Release);
        }
        side.close_window(opened);
        side.step(Step::Finished, u64::from(seen));
    }
}
