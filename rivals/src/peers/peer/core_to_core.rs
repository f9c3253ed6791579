// SPDX-License-Identifier: MIT OR Apache-2.0
//! `core-to-core-latency`.

use anyhow::Context;

use super::{ours, theirs};
use crate::peers::Setup;
use crate::peers::comparison::Comparison;
use crate::peers::ours::Figure::Named;

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    let [first, second] = setup.cpus;
    let command = format!("core-to-core-latency 5000 300 -c {first},{second} --csv");
    let arguments = format!(
        "switch line-cas --contexts threads --cpus {first},{second} --placement two-cores --batch 5000 --count 1500000"
    );
    vec![Comparison {
        name: "core-to-core-latency",
        what: "compare-and-swap on one line, two cores, half a round trip, mean",
        within: 0.05,
        unit: "ns",
        theirs: theirs(&setup.programs.join(&command).display().to_string(), |text| {
            // The matrix as CSV: its one configuration that holds a number.
            text.lines()
                .filter(|line| line.contains(','))
                .flat_map(|line| line.split(','))
                .find_map(|cell| cell.trim().parse().ok())
                .with_context(|| format!("no figure in: {text}"))
        }),
        ours: ours(setup, &arguments, "line-cas", Named("as printed"), 1.0),
        command,
        arguments,
    }]
}
