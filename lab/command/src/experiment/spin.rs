// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell spin` as a plan: at each gap a waiter that sleeps at once, one that spins, and some
//! that spin for a while first.

use std::time::Duration;

use super::bench::{PAIRS, asked};
use super::ping::usual_window;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::plan::Plan;
use doorbell_results::plan::bench::Bench;
use doorbell_subjects::mechanism::Contexts;

#[derive(Debug, Clone)]
pub struct Spin {
    pub subject: String,
    /// Two processes or two threads.
    pub contexts: Contexts,
    pub placement: Placement,
    pub gaps: Vec<Duration>,
    /// How long to spin before sleeping; none gives each gap [`usual_spins`].
    pub spins: Vec<Duration>,
    /// Length of a trial, if not the usual one.
    pub time: Option<Duration>,
    /// Repetitions, however it then stands; if not as many as it takes to decide.
    pub blocks: Option<u32>,
    pub seed: u64,
}

/// The gaps of a run that names none: about where sleeping begins to
/// pay on machines of today, and well beyond.
pub const GAPS: [Duration; 6] = [
    Duration::from_micros(5),
    Duration::from_micros(10),
    Duration::from_micros(20),
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_millis(1),
];

/// Spins that are tried at every gap they are not far beyond.
const SPINS: [Duration; 4] = [
    Duration::from_micros(2),
    Duration::from_micros(5),
    Duration::from_micros(20),
    Duration::from_micros(50),
];

/// The longest gap through which a waiter is made to spin with sleep
/// still to follow: beyond it no sleep costs as much.
const LONGEST: Duration = Duration::from_micros(200);

/// What a run takes until its first look: twice as long is still within the minute.
const RUN: Duration = Duration::from_secs(20);

/// Wakes that it is given time for at the least.
const WAKES: u32 = 3;

/// The spins that are tried at `gap`: those that end before it, to show what a spin in vain costs,
/// and the first that outlasts it by as much as a notification is late.
pub fn usual_spins(gap: Duration) -> Vec<Duration> {
    let mut spins: Vec<Duration> = SPINS.into_iter().filter(|spin| *spin < gap).collect();
    if gap <= LONGEST {
        spins.push(gap + gap / 5);
    }
    spins
}

impl Spin {
    /// The plan: at each gap every way to wait, and the harness itself.
    pub fn plan(&self) -> Plan {
        let mut configurations = Vec::new();
        let mut add = |configuration: Configuration| {
            if !configurations.contains(&configuration) {
                configurations.push(configuration);
            }
        };
        for &gap in &self.gaps {
            let spins = if self.spins.is_empty() { usual_spins(gap) } else { self.spins.clone() };
            let spin_ns = |spin: Duration| u64::try_from(spin.as_nanos()).unwrap_or(u64::MAX);
            let spins = spins.into_iter().map(|spin| WaitPolicy::SpinThenBlock { spin_ns: spin_ns(spin) });
            for wait in [WaitPolicy::Block, WaitPolicy::Spin].into_iter().chain(spins) {
                add(self.configuration(gap, wait));
            }
        }
        add(Configuration {
            subject: "null".to_owned(),
            pattern: Pattern::PingPong { gap_ns: 0 },
            ..self.configuration(Duration::ZERO, WaitPolicy::Block)
        });
        let pairs = *PAIRS.start();
        let pair = RUN / pairs;
        for configuration in configurations.iter_mut().filter(|_| self.time.is_none()) {
            let wakes = Duration::from_nanos(configuration.pattern.gap_ns()) * WAKES;
            configuration.until = Until::time((pair / 10).max(wakes));
        }
        let pair_ns = self.time.is_none().then(|| u64::try_from(pair.as_nanos()).unwrap_or(u64::MAX));
        let plan = Plan::new("spin", configurations, pairs, self.seed);
        Plan { bench: Some(Bench { pair_ns, ..asked() }), ..plan.until_decided(1).with_blocks(self.blocks) }
    }

    fn configuration(&self, gap: Duration, wait: WaitPolicy) -> Configuration {
        let pattern = Pattern::OneWay { gap_ns: u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX) };
        Configuration {
            contexts: self.contexts,
            timing: Timing::Stamp,
            wait,
            placement: self.placement.clone(),
            ..Configuration::new(
                self.subject.clone(),
                pattern,
                self.time.map_or_else(|| usual_window(pattern), Until::time),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(gaps: &[Duration]) -> Spin {
        Spin {
            subject: "futex".to_owned(),
            contexts: Contexts::Processes,
            placement: Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
            gaps: gaps.to_vec(),
            spins: Vec::new(),
            time: None,
            blocks: None,
            seed: 1,
        }
    }

    #[test]
    fn every_gap_is_slept_through_spun_through_and_spun_just_beyond() {
        let plan = spin(&GAPS).plan();
        for gap in GAPS {
            let gap_ns = gap.as_nanos() as u64;
            let waits: Vec<WaitPolicy> = plan
                .configurations
                .iter()
                .filter(|configuration| configuration.pattern == Pattern::OneWay { gap_ns })
                .map(|configuration| configuration.wait)
                .collect();
            assert_eq!(waits[..2], [WaitPolicy::Block, WaitPolicy::Spin]);
            let beyond = waits.contains(&WaitPolicy::SpinThenBlock { spin_ns: gap_ns + gap_ns / 5 });
            assert_eq!(beyond, gap <= LONGEST, "{gap:?}");
        }
        assert!(plan.configurations.iter().any(|configuration| configuration.subject == "null"));
    }

    #[test]
    fn a_plan_of_many_gaps_still_has_blocks_enough_for_a_verdict() {
        let many: Vec<Duration> = (1..60).map(Duration::from_millis).collect();
        assert!(spin(&many).plan().blocks >= *PAIRS.start());
        assert_eq!(spin(&GAPS).plan().blocks, *PAIRS.start());
    }

    #[test]
    fn a_run_is_looked_at_until_it_is_decided_unless_its_blocks_are_named() {
        let plan = spin(&GAPS).plan();
        assert_eq!(plan.looks, [plan.blocks, 2 * plan.blocks]);
        // The second look is within the minute.
        let most = plan.most_blocks();
        let pair = Duration::from_nanos(plan.bench.unwrap().pair_ns.unwrap());
        assert!(pair * most < Duration::from_secs(55), "{pair:?} x {most}");
        let named = Spin { blocks: Some(9), ..spin(&GAPS) }.plan();
        assert_eq!((named.blocks, named.looks.len()), (9, 0));
    }
}
