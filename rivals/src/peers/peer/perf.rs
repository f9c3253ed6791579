// SPDX-License-Identifier: MIT OR Apache-2.0
//! `perf bench`.

use super::{ours, theirs};
use crate::peers::Setup;
use crate::peers::command::number_before;
use crate::peers::comparison::Comparison;
use crate::peers::ours::Figure::{Mean, Named};

pub(super) fn comparisons(setup: &Setup) -> Vec<Comparison> {
    let [cpu, _] = setup.cpus;
    let one_core = format!("--cpus {cpu} --placement same-core");
    let pipe = |threads: bool| {
        let (flag, contexts) = if threads { (" -T", "threads") } else { ("", "processes") };
        let command = format!("taskset -c {cpu} perf bench sched pipe{flag} -l 20000");
        let arguments =
            format!("switch switch-pipe --contexts {contexts} {one_core} --batch 100 --count 20000");
        Comparison {
            name: if threads { "perf sched pipe -T" } else { "perf sched pipe" },
            what: "round trip of 4 bytes through two pipes, one core, mean",
            within: 0.05,
            unit: "µs",
            theirs: theirs(&command, |text| number_before(text, "usecs/op")),
            ours: ours(setup, &arguments, "switch-pipe", Mean("operation"), 1e-3),
            command,
            arguments,
        }
    };
    let call = {
        let command = format!("taskset -c {cpu} perf bench syscall basic -l 500000");
        let arguments = format!("switch getppid {one_core} --count 500000");
        Comparison {
            name: "perf syscall basic",
            what: "getppid, mean",
            within: 0.05,
            unit: "ns",
            theirs: theirs(&command, |text| Ok(number_before(text, "usecs/op")? * 1e3)),
            ours: ours(setup, &arguments, "getppid", Mean("operation"), 1.0),
            command,
            arguments,
        }
    };
    let wake = {
        let command = "perf bench futex wake -t 100".to_owned();
        let arguments =
            "switch futex-wake-all --contexts threads --placement unpinned --batch 100 --count 1000"
                .to_owned();
        Comparison {
            name: "perf futex wake",
            what: "time of one thread to wake 100, one by one, mean of 10",
            within: 0.05,
            unit: "ms",
            theirs: theirs(&command, |text| {
                let last = text.lines().rfind(|line| line.starts_with("Wokeup")).unwrap_or_default();
                number_before(last, "ms (")
            }),
            ours: ours(setup, &arguments, "futex-wake-all", Named("as printed"), 1.0),
            command,
            arguments,
        }
    };
    vec![pipe(false), pipe(true), call, wake]
}
