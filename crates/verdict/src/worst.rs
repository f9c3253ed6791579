// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the record of a trial tells of its longest wake.
//!
//! A record counts over the whole trial. So what was unusual in it is evidence of what may have made one of its wakes long, and
//! no proof: that takes a trace of the wake itself.

use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Record, Variant};

use super::statistics::median;

/// The longest of some wakes.
#[derive(Debug, Clone, PartialEq)]
pub struct Worst {
    /// How long it took, nanoseconds.
    pub wake_ns: f64,
    /// The block of its trial.
    pub block: u32,
    /// When its trial began, nanoseconds since 1970.
    pub started_at_unix_ns: u64,
    /// What was unusual in its trial, most unusual first; empty where nothing was.
    pub unusual: Vec<Unusual>,
    /// Trials that say what is usual.
    pub others: usize,
}

/// Something that a trial had more of than the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Unusual {
    pub what: String,
    pub here: f64,
    /// The median of the other trials.
    pub usual: f64,
    /// Of what: `of a CPU`, `times`, `ms`.
    pub unit: &'static str,
}

/// Something a record tells that can make a wake long.
struct Fact {
    what: &'static str,
    unit: &'static str,
    /// Less than this is nothing.
    least: f64,
    of: fn(&Record) -> Option<f64>,
}

const FACTS: [Fact; 9] = [
    Fact {
        what: "taken by the hypervisor",
        unit: "of a CPU",
        least: 0.002,
        of: |record| record.environment.steal_share,
    },
    Fact {
        what: "used by other programs",
        unit: "of a CPU",
        least: 0.02,
        of: |record| record.environment.foreign_share,
    },
    Fact {
        what: "some task waited for a CPU",
        unit: "of the time",
        least: 0.01,
        of: |record| record.environment.pressure_share,
    },
    Fact {
        what: "held back by a CPU quota",
        unit: "ms",
        least: 0.001,
        of: |record| Some(record.environment.throttled_ns? as f64 / 1e6),
    },
    Fact {
        what: "waiter preempted",
        unit: "times",
        least: 1.0,
        of: |record| Some(record.sides.last()?.involuntary_switches as f64),
    },
    Fact {
        what: "notifier preempted",
        unit: "times",
        least: 1.0,
        of: |record| Some(record.sides.first()?.involuntary_switches as f64),
    },
    Fact {
        what: "waiter moved to another CPU",
        unit: "times",
        least: 1.0,
        of: |record| Some(record.sides.last()?.migrations? as f64),
    },
    Fact {
        what: "waiter read a page from disk",
        unit: "times",
        least: 1.0,
        of: |record| Some(record.sides.last()?.major_faults as f64),
    },
    Fact {
        what: "waiter faulted a page in",
        unit: "times",
        least: 5.0,
        of: |record| Some(record.sides.last()?.minor_faults as f64),
    },
];

/// More interrupts than the usual by less than this are chance.
const LEAST_INTERRUPTS: f64 = 50.0;

/// A fact is unusual from this multiple of the usual on.
const UNUSUAL: f64 = 2.0;

/// The longest time of `quantity` in `variant`; none of no samples.
pub fn worst(variant: &Variant, quantity: Quantity) -> Option<Worst> {
    let longest = |record: &Record| record.series.get(&quantity).map(|series| series.max_ns);
    let record = variant
        .usable()
        .filter(|record| longest(record).is_some())
        .max_by(|a, b| longest(a).unwrap_or_default().total_cmp(&longest(b).unwrap_or_default()))?;
    let others: Vec<&Record> = variant.usable().filter(|other| !std::ptr::eq(*other, record)).collect();
    let mut unusual: Vec<Unusual> = FACTS
        .iter()
        .filter_map(|fact| {
            let here = (fact.of)(record)?;
            let usual = usual(&others, fact.of);
            (here >= fact.least && here >= usual * UNUSUAL).then(|| Unusual {
                what: fact.what.to_owned(),
                here,
                usual,
                unit: fact.unit,
            })
        })
        .collect();
    if let (Some(name), Some(other)) =
        (&record.environment.busiest, unusual.iter_mut().find(|fact| fact.what == "used by other programs"))
    {
        other.what.push_str(&format!(", most by {name}"));
    }
    for (kind, count) in &record.environment.interrupts {
        let (here, usual) = (
            *count as f64,
            usual(&others, |other| Some(other.environment.interrupts.get(kind).copied().unwrap_or(0) as f64)),
        );
        if here >= usual * UNUSUAL && here >= usual + LEAST_INTERRUPTS {
            unusual.push(Unusual { what: format!("interrupts ({kind})"), here, usual, unit: "times" });
        }
    }
    let excess = |fact: &Unusual| fact.here / fact.usual.max(fact.here / 1e6);
    unusual.sort_by(|a, b| excess(b).total_cmp(&excess(a)));
    Some(Worst {
        wake_ns: longest(record)?,
        block: record.block,
        started_at_unix_ns: record.environment.started_at_unix_ns,
        unusual,
        others: others.len(),
    })
}

fn usual(others: &[&Record], of: impl Fn(&Record) -> Option<f64>) -> f64 {
    let values: Vec<f64> = others.iter().filter_map(|record| of(record)).collect();
    median(&values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::{Histogram, Series, sample};

    #[test]
    fn what_only_the_trial_of_the_longest_wake_had_is_told_and_what_all_had_is_not() {
        let mut result = sample::result(&[sample::configuration("futex")], 6, |_, _| 16_000.0);
        let mut long = Histogram::new();
        long.record_many(8_000_000, 999);
        long.record(900_000_000);
        let record = &mut result.records[4];
        record.series.insert(Quantity::Wake, Series::from(&long));
        record.environment.steal_share = Some(0.09);
        record.sides[1].involuntary_switches = 3;
        record.environment.interrupts.insert("TLB".to_owned(), 70);
        let variants = result.variants();
        let worst = worst(&variants[0], Quantity::Wake).unwrap();
        assert!((worst.wake_ns / 900_000.0 - 1.0).abs() < 0.002, "{worst:?}");
        assert_eq!((worst.block, worst.others), (4, 5));
        let mut told: Vec<&str> = worst.unusual.iter().map(|fact| fact.what.as_str()).collect();
        told.sort_unstable();
        assert_eq!(told, ["interrupts (TLB)", "taken by the hypervisor", "waiter preempted"]);
    }

    #[test]
    fn a_trial_like_the_others_explains_nothing() {
        let result = sample::result(&[sample::configuration("futex")], 6, |_, _| 16_000.0);
        assert_eq!(worst(&result.variants()[0], Quantity::Wake).unwrap().unusual, []);
        assert_eq!(worst(&result.variants()[0], Quantity::Response), None);
    }
}
