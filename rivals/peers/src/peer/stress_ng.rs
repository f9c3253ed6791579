// SPDX-License-Identifier: MIT OR Apache-2.0
//! `stress-ng --switch`.

use super::{ours, theirs};
use crate::Setup;
use crate::command::number_before;
use crate::comparison::Comparison;
use crate::ours::Figure::Named;

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    [
        (
            "stress-ng switch pipe",
            "pipe",
            "a write into a pipe that holds one byte, one core, mean",
            "stream-pipe",
        ),
        (
            "stress-ng switch mq",
            "mq",
            "a message through a queue that holds one, one core, mean",
            "stream-mq",
        ),
        (
            "stress-ng switch sem-sysv",
            "sem-sysv",
            "half a round of raising and lowering one semaphore, one core, mean",
            "turns-semop",
        ),
    ]
    .into_iter()
    .map(|(name, method, what, subject)| {
        let cpu = setup.cpus[0];
        let command =
            format!("taskset -c {cpu} stress-ng --switch 1 --switch-method {method} -t 1 --metrics");
        let arguments = format!(
            "switch {subject} --contexts processes --cpus {cpu} --placement same-core --batch 100 --time 1s"
        );
        Comparison {
            name,
            what,
            unit: "ns",
            theirs: theirs(&command, |text| number_before(text, "nanosecs per context switch")),
            ours: ours(setup, &arguments, subject, Named("as printed"), 1.0),
            command,
            arguments,
        }
    })
    .collect()
}
