// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts each CPU took, as counted in `/proc/interrupts`.

use std::collections::BTreeMap;

use super::root::Root;
use doorbell_results::machine::cpu_list::CpuList;

/// The name under which all numbered lines, the devices, are summed up.
pub const DEVICE: &str = "device";

/// A reading: counts per CPU by the kernel's short name, devices summed up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interrupts {
    counts: BTreeMap<String, BTreeMap<u32, u64>>,
}

impl Interrupts {
    /// Reads them; `None` where `/proc/interrupts` is hidden or names no CPU.
    pub fn read(root: &Root) -> Option<Self> {
        Self::parse(&root.text("proc/interrupts")?)
    }

    /// A `/proc/interrupts`: a head line of CPUs, then `NAME: count … description`. The head names
    /// the CPUs of the columns, which are not numbered through where some are offline.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let cpus: Vec<u32> = lines
            .next()?
            .split_ascii_whitespace()
            .map(|name| name.strip_prefix("CPU")?.parse().ok())
            .collect::<Option<_>>()?;
        let mut counts: BTreeMap<String, BTreeMap<u32, u64>> = BTreeMap::new();
        for line in lines {
            let Some((name, rest)) = line.split_once(':') else { continue };
            let name = name.trim();
            let numbered = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
            let row: Vec<u64> = rest.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
            // Lines with fewer columns than CPUs, `ERR` and `MIS`, count for the whole machine.
            if row.len() < cpus.len() {
                continue;
            }
            let kind = if numbered { DEVICE } else { name };
            let sums = counts.entry(kind.to_owned()).or_default();
            for (cpu, count) in cpus.iter().zip(row) {
                let sum = sums.entry(*cpu).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        (!cpus.is_empty()).then_some(Self { counts })
    }

    /// How many of each kind `cpus` took since `before`; kinds that none of them took are left out.
    pub fn since(&self, before: &Self, cpus: &CpuList) -> BTreeMap<String, u64> {
        let taken = |kind: &str, row: &BTreeMap<u32, u64>| -> u64 {
            let then = |cpu: u32| before.counts.get(kind).and_then(|row| row.get(&cpu)).copied().unwrap_or(0);
            cpus.iter().filter_map(|cpu| Some(row.get(&cpu)?.saturating_sub(then(cpu)))).sum()
        };
        self.counts
            .iter()
            .map(|(kind, row)| (kind.clone(), taken(kind, row)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Device interrupts since boot by CPU.
    pub fn device_by_cpu(&self) -> BTreeMap<u32, u64> {
        self.counts.get(DEVICE).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reading(counts: [[u64; 2]; 4]) -> Interrupts {
        let [a, b, res, nmi] = counts.map(|[first, second]| format!("{first:10} {second:10}"));
        let text = format!(
            "            CPU0       CPU2\n  24: {a}  IO-APIC  5-edge  ACPI:Ged\n  36: {b}  PCI-MSIX  virtio1-req.0\n\
             RES: {res}  Rescheduling interrupts\nNMI: {nmi}  Non-maskable interrupts\nERR:          0\n"
        );
        Interrupts::parse(&text).unwrap()
    }

    #[test]
    fn counts_by_short_name_and_sums_up_the_devices() {
        let before = reading([[1, 0], [5, 6], [10, 20], [0, 0]]);
        let after = reading([[2, 0], [8, 6], [15, 40], [0, 0]]);
        let both = after.since(&before, &"0,2".parse().unwrap());
        assert_eq!(both, BTreeMap::from([("device".to_owned(), 4), ("RES".to_owned(), 25)]));
        let second = after.since(&before, &"2".parse().unwrap());
        assert_eq!(second, BTreeMap::from([("RES".to_owned(), 20)]));
    }

    #[test]
    fn a_file_without_a_head_is_no_reading() {
        assert_eq!(Interrupts::parse(""), None);
        assert_eq!(Interrupts::parse("RES: 1 2\n"), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "( CPU[0-9]{1,2}){0,4}\n([A-Z0-9 ]{0,5}:[-0-9 ]{0,60}[a-z]{0,5}\n){0,5}") {
            if let Some(interrupts) = Interrupts::parse(&text) {
                let _ = interrupts.since(&Interrupts::default(), &(0..4).collect());
            }
        }
    }
}
