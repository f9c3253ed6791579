// SPDX-License-Identifier: MIT OR Apache-2.0
//! `stress-ng --switch`, for a number of operations that takes some 200 ms.

use super::{ours, theirs};
use crate::peers::Setup;
use crate::peers::command::number_before;
use crate::peers::comparison::Comparison;
use crate::peers::ours::Figure::Named;

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    [
        (
            "stress-ng switch pipe",
            "pipe",
            40_000,
            "a write into a pipe that holds one byte, one core, mean",
            "stream-pipe",
        ),
        (
            "stress-ng switch mq",
            "mq",
            40_000,
            "a message through a queue that holds one, one core, mean",
            "stream-mq",
        ),
        (
            "stress-ng switch sem-sysv",
            "sem-sysv",
            200_000,
            "half a round of raising and lowering one semaphore, one core, mean",
            "turns-semop",
        ),
    ]
    .into_iter()
    .map(|(name, method, operations, what, subject)| {
        let cpu = setup.cpus[0];
        let command =
            format!("taskset -c {cpu} stress-ng --switch 1 --switch-method {method} --switch-ops {operations} --metrics");
        let arguments = format!(
            "switch {subject} --contexts processes --cpus {cpu} --placement same-core --batch 100 --time 200ms"
        );
        Comparison {
            name,
            what,
            within: 0.05,
            unit: "ns",
            theirs: theirs(&command, |text| number_before(text, "nanosecs per context switch")),
            ours: ours(setup, &arguments, subject, Named("as printed"), 1.0),
            command,
            arguments,
        }
    })
    .collect()
}
