// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the groups of a trial's times are, where its counters prove
//! it, and the warning that there are groups.

use doorbell_results::record::populations::Population;
use doorbell_results::record::subject::Waits;
use doorbell_results::record::{Quantity, Record, warning};
use doorbell_results::written::time_ns;

/// Least share of a group beside the largest that a reader is warned of, and least ratio of their
/// levels: smaller and nearer ones hardly move a median. Nearly every trial on a virtual machine
/// has some, from halts that are polled and halts that are not; they stay in the record.
const MATERIAL_SHARE: f64 = 0.1;
const MATERIAL_RATIO: f64 = 1.5;
/// Names the groups of an unpinned trial where its counters prove
/// what they are, and warns that there are groups.
///
/// A wake across cores takes a rescheduling interrupt, one on the same core takes none. If the
/// interrupts per wake agree with the share of one group and not with that of the other, the group
/// is the one across cores. Where both groups are about as large, or the CPUs were told to poll
/// while idle, nothing is proven and nothing is named.
pub fn explain(record: &mut Record) {
    let quantities: Vec<Quantity> = record
        .series
        .iter()
        .filter(|(quantity, series)| {
            series.populations.len() > 1 && !matches!(quantity, Quantity::Notify | Quantity::AroundWait)
        })
        .map(|(quantity, _)| *quantity)
        .collect();
    for quantity in quantities {
        let across = share_across(record);
        let Some(series) = record.series.get_mut(&quantity) else { continue };
        if let (Some(across), [fast, slow]) = (across, &mut series.populations[..]) {
            let near = |share: f64| (share - across).abs() <= 0.1;
            let names = match (near(slow.share), near(fast.share)) {
                (true, false) => Some(["same core", "other core"]),
                (false, true) => Some(["other core", "same core"]),
                _ => None,
            };
            if let Some(names) = names {
                [fast, slow]
                    .into_iter()
                    .zip(names)
                    .for_each(|(group, name)| group.label = Some(name.to_owned()));
            }
        }
        if !material(&series.populations) {
            continue;
        }
        let groups: Vec<String> = series
            .populations
            .iter()
            .map(|group| {
                let label = group.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
                format!("{:.0} % around {}{label}", group.share * 100.0, time_ns(group.p50_ns))
            })
            .collect();
        let cure = match record.configuration.placement.cpus {
            None => "pin both sides (`--placement`), or read the groups one by one",
            Some(_) => "read the groups one by one; idle states and halt polling part wake-ups too",
        };
        let cause = format!("{} are bimodal: {}", quantity.name(), groups.join(", "));
        let effect = "a mean or a median of all of them describes none of them";
        record.warnings.push(warning::BIMODAL.warning(cause, effect, cure));
    }
}

/// Whether some group besides the largest is large and far enough to be warned of.
fn material(groups: &[Population]) -> bool {
    let largest = groups.iter().max_by(|a, b| a.share.total_cmp(&b.share));
    let apart = |a: f64, b: f64| a.max(b) >= a.min(b) * MATERIAL_RATIO;
    largest.is_some_and(|largest| {
        let others = groups.iter().filter(|group| !std::ptr::eq(*group, largest));
        others.into_iter().any(|group| group.share >= MATERIAL_SHARE && apart(group.p50_ns, largest.p50_ns))
    })
}

/// Rescheduling interrupts per wake, if that says how many wakes crossed cores.
fn share_across(record: &Record) -> Option<f64> {
    let there_and_back = record.configuration.pattern.there_and_back();
    let wakes = record.tally.seen * if there_and_back { 2 } else { 1 };
    let sleeps = record.subject.notification()?.waits == Waits::Blocks;
    let interrupts = *record.environment.interrupts.get("RES")?;
    let applies = record.configuration.placement.cpus.is_none() && sleeps && wakes > 0;
    applies.then(|| (interrupts as f64 / wakes as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::{Histogram, sample};

    /// `fast` samples around 8 us and `slow` ones around 16 us.
    fn two_groups(fast: u64, slow: u64) -> Histogram {
        let mut histogram = Histogram::new();
        for (middle_ns, count) in [(8000.0, fast), (16_000.0, slow)] {
            for sample in 0..count {
                let place = (sample as f64 + 0.5) / count as f64;
                // Dense in the middle, thin at the edges, 20 % to either side.
                let off = (2.0 * place - 1.0).powi(3) * 0.2;
                histogram.record((middle_ns * 1000.0 * (1.0 + off)) as u64);
            }
        }
        histogram
    }

    /// An unpinned trial in which `across` of the wakes took an
    /// interrupt and the slow group has `slow` of the samples.
    fn unpinned(across: f64, slow: f64) -> Record {
        let mut record = sample::record(sample::configuration("futex"), 0, 16_000.0);
        record.configuration.placement.cpus = None;
        record.environment.interrupts.insert("RES".to_owned(), (across * 2000.0) as u64);
        let slow = (slow * 1000.0) as u64;
        let times = two_groups(1000 - slow, slow);
        record.series.clear();
        record.series.insert(Quantity::RoundTrip, (&times).into());
        explain(&mut record);
        record
    }

    fn labels(record: &Record) -> Vec<Option<&str>> {
        let groups = &record.series[&Quantity::RoundTrip].populations;
        groups.iter().map(|group| group.label.as_deref()).collect()
    }

    #[test]
    fn populations_are_named_only_where_the_interrupts_prove_what_they_are() {
        assert_eq!(labels(&unpinned(0.8, 0.8)), [Some("same core"), Some("other core")]);
        assert_eq!(labels(&unpinned(0.2, 0.8)), [Some("other core"), Some("same core")]);
        // Half and half proves nothing, and neither do interrupts that fit no group.
        assert_eq!(labels(&unpinned(0.5, 0.5)), [None, None]);
        assert_eq!(labels(&unpinned(0.5, 0.8)), [None, None]);
    }

    /// On one virtual machine every second trial of a survey carried
    /// the warning, and no reader looked at it any more.
    #[test]
    fn a_group_that_is_small_or_near_is_kept_and_not_warned_of() {
        let group = |share, p50_ns| Population { label: None, share, p50_ns, p99_ns: p50_ns * 1.1 };
        assert!(material(&[group(0.7, 8000.0), group(0.3, 16_000.0)]));
        assert!(material(&[group(0.12, 8000.0), group(0.88, 16_000.0)]));
        assert!(!material(&[group(0.93, 8000.0), group(0.07, 80_000.0)]));
        assert!(!material(&[group(0.5, 8000.0), group(0.5, 10_000.0)]));
        assert!(!material(&[]));
        let record = unpinned(0.93, 0.93);
        assert_eq!(record.series[&Quantity::RoundTrip].populations.len(), 2);
        assert_eq!(record.warnings, []);
        let warnings = unpinned(0.8, 0.8).warnings;
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert_eq!(warning.name, "bimodal");
        assert!(warning.cause.contains("80 %") && warning.cure.contains("pin"), "{warning:?}");
    }
}
