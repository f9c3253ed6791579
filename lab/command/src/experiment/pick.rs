// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pick` as a plan: every mechanism that serves the needs, in the pattern asked for.

use std::time::Duration;

use super::fanout::FanOut;
use super::ping::{Ping, makes_sense};
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::nearest::Unknown;
use doorbell_results::plan::{FEWEST_BLOCKS, LeftOut, Plan};
use doorbell_results::record::Subject;
use doorbell_results::record::need::{contexts, lacks};
use doorbell_results::record::question::{self, Question, Shape, Traffic};
use doorbell_subjects::fan;
use doorbell_subjects::mechanism;
use doorbell_subjects::mechanism::Waits;

#[derive(Debug, Clone)]
pub struct Pick {
    pub question: question::Pick,
    /// Receivers, of one to many.
    pub receivers: u32,
    /// Where the sides run, of one to one and many to one; more than
    /// one where the placement is to be chosen too.
    pub placements: Vec<Placement>,
    /// Repetitions, if not the usual number.
    pub blocks: Option<u32>,
    pub seed: u64,
}

/// Blocks of a fan-out unless told otherwise, and its rounds, some of which each block has.
const FANOUT_BLOCKS: u32 = 6;
const FANOUT_ROUNDS: u32 = 20;
const FANOUT_INTERVAL: Duration = Duration::from_millis(20);

/// Everything that notifies in `shape`, in the order of the lists.
fn entrants(shape: Shape) -> Vec<(&'static str, Subject)> {
    let entrants: Vec<_> = match shape {
        Shape::OneToOne | Shape::ManyToOne => {
            mechanism::usual().map(|entry| (entry.name(), Subject::Mechanism(entry.notification()))).collect()
        }
        Shape::OneToMany => {
            let own = fan::all().iter().filter(|entry| !entry.shared);
            own.map(|entry| (entry.name, entry.subject())).collect()
        }
    };
    entrants.into_iter().filter(|(_, subject)| !subject.is_harness()).collect()
}

impl Pick {
    /// What one configuration of the plan is like: how its notifications follow each other.
    pub fn pattern(&self) -> Pattern {
        let gap_ns = self.question.gap_ns;
        match self.question.shape {
            Shape::OneToMany => Pattern::FanOut {
                receivers: self.receivers,
                interval_ns: u64::try_from(FANOUT_INTERVAL.as_nanos()).unwrap_or(u64::MAX),
            },
            _ if self.question.traffic.is_some() => Pattern::OpenLoop { gap_ns },
            _ if gap_ns == 0 => Pattern::PingPong { gap_ns },
            _ => Pattern::OneWay { gap_ns },
        }
    }

    /// The plan: what serves the needs, and the harness itself. What is
    /// not here is skipped when its turn comes, so that the result says
    /// why. No configurations but the harness's if nothing serves.
    pub fn plan(&self) -> Result<Plan, Unknown> {
        let mut mechanisms = Vec::new();
        let mut left_out = Vec::new();
        for (name, subject) in entrants(self.question.shape) {
            let lacks =
                subject.notification().map_or_else(|| Ok(Vec::new()), |own| lacks(&self.question, own))?;
            let in_a_set = self.question.traffic.as_ref().is_some_and(|traffic| traffic.beside.is_some());
            if lacks.is_empty() && in_a_set && !mechanism::find(name).is_ok_and(|entry| entry.in_a_set()) {
                let reason = Some("sleeps in a set or call of its own, not in one with others".to_owned());
                left_out.push(LeftOut { name: name.to_owned(), subject, reason });
            } else if lacks.is_empty() {
                mechanisms.push(name.to_owned());
            } else {
                left_out.push(LeftOut { name: name.to_owned(), subject, reason: None });
            }
        }
        if let Some(traffic) = &self.question.traffic {
            return Ok(self.under(traffic, &mechanisms, left_out));
        }
        let contexts = contexts(&self.question);
        let plan = if self.question.shape == Shape::OneToMany {
            mechanisms.push("null".to_owned());
            let fanout = FanOut {
                mechanisms,
                contexts: vec![contexts],
                receivers: vec![self.receivers],
                waits: vec![WaitPolicy::Block],
                pinnings: vec![Pinning::Unpinned],
                size: 0,
                interval: FANOUT_INTERVAL,
                rounds: FANOUT_ROUNDS,
                blocks: self.blocks.unwrap_or(FANOUT_BLOCKS),
                seed: self.seed,
            };
            fanout.plan()
        } else {
            mechanisms.push("null".to_owned());
            let ping = Ping {
                mechanisms,
                contexts: vec![contexts],
                placements: self.placements.clone(),
                patterns: vec![self.pattern()],
                blocks: self.blocks,
                seed: self.seed,
                ..Ping::default()
            };
            ping.plan()
        };
        // A fan-out's rounds are what takes its time, and a number that was asked for is one.
        let open_ended = self.blocks.is_none() && self.question.shape != Shape::OneToMany;
        let plan = if open_ended { plan.until_decided(2) } else { plan };
        Ok(Plan {
            experiment: "pick".to_owned(),

            question: Some(Question::Pick(self.question.clone())),
            left_out,
            ..plan
        })
    }
}

