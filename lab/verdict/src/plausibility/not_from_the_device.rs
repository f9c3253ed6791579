// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers that are called a device's went to it.

use super::{Known, Rule};
use doorbell_results::about::About;
use doorbell_results::record::Record;

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "not-from-the-device",
        what: "Transfers that are called a device's were served from memory, or from nowhere.",
        taken: "The device's own count of completed operations (stat in sysfs) before and after: \
            fewer than nine for ten transfers break the rule, and so does a file under which there \
            is no device.",
        misleads: "What a device does with a request is its own: a virtual disk may read its \
            host's memory, and a disk its cache.",
    },
    evidence,
};

fn evidence(record: &Record, _: &Known) -> Vec<String> {
    let transfers = record.tally.seen;
    let Some(counted) = &record.io else { return Vec::new() };
    if record.subject.is_harness() || transfers == 0 || record.configuration.pattern.transfers().is_none() {
        return Vec::new();
    }
    let Some(device) = &counted.device else {
        return vec![
            "there is no device under this file: its file system is memory, a network or a layer \
             over others; choose a folder on a disk with --dir, or name a device"
                .to_owned(),
        ];
    };
    match counted.device_operations {
        Some(done) if (done as f64) < transfers as f64 * 0.9 => {
            vec![format!(
                "{} completed {done} operations in {transfers} transfers: the others came from memory",
                device.name
            )]
        }
        _ => Vec::new(),
    }
}
