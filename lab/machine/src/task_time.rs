// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long each task of the machine has run, by the scheduler's own clock
//! (`/proc/PID/task/TID/schedstat`).
//!
//! Nearly every kernel keeps it, also those without `/proc/schedstat`. Of the machine as a whole it
//! is a lower bound: a task that was born and ended between two readings is in neither. Of some of
//! its CPUs it is not: all that a task ran is taken as run where it was seen last, so one that was
//! moved there just before counts whole, and one that was moved away not at all.

use std::collections::BTreeMap;

use super::root::Root;
use doorbell_results::machine::cpu_list::CpuList;

/// With more tasks than this a reading, some 10 µs for each, would take longer than a short trial.
const MOST_TASKS: u64 = 600;

/// The share of the machine's tasks that must be seen: nine tenths. Those of this process are not
/// looked at, and some may have ended.
const SEEN: (u64, u64) = (9, 10);

/// What runs for less is not worth asking where it ran.
const LEAST_NS: u64 = 20_000;

/// A reading of every task's time on a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskTimes {
    /// Nanoseconds by process and task.
    tasks: BTreeMap<(u32, u32), u64>,
}

/// What other tasks did between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// How long they ran together, nanoseconds.
    pub ns: u64,
    /// The name of the one that ran longest, and for how long.
    pub busiest: Option<(String, u64)>,
}

impl TaskTimes {
    /// Reads them, but for the tasks of this very process; `None` where the kernel does not keep
    /// them, hides them, or has too many of them.
    pub fn read(root: &Root) -> Option<Self> {
        // "0.20 0.18 0.12 1/80 11206": the fourth field has the
        // number of tasks after its slash (proc_loadavg(5)).
        let load = root.text("proc/loadavg")?;
        let (_, count) = load.split_ascii_whitespace().nth(3)?.split_once('/')?;
        let count = count.parse::<u64>().ok()?;
        if count > MOST_TASKS || !root.has("proc/self/schedstat") {
            return None;
        }
        let own = std::process::id();
        let mut tasks = BTreeMap::new();
        for process in root.numbered("proc", "").into_iter().filter(|process| *process != own) {
            for task in root.numbered(format!("proc/{process}/task"), "") {
                // "187306 3647 2": ran for, waited for, time slices.
                let ran = root
                    .text(format!("proc/{process}/task/{task}/schedstat"))
                    .and_then(|text| text.split_ascii_whitespace().next()?.parse().ok());
                if let Some(ran) = ran {
                    tasks.insert((process, task), ran);
                }
            }
        }
        // The count is the whole machine's, also in a container that shows its own tasks only.
        (tasks.len() as u64 * SEEN.1 >= count * SEEN.0).then_some(Self { tasks })
    }

    /// How long tasks that were last seen on one of `cpus` ran since
    /// `before`. Asks now where they are.
    pub fn others(&self, before: &Self, root: &Root, cpus: &CpuList) -> Others {
        let mut others = Others::default();
        for ((process, task), now) in &self.tasks {
            let ran = now.saturating_sub(before.tasks.get(&(*process, *task)).copied().unwrap_or(0));
            if ran < LEAST_NS {
                continue;
            }
            let Some((name, cpu)) =
                root.text(format!("proc/{process}/task/{task}/stat")).and_then(|stat| name_and_cpu(&stat))
            else {
                continue;
            };
            if cpus.contains(cpu) {
                others.ns += ran;
                if others.busiest.as_ref().is_none_or(|(_, most)| ran > *most) {
                    others.busiest = Some((name, ran));
                }
            }
        }
        others
    }
}

/// A task's name and the CPU it ran on last, fields 2 and 39 of its `stat` (proc_pid_stat(5)). The
/// name is in brackets and may hold brackets.
fn name_and_cpu(stat: &str) -> Option<(String, u32)> {
    let (head, tail) = stat.rsplit_once(')')?;
    // Whoever runs a program names it, and the name is shown on terminals.
    let name = head.split_once('(')?.1.replace(char::is_control, "?");
    Some((name, tail.split_ascii_whitespace().nth(36)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    /// A machine with a busy compiler on CPU 1, a daemon on CPU 0,
    /// and a task that begins with `born`.
    fn machine(compiler_ns: u64, daemon_ns: u64, born: Option<u64>) -> Recorded {
        let files = [("proc/loadavg", "0.20 0.18 0.12 1/3 11206"), ("proc/self/schedstat", "1 2 3")];
        let machine = Recorded::of(&files);
        let task = |process: u32, task: u32, name: &str, cpu: u32, ns: u64| {
            let zeroes = "0 ".repeat(35);
            let folder = format!("proc/{process}/task/{task}");
            machine.write(&format!("{folder}/schedstat"), &format!("{ns} 55 7\n"));
            machine.write(&format!("{folder}/stat"), &format!("{task} ({name}) S {zeroes}{cpu} 0 0\n"));
        };
        task(4_000_001, 4_000_001, "cc1 (plus)", 1, compiler_ns);
        task(4_000_001, 4_000_002, "cc1 (plus)", 1, 7);
        task(4_000_003, 4_000_003, "daemon", 0, daemon_ns);
        if let Some(ns) = born {
            task(4_000_009, 4_000_009, "newborn", 1, ns);
        }
        machine
    }

    fn others(before: &Recorded, after: &Recorded, cpus: &str) -> Others {
        let [then, now] = [before, after].map(|machine| TaskTimes::read(&machine.root()).unwrap());
        now.others(&then, &after.root(), &cpus.parse().unwrap())
    }

    #[test]
    fn what_ran_on_the_cpus_asked_for_is_added_up_and_the_busiest_is_named() {
        let (before, after) =
            (machine(1_000_000, 5_000_000, None), machine(41_000_000, 15_000_000, Some(500_000)));
        let both = others(&before, &after, "0-1");
        assert_eq!(both, Others { ns: 50_500_000, busiest: Some(("cc1 (plus)".to_owned(), 40_000_000)) });
        assert_eq!(others(&before, &after, "0").busiest, Some(("daemon".to_owned(), 10_000_000)));
        assert_eq!(others(&after, &after, "0-1"), Others::default());
    }

    #[test]
    fn where_such_times_are_not_kept_or_most_of_them_hidden_or_too_many_there_is_no_reading() {
        let kept = machine(1, 1, None);
        std::fs::remove_file(kept.root().path("proc/self/schedstat")).unwrap();
        assert_eq!(TaskTimes::read(&kept.root()), None);
        for tasks in ["1/80", "1/60000"] {
            let machine = machine(1, 1, None);
            machine.write("proc/loadavg", &format!("0.20 0.18 0.12 {tasks} 11206"));
            assert_eq!(TaskTimes::read(&machine.root()), None, "{tasks}");
        }
    }

    #[test]
    fn a_stat_that_is_cut_names_no_cpu() {
        assert_eq!(name_and_cpu("7 (x) S 1 2 3"), None);
        assert_eq!(name_and_cpu(""), None);
    }
}