/// What a run under traffic takes together, what a trial costs beside
/// its window, and the shortest and longest window.
const RUN: Duration = Duration::from_secs(45);
const SETUP: Duration = Duration::from_millis(35);
const WINDOW: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(250)];

/// Fewest wake-ups that a trial is given time for, as long as that is no more than [`LONGEST`].
const WAKES: u32 = 20;
const LONGEST: Duration = Duration::from_secs(1);

/// Blocks of a run under traffic: the fewest that are judged, and one for interference.
const BLOCKS: u32 = FEWEST_BLOCKS + 1;

/// How long a waiter looks before it sleeps, in the order in which
/// they are given up where there is no time for all.
const SPINS_NS: [u64; 3] = [20_000, 50_000, 5_000];

impl Pick {
    /// Each means with each wait at each placement, for wake-ups that come as `traffic` says.
    fn under(&self, traffic: &Traffic, mechanisms: &[String], left_out: Vec<LeftOut>) -> Plan {
        let gap = Duration::from_nanos(self.question.gap_ns);
        let mut blocks = self.blocks.unwrap_or(BLOCKS);
        let of = |spins: &[u64]| {
            let spins = spins.iter().map(|spin_ns| WaitPolicy::SpinThenBlock { spin_ns: *spin_ns });
            let waits: Vec<WaitPolicy> =
                [WaitPolicy::Block, WaitPolicy::Spin].into_iter().chain(spins).collect();
            let mut configurations = Vec::new();
            for subject in mechanisms {
                let blocks =
                    mechanism::find(subject).is_ok_and(|entry| entry.notification().waits == Waits::Blocks);
                for placement in &self.placements {
                    for wait in &waits {
                        let one_core = placement.cpus.is_none_or(|[a, b]| a == b);
                        if *wait != WaitPolicy::Block && (one_core || !blocks) {
                            continue;
                        }
                        configurations.push(self.way(traffic, subject, placement, *wait));
                    }
                }
            }
            configurations.retain(|configuration| makes_sense(configuration, false));
            configurations
        };
        let least = |configurations: &[Configuration], blocks: u32| {
            (SETUP + WINDOW[0]) * blocks * u32::try_from(configurations.len()).unwrap_or(u32::MAX)
        };
        let mut spins = &SPINS_NS[..];
        while least(&of(spins), blocks) > RUN && !spins.is_empty() {
            spins = &spins[..spins.len() - 1];
        }
        if least(&of(spins), blocks) > RUN && self.blocks.is_none() {
            blocks = FEWEST_BLOCKS;
        }
        let mut configurations = of(spins);
        let trials = blocks.max(1) * u32::try_from(configurations.len().max(1)).unwrap_or(u32::MAX);
        let window = (RUN / trials).saturating_sub(SETUP).clamp(WINDOW[0], WINDOW[1]);
        let window = window.max((gap * WAKES).min(LONGEST));
        for configuration in &mut configurations {
            configuration.until = Until::time(window);
        }
        Plan {
            question: Some(Question::Pick(self.question.clone())),
            left_out,
            ..Plan::new("pick", configurations, blocks, self.seed)
        }
    }

