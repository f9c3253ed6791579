// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell pick` as a plan: every mechanism that serves the needs, in the pattern asked for.

use std::time::Duration;

use super::fanout::FanOut;
use super::ping::Ping;
use super::plan::Plan;
use crate::mechanism::fan::{self, FanEntry};
use crate::mechanism::need::{Need, need};
use crate::mechanism::{self, Contexts, Entry};
use crate::trial::cell::{Pattern, Placement, Scheduler, WaitPolicy};
use crate::trial::fanout::pinning::Pinning;

/// Who notifies whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One notifier, one waiter.
    OneToOne,
    /// One notifier, many waiters, each of whom is to wake.
    OneToMany,
    /// Many notifiers, one waiter. What is measured is one of them: how they get in each other's way is not.
    ManyToOne,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Pick {
    /// Who notifies whom.
    pub shape: Shape,
    /// What is needed.
    pub needs: Vec<&'static Need>,
    /// Time between notifications; none for back to back, there and back.
    pub gap: Duration,
    /// Receivers, of one to many.
    pub receivers: u32,
    /// Where the sides run, of one to one and many to one.
    pub placement: Placement,
    /// Repetitions, if not the usual number.
    pub blocks: Option<u32>,
    /// Seed of the orders.
    pub seed: u64,
}

/// The experiment's name.
pub const PICK: &str = "pick";

/// Blocks of a fan-out unless told otherwise, and its rounds, some of which each block has.
const FANOUT_BLOCKS: u32 = 6;
const FANOUT_ROUNDS: u32 = 20;
const FANOUT_INTERVAL: Duration = Duration::from_millis(20);

/// What each mechanism lacks of `needs` in `shape`, in the order of the lists; nothing where it serves them all.
pub fn lacks(shape: Shape, needs: &[&'static Need]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut needs = needs.to_vec();
    if shape == Shape::ManyToOne {
        needs.extend(need("several"));
    }
    let lack = |entry: &dyn Entry| -> Vec<&'static str> {
        needs.iter().filter(|need| !(need.served)(entry)).map(|need| need.lack).collect()
    };
    match shape {
        Shape::OneToOne | Shape::ManyToOne => {
            let entries = mechanism::all().iter().filter(|entry| entry.name() != "null");
            entries.map(|entry| (entry.name(), lack(*entry))).collect()
        }
        Shape::OneToMany => {
            let entries = fan::all().iter().filter(|entry| entry.name() != "null" && !entry.shared());
            entries.filter_map(|entry| Some((entry.name(), lack(facts(*entry)?)))).collect()
        }
    }
}

/// The mechanism whose facts a way of fanning out has: that of its name, or that which its name begins with.
fn facts(entry: &dyn FanEntry) -> Option<&'static dyn Entry> {
    let begins = |known: &&&'static dyn Entry| entry.name().starts_with(known.name());
    mechanism::find(entry.name())
        .ok()
        .or_else(|| mechanism::all().iter().filter(begins).max_by_key(|known| known.name().len()).copied())
}

impl Pick {
    /// Processes, unless only threads are asked for.
    pub fn contexts(&self) -> Contexts {
        let needed = |name: &str| self.needs.iter().any(|need| need.name == name);
        if needed("thread") && !needed("process") { Contexts::Threads } else { Contexts::Processes }
    }

    /// What one cell of the plan is like: how its notifications follow each other.
    pub fn pattern(&self) -> Pattern {
        let gap_ns = u64::try_from(self.gap.as_nanos()).unwrap_or(u64::MAX);
        match self.shape {
            Shape::OneToMany => Pattern::FanOut {
                receivers: self.receivers,
                interval_ns: u64::try_from(FANOUT_INTERVAL.as_nanos()).unwrap_or(u64::MAX),
            },
            _ if gap_ns == 0 => Pattern::PingPong { gap_ns },
            _ => Pattern::OneWay { gap_ns },
        }
    }

    /// The plan: what serves the needs, and the harness itself. What is not here is skipped when its turn comes, so that the result
    /// says why. No cells but the harness's if nothing serves.
    pub fn plan(&self) -> Plan {
        let served = lacks(self.shape, &self.needs).into_iter().filter(|(_, lacks)| lacks.is_empty());
        let mut mechanisms: Vec<String> = served.map(|(name, _)| name.to_owned()).collect();
        let plan = if self.shape == Shape::OneToMany {
            mechanisms.push("null".to_owned());
            let fanout = FanOut {
                mechanisms,
                contexts: vec![self.contexts()],
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
                contexts: vec![self.contexts()],
                placements: vec![self.placement.clone()],
                one_cpu: false,
                patterns: vec![self.pattern()],
                timing: None,
                waits: vec![WaitPolicy::Block],
                sizes: vec![0],
                until: None,
                scheduler: Scheduler::Other,
                injected_slowdown_ppm: None,
                without_yardstick: vec![false],
                blocks: self.blocks,
                seed: self.seed,
            };
            ping.plan()
        };
        Plan { experiment: PICK.to_owned(), ..plan }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(shape: Shape, needs: &[&str]) -> Pick {
        Pick {
            shape,
            needs: needs.iter().map(|name| need(name).unwrap()).collect(),
            gap: Duration::ZERO,
            receivers: 20,
            placement: Placement { relation: "same-l3".to_owned(), cpus: Some([0, 1]) },
            blocks: None,
            seed: 1,
        }
    }

    fn subjects(pick: &Pick) -> Vec<String> {
        pick.plan().cells.into_iter().map(|cell| cell.subject).collect()
    }

    #[test]
    fn only_what_serves_every_need_is_measured_and_the_harness_is_always_in_it() {
        let epoll = subjects(&pick(Shape::OneToOne, &["epoll", "process", "payload"]));
        assert!(
            epoll.contains(&"pipe".to_owned()) && !epoll.contains(&"eventfd-epoll".to_owned()),
            "{epoll:?}"
        );
        assert_eq!(epoll.last().map(String::as_str), Some("null"));
        let many = subjects(&pick(Shape::ManyToOne, &["sleep"]));
        assert!(many.contains(&"sem-posix".to_owned()) && !many.contains(&"futex".to_owned()), "{many:?}");
        let fan = subjects(&pick(Shape::OneToMany, &["process"]));
        assert!(
            fan.contains(&"futex".to_owned()) && !fan.contains(&"sem-posix-for-all".to_owned()),
            "{fan:?}"
        );
    }

    /// What is not here was left out, and the result could not say why.
    #[test]
    fn what_this_machine_lacks_is_planned_so_that_the_result_says_so() {
        let all = subjects(&pick(Shape::OneToOne, &[]));
        assert!(all.contains(&"umwait".to_owned()) && all.contains(&"mwaitx".to_owned()), "{all:?}");
    }

    #[test]
    fn threads_are_measured_where_only_threads_are_asked_for() {
        let threads = pick(Shape::OneToOne, &["thread"]).plan();
        assert!(threads.cells.iter().all(|cell| cell.contexts == Contexts::Threads));
        assert_eq!(pick(Shape::OneToOne, &["thread", "process"]).contexts(), Contexts::Processes);
    }

    #[test]
    fn what_lacks_something_says_what() {
        let lacks = lacks(Shape::OneToOne, &[need("epoll").unwrap(), need("payload").unwrap()]);
        let of = |name: &str| lacks.iter().find(|(known, _)| *known == name).unwrap().1.clone();
        assert_eq!(of("futex"), ["no descriptor", "carries no message"]);
        assert_eq!(of("unix-stream"), [""; 0]);
    }
}
