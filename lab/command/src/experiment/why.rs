// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell why` as a plan: long trials in which the kernel's events are recorded for causes, and
//! only the worst wakes kept.

use std::time::Duration;

use super::ping::Ping;
use super::subject::subject;
use doorbell_results::configuration::{Configuration, Trace};
use doorbell_results::plan::Plan;

/// The gap unless told otherwise: long enough for the waiter's CPU to go idle, short enough for a
/// thousand wakes a second.
pub const GAP: Duration = Duration::from_millis(1);

/// Length of a trial unless told otherwise.
pub const WINDOW: Duration = Duration::from_secs(10);

/// Wakes that are kept unless told otherwise.
pub const KEPT: u32 = 5;

/// `ping`, each configuration of it traced for the `keep` worst wakes above `above`.
pub fn plan(ping: &Ping, keep: u32, above: Duration) -> Plan {
    let above_ns = u64::try_from(above.as_nanos()).unwrap_or(u64::MAX);
    let bare = ping.plan();
    let configurations = bare
        .configurations
        .into_iter()
        .map(|configuration| {
            // Of the harness alone nobody is woken.
            let woken = !subject(&configuration).is_harness();
            Configuration { trace: woken.then_some(Trace::Worst { keep, above_ns }), ..configuration }
        })
        .collect();
    Plan { experiment: "why".to_owned(), configurations, ..bare }
}
