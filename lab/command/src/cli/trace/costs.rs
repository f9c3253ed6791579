// SPDX-License-Identifier: MIT OR Apache-2.0
//! What waking costs on this machine, as it was measured once and is kept for recordings to come.

use std::path::PathBuf;

use crate::cli::common::{Terminal, carry_out};
use crate::cli::kept::state_folder;
use crate::cli::out::aside;
use crate::cli::ping::Ping;
use crate::cli::placements::two_nearest;
use doorbell_results::anatomy::program::MachineCosts;
use doorbell_results::configuration::{Pattern, Placement};
use doorbell_results::machine::Machine;
use doorbell_results::machine::topology::Relation;
use doorbell_results::plan::Plan;
use doorbell_results::record::write::write;
use doorbell_results::record::{ResultFile, read};
use doorbell_verdict::identity::alike;
use doorbell_verdict::what_if::costs;

/// What is measured beside what an edge needs.
const USUAL: [&str; 4] = ["futex", "eventfd", "pipe", "spin"];

/// The time between two wake-ups in which a waiter's CPU falls asleep, nanoseconds.
const GAP_NS: u64 = 100_000;

/// Repetitions: with the usual mechanisms some ten seconds.
const BLOCKS: u32 = 5;

fn place() -> std::io::Result<PathBuf> {
    Ok(state_folder()?.join("wake-costs.json"))
}

/// What was measured before, if it was on this machine. Whatever else lies there is as good as
/// nothing: it is measured anew.
pub fn kept(machine: &Machine) -> Option<MachineCosts> {
    let result = read::read(&place().ok()?).ok()?;
    if !alike(&result.machine, machine) {
        return None;
    }
    costs(&result).ok()
}

/// Measures what the mechanisms `needed` cost here beside the usual ones, and keeps it.
pub fn measure(needed: &[&str], machine: Machine, terminal: &Terminal) -> anyhow::Result<ResultFile> {
    if !terminal.quiet {
        aside!("doorbell: measuring what a wake-up costs on this machine, once, for some ten seconds");
    }
    let result = carry_out(plan(needed, &machine), machine, None, terminal)?;
    if result.partial {
        return Ok(result);
    }
    let kept = place().map_err(anyhow::Error::from).and_then(|place| Ok(write(&result, &place)?));
    if let Err(error) = kept {
        aside!("doorbell: what was measured is used and not kept: {error}");
    }
    Ok(result)
}

fn plan(needed: &[&str], machine: &Machine) -> Plan {
    let mut mechanisms: Vec<String> = USUAL.iter().chain(needed).map(|name| (*name).to_owned()).collect();
    mechanisms.sort_unstable();
    mechanisms.dedup();
    let apart = two_nearest(&machine.topology);
    let same = apart
        .cpus
        .map(|[cpu, _]| Placement { relation: Relation::SameCore.name().to_owned(), cpus: Some([cpu, cpu]) });
    let ping = Ping {
        mechanisms,
        placements: std::iter::once(apart.clone()).chain(same.filter(|same| *same != apart)).collect(),
        patterns: [0, GAP_NS].map(|gap_ns| Pattern::PingPong { gap_ns }).to_vec(),
        blocks: Some(BLOCKS),
        ..Ping::default()
    };
    ping.plan("tune")
}
