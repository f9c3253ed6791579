// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the bench can measure.

use doorbell_results::configuration::Scheduler;
use doorbell_results::configuration::{Configuration, Pattern, Timing, WaitPolicy};
use doorbell_results::record::subject::{Notification, Waits};

/// Whether `configuration` of a mechanism that notifies by `notification` can be measured in
/// slices: there and back at once and timed around the wait, or one way after a gap and timed by a
/// stamp; under the usual scheduler, and with nothing that a trial has a host of its own for.
///
/// One way, whoever notifies waits until the message was taken: a
/// notification that may be dropped is none of these.
pub fn fits(configuration: &Configuration, notification: Option<&Notification>) -> bool {
    let Some(notification) = notification else { return false };
    let pattern = match configuration.pattern {
        Pattern::PingPong { gap_ns: 0 } => configuration.timing == Timing::Around,
        Pattern::OneWay { .. } => {
            configuration.timing == Timing::Stamp
                && !notification.drops
                && notification.waits != Waits::Nothing
                && !matches!(configuration.wait, WaitPolicy::Timeout { .. })
                && configuration.schedule.is_none()
        }
        _ => false,
    };
    pattern
        && configuration.scheduler == Scheduler::Other
        && configuration.load.is_none()
        && configuration.trace.is_none()
        && configuration.latency_limit_us.is_none()
        && configuration.beside.is_none()
}
