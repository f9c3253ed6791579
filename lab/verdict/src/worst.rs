// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the record of a trial tells of its longest wake.
//!
//! A record counts over the whole trial. So what was there in it is evidence of what may have made
//! one of its wakes long, and no proof: that takes a trace of the wake itself. What was too small
//! to have done it is no evidence at all, however unusual, and what is large enough stays one that
//! all trials had: a quota stops every one of them.

use std::borrow::Cow;

use doorbell_results::record::{Quantity, Record, Variant};

use super::statistics::median;

#[derive(Debug, Clone, PartialEq)]
pub struct Worst {
    /// How long it took, nanoseconds.
    pub wake_ns: f64,
    pub block: u32,
    /// When its trial began, nanoseconds since 1970.
    pub started_at_unix_ns: u64,
    /// What there was enough of in its trial to have made it that long: what could have made up
    /// most of it first, and of those that could have made up as much, what was unusual.
    pub suspects: Vec<Suspect>,
    /// Trials that say what is usual.
    pub others: usize,
}

/// Something that there was enough of in a trial to have made a wake long.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    pub what: Cow<'static, str>,
    pub here: f64,
    /// The median of the other trials; none where there are no others.
    pub usual: Option<f64>,
    pub unit: Unit,
}

/// Of what there was so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A share of one CPU's time.
    OfCpu,
    /// A share of the trial's time.
    OfTime,
    Times,
    Nanoseconds,
}

/// How long the record's count may have held one wake up.
#[derive(Clone, Copy)]
enum Size {
    /// As long as it was there for: a share of the trial's time.
    Share,
    /// As long as it says, nanoseconds.
    Itself,
    /// No one of them for longer than this, nanoseconds.
    Each(f64),
    /// So short that hundreds fall into every trial and make no wake long: only many more than
    /// usual do.
    Short,
}

/// Something a record tells that can make a wake long.
struct Fact {
    what: &'static str,
    unit: Unit,
    size: Size,
    of: fn(&Record) -> Option<f64>,
}

/// The longest that a side waits for a CPU that was taken from it, once: the longest slice that the
/// scheduler gives (EEVDF, 100 ms).
const SLICE_NS: f64 = 1e8;

/// The longest that one interrupt, one move to another CPU or one page that is in memory takes, far
/// beyond what they usually do.
const SHORT_NS: f64 = 1e5;

/// A count is unusual from this multiple of the usual on.
const UNUSUAL: f64 = 2.0;

/// The longest that a disk takes for a page.
const DISK_NS: f64 = 1e8;

impl Fact {
    const fn of(what: &'static str, unit: Unit, size: Size, of: fn(&Record) -> Option<f64>) -> Self {
        Self { what, unit, size, of }
    }
}

const FACTS: [Fact; 9] = [
    Fact::of("held back by a CPU quota", Unit::Nanoseconds, Size::Itself, |it| {
        Some(it.environment.throttled_ns? as f64)
    }),
    Fact::of("taken by the hypervisor", Unit::OfCpu, Size::Share, |it| it.environment.steal_share),
    Fact::of("used by other programs", Unit::OfCpu, Size::Share, |it| it.environment.foreign_share),
    Fact::of("some task waited for a CPU", Unit::OfTime, Size::Share, |it| it.environment.pressure_share),
    Fact::of("waiter preempted", Unit::Times, Size::Each(SLICE_NS), |it| {
        Some(it.sides.last()?.involuntary_switches as f64)
    }),
    Fact::of("notifier preempted", Unit::Times, Size::Each(SLICE_NS), |it| {
        Some(it.sides.first()?.involuntary_switches as f64)
    }),
    Fact::of("waiter moved to another CPU", Unit::Times, Size::Short, |it| {
        Some(it.sides.last()?.migrations? as f64)
    }),
    Fact::of("waiter read a page from disk", Unit::Times, Size::Each(DISK_NS), |it| {
        Some(it.sides.last()?.major_faults as f64)
    }),
    Fact::of("waiter faulted a page in", Unit::Times, Size::Short, |it| {
        Some(it.sides.last()?.minor_faults as f64)
    }),
];

/// The share of a wake that a suspect must have been able to make up, as of the causes of single
/// wakes.
const ENOUGH: f64 = 0.5;

