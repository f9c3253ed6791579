// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two loops in C and two words: the limit of what spinning can reach.

use super::{ours, theirs};
use crate::peers::Setup;
use crate::peers::command::number_before;
use crate::peers::comparison::Comparison;
use crate::peers::ours::Figure::Mean;

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    let [first, second] = setup.cpus;
    let command = format!("bare-ping-pong {first} {second} 200");
    let arguments = format!("ping spin --gap 0 --cpus {first},{second} --time 200ms");
    vec![Comparison {
        name: "bare ping-pong",
        what: "round trip of a cache line by stores and loads, two processes on two cores, mean",
        within: 0.05,
        unit: "ns",
        theirs: theirs(&setup.programs.join(&command).display().to_string(), |text| {
            number_before(text, "ns a round trip")
        }),
        ours: ours(setup, &arguments, "spin", Mean("round-trip"), 1.0),
        command,
        arguments,
    }]
}
