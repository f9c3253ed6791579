// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell io --net` as a plan: ways to wait for a message over loopback, by interrupt, by
//! polling, and one layer up.

use crate::cli::ping::usual_window;
use crate::cli::usage::{Usage, refuse};
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Until, WaitPolicy};
use doorbell_results::nearest::{did_you_mean, nearest};
use doorbell_results::plan::Plan;
use doorbell_subjects::mechanism;

/// Time between events unless told otherwise: many times what any of
/// the ways takes, so that every event is waited for.
pub(super) const GAP: &str = "5ms";

/// The harness itself, and sockets that sleep or are polled.
const SOCKETS: [(&str, WaitPolicy); 7] = [
    ("null", WaitPolicy::Block),
    ("udp", WaitPolicy::Block),
    ("udp-busy-poll", WaitPolicy::Block),
    ("tcp", WaitPolicy::Block),
    ("tcp-busy-poll", WaitPolicy::Block),
    ("tcp-epoll-busy-poll", WaitPolicy::Block),
    // Looking by the program itself, where the kernel has no queue to look at.
    ("tcp", WaitPolicy::Spin),
];

#[derive(Debug, Clone)]
pub(super) struct Net {
    /// Ways, by name; empty for all.
    pub(super) ways: Vec<String>,
    /// Time between events, nanoseconds.
    pub(super) gaps_ns: Vec<u64>,
    /// Where server and client run.
    pub(super) placement: Placement,
    /// When a trial ends; none gives each trial what its gap needs.
    pub(super) until: Option<Until>,
    pub(super) blocks: u32,
    pub(super) seed: u64,
}

/// The protocols above sockets, by name.
fn above_sockets() -> impl Iterator<Item = &'static str> {
    mechanism::all().iter().filter(|entry| entry.above_sockets()).map(|entry| entry.name())
}

/// Every way there is, by name.
fn ways() -> Vec<&'static str> {
    let mut names: Vec<&str> = SOCKETS.iter().map(|(name, _)| *name).collect();
    names.dedup();
    names.pop();
    names.extend(above_sockets());
    names
}

/// The ways asked for, all if none is or the word `all` stands among them; an unknown one is
/// refused.
pub(super) fn known(asked: &[String]) -> Result<Vec<String>, Usage> {
    let known = ways();
    let all = asked.iter().any(|way| way == "all");
    match asked.iter().find(|way| *way != "all" && !known.contains(&way.as_str())) {
        Some(unknown) => refuse(format!(
            "no way to wait for a message is called '{unknown}'{} (with --net: {})",
            did_you_mean(nearest(unknown, known.iter().copied())),
            known.join(", ")
        )),
        None => Ok(if all { Vec::new() } else { asked.to_vec() }),
    }
}

impl Net {
    pub(super) fn plan(&self) -> Plan {
        let above = above_sockets().map(|name| (name, WaitPolicy::Block));
        let one_core = self.placement.cpus.is_some_and(|[first, second]| first == second);
        let mut configurations = Vec::new();
        for (name, wait) in SOCKETS.into_iter().chain(above) {
            let wanted = self.ways.is_empty() || name == "null" || self.ways.iter().any(|way| way == name);
            // A waiter that spins on the notifier's core measures the scheduler's time slice.
            if !wanted || (one_core && wait == WaitPolicy::Spin) {
                continue;
            }
            for &gap_ns in &self.gaps_ns {
                let pattern = Pattern::OneWay { gap_ns };
                configurations.push(Configuration {
                    timing: Timing::Stamp,
                    wait,
                    placement: self.placement.clone(),
                    ..Configuration::new(name, pattern, self.until.unwrap_or_else(|| usual_window(pattern)))
                });
            }
        }
        Plan::new("net", configurations, self.blocks, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_planned_once_and_none_spins_on_a_shared_core() {
        let net = |cpus| Net {
            ways: Vec::new(),
            gaps_ns: vec![1000],
            placement: Placement { relation: "x".to_owned(), cpus: Some(cpus) },
            until: None,
            blocks: 1,
            seed: 1,
        };
        let (apart, together) = (net([0, 1]).plan(), net([1, 1]).plan());
        assert_eq!(apart.configurations.len(), ways().len() + 1, "tcp sleeps and spins");
        assert_eq!(together.configurations.len(), ways().len());
        let few = Net { ways: vec!["websocket".to_owned()], ..net([0, 1]) }.plan();
        let names: Vec<&str> =
            few.configurations.iter().map(|configuration| configuration.subject.as_str()).collect();
        assert_eq!(names, ["null", "websocket"]);
    }
}
