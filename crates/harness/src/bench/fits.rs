// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the bench can measure.

use doorbell_results::configuration::{Configuration, Pattern, Scheduler, Timing};

/// Whether `configuration` can be measured in slices: there and back at once, timed around the wait, under the usual scheduler, and with
/// nothing that a trial has a host of its own for.
pub fn fits(configuration: &Configuration) -> bool {
    configuration.pattern == Pattern::PingPong { gap_ns: 0 }
        && configuration.timing == Timing::Around
        && configuration.scheduler == Scheduler::Other
        && configuration.load.is_none()
        && configuration.trace.is_none()
        && configuration.latency_limit_us.is_none()
        && configuration.beside.is_none()
}
