// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pinned side is where it was pinned.

use super::{Known, Rule};
use doorbell_results::about::About;
use doorbell_results::record::Record;

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "not-where-pinned",
        what: "A side that was pinned was seen on another CPU, or moved.",
        taken: "The CPU at both ends of the window, and the kernel's count of migrations.",
        misleads: "Where the kernel shows no migrations, one there and back is not seen.",
    },
    evidence,
};

fn evidence(record: &Record, _: &Known) -> Vec<String> {
    let Some(cpus) = record.configuration.placement.cpus else {
        return Vec::new();
    };
    let mut evidence = Vec::new();
    for (side, cpu) in record.sides.iter().zip(cpus) {
        if let Some(elsewhere) = side.cpus.iter().find(|seen| **seen != cpu) {
            evidence.push(format!("the {} was pinned to CPU {cpu} and seen on CPU {elsewhere}", side.side));
        }
        if let Some(moves @ 1..) = side.migrations {
            evidence.push(format!("the {} was pinned to CPU {cpu} and migrated {moves} times", side.side));
        }
    }
    evidence
}