    fn way(
        &self,
        traffic: &Traffic,
        subject: &str,
        placement: &Placement,
        wait: WaitPolicy,
    ) -> Configuration {
        Configuration {
            contexts: contexts(&self.question),
            timing: Timing::Stamp,
            wait,
            placement: placement.clone(),
            schedule: Some(traffic.schedule.clone()),
            beside: traffic.beside,
            ..Configuration::new(subject, self.pattern(), Until::time(WINDOW[0]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::need::{NEEDS, need};
    use doorbell_results::record::question::By;
    use doorbell_results::schedule::Schedule;
    use doorbell_subjects::mechanism::Contexts;

    fn pick(shape: Shape, needs: &[&str]) -> Plan {
        let needs = needs.iter().map(|name| (*name).to_owned()).collect();
        let pick = Pick {
            question: question::Pick { shape, needs, by: By::P50, gap_ns: 0, relation: None, traffic: None },
            receivers: 20,
            placements: vec![Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) }],
            blocks: None,
            seed: 1,
        };
        pick.plan().unwrap()
    }

    fn subjects(plan: &Plan) -> Vec<&str> {
        plan.configurations.iter().map(|configuration| configuration.subject.as_str()).collect()
    }

    #[test]
    fn only_what_serves_every_need_is_measured_and_the_harness_is_always_in_it() {
        let plan = pick(Shape::OneToOne, &["epoll", "process", "payload"]);
        let epoll = subjects(&plan);
        assert!(epoll.contains(&"pipe") && !epoll.contains(&"eventfd-epoll"), "{epoll:?}");
        assert_eq!(epoll.last(), Some(&"null"));
        let plan = pick(Shape::ManyToOne, &["sleep"]);
        let many = subjects(&plan);
        assert!(many.contains(&"sem-posix") && !many.contains(&"futex"), "{many:?}");
        let plan = pick(Shape::OneToMany, &["process"]);
        let fan = subjects(&plan);
        assert!(fan.contains(&"futex") && !fan.contains(&"sem-posix-for-all"), "{fan:?}");
    }

    /// What is not here was left out, and the result could not say why.
    #[test]
    fn what_this_machine_lacks_is_planned_so_that_the_result_says_so() {
        let plan = pick(Shape::OneToOne, &[]);
        let all = subjects(&plan);
        assert!(all.contains(&"umwait") && all.contains(&"mwaitx"), "{all:?}");
        assert!(plan.left_out.is_empty());
    }

    #[test]
    fn threads_are_measured_where_only_threads_are_asked_for() {
        let of = |needs: &[&str]| pick(Shape::OneToOne, needs).configurations[0].contexts;
        assert_eq!(of(&["thread"]), Contexts::Threads);
        assert_eq!(of(&["thread", "process"]), Contexts::Processes);
    }

    #[test]
    fn what_is_left_out_is_stored_with_what_it_is() {
        let plan = pick(Shape::OneToOne, &["epoll", "payload"]);
        let futex = plan.left_out.iter().find(|left| left.name == "futex").unwrap();
        assert!(!futex.subject.notification().unwrap().descriptor && futex.reason.is_none());
        assert!(plan.left_out.iter().all(|left| left.name != "unix-stream"));
    }

    #[test]
    fn a_need_that_none_has_the_name_of_is_an_error_that_names_it() {
        let question = question::Pick {
            shape: Shape::OneToOne,
            needs: vec!["epol".to_owned()],
            by: By::P50,
            gap_ns: 0,
            relation: None,
            traffic: None,
        };
        let placement = Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) };
        let error = Pick { question, receivers: 20, placements: vec![placement], blocks: None, seed: 1 }
            .plan()
            .unwrap_err();
        assert_eq!(error.nearest, Some("epoll"), "{error}");
    }

    fn serve(name: &str) -> Vec<&'static str> {
        let need = need(name).unwrap();
        let own = mechanism::usual().filter(|entry| (need.served)(&entry.notification()));
        own.map(|entry| entry.name()).collect()
    }

    #[test]
    fn every_need_parts_the_mechanisms() {
        for need in &NEEDS {
            let served = serve(need.name).len();
            // Threads can use whatever processes can.
            let all = served == mechanism::usual().count();
            assert!(served > 0 && all == (need.name == "thread"), "{} is served by {served}", need.name);
        }
    }

    #[test]
    fn needs_are_served_by_what_is_known_to_serve_them() {
        assert!(serve("epoll").contains(&"eventfd-epoll") && !serve("epoll").contains(&"futex"));
        assert!(!serve("process").contains(&"futex-private"));
        assert!(serve("payload").contains(&"pipe") && !serve("payload").contains(&"eventfd"));
        assert!(!serve("timeout").contains(&"mq-sysv"));
        assert!(!serve("several").contains(&"futex") && serve("several").contains(&"sem-posix"));
        assert!(serve("sleep").contains(&"bell-adaptive"));
    }

    #[test]
    fn under_traffic_every_means_is_planned_with_every_wait_and_placement_and_all_within_a_minute() {
        let placements = [("same-core", [1, 1]), ("same-l2", [0, 1]), ("same-l3", [0, 2])];
        let placement =
            |(relation, cpus): (&str, _)| Placement { relation: relation.to_owned(), cpus: Some(cpus) };
        for (needs, beside) in [(vec!["epoll"], Some(2)), (vec![], None)] {
            let question = question::Pick {
                shape: Shape::OneToOne,
                needs: needs.into_iter().map(str::to_owned).collect(),
                by: By::P50,
                gap_ns: 50_000,
                relation: None,
                traffic: Some(Traffic { schedule: Schedule::Exponential, beside, cpu_at_most: None }),
            };
            let placements = placements.map(placement).to_vec();
            let plan = Pick { question, receivers: 20, placements, blocks: None, seed: 1 }.plan().unwrap();
            let has = |subject: &str, relation: &str, wait| {
                plan.configurations.iter().any(|configuration| {
                    (configuration.subject.as_str(), configuration.placement.relation.as_str())
                        == (subject, relation)
                        && configuration.wait == wait
                })
            };
            assert!(
                has("eventfd", "same-core", WaitPolicy::Block) && has("eventfd", "same-l3", WaitPolicy::Spin)
            );
            assert!(has("pipe", "same-l2", WaitPolicy::Block) && !has("pipe", "same-core", WaitPolicy::Spin));
            assert_eq!(has("futex", "same-l3", WaitPolicy::Block), beside.is_none());
            assert!(!has("eventfd-epoll", "same-l3", WaitPolicy::Block) || beside.is_none());
            let trial = |configuration: &Configuration| {
                SETUP + Duration::from_nanos(configuration.until.time_ns.unwrap())
            };
            let whole: Duration = plan.configurations.iter().map(trial).sum::<Duration>() * plan.blocks;
            assert!(whole < Duration::from_secs(60), "{whole:?}, {} ways", plan.configurations.len());
        }
    }
}
