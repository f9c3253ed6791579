// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pair tests of rt-tests. Their terminal output is in whole microseconds; the mean in their
//! JSON has decimals, and is the mean of differences of truncated times, whose error averages out.

use anyhow::Context;

use super::ours;
use crate::peers::Setup;
use crate::peers::command;
use crate::peers::comparison::{Comparison, Measure};
use crate::peers::ours::Figure::Mean;

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    [
        ("ptsematest", "mutex handed over between threads, one core, SCHED_FIFO, one way, mean", "handover-mutex"),
        ("svsematest", "System V semaphore between threads, one core, SCHED_FIFO, one way, mean", "handover-semop"),
        ("pmqtest", "POSIX queue between threads, one core, SCHED_FIFO, one way, mean", "handover-mq"),
        ("sigwaittest", "signal by sigwait between threads, one core, SCHED_FIFO, one way, mean", "handover-signal"),
    ]
    .into_iter()
    .map(|(name, what, subject)| {
        let cpu = setup.cpus[0];
        let command = format!("{name} -a {cpu} -t 1 -p 50 -i 200 -l 2000 -q");
        let arguments = format!(
            "switch {subject} --contexts threads --scheduler fifo --cpus {cpu} --placement same-core --count 2000"
        );
        Comparison {
            name,
            what,
            within: 0.05,
            unit: "µs",
            theirs: mean_of_json(&command),
            ours: ours(setup, &arguments, subject, Mean("operation"), 1e-3),
            command,
            arguments,
        }
    })
    .collect()
}

fn mean_of_json(command: &str) -> Measure {
    let words = command::words(command);
    Box::new(move || {
        let file = std::env::temp_dir().join(format!("doorbell-peers-{}.json", std::process::id()));
        let mut words = words.clone();
        words.push(format!("--json={}", file.display()));
        command::output(&words)?;
        let text = std::fs::read_to_string(&file)?;
        std::fs::remove_file(&file)?;
        let result: serde_json::Value = serde_json::from_str(&text)?;
        result["thread"]["0"]["receiver"]["avg"].as_f64().with_context(|| format!("no mean in: {text}"))
    })
}