/// The longest time of `quantity` in `variant`; none of no samples.
pub fn worst(variant: &Variant, quantity: Quantity) -> Option<Worst> {
    let longest = |record: &Record| record.series.get(&quantity).map(|series| series.max_ns);
    let record = variant
        .usable()
        .filter(|record| longest(record).is_some())
        .max_by(|a, b| longest(a).unwrap_or_default().total_cmp(&longest(b).unwrap_or_default()))?;
    let wake_ns = longest(record)?;
    let others: Vec<&Record> = variant.usable().filter(|other| !std::ptr::eq(*other, record)).collect();
    let mut suspects = Vec::new();
    let mut suspect = |what: Cow<'static, str>, unit, size, of: &dyn Fn(&Record) -> Option<f64>| {
        let Some(here) = of(record) else { return };
        let covers_ns = match size {
            Size::Share => here * record.environment.wall_ns as f64,
            Size::Itself => here,
            Size::Each(ns) => here * ns,
            Size::Short => here * SHORT_NS,
        };
        let usual = median(&others.iter().filter_map(|other| of(other)).collect::<Vec<f64>>());
        let unusual = usual.is_some_and(|usual| here >= usual * UNUSUAL);
        let counts = unusual || !matches!(size, Size::Short);
        let timed = matches!(size, Size::Share | Size::Itself);
        if counts && covers_ns > 0.0 && covers_ns >= wake_ns * ENOUGH {
            suspects.push((covers_ns.min(wake_ns), timed, unusual, Suspect { what, here, usual, unit }));
        }
    };
    for fact in &FACTS {
        let what = match &record.environment.busiest {
            Some(name) if fact.what == "used by other programs" => {
                Cow::Owned(format!("{}, most by {name}", fact.what))
            }
            _ => Cow::Borrowed(fact.what),
        };
        suspect(what, fact.unit, fact.size, &fact.of);
    }
    for kind in record.environment.interrupts.keys() {
        let of = |other: &Record| Some(other.environment.interrupts.get(kind).copied().unwrap_or(0) as f64);
        suspect(format!("interrupts ({kind})").into(), Unit::Times, Size::Short, &of);
    }
    // What is known to have lasted that long comes before what may have: beside it a mere count is
    // told only where it was unusual.
    let any_timed = suspects.iter().any(|(_, timed, ..)| *timed);
    suspects.retain(|(_, timed, unusual, _)| *timed || *unusual || !any_timed);
    // Where nothing tells them apart they stay in the order of the facts: what stops a side for
    // certain comes first.
    suspects.sort_by(|(covers, timed, unusual, _), (other, timed_other, unusual_other, _)| {
        let by_size = other.total_cmp(covers);
        by_size.then(timed_other.cmp(timed)).then(unusual_other.cmp(unusual))
    });
    Some(Worst {
        wake_ns,
        block: record.block,
        started_at_unix_ns: record.environment.started_at_unix_ns,
        suspects: suspects.into_iter().map(|(.., suspect)| suspect).collect(),
        others: others.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::{Histogram, ResultFile, Series, sample};

    /// Six trials of a second, in the fifth of which one wake took so long.
    fn run(wake_ms: u64) -> ResultFile {
        let mut result = sample::result(&[sample::configuration("futex")], 6, |_, _| 16_000.0);
        for record in &mut result.records {
            record.environment.wall_ns = 1_000_000_000;
            record.environment.interrupts.clear();
        }
        let mut long = Histogram::new();
        long.record_many(8_000_000, 999);
        long.record(wake_ms * 1_000_000_000);
        result.records[4].series.insert(Quantity::Wake, Series::from(&long));
        result
    }

    fn told(result: &ResultFile) -> Vec<String> {
        let worst = worst(&result.variants()[0], Quantity::Wake).unwrap();
        assert_eq!((worst.block, worst.others), (4, 5));
        worst.suspects.iter().map(|suspect| suspect.what.to_string()).collect()
    }

    /// Under a quota of a tenth all trials stood still for 328 to 654 ms of each second, and TLB
    /// interrupts were blamed, or nothing: only what was unlike the other trials was looked at.
    #[test]
    fn a_quota_that_stopped_all_trials_is_blamed_before_a_few_interrupts_more_than_usual() {
        let mut result = run(90);
        for (record, ms) in result.records.iter_mut().zip([654, 400, 500, 328, 410, 600]) {
            record.environment.throttled_ns = Some(ms * 1_000_000);
        }
        result.records[4].environment.interrupts.insert("TLB".to_owned(), 70);
        result.records.iter_mut().for_each(|record| record.sides[1].involuntary_switches = 12);
        assert_eq!(told(&result), ["held back by a CPU quota"]);
        result.records[4].environment.interrupts.insert("TLB".to_owned(), 700);
        assert_eq!(told(&result), ["held back by a CPU quota", "interrupts (TLB)"]);
    }

    #[test]
    fn of_what_could_have_made_up_the_whole_wake_the_unusual_comes_first() {
        let mut result = run(90);
        for record in &mut result.records {
            record.environment.foreign_share = Some(0.2);
            record.environment.steal_share = Some(0.001);
        }
        let environment = &mut result.records[4].environment;
        environment.steal_share = Some(0.15);
        environment.busiest = Some("cc1plus".to_owned());
        result.records[4].sides[1].involuntary_switches = 3;
        assert_eq!(
            told(&result),
            ["taken by the hypervisor", "used by other programs, most by cc1plus", "waiter preempted"]
        );
    }

    #[test]
    fn what_is_too_small_is_blamed_however_unusual_it_is_for_nothing() {
        let mut result = run(90);
        let environment = &mut result.records[4].environment;
        (environment.steal_share, environment.throttled_ns) = (Some(0.02), Some(1_000_000));
        result.records[4].sides[1].minor_faults = 400;
        assert_eq!(told(&result), [""; 0]);
    }

    #[test]
    fn one_trial_alone_has_suspects_and_nothing_that_is_usual() {
        let mut result = run(90);
        result.records.swap(0, 4);
        result.records.truncate(1);
        result.records[0].environment.throttled_ns = Some(500_000_000);
        let worst = worst(&result.variants()[0], Quantity::Wake).unwrap();
        assert_eq!((worst.suspects[0].usual, worst.others), (None, 0));
    }
}
