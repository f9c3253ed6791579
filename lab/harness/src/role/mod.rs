// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a side does over its links. One file per pattern; each loop is compiled once per mechanism.

use super::side::{Side, SideError};
use crate::mechanism::{Fault, Mechanism, Waiter, Woken};
pub use crate::roles::Role;
use doorbell_machine::clock::Now;
use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::machine::clock::{Clock, Ticks};
use std::time::Duration;
mod arrivals;
mod call_cost;
mod due;
mod in_set;
mod one_way;
pub(crate) mod pause;
mod ping;
pub(crate) mod slices;
mod slowdown;
/// Plays `role` over `links`: there and back for a ping-pong, there alone for one way.
pub fn run_role<M: Mechanism>(links: &[M::Link], role: Role, side: &mut Side) -> Result<(), SideError> {
    match (role, links) {
        (Role::Initiate, [there, back]) => ping::initiate::<M>(there, back, side),
        (Role::Respond, [there, back]) => ping::respond::<M>(there, back, side),
        (Role::Emit, [there]) => one_way::emit::<M>(there, side),
        (Role::Absorb, [there]) => one_way::absorb::<M>(there, side),
        _ => unreachable!("the host opens two links for a ping-pong and one for one way"),
    }
}

/// Rounds before anything is recorded: enough to fault in code and data and to settle the branch
/// predictors, but no more than a tenth of the count, and no longer than some 50 ms of gaps.
fn warmup_rounds(configuration: &Configuration) -> u64 {
    const ROUNDS: u64 = 200;
    const GAPS_NS: u64 = 50_000_000;
    let by_count = configuration.until.count.unwrap_or(u64::MAX) / 10 + 1;
    let by_time = GAPS_NS / configuration.pattern.gap_ns().max(1) + 2;
    ROUNDS.min(by_count).min(by_time)
}

/// Waits as the policy says. Under a time-out it returns after one
/// timed wait, so that the caller can look for itself.
#[inline(always)]
pub(crate) fn wait_by_policy<W: Waiter>(
    waiter: &mut W,
    policy: WaitPolicy,
    clock: Clock,
) -> Result<Woken, Fault> {
    match policy {
        WaitPolicy::Block => waiter.wait().map(|()| Woken::Notified),
        WaitPolicy::Spin => {
            while !waiter.poll()? {
                std::hint::spin_loop();
            }
            Ok(Woken::Notified)
        }
        WaitPolicy::SpinThenBlock { spin_ns } => {
            let until: Ticks = clock.now().saturating_add(clock.ticks(Duration::from_nanos(spin_ns)));
            while clock.now() < until {
                if waiter.poll()? {
                    return Ok(Woken::Notified);
                }
                std::hint::spin_loop();
            }
            waiter.wait().map(|()| Woken::Notified)
        }
        WaitPolicy::Timeout { timeout_ns } => waiter.wait_for(Duration::from_nanos(timeout_ns)),
    }
}
