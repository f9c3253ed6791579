// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two loops in C that answer each other and nothing else: the limit
//! of what the same calls, or spinning, can reach.

use super::{ours, theirs};
use crate::peers::Setup;
use crate::peers::command::number_before;
use crate::peers::comparison::Comparison;
use crate::peers::ours::Figure::Mean;

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    let [first, second] = setup.cpus;
    let (one, two) = ([first, first], [first, second]);
    vec![
        comparison(
            setup,
            "bare spin",
            "spin",
            two,
            "round trip of a cache line by stores and loads, two cores, mean",
        ),
        comparison(setup, "bare futex", "futex", one, "round trip by two futexes, one core, mean"),
        comparison(setup, "bare futex, two", "futex", two, "round trip by two futexes, two cores, mean"),
        comparison(setup, "bare eventfd", "eventfd", one, "round trip by two eventfds, one core, mean"),
        comparison(setup, "bare eventfd, two", "eventfd", two, "round trip by two eventfds, two cores, mean"),
        comparison(setup, "bare pipe", "pipe", one, "round trip of a byte through two pipes, one core, mean"),
        comparison(
            setup,
            "bare pipe, two",
            "pipe",
            two,
            "round trip of a byte through two pipes, two cores, mean",
        ),
    ]
}

fn comparison(
    setup: &Setup,
    name: &'static str,
    subject: &'static str,
    [first, second]: [usize; 2],
    what: &'static str,
) -> Comparison {
    let command = format!("bare-ping-pong {subject} {first} {second} 200");
    let arguments = format!("ping {subject} --gap 0 --cpus {first},{second} --time 200ms --alone");
    Comparison {
        name,
        what,
        within: 0.05,
        unit: "ns",
        theirs: theirs(&setup.programs.join(&command).display().to_string(), |text| {
            number_before(text, "ns a round trip")
        }),
        ours: ours(setup, &arguments, subject, Mean("round-trip"), 1.0),
        command,
        arguments,
    }
}
