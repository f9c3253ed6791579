// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pick` as a plan: every mechanism that serves the needs, in the pattern asked for.

use std::time::Duration;

use super::fanout::FanOut;
use super::ping::Ping;
use doorbell_results::configuration::{Pattern, Placement, Scheduler, WaitPolicy};
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::nearest::Unknown;
use doorbell_results::plan::{LeftOut, Plan};
use doorbell_results::record::Subject;
use doorbell_results::record::need::{contexts, lacks};
use doorbell_results::record::question::{self, Question, Shape};
use doorbell_subjects::fan;
use doorbell_subjects::mechanism;

#[derive(Debug, Clone)]
pub struct Pick {
    pub question: question::Pick,
    /// Receivers, of one to many.
    pub receivers: u32,
    /// Where the sides run, of one to one and many to one.
    pub placement: Placement,
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
            let own = fan::all().iter().filter(|entry| !entry.shared());
            own.map(|entry| (entry.name(), entry.subject())).collect()
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
            _ if gap_ns == 0 => Pattern::PingPong { gap_ns },
            _ => Pattern::OneWay { gap_ns },
        }
    }

    /// The plan: what serves the needs, and the harness itself. What is not here is skipped when its turn comes, so that the result
    /// says why. No configurations but the harness's if nothing serves.
    pub fn plan(&self) -> Result<Plan, Unknown> {
        let mut mechanisms = Vec::new();
        let mut left_out = Vec::new();
        for (name, subject) in entrants(self.question.shape) {
            let lacks =
                subject.notification().map_or_else(|| Ok(Vec::new()), |own| lacks(&self.question, own))?;
            if lacks.is_empty() {
                mechanisms.push(name.to_owned());
            } else {
                left_out.push(LeftOut { name: name.to_owned(), subject, reason: None });
            }
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
                placements: vec![self.placement.clone()],
                one_cpu: false,
                patterns: vec![self.pattern()],
                timing: None,
                waits: vec![WaitPolicy::Block],
                sizes: vec![0],
                until: None,
                scheduler: Scheduler::Other,
                injected_slowdown_ppm: None,
                without_reference: vec![false],
                blocks: self.blocks,
                seed: self.seed,
            };
            ping.plan()
        };
        Ok(Plan {
            experiment: "pick".to_owned(),

            question: Some(Question::Pick(self.question.clone())),
            left_out,
            ..plan
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::need::{NEEDS, need};
    use doorbell_results::record::question::By;
    use doorbell_subjects::mechanism::Contexts;

    fn pick(shape: Shape, needs: &[&str]) -> Plan {
        let needs = needs.iter().map(|name| (*name).to_owned()).collect();
        let pick = Pick {
            question: question::Pick { shape, needs, by: By::P50, gap_ns: 0, relation: None },
            receivers: 20,
            placement: Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
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
        };
        let placement = Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) };
        let error = Pick { question, receivers: 20, placement, blocks: None, seed: 1 }.plan().unwrap_err();
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
}
