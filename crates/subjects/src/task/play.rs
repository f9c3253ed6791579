// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trial of a kind of task: one generation after another, each timed by its phases and counted to the last turn.

use std::time::Duration;

use super::course::Course;
use super::{Kind, Measured, Scene};
use crate::mechanism::{Fault, Lines};
use doorbell_harness::control::Step;
use doorbell_harness::role::Role;
use doorbell_harness::side::{Side, SideError};
use doorbell_machine::clock::Now;

/// A kind of task and the scene it plays on.
#[expect(missing_debug_implementations, reason = "a kind is code and has nothing to show but its name")]
pub struct Play {
    pub kind: &'static dyn Kind,
    pub scene: Scene,
}

impl Lines for Play {
    fn play(&self, role: Role, side: &mut Side) -> Result<(), SideError> {
        side.step(Step::Meets, 0);
        side.control.meet(2, 1);
        if role.index() == 1 {
            side.step(Step::Finished, 0);
            return Ok(());
        }
        drive(self.kind, &self.scene, side)
    }
}

fn drive(kind: &dyn Kind, scene: &Scene, side: &mut Side) -> Result<(), SideError> {
    let clock = side.clock;
    let lives = kind.measured() == Measured::Lives;
    let mut course = Course::new();
    // The first generation warms code, data and pools, and is the one whose memory is looked at.
    course.probing = !lives;
    scene.reset();
    kind.generation(scene, &mut course)?;
    course.probing = false;
    course.forget();

    let most = side.cell.until.count.unwrap_or(u64::MAX);
    let window = side.cell.until.time_ns.map(|ns| clock.ticks(Duration::from_nanos(ns)));
    let opened = side.open_window();
    let (mut generations, mut spent) = (0, [0; 4]);
    while generations < most && !side.interrupted() {
        scene.reset();
        kind.generation(scene, &mut course)?;
        let phases = course.reaped(scene);
        if side.interrupted() {
            // Tasks that went home early had fewer turns: this generation does not count.
            break;
        }
        check(scene)?;
        let each = |ticks| clock.ps(ticks) / u64::from(scene.tasks);
        if lives {
            side.times.life.record(each(phases.life));
        } else {
            scene.stretches().for_each(|(ps, turns)| side.times.hand_off.record(ps / turns));
        }
        side.times.create.record(each(phases.made));
        side.times.reap.record(each(phases.reaped));
        let own = scene.spent();
        let sums = [own.user_ns, own.system_ns, own.minor_faults, own.major_faults];
        spent.iter_mut().zip(sums).for_each(|(sum, own)| *sum += own);
        generations += 1;
        side.step(Step::Operates, generations);
        if window.is_some_and(|window| clock.now().saturating_sub(opened) >= window) {
            break;
        }
    }
    side.close_window(opened);
    if generations > 0 {
        kind.conclude(scene, &mut course);
    }
    let turns = scene.total() * generations;
    let (switches, figures) = course.result(if lives { 0 } else { turns });
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
    side.tally.warmup = scene.total();
    side.step(Step::Finished, generations);
    Ok(())
}

/// Every task had its turns, neither more nor fewer: counted twice, by all together and by each for itself.
fn check(scene: &Scene) -> Result<(), SideError> {
    let total = scene.total();
    let (all, own) = scene.counted();
    if (all, own) != (total, total) {
        let cause =
            format!("{all} hand-offs counted by all together and {own} by each for itself, {total} were due");
        return Err(Fault::new("the count of hand-offs", cause).into());
    }
    if let Some((task, turns)) = scene.odd_one() {
        let cause = format!("task {task} had {turns} turns, {} were due", scene.yields);
        return Err(Fault::new("the count of hand-offs", cause).into());
    }
    Ok(())
}
