// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long tasks ran on each CPU, by the scheduler's own clock:
//! nanoseconds, where `/proc/stat` counts ticks.

use std::collections::BTreeMap;

use super::root::Root;
use doorbell_results::machine::cpu_list::CpuList;

/// Versions of `/proc/schedstat` whose CPU lines are read here: they count nanoseconds since 15,
/// and have not changed up to 17 (kernel Documentation/scheduler/sched-stats.rst).
const VERSIONS: std::ops::RangeInclusive<u32> = 15..=17;

/// Where a CPU's line, split at spaces, tells the time that tasks ran on it.
const RUN_TIME: usize = 7;

/// A reading of every CPU's time with a task on it, idleness being none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTimes {
    cpus: BTreeMap<u32, u64>,
}

impl RunTimes {
    /// Reads them; `None` where the kernel was built without
    /// `CONFIG_SCHEDSTATS`, or hides the file.
    pub fn read(root: &Root) -> Option<Self> {
        Self::parse(&root.text("proc/schedstat")?)
    }

    fn parse(text: &str) -> Option<Self> {
        let version = text.lines().find_map(|line| line.strip_prefix("version "))?;
        if !VERSIONS.contains(&version.trim().parse().ok()?) {
            return None;
        }
        let time = |line: &str| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let cpu = words.first()?.strip_prefix("cpu")?.parse().ok()?;
            Some((cpu, words.get(RUN_TIME)?.parse().ok()?))
        };
        let cpus: BTreeMap<u32, u64> = text.lines().filter_map(time).collect();
        (!cpus.is_empty()).then_some(Self { cpus })
    }

    /// How long tasks ran on `cpus` since `before`, nanoseconds; a task that has not left its CPU
    /// since is not counted yet.
    pub fn since(&self, before: &Self, cpus: &CpuList) -> Option<u64> {
        cpus.iter().map(|cpu| Some(self.cpus.get(&cpu)?.saturating_sub(*before.cpus.get(&cpu)?))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(version: u32, times: [u64; 2]) -> Option<RunTimes> {
        let [first, second] = times;
        RunTimes::parse(&format!(
            "version {version}\ntimestamp 4295\ncpu0 0 0 900 300 500 400 {first} 77 901\n\
             domain0 MC 03 1 2 3\ncpu1 0 0 800 200 400 300 {second} 66 801\ndomain0 MC 03 4 5 6\n"
        ))
    }

    #[test]
    fn the_run_times_of_the_cpus_asked_for_are_added_up() {
        let (before, after) = (reading(15, [1_000, 2_000]).unwrap(), reading(17, [1_500, 9_000]).unwrap());
        let since = |cpus: &str| after.since(&before, &cpus.parse().unwrap());
        assert_eq!((since("0"), since("1"), since("0-1")), (Some(500), Some(7_000), Some(7_500)));
        assert_eq!(since("0,7"), None, "a CPU that is not listed makes the answer unknown");
    }

    #[test]
    fn a_version_whose_columns_are_not_known_is_no_reading() {
        assert_eq!(reading(14, [0, 0]), None);
        assert_eq!(reading(18, [0, 0]), None);
        assert_eq!(RunTimes::parse("cpu0 0 0 0 0 0 0 5 6 7\n"), None);
    }
}
