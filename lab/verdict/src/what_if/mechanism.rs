// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another mechanism at an edge: the difference between what the two cost on this machine.

use super::record::{Replay, Waited, Which, found, shared, waits};
use super::{Refusal, WhatIf, costs};
use doorbell_results::anatomy::program::{MachineCosts, Program};

pub(super) fn replaced(
    program: &Program,
    place: usize,
    wanted: &str,
    machine: &MachineCosts,
) -> Result<WhatIf, Refusal> {
    let edge = &program.edges[place];
    let now = costs::listed(&edge.mechanism).ok_or(Refusal::NotListed)?;
    if now == wanted {
        return Err(Refusal::SameMechanism { mechanism: wanted.to_owned() });
    }
    let slept_ns = edge.slept.p50_ns;
    let waits = waits(program, place, Which::Place)?;
    let same_cpu = shared(&waits) > 0.5;
    let before = costs::price(machine, now, same_cpu, slept_ns)?;
    let after = costs::price(machine, wanted, same_cpu, slept_ns)?;
    let longer = after.wake_ns - before.wake_ns;
    // The calls around a wake-up cost more or less, too, which the record of it leaves out.
    let becomes = |wait: &Waited| ((wait.took + longer).max(0.0), after.cpu_ns - before.cpu_ns);
    found(&waits, |some| Replay::each(some, becomes))
}
