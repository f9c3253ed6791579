// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run whose program takes turns with another one: both do the same things in the same order.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use doorbell_harness::in_turn::{Ended, InTurn, Seat, Section, about};
use doorbell_results::configuration::Configuration;
use doorbell_results::plan::Plan;
use doorbell_results::plan::bench::Bench;
use serde::Serialize;

/// The other program, as this one meets it.
#[derive(Debug)]
pub(super) struct Partner {
    seat: Seat,
    in_turn: InTurn,
}

impl Partner {
    /// Whom the environment names.
    pub(super) fn of_environment() -> io::Result<Option<Self>> {
        let Some(seat) = Seat::of_environment() else { return Ok(None) };
        let in_turn = seat.take()?;
        Ok(Some(Self { seat, in_turn }))
    }

    /// `plan` as both carry it out: nobody looks in between, a pair of sides ends by the clock, and
    /// the harness, which is the same in both, takes no time of what was asked for.
    pub(super) fn plan(&self, mut plan: Plan, is_harness: impl Fn(&Configuration) -> bool) -> Plan {
        if !plan.configurations.iter().all(&is_harness) {
            plan.configurations.retain(|configuration| !is_harness(configuration));
        }
        let pair_ns = u64::try_from(self.in_turn.pair().as_nanos()).ok();
        let bench = plan.bench.map(|bench| Bench { pair_ns, ..bench });
        let (blocks, seed) = (self.in_turn.blocks(), self.in_turn.seed());
        Plan { bench, blocks, seed, looks: Vec::new(), repeat_on_interference: false, ..plan }
    }

    /// The order of a block is the same in both, whatever they met before.
    pub(super) fn random(&self, block: u32) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.in_turn.seed().wrapping_add(block.into()))
    }

    /// Does `work` while the other sleeps; none where the run is interrupted.
    pub(super) fn by_turns<T>(
        &self,
        what: &impl Serialize,
        interrupted: &AtomicBool,
        work: impl FnOnce() -> T,
    ) -> io::Result<Option<T>> {
        match self.in_turn.by_turns(about(what), &mut || !interrupted.load(Relaxed), work) {
            Ok(done) => Ok(Some(done)),
            Err(Ended::Interrupted) => Ok(None),
            Err(ended) => Err(io::Error::other(ended)),
        }
    }

    /// What a bench that is `about` to begin is told.
    pub(super) fn section(&self, about: u64) -> Section {
        Section { seat: self.seat.clone(), about }
    }

    /// Runs a bench, whose sides meet those of the other program.
    /// However it ends, the other is not kept waiting.
    pub(super) fn bench<T>(
        &self,
        about: u64,
        interrupted: &AtomicBool,
        run: impl FnOnce() -> T,
    ) -> io::Result<T> {
        let met = self.in_turn.met();
        let done = run();
        let met = match self.in_turn.met() == met {
            // It failed before its sides came to meet the others.
            true => self.in_turn.meet(about, &mut || !interrupted.load(Relaxed)),
            false => Ok(()),
        };
        self.in_turn.leave_bench();
        match met {
            Ok(()) | Err(Ended::Interrupted) => Ok(done),
            Err(ended) => Err(io::Error::other(ended)),
        }
    }
}
