// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peers, one file each.

use crate::peers::Setup;
use crate::peers::command;
use crate::peers::comparison::{Comparison, Measure};
use crate::peers::ours::{self, Figure};

mod bare_ping_pong;
mod core_to_core;
mod hackbench;
mod hand_off;
mod perf;
mod rt_tests;
mod sockperf;
mod stress_ng;

/// Every comparison.
pub fn all(setup: &Setup) -> Vec<Comparison> {
    [
        perf::comparisons(setup),
        rt_tests::comparisons(setup),
        stress_ng::comparisons(setup),
        core_to_core::comparisons(setup),
        bare_ping_pong::comparisons(setup),
        sockperf::comparisons(setup),
        hackbench::comparisons(setup),
        hand_off::comparisons(setup),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs `line` and reads its figure with `read`.
fn theirs(line: &str, read: impl Fn(&str) -> anyhow::Result<f64> + 'static) -> Measure {
    let words = command::words(line);
    Box::new(move || read(&command::output(&words)?))
}

/// Runs `doorbell ARGUMENTS` and takes `figure` of `subject`, times `factor`.
fn ours(setup: &Setup, arguments: &str, subject: &'static str, figure: Figure, factor: f64) -> Measure {
    let setup = setup.clone();
    let arguments = arguments.to_owned();
    Box::new(move || Ok(ours::run(&setup, &arguments, subject, figure)? * factor))
}
