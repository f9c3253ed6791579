// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waker and waiter on one CPU: the waiter then comes when the waker leaves.
//!
//! SUMMARY: no idle CPU has to be woken, and no interrupt be sent: what the waiter waits for is
//! that its waker goes to sleep. How long that takes is in the record. Where the waker works on for
//! long, the scheduler may let the waiter in before; nobody knows, so nothing is said.

use super::record::{Replay, Which, busy, found, middle, waits};
use super::{Refusal, WhatIf, costs};
use doorbell_results::anatomy::program::{MachineCosts, Program, Waker};

/// The share of the edge's wake-ups of which it must be known how long the waker stayed.
const KNOWN: f64 = 0.8;
/// So many times the price of a wake-up on one CPU the waker may go on after it woke.
const GOES_ON: f64 = 4.0;
/// The share of one CPU that both may take together.
const TOGETHER: f64 = 0.7;

pub(super) fn pinned(program: &Program, place: usize, machine: &MachineCosts) -> Result<WhatIf, Refusal> {
    let edge = &program.edges[place];
    let Waker::Thread { name } = &edge.waker else { return Err(Refusal::NoThread) };
    let waits = waits(program, place, Which::Edge)?;
    let changed = || waits.iter().filter(|wait| wait.changed);
    let ran: Vec<f64> = changed().filter_map(|wait| wait.waker_ran).collect();
    let known = ran.len() as f64 / changed().count().max(1) as f64;
    super::record::tells(&waits)?;
    if known < KNOWN {
        return Err(Refusal::WakerUnseen { share: known });
    }
    let mechanism = costs::listed(&edge.mechanism).unwrap_or("futex");
    let alone = costs::price(machine, mechanism, true, 1.0)?;
    let ran_ns = middle(ran);
    if ran_ns > GOES_ON * alone.wake_ns {
        return Err(Refusal::WakerGoesOn { ran_ns, wake_ns: alone.wake_ns });
    }
    let wakers = program.threads.iter().filter(|threads| threads.name == *name);
    let wakers_busy: f64 = wakers.map(|one| one.ran_ns as f64 / one.count.max(1) as f64).sum();
    let share = busy(&waits) + wakers_busy / (program.recorded_ns as f64).max(1.0);
    if share > TOGETHER {
        return Err(Refusal::TooBusyTogether { share });
    }
    let apart = costs::price(machine, mechanism, false, 1.0)?;
    found(&waits, |some| {
        Replay::each(some, |wait| {
            // Where the scheduler put both on one CPU already nothing is saved.
            let more = if wait.on_wakers_cpu() { 0.0 } else { alone.cpu_ns - apart.cpu_ns };
            (wait.waker_ran.unwrap_or(ran_ns), more)
        })
    })
}
