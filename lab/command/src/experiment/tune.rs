// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell tune` as a plan: what a sleep and a wake cost on every placement, beside what a
//! spinning wait that hits takes there.

use super::ping::Ping;
use doorbell_results::configuration::Placement;
use doorbell_results::plan::Plan;

/// By which the library's adaptive waiter sleeps.
pub const SLEEPER: &str = "futex";

/// By which it spins.
pub const SPINNER: &str = "spin";

/// Back-to-back round trips, in which each side sleeps, or spins, once.
pub fn plan(placements: &[Placement], blocks: Option<u32>, seed: u64) -> Plan {
    let ping = Ping {
        mechanisms: [SLEEPER, SPINNER, "null"].map(str::to_owned).to_vec(),
        placements: placements.to_vec(),
        blocks,
        seed,
        ..Ping::default()
    };
    Plan { experiment: "tune".to_owned(), ..ping.plan() }
}
