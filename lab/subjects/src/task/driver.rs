// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trial of a kind of task: one generation after another, each
//! timed by its phases and counted to the last turn.

use std::time::Duration;

use super::generations::Generations;
use super::{Fault, Links, MadeOf, Measured, TaskContext, TaskKind};
use crate::lone_side::drive_alone;
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_machine::clock::Now;

/// A kind of task and the task context it plays on.
pub(crate) struct Driver {
    pub(crate) kind: &'static TaskKind,
    pub(crate) task_context: TaskContext,
}

impl Links for Driver {
    fn run_role(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        drive_alone(role, side, |side| drive(self.kind, &self.task_context, side))
    }
}

/// Tasks that warm up what has no pool.
const FEW: u32 = 10;

fn drive(kind: &TaskKind, task_context: &TaskContext, side: &mut Side) -> Result<(), SideError> {
    let clock = side.clock;
    let lives = kind.measured == Measured::Lives;
    let mut generations = Generations::default();
    // The first generation warms code, data and pools. Pools are filled by all tasks, whose memory is
    // looked at meanwhile; threads and processes have none, and a thousand of them take longer than
    // the window, so a few are enough and memory is looked at in the first generation that counts,
    // before its first hand-off.
    let pooled = kind.made_of == MadeOf::Code && !lives;
    let warming = task_context.of_one_turn(if pooled { u32::MAX } else { FEW });
    generations.probing = pooled;
    warming.reset();
    (kind.generation)(&warming, &mut generations)?;
    generations.probing = !pooled && !lives;
    generations.forget();

    let most = side.configuration.until.count.unwrap_or(u64::MAX);
    let window = side.configuration.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
    let opened = side.open_window();
    let (mut lived, mut spent) = (0, [0; 4]);
    while lived < most && !side.interrupted() {
        task_context.reset();
        (kind.generation)(task_context, &mut generations)?;
        generations.probing = false;
        let phases = generations.reaped(task_context);
        if side.interrupted() {
            // Tasks that went home early had fewer turns: this generation does not count.
            break;
        }
        check(task_context)?;
        let each = |ticks| clock.ps(ticks) / u64::from(task_context.tasks);
        if lives {
            side.times.life.record(each(phases.life));
        } else {
            task_context.stretches().for_each(|(ps, turns)| side.times.hand_off.record(ps / turns));
        }
        side.times.create.record(each(phases.made));
        side.times.reap.record(each(phases.reaped));
        spent.iter_mut().zip(task_context.spent()).for_each(|(sum, own)| *sum += own);
        lived += 1;
        side.step(Step::Operates, lived);
        if window.is_some_and(|window| clock.now().saturating_sub(opened) >= window) {
            break;
        }
    }
    side.close_window(opened);
    if lived > 0 {
        (kind.conclude)(task_context, &mut generations);
    }
    let turns = task_context.total() * lived;
    let (switches, figures) = generations.result(if lives { 0 } else { turns });
    let counters = &mut side.counters;
    if let Some(switches) = switches {
        // The driver's own are those of making and reaping.
        counters.side = "tasks".to_owned();
        [counters.user_ns, counters.system_ns, counters.minor_faults, counters.major_faults] = spent;
        counters.voluntary_switches = switches;
        counters.involuntary_switches = 0;
    }
    side.figures = figures;
    side.tally.sent = turns;
    side.tally.seen = turns;
    side.tally.warmup = warming.total();
    Ok(())
}

/// Every task had its turns, neither more nor fewer: counted twice,
/// by all together and by each for itself.
fn check(task_context: &TaskContext) -> Result<(), SideError> {
    let total = task_context.total();
    let (all, own) = task_context.counted();
    if (all, own) != (total, total) {
        let cause =
            format!("{all} hand-offs counted by all together and {own} by each for itself, {total} were due");
        return Err(Fault::new("the count of hand-offs", cause).into());
    }
    if let Some((task, turns)) = task_context.odd_one() {
        let cause = format!("task {task} had {turns} turns, {} were due", task_context.yields);
        return Err(Fault::new("the count of hand-offs", cause).into());
    }
    Ok(())
}
