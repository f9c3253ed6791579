// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hundred tasks that hand over by futex, in C: the limit of what
//! `doorbell tasks` can reach by the same system calls.

use super::{ours, theirs};
use crate::peers::Setup;
use crate::peers::command::number_before;
use crate::peers::comparison::Comparison;
use crate::peers::ours::Figure::Mean;

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    vec![
        comparison(
            setup,
            "hand-off process",
            "process",
            "futex hand-off among 100 processes on one core, mean",
            "process-futex",
        ),
        comparison(
            setup,
            "hand-off thread",
            "thread",
            "futex hand-off among 100 threads on one core, mean",
            "thread-futex",
        ),
    ]
}

fn comparison(
    setup: &Setup,
    name: &'static str,
    kind: &'static str,
    what: &'static str,
    subject: &'static str,
) -> Comparison {
    let cpu = setup.cpus[0];
    let command = format!("hand-off {kind} 100 500 {cpu}");
    let arguments = format!("tasks {subject} -n 100 -y 500 --count 1 --cpus {cpu}");
    Comparison {
        name,
        what,
        within: 0.03,
        unit: "µs",
        theirs: theirs(&setup.programs.join(&command).display().to_string(), |text| {
            Ok(number_before(text, "ns a hand-off")? / 1e3)
        }),
        ours: ours(setup, &arguments, subject, Mean("hand-off"), 1e-3),
        command,
        arguments,
    }
}
