// SPDX-License-Identifier: MIT OR Apache-2.0
//! The survey: the useful subset of all experiments, in under a minute.

use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::plan::{LeftOut, Plan};
use doorbell_results::record::Subject;
use doorbell_subjects::mechanism::{self, Contexts, Host, Waits};
use std::time::Duration;

/// The operation that is the limit of spinning.
pub const LIMIT: &str = "cache-line";

/// How long the plan may take, set-up included; a quarter of the minute is left for primitive costs, the doctor and printing.
pub const BUDGET: Duration = Duration::from_secs(45);

/// What a trial costs beside its window: two `exec`s and `fork`s, three megabytes to map and clear, the reports.
const SETUP: Duration = Duration::from_millis(25);

/// The gaps and rounds before a window.
const WARMUP: Duration = Duration::from_millis(10);

/// Blocks at the least: with nine of them a difference of two and a half times what trials of one thing spread by is found among all
/// pairs of thirty mechanisms (`doorbell study --noise`), with six it takes four times.
pub const FEWEST_BLOCKS: u32 = 9;

/// And at the most.
const MOST_BLOCKS: u32 = 20;

/// A back-to-back trial at the most and at the least: where there are many placements, its window makes room for the blocks.
const WINDOW: std::ops::RangeInclusive<Duration> = Duration::from_millis(3)..=Duration::from_millis(30);

/// The gaps the survey shows: a waiter hardly asleep, asleep, and long asleep.
const GAPS: [Duration; 4] = [
    Duration::from_micros(10),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(10),
];

/// The mechanisms whose dependence on the gap is shown: one without and one with a descriptor.
const GAP_SUBJECTS: [&str; 2] = ["futex", "eventfd-epoll"];

/// The mechanisms run unpinned, to show what the scheduler makes of them.
const UNPINNED_SUBJECTS: [&str; 2] = ["futex", "pipe"];

/// The survey's plan for the placements this machine has, nearest first, with as many blocks as the budget allows.
pub fn plan(placements: &[Placement], seed: u64) -> Plan {
    let mut configurations = Vec::new();
    let across: Vec<&Placement> = placements.iter().filter(|placement| !one_core(placement)).collect();
    let mut left_out = Vec::new();
    for entry in mechanism::usual() {
        if let Err(lack) = entry.available(&Host::default()) {
            let subject = Subject::Mechanism(entry.notification());
            left_out.push(LeftOut { name: entry.name().to_owned(), subject, reason: Some(lack.reason) });
            continue;
        }
        let contexts = if entry.notification().joins(Contexts::Processes) {
            Contexts::Processes
        } else {
            Contexts::Threads
        };
        for placement in placements {
            if entry.notification().waits != Waits::Spins || !one_core(placement) {
                configurations.push(Configuration {
                    contexts,
                    ..configuration(entry.name(), Pattern::PingPong { gap_ns: 0 }, placement, *WINDOW.end())
                });
            }
        }
    }
    // The nearest pair of different CPUs shows how a wake depends on the length of the sleep.
    if let Some(nearest) = across.first() {
        for subject in GAP_SUBJECTS {
            for gap in GAPS {
                let gap_ns = gap.as_nanos() as u64;
                let window = Duration::from_millis(60).max(gap * 12);
                configurations.push(configuration(subject, Pattern::OneWay { gap_ns }, nearest, window));
            }
        }
        // An awake waiter costs its notifier less than a sleeping one.
        let gap_ns = GAPS[0].as_nanos() as u64;
        let awake = configuration("futex", Pattern::OneWay { gap_ns }, nearest, Duration::from_millis(60));
        configurations.push(Configuration { wait: WaitPolicy::Spin, ..awake });
    }
    // What spinning could reach at best, beside what it reached.
    if let Some(nearest) = across.first() {
        configurations.push(configuration(
            LIMIT,
            Pattern::Operation { batch: 1000 },
            nearest,
            Duration::from_millis(30),
        ));
    }
    let unpinned = Placement { relation: "unpinned".to_owned(), cpus: None };
    for subject in UNPINNED_SUBJECTS {
        configurations.push(configuration(
            subject,
            Pattern::PingPong { gap_ns: 0 },
            &unpinned,
            Duration::from_millis(100),
        ));
    }
    let mut known: Vec<Configuration> = configurations
        .into_iter()
        .filter(|configuration| {
            configuration.subject == LIMIT || mechanism::find(&configuration.subject).is_ok()
        })
        .collect();
    make_room(&mut known);
    let once: Duration = known.iter().map(|configuration| SETUP + window(configuration)).sum();
    let affordable = u32::try_from(BUDGET.as_nanos() / once.as_nanos().max(1)).unwrap_or(u32::MAX);
    let blocks = affordable.clamp(FEWEST_BLOCKS, MOST_BLOCKS);
    Plan { left_out, ..Plan::new("survey", known, blocks, seed) }
}

