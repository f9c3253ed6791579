// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each CPU spent its time on, as the kernel counts it in `/proc/stat`.

use std::collections::BTreeMap;

use super::root::Root;
use doorbell_results::machine::cpu_list::CpuList;

/// Nanoseconds of a tick of `/proc/stat`: `USER_HZ` is 100 on every architecture Linux shows it to
/// programs (proc_stat(5), include/uapi/asm-generic/param.h).
pub const TICK_NS: u64 = 10_000_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTimes {
    cpus: BTreeMap<u32, Times>,
}

/// Times of one CPU since boot, nanoseconds in whole ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    idle: u64,
    interrupts: u64,
    steal: u64,
    all: u64,
}

impl CpuTimes {
    /// Reads them; `None` where `/proc/stat` is hidden or names no CPU.
    pub fn read(root: &Root) -> Option<Self> {
        Self::parse(&root.text("proc/stat")?)
    }

    /// The lines `cpuN user nice system idle iowait irq softirq steal …` of a `/proc/stat`.
    pub fn parse(text: &str) -> Option<Self> {
        let times = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
            let cpu: u32 = words.next()?.parse().ok()?;
            let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let ns = |index: usize| ticks.get(index).copied().unwrap_or(0).saturating_mul(TICK_NS);
            (ticks.len() >= 4).then(|| {
                (
                    cpu,
                    Times {
                        idle: ns(3).saturating_add(ns(4)),
                        interrupts: ns(5).saturating_add(ns(6)),
                        steal: ns(7),
                        all: (0..8).map(ns).fold(0, u64::saturating_add),
                    },
                )
            })
        };
        // The first line, `cpu`, is the sum; a word that is no number
        // follows its prefix at once only there.
        let cpus: BTreeMap<u32, Times> =
            text.lines().filter(|line| !line.starts_with("cpu ")).filter_map(times).collect();
        (!cpus.is_empty()).then_some(Self { cpus })
    }

    /// Time that `cpus` were busy since `before`, nanoseconds, in a window of `wall_ns`.
    ///
    /// Taken as what is left of the window after idle and steal time. Most kernels charge a whole
    /// tick to whatever runs when the tick strikes, which makes user and system time of a side
    /// that sleeps and wakes between ticks a lottery; idle time is taken from the moments at
    /// which the CPU enters and leaves idleness.
    pub fn busy_ns(&self, before: &Self, cpus: &CpuList, wall_ns: u64) -> Option<u64> {
        self.sum(before, cpus, |now, then| {
            let away =
                now.idle.saturating_sub(then.idle).saturating_add(now.steal.saturating_sub(then.steal));
            wall_ns.saturating_sub(away)
        })
    }

    /// Time the hypervisor gave to somebody else while `cpus` were ready to run, nanoseconds.
    pub fn steal_ns(&self, before: &Self, cpus: &CpuList) -> Option<u64> {
        self.sum(before, cpus, |now, then| now.steal.saturating_sub(then.steal))
    }

    /// Time that `cpus` spent in interrupts since `before`, hard and soft ones, nanoseconds.
    pub fn interrupts_ns(&self, before: &Self, cpus: &CpuList) -> Option<u64> {
        self.sum(before, cpus, |now, then| now.interrupts.saturating_sub(then.interrupts))
    }

    /// Steal time of all CPUs since boot, nanoseconds.
    pub fn steal_since_boot_ns(&self) -> u64 {
        self.cpus.values().map(|times| times.steal).fold(0, u64::saturating_add)
    }

    /// Steal time of all CPUs since boot, as a share of all their time.
    pub fn steal_share_since_boot(&self) -> f64 {
        let sum = |part: fn(&Times) -> u64| self.cpus.values().map(part).fold(0, u64::saturating_add) as f64;
        sum(|times| times.steal) / sum(|times| times.all).max(1.0)
    }

    fn sum(&self, before: &Self, cpus: &CpuList, difference: impl Fn(&Times, &Times) -> u64) -> Option<u64> {
        let both = cpus.iter().map(|cpu| Some(difference(self.cpus.get(&cpu)?, before.cpus.get(&cpu)?)));
        both.sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEFORE: &str =
        "cpu  100 0 0 300 0 0 0 3 0 0\ncpu0 50 0 0 150 7 0 0 1 0 0\ncpu1 50 0 0 150 0 0 0 2 0 0\nintr 1 2";
    const AFTER: &str =
        "cpu  100 0 0 300 0 0 0 3 0 0\ncpu0 50 0 0 240 7 0 0 1 0 0\ncpu1 90 0 0 200 0 0 0 12 0 0\n";

    #[test]
    fn what_is_neither_idle_nor_stolen_was_busy() {
        let (before, after) = (CpuTimes::parse(BEFORE).unwrap(), CpuTimes::parse(AFTER).unwrap());
        let busy = |cpus: &str| after.busy_ns(&before, &cpus.parse().unwrap(), 1_000_000_000);
        assert_eq!(busy("0"), Some(100_000_000));
        assert_eq!(busy("1"), Some(400_000_000));
        assert_eq!(busy("0-1"), Some(500_000_000));
        assert_eq!(after.steal_ns(&before, &"0-1".parse().unwrap()), Some(100_000_000));
    }

    #[test]
    fn a_cpu_that_is_not_listed_makes_the_answer_unknown() {
        let times = CpuTimes::parse(BEFORE).unwrap();
        assert_eq!(times.busy_ns(&times, &"0,5".parse().unwrap(), 1), None);
    }

    #[test]
    fn a_file_without_cpus_is_no_reading() {
        assert_eq!(CpuTimes::parse("cpu  1 2 3 4\nintr 5\n"), None);
        assert_eq!(CpuTimes::parse(""), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "(cpu[0-9]{0,3} [-0-9 ]{0,80}\n|[ -~]{0,40}\n){0,6}") {
            if let Some(times) = CpuTimes::parse(&text) {
                let cpus = (0..4).collect();
                let _ = times.busy_ns(&CpuTimes::default(), &cpus, u64::MAX);
                let _ = times.busy_ns(&times, &cpus, u64::MAX);
            }
        }
    }
}
