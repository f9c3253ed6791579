// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell anatomy` as a plan: every configuration twice, with the kernel's events recorded and
//! without, so that what recording costs is measured in the same blocks.

use std::time::Duration;

use super::ping::Ping;
use super::subject::subject;
use doorbell_results::configuration::{Configuration, Trace, Until};
use doorbell_results::plan::Plan;

/// The gaps of a run that names none: a waiter that has only just
/// fallen asleep, and one whose CPU has gone idle for good.
pub const GAPS: [Duration; 2] = [Duration::from_micros(10), Duration::from_millis(1)];

/// Bytes of message unless told otherwise: one cache line, so that there is something to read.
pub const MESSAGE: u32 = 64;

/// Length of a trial unless told otherwise: two hundred wakes at a gap of 1 ms.
pub const WINDOW: Duration = Duration::from_millis(200);

/// Blocks unless told otherwise: pairs enough for an interval on what tracing costs.
pub const BLOCKS: u32 = 6;

/// Most wakes of a trial: the buffer of the events holds them all.
const MOST: u64 = 10_000;

/// `ping`, each configuration of it once bare and once traced.
pub fn plan(ping: &Ping) -> Plan {
    let bare = ping.plan();
    let mut configurations = Vec::new();
    for configuration in bare.configurations {
        let count = configuration.until.count.unwrap_or(MOST).min(MOST);
        let configuration =
            Configuration { until: Until { count: Some(count), ..configuration.until }, ..configuration };
        // Of the harness alone nobody is woken.
        if !subject(&configuration).is_harness() {
            configurations.push(Configuration { trace: Some(Trace::Stages), ..configuration.clone() });
        }
        configurations.push(configuration);
    }
    Plan { experiment: "anatomy".to_owned(), configurations, ..bare }
}