/// Shortens what is ranked until a block takes its share of the budget.
fn make_room(configurations: &mut [Configuration]) {
    let is_ranked = |configuration: &Configuration| {
        configuration.pattern == Pattern::PingPong { gap_ns: 0 } && configuration.placement.cpus.is_some()
    };
    let rest: Duration = configurations
        .iter()
        .filter(|configuration| !is_ranked(configuration))
        .map(|configuration| SETUP + window(configuration))
        .sum();
    let ranked = configurations.iter_mut().filter(|configuration| is_ranked(configuration));
    let ranked: Vec<&mut Configuration> = ranked.collect();
    let count = u32::try_from(ranked.len()).unwrap_or(u32::MAX).max(1);
    let each = (BUDGET / FEWEST_BLOCKS).saturating_sub(rest) / count;
    let window = each.saturating_sub(SETUP + WARMUP).clamp(*WINDOW.start(), *WINDOW.end());
    ranked.into_iter().for_each(|configuration| configuration.until = Until::time(window));
}

fn configuration(subject: &str, pattern: Pattern, placement: &Placement, window: Duration) -> Configuration {
    Configuration {
        timing: if matches!(pattern, Pattern::OneWay { .. }) { Timing::Stamp } else { Timing::Around },
        placement: placement.clone(),
        ..Configuration::new(subject, pattern, Until::time(window))
    }
}

fn one_core(placement: &Placement) -> bool {
    placement.cpus.is_some_and(|[a, b]| a == b)
}

/// The window and the gaps of the warm-up.
fn window(configuration: &Configuration) -> Duration {
    Duration::from_nanos(configuration.until.time_ns.unwrap_or_default()) + WARMUP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_cpus() -> Vec<Placement> {
        vec![
            Placement { relation: "same-core".to_owned(), cpus: Some([0, 0]) },
            Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
        ]
    }

    /// With three placements it had too few blocks for any verdict.
    #[test]
    fn machines_with_two_and_three_placements_get_blocks_enough_for_verdicts_in_a_minute() {
        let mut placements = two_cpus();
        for three in [false, true] {
            if three {
                placements.push(Placement { relation: "smt-sibling".to_owned(), cpus: Some([0, 4]) });
            }
            let plan = plan(&placements, 1);
            let once: Duration =
                plan.configurations.iter().map(|configuration| SETUP + window(configuration)).sum();
            let whole = once * plan.blocks;
            assert!(plan.blocks >= FEWEST_BLOCKS && whole <= BUDGET, "{} blocks take {whole:?}", plan.blocks);
        }
    }

    #[test]
    fn the_harness_is_always_in_it() {
        assert!(
            plan(&two_cpus(), 1).configurations.iter().any(|configuration| configuration.subject == "null")
        );
    }

    #[test]
    fn a_machine_with_one_cpu_still_has_a_plan() {
        let plan = plan(&two_cpus()[..1], 1);
        assert!(plan.configurations.iter().all(|configuration| configuration.placement.cpus != Some([0, 1])));
        assert!(plan.configurations.iter().any(|configuration| configuration.subject == "futex"));
    }
}
