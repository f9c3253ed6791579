// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers that are called polled were polled.

use super::{Known, Rule};
use doorbell_results::about::About;
use doorbell_results::record::Record;
use doorbell_results::record::io::CURE;
use doorbell_results::record::subject::Noticed;

pub(super) const RULE: Rule = Rule {
    about: About {
        name: "poll-not-proven",
        what: "Transfers that are called polled were ended by interrupts of the device, or nothing \
            proves that they were not.",
        taken: "The device's lines of /proc/interrupts before and after, less one for each \
            operation that others had of it: more than one for a hundred transfers, or lines that \
            cannot be told, break the rule, and so does a device without a queue to poll \
            (queue/io_poll).",
        misleads: "A polled queue of a device without interrupts, such as null_blk, is believed \
            for its queue alone.",
    },
    evidence,
};

fn evidence(record: &Record, _: &Known) -> Vec<String> {
    let polled = record.subject.noticed() == Some(Noticed::ByPolling);
    let transfers = record.tally.seen;
    // Figures that another tool measured come without the counts that
    // would prove them, and say so in their warnings.
    if !polled || transfers == 0 || record.configuration.pattern.transfers().is_none() {
        return Vec::new();
    }
    let Some(counted) = &record.io else { return vec!["the device was not watched".to_owned()] };
    let Some(device) = &counted.device else { return vec!["there is no device under the file".to_owned()] };
    let name = &device.name;
    if device.polls == Some(false) {
        return vec![format!("{name} has no queue to poll (queue/io_poll is 0). {CURE}")];
    }
    let quiet = device.interrupts.as_ref().is_some_and(std::collections::BTreeSet::is_empty);
    if quiet && device.polls == Some(true) {
        return Vec::new();
    }
    match counted.own_interrupts(transfers) {
        None => vec![format!(
            "nobody can tell which interrupts are those of {name}{}, so nothing shows that it was polled",
            device.interrupts_hidden.as_ref().map_or_else(String::new, |why| format!(" ({why})"))
        )],
        Some(own) if own > 10 + transfers / 100 => vec![format!(
            "{own} interrupts of {name} in {transfers} transfers: the kernel took the request to \
             be polled for and waited for an interrupt all the same{}",
            if record.configuration.subject == "sync-hipri" {
                " (since Linux 6.0 RWF_HIPRI does not poll; uring-iopoll does)"
            } else {
                ""
            }
        )],
        Some(_) => Vec::new(),
    }
}
