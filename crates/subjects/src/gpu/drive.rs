// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trial of a way to wait for a GPU: one kernel after another, between two looks at how its clock stands to the CPU's.

use super::bench::{Bench, Round};
use super::clock::{Relation, now_ns};
use super::{Start, Way};
use crate::mechanism::{Fault, Links};
use crate::transfer::other_threads_ns;
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_results::configuration::{Pattern, WaitPolicy};
use doorbell_results::figure::gpu::CLOCK_BOUND;
use doorbell_results::machine::block::BlockDevice;
use doorbell_results::machine::clock::Clock;
use doorbell_results::record::Figure;
use doorbell_results::record::io::Io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Kernels before the window.
const WARM_UP: u64 = 10;
/// Exchanges before a trial, and behind it.
const EXCHANGES: u32 = 200;
/// How long an event is asked about before the driver blocks, unless told otherwise: about what a blocking wake-up costs.
const HYBRID: Duration = Duration::from_micros(50);
/// Words that a resident kernel is there for at most.
const MOST_WORDS: u32 = 1 << 20;
/// And so long at most: after four seconds it leaves by itself.
const RESIDENT_NS: u64 = 3_000_000_000;

/// A way, to be driven by the side that notifies first; the other leaves at once.
#[derive(Debug)]
pub(super) struct Drive(pub(super) &'static Way);

impl Links for Drive {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        side.control.meet(2, 1);
        if role.index() == 0 {
            self.drive(side)?;
        }
        side.step(Step::Finished, 0);
        Ok(())
    }
}

/// Says so when it goes.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// What a thread does that waits beside the side, for kernels of a stream of its own.
fn beside(
    mut bench: Bench,
    gap_ns: u64,
    resident: bool,
    clock: Clock,
    stop: &AtomicBool,
) -> Result<Vec<Round>, Fault> {
    bench.enter()?;
    if resident {
        bench.settle(MOST_WORDS)?;
    }
    let mut rounds = Vec::new();
    let mut due = now_ns(clock);
    while !stop.load(Relaxed) && rounds.len() < MOST_WORDS as usize - 1 {
        due += gap_ns;
        if gap_ns > 0 {
            std::thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns(clock))));
        }
        rounds.push(bench.round()?);
    }
    if resident {
        bench.leave()?;
    }
    Ok(rounds)
}

impl Drive {
    fn drive(&self, side: &mut Side) -> Result<(), SideError> {
        let Pattern::Gpu { kernel_ns, gap_ns, streams } = side.configuration.pattern else {
            return Err(Fault::new("doorbell gpu", "the configuration has another pattern").into());
        };
        let resident = self.0.start == Start::Resident;
        let window = side.configuration.until.time_ns;
        let window = if resident { Some(window.unwrap_or(u64::MAX).min(RESIDENT_NS)) } else { window };
        let hybrid = match side.configuration.wait {
            WaitPolicy::SpinThenBlock { spin_ns } => Duration::from_nanos(spin_ns),
            _ => HYBRID,
        };
        let clock = side.clock;
        let mut bench = Bench::new(self.0, kernel_ns, hybrid, clock)?;
        side.step(Step::Operates, 0);
        let first = bench.exchanges(EXCHANGES)?;
        if resident {
            bench.settle(MOST_WORDS)?;
        }
        for number in 1..=WARM_UP {
            bench.round()?;
            side.step(Step::Operates, number);
        }
        let most =
            side.configuration.until.count.unwrap_or(u64::MAX).min(u64::from(MOST_WORDS) - WARM_UP - 1);
        let mut rounds: Vec<Round> = Vec::with_capacity(1 << 16);
        let others: Vec<Bench> =
            (1..streams).map(|_| Bench::new(self.0, kernel_ns, hybrid, clock)).collect::<Result<_, _>>()?;
        let stop = AtomicBool::new(false);
        let (mut threads_before, mut opened) = (0, 0);
        let stopped = &stop;
        let beside = std::thread::scope(|scope| {
            let waits = |bench| scope.spawn(move || beside(bench, gap_ns, resident, clock, stopped));
            let threads: Vec<_> = others.into_iter().map(waits).collect();
            // Whatever ends the rounds ends the others too.
            let _stop = Stop(stopped);
            threads_before = other_threads_ns();
            opened = side.open_window();
            let start = now_ns(clock);
            let mut due = start;
            while (rounds.len() as u64) < most && !side.interrupted() {
                if gap_ns > 0 {
                    due += gap_ns;
                    let left = due.saturating_sub(now_ns(clock));
                    // The few microseconds of CPU time that this sleep takes stand to every way's account.
                    std::thread::sleep(Duration::from_nanos(left));
                }
                let round = bench.round()?;
                rounds.push(round);
                side.step(Step::Operates, WARM_UP + rounds.len() as u64);
                if window.is_some_and(|ns| round.awake.saturating_sub(start) >= ns) {
                    break;
                }
            }
            stopped.store(true, Relaxed);
            let gone = Fault::new("a waiting thread", "it panicked");
            let come = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(gone.clone())));
            come.collect::<Result<Vec<_>, Fault>>()
        })?;
        side.close_window(opened);
        let threads_ns = other_threads_ns().saturating_sub(threads_before);
        rounds.extend(beside.into_iter().flatten());
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
