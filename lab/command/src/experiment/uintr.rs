// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell uintr` as a plan: user interrupts beside what they would replace, in one boot: gaps x
//! timings, sizes, time-outs.

use std::time::Duration;

use super::ping::makes_sense;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::plan::Plan;
use doorbell_subjects::mechanism::{Contexts, Waits, find};

/// What is set beside each other: the harness alone, spinning, what
/// blocks, and user interrupts to a receiver that runs, sleeps in the
/// driver, and sleeps in epoll. There and back, `eventfd` is two eventfds.
pub const VARIANTS: [&str; 8] =
    ["null", "spin", "eventfd", "eventfd-epoll", "futex", "uintr", "uintr-wait", "uintr-epoll"];

/// Gaps of a run that names none.
pub const GAPS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(100), Duration::from_secs(1)];

/// Sizes of message of a run that names none: one byte, and a page.
pub const SIZES: [u32; 2] = [1, 4096];

/// Time-outs of a run that names none: those that kernels for user
/// interrupts were published with, or tried with.
pub const TIMEOUTS: [Duration; 4] = [
    Duration::from_micros(100),
    Duration::from_micros(2500),
    Duration::from_micros(5000),
    Duration::from_micros(10_000),
];

/// How many notifications a trial is given time for, if they are apart.
const WAKES: u32 = 5;

/// The shortest trial.
const WINDOW: Duration = Duration::from_millis(200);

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Uintr {
    pub mechanisms: Vec<String>,
    /// Two CPUs: what spins shares none.
    pub placement: Placement,
    pub contexts: Contexts,
    pub gaps_ns: Vec<u64>,
    pub sizes: Vec<u32>,
    pub timeouts_ns: Vec<u64>,
    /// Notifications of a trial; none gives each trial time for some.
    pub count: Option<u64>,
    pub blocks: u32,
    pub seed: u64,
}

impl Uintr {
    pub fn plan(&self) -> Plan {
        let mut configurations: Vec<Configuration> = Vec::new();
        let mut add = |subject: &str, pattern, timing, wait, size| {
            let configuration = Configuration {
                contexts: self.contexts,
                timing,
                wait,
                placement: self.placement.clone(),
                size,
                ..Configuration::new(subject, pattern, self.until(pattern))
            };
            if makes_sense(&configuration, false) && !configurations.contains(&configuration) {
                configurations.push(configuration);
            }
        };
        let first = self.sizes.first().copied().unwrap_or_default();
        let apart = self.gaps_ns.iter().copied().find(|gap_ns| *gap_ns > 0);
        for subject in &self.mechanisms {
            for &size in &self.sizes {
                add(subject, Pattern::PingPong { gap_ns: 0 }, Timing::Around, WaitPolicy::Block, size);
            }
            for &gap_ns in &self.gaps_ns {
                let pattern = Pattern::OneWay { gap_ns };
                // A message's bytes cost what they cost after any gap: the others go with the shortest.
                let sizes = if Some(&gap_ns) == self.gaps_ns.first() { &*self.sizes } else { &[first] };
                for &size in sizes {
                    add(subject, pattern, Timing::Stamp, WaitPolicy::Block, size);
                }
                add(subject, pattern, Timing::Blocked, WaitPolicy::Block, first);
            }
            let sleeps = find(subject).is_ok_and(|entry| entry.notification().waits == Waits::Blocks);
            for &timeout_ns in self.timeouts_ns.iter().filter(|_| sleeps) {
                let pattern = Pattern::OneWay { gap_ns: apart.unwrap_or_default() };
                add(subject, pattern, Timing::Stamp, WaitPolicy::Timeout { timeout_ns }, first);
            }
        }
        Plan::new("uintr", configurations, self.blocks, self.seed)
    }

    fn until(&self, pattern: Pattern) -> Until {
        let gaps = Duration::from_nanos(pattern.gap_ns()) * WAKES;
        self.count.map_or_else(|| Until::time(WINDOW.max(gaps)), Until::count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variant_is_timed_in_every_way_that_it_can_be() {
        let ns = |time: &Duration| time.as_nanos() as u64;
        let plan = Uintr {
            mechanisms: VARIANTS.map(str::to_owned).to_vec(),
            placement: Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
            contexts: Contexts::Processes,
            gaps_ns: GAPS.iter().map(ns).collect(),
            sizes: SIZES.to_vec(),
            timeouts_ns: TIMEOUTS.iter().map(ns).collect(),
            count: Some(100_000),
            blocks: 2,
            seed: 1,
        }
        .plan();
        let of = |subject: &str, holds: &dyn Fn(&Configuration) -> bool| {
            plan.configurations.iter().filter(|one| one.subject == subject && holds(one)).count()
        };
        for subject in VARIANTS {
            assert_eq!(of(subject, &|one| one.pattern.there_and_back()), 2, "{subject}");
            assert_eq!(
                of(subject, &|one| one.pattern.one_way()
                    && one.timing == Timing::Stamp
                    && one.wait == WaitPolicy::Block),
                5
            );
            let sleeps = !["null", "spin", "uintr"].contains(&subject);
            assert_eq!(
                of(subject, &|one| one.timing == Timing::Blocked),
                if sleeps { 4 } else { 0 },
                "{subject}"
            );
            assert_eq!(
                of(subject, &|one| one.wait != WaitPolicy::Block),
                if sleeps { 4 } else { 0 },
                "{subject}"
            );
        }
        assert!(plan.configurations.iter().all(|one| one.until == Until::count(100_000)));
    }
}
