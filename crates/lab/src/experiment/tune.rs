// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell tune` as a plan: what a sleep and a wake cost on every placement, beside what a spinning wait that hits
//! takes there.

use super::ping::Ping;
use doorbell_results::configuration::{Pattern, Placement, Scheduler, WaitPolicy};
use doorbell_results::plan::Plan;
use doorbell_subjects::mechanism::Contexts;

/// By which the library's adaptive waiter sleeps.
pub const SLEEPER: &str = "futex";

/// By which it spins.
pub const SPINNER: &str = "spin";

/// Back-to-back round trips, in which each side sleeps, or spins, once.
pub fn plan(placements: &[Placement], blocks: Option<u32>, seed: u64) -> Plan {
    let ping = Ping {
        mechanisms: [SLEEPER, SPINNER, "null"].map(str::to_owned).to_vec(),
        contexts: vec![Contexts::Processes],
        placements: placements.to_vec(),
        // None is left to the scheduler.
        one_cpu: false,
        patterns: vec![Pattern::PingPong { gap_ns: 0 }],
        timing: None,
        waits: vec![WaitPolicy::Block],
        sizes: vec![0],
        until: None,
        scheduler: Scheduler::Other,
        injected_slowdown_ppm: None,
        without_reference: vec![false],
        blocks,
        seed,
    };
    Plan { experiment: "tune".to_owned(), ..ping.plan() }
}
