// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trial of a way to wait for a GPU: one kernel after another, between two looks at how its
//! clock stands to the CPU's.

use super::bench::{Bench, Kernels, Round};
use super::clock::Relation;
use super::device::node;
use super::window::{self, MOST_WORDS, WARM_UP, Window};
use super::{Start, Wait, Way};
use crate::lone_side::drive_alone;
use crate::mechanism::{Fault, Links};
use crate::transfer::other_threads_ns;
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::WaitPolicy;
use doorbell_results::figure::gpu::CLOCK_BOUND;
use doorbell_results::machine::block::BlockDevice;
use doorbell_results::record::Figure;
use doorbell_results::record::io::Io;
use std::time::Duration;

/// Exchanges before a trial, and after it.
const EXCHANGES: u32 = 200;
/// How long an event is asked about before the driver blocks, unless
/// told otherwise: about what a blocking wake-up costs.
const HYBRID: Duration = Duration::from_micros(50);
/// So long a resident kernel is there at most: after four seconds it leaves by itself.
pub(super) const RESIDENT_NS: u64 = 3_000_000_000;

/// A way, to be driven by the side that notifies first; the other leaves at once.
pub(super) struct Drive(pub(super) &'static Way);

impl Links for Drive {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        drive_alone(role, side, |side| self.drive(side))
    }
}

impl Drive {
    fn drive(&self, side: &mut Side) -> Result<(), SideError> {
        let pattern = side.configuration.pattern;
        let (Some(kernel_ns), Some(streams)) = (pattern.kernel_ns(), pattern.streams()) else {
            return Err(Fault::new("doorbell gpu", "the configuration has another pattern").into());
        };
        let resident = self.0.start == Start::Resident;
        let until = side.configuration.until;
        let time_ns =
            if resident { Some(until.time_ns.unwrap_or(u64::MAX).min(RESIDENT_NS)) } else { until.time_ns };
        let most = until.count.unwrap_or(u64::MAX).min(u64::from(MOST_WORDS) - WARM_UP - 1);
        let window = Window { clock: side.clock, gap_ns: pattern.gap_ns(), resident, time_ns, most };
        let hybrid = match side.configuration.wait {
            WaitPolicy::SpinThenBlock { spin_ns } => Duration::from_nanos(spin_ns),
            _ => HYBRID,
        };
        let new = |stream: u64| Bench::new(self.0, Kernels::between(kernel_ns, stream), hybrid, window.clock);
        let mut bench = new(0)?;
        // Before a resident kernel runs: what makes a bench may wait for all that runs.
        let others: Vec<Bench> = (1..u64::from(streams)).map(new).collect::<Result<_, _>>()?;
        side.step(Step::Operates, 0);
        let first = bench.exchanges(EXCHANGES)?;
        if resident {
            bench.settle(MOST_WORDS)?;
        }
        for number in 1..=WARM_UP {
            bench.round()?;
            side.step(Step::Operates, number);
        }
        let threads_before = other_threads_ns();
        let rounds = match self.0.wait {
            Wait::Events => window::in_one_loop(&window, side, &mut bench, others)?,
            _ => window::in_a_thread_each(&window, side, &mut bench, others)?,
        };
        let threads_ns = other_threads_ns().saturating_sub(threads_before);
        if resident {
            bench.leave()?;
        }
        let last = bench.exchanges(EXCHANGES)?;
        let relation = Relation::of(&first, &last)
            .ok_or_else(|| Fault::new("the GPU's clock", "nothing was exchanged"))?;
        self.account(side, &rounds, &relation);
        side.figures.push(Figure {
            name: CLOCK_BOUND.to_owned(),
            value: relation.bound_ns,
            unit: "ns".to_owned(),
            formula: "half the quickest exchange over a flag in pinned memory, and a step of the GPU's timer"
                .to_owned(),
        });
        let device = BlockDevice {
            name: "GPU 0".to_owned(),
            model: Some(bench.device.clone()),
            node: node().ok().flatten(),
            ..BlockDevice::default()
        };
        side.io = Some(Io { device: Some(device), kernel_thread_ns: threads_ns, ..Io::default() });
        side.tally.sent = rounds.len() as u64;
        side.tally.seen = rounds.len() as u64;
        side.tally.warmup = WARM_UP;
        Ok(())
    }

    fn account(&self, side: &mut Side, rounds: &[Round], relation: &Relation) {
        for round in rounds {
            let ps = |ns: u64| ns.saturating_mul(1000);
            side.times.round_trip.record(ps(round.awake.saturating_sub(round.before)));
            side.times.notify.record(ps(round.called.saturating_sub(round.before)));
            let wake_ns = if self.0.wakes_gpu() {
                relation.cpu_ns(round.began) - round.before as f64
            } else {
                round.awake as f64 - relation.cpu_ns(round.ended)
            };
            // Within the bound it may seem to be before its cause.
            side.times.wake.record((wake_ns.max(0.0) * 1000.0) as u64);
        }
    }
}
