// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell fanout` as a plan: the product of mechanisms, numbers of
//! receivers, waiting policies and pinnings.

use std::time::Duration;

use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::plan::Plan;
use doorbell_subjects::fan;
use doorbell_subjects::mechanism::Contexts;

/// What is asked for; every list is one axis of the plan.
#[derive(Debug, Clone)]
pub struct FanOut {
    /// Ways of fanning out, by name.
    pub mechanisms: Vec<String>,
    pub contexts: Vec<Contexts>,
    pub receivers: Vec<u32>,
    pub waits: Vec<WaitPolicy>,
    /// How all are spread over the CPUs.
    pub pinnings: Vec<Pinning>,
    /// Bytes of message written before each round and read by each receiver.
    pub size: u32,
    /// From the start of one round to the start of the next.
    pub interval: Duration,
    /// Recorded rounds of a trial.
    pub rounds: u32,
    pub blocks: u32,
    pub seed: u64,
}

impl FanOut {
    /// The plan: every configuration that makes sense.
    pub fn plan(&self) -> Plan {
        let mut configurations = Vec::new();
        for subject in &self.mechanisms {
            let Ok(entry) = fan::find(subject) else { continue };
            for &contexts in self.contexts.iter().filter(|contexts| entry.notification.joins(**contexts)) {
                for &receivers in &self.receivers {
                    for &wait in &self.waits {
                        for &pinning in &self.pinnings {
                            let configuration =
                                self.configuration(subject, contexts, receivers, wait, pinning);
                            if !configurations.contains(&configuration) {
                                configurations.push(configuration);
                            }
                        }
                    }
                }
            }
        }
        Plan::new("fanout", configurations, self.blocks, self.seed)
    }

    fn configuration(
        &self,
        subject: &str,
        contexts: Contexts,
        receivers: u32,
        wait: WaitPolicy,
        pinning: Pinning,
    ) -> Configuration {
        Configuration {
            contexts,
            timing: Timing::Stamp,
            wait,
            placement: Placement { relation: pinning.name().to_owned(), cpus: None },
            size: self.size,
            ..Configuration::new(
                subject,
                Pattern::FanOut {
                    receivers,
                    interval_ns: u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX),
                },
                Until::count(self.rounds.into()),
            )
        }
    }
}

/// How long a plan of fan-outs takes: its rounds with two of warm-up, and starting and ending the
/// receivers, of whom a machine of two CPUs manages some thousand a second.
pub fn takes(plan: &Plan) -> Duration {
    const ROUNDS_OF_WARMUP: u64 = 2;
    const RECEIVER: Duration = Duration::from_millis(1);
    const TRIAL: Duration = Duration::from_millis(100);
    let configuration = |configuration: &Configuration| {
        let Pattern::FanOut { receivers, interval_ns } = configuration.pattern else { return Duration::ZERO };
        let rounds = configuration.until.count.unwrap_or(1).saturating_add(ROUNDS_OF_WARMUP);
        TRIAL + RECEIVER * receivers + Duration::from_nanos(interval_ns.saturating_mul(rounds))
    };
    plan.configurations.iter().map(configuration).sum::<Duration>() * plan.blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fanout() -> FanOut {
        FanOut {
            mechanisms: fan::all().iter().map(|entry| entry.name.to_owned()).collect(),
            contexts: vec![Contexts::Processes],
            receivers: vec![20, 200, 2000],
            waits: vec![WaitPolicy::Block, WaitPolicy::Timeout { timeout_ns: 100_000_000 }],
            pinnings: vec![Pinning::Unpinned, Pinning::Scatter],
            size: 0,
            interval: Duration::from_secs(1),
            rounds: 20,
            blocks: 1,
            seed: 1,
        }
    }

    #[test]
    fn the_plan_is_the_product_of_its_axes_and_no_configuration_is_twice_in_it() {
        let plan = fanout().plan();
        assert_eq!(plan.configurations.len(), fan::all().len() * 3 * 2 * 2);
        let distinct: std::collections::HashSet<&Configuration> = plan.configurations.iter().collect();
        assert_eq!(distinct.len(), plan.configurations.len());
    }

    #[test]
    fn what_a_plan_takes_is_at_least_its_rounds() {
        let plan = fanout().plan();
        assert!(takes(&plan) > Duration::from_secs(22) * plan.configurations.len() as u32);
    }
}
