// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hackbench` of rt-tests.

use super::{ours, theirs};
use crate::peers::Setup;
use crate::peers::command::number_after;
use crate::peers::comparison::Comparison;
use crate::peers::ours::Figure::Named;

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    let [first, second] = setup.cpus;
    let command = format!("taskset -c {first},{second} hackbench -g 1 -l 300");
    let arguments =
        "switch hackbench --contexts processes --placement unpinned --batch 300 --count 300".to_owned();
    vec![Comparison {
        name: "hackbench",
        what: "one group of 20 senders and 20 receivers, 300 loops, unpinned, one run",
        within: 0.05,
        unit: "s",
        theirs: theirs(&command, |text| number_after(text, "Time:")),
        ours: ours(setup, &arguments, "hackbench", Named("as printed"), 1.0),
        command,
        arguments,
    }]
}
