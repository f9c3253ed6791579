// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long each CPU has been in each of its idle states, as the kernel counts it
//! (sysfs-devices-system-cpu, `cpuidle`).

use std::collections::BTreeMap;

use super::root::Root;
use doorbell_results::machine::cpu_list::CpuList;

const CPU: &str = "sys/devices/system/cpu";

/// A reading of the residencies of some CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdleTimes {
    /// Microseconds since boot by the state's name, summed over the CPUs.
    states: BTreeMap<String, u64>,
    /// Entries since boot by the state's name, summed over the CPUs.
    entries: BTreeMap<String, u64>,
    cpus: u64,
}

impl IdleTimes {
    /// Reads them for `cpus`; empty where the kernel shows no idle states.
    pub fn read(root: &Root, cpus: &CpuList) -> Self {
        let mut times = Self::default();
        for cpu in cpus.iter() {
            let folder = format!("{CPU}/cpu{cpu}/cpuidle");
            let states = root.numbered(&folder, "state");
            times.cpus += u64::from(!states.is_empty());
            for state in states {
                let name = root.word(format!("{folder}/state{state}/name"));
                let Some(name) = name else { continue };
                for (file, sums) in [("time", &mut times.states), ("usage", &mut times.entries)] {
                    if let Some(own) = root.value::<u64>(format!("{folder}/state{state}/{file}")) {
                        let sum = sums.entry(name.clone()).or_default();
                        *sum = sum.saturating_add(own);
                    }
                }
            }
        }
        times
    }

    /// How often the CPUs entered each state since `before`.
    pub fn entries_since(&self, before: &Self) -> BTreeMap<String, u64> {
        let since = |(name, now): (&String, &u64)| {
            (name.clone(), now.saturating_sub(before.entries.get(name).copied().unwrap_or(0)))
        };
        self.entries.iter().map(since).collect()
    }

    /// The share of `window_ns` that the CPUs spent in each state since `before`.
    pub fn shares(&self, before: &Self, window_ns: u64) -> BTreeMap<String, f64> {
        let whole = window_ns as f64 / 1000.0 * self.cpus as f64;
        if whole <= 0.0 {
            return BTreeMap::new();
        }
        let share = |(name, now): (&String, &u64)| {
            let then = before.states.get(name).copied().unwrap_or(0);
            (name.clone(), now.saturating_sub(then) as f64 / whole)
        };
        self.states.iter().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    /// A machine of two CPUs with three states, of which one was entered between two readings.
    fn machine(c6_us: u64) -> Recorded {
        let machine = Recorded::of(&[]);
        for cpu in 0..2 {
            for (state, (name, time)) in [("POLL", 5), ("C1", 1_000), ("C6", c6_us)].iter().enumerate() {
                let path = format!("{CPU}/cpu{cpu}/cpuidle/state{state}");
                machine.write(&format!("{path}/name"), name);
                machine.write(&format!("{path}/time"), &time.to_string());
                machine.write(&format!("{path}/usage"), &(time / 1000).to_string());
            }
        }
        machine
    }

    #[test]
    fn the_share_of_a_state_is_its_time_over_the_window_of_all_cpus() {
        let cpus = "0-1".parse().unwrap();
        let (before, after) = (machine(10_000), machine(510_000));
        let [before, after] = [before, after].map(|machine| IdleTimes::read(&machine.root(), &cpus));
        let shares = after.shares(&before, 1_000_000_000);
        let entries = after.entries_since(&before);
        assert_eq!(entries, BTreeMap::from([("C1".into(), 0), ("C6".into(), 1000), ("POLL".into(), 0)]));
        assert_eq!(shares, BTreeMap::from([("C1".into(), 0.0), ("C6".into(), 0.5), ("POLL".into(), 0.0)]));
        let times = IdleTimes::read(&Recorded::of(&[]).root(), &cpus);
        assert!(times.shares(&times, 1_000_000).is_empty());
    }
}
