// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the system scheduled the program that measured, and what it inherited: its sides inherit it
//! too, unless their plan asks for more.

use serde::{Deserialize, Serialize};

/// Timer slack that Linux gives a program unless told otherwise, nanoseconds (kernel
/// init/init_task.c).
pub const TIMER_SLACK_NS: u64 = 50_000;

/// As it was once the run had set what every plan starts from: `other`, nice 0, a timer slack of 50
/// µs. What it may not set stays, and is here as it was.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Scheduling {
    /// `other`, `fifo`, `rr`, `batch`, `idle`, `deadline`, `ext`, or the number of another.
    pub policy: Option<String>,
    /// Real-time priority; 0 where the policy has none.
    pub priority: Option<u32>,
    /// Nice value.
    pub nice: Option<i32>,
    /// How late a timer may be, nanoseconds.
    pub timer_slack_ns: Option<u64>,
    /// Nice value of the session's group, where tasks are grouped by session.
    pub autogroup_nice: Option<i32>,
    /// On which nodes memory is taken: `default`, `bind:0`, `interleave:0-1`, …
    pub memory_policy: Option<String>,
    /// Filters that every system call passes (seccomp).
    pub call_filters: Option<u32>,
}

impl Scheduling {
    /// What is not as every plan starts from, in words: `nice 19`, `timer slack 1 ms`, …
    pub fn otherwise(&self) -> Vec<String> {
        let usual = Self {
            policy: Some("other".to_owned()),
            priority: Some(0),
            nice: Some(0),
            timer_slack_ns: Some(TIMER_SLACK_NS),
            autogroup_nice: Some(0),
            memory_policy: Some("default".to_owned()),
            call_filters: None,
        };
        self.unlike(&usual).into_iter().map(|[own, _]| own).collect()
    }

    /// In what the two are known to differ, in words, first of `self` and then of `other`.
    pub fn unlike(&self, other: &Self) -> Vec<[String; 2]> {
        // Taken apart, so that what is added cannot be forgotten here.
        let said = |scheduling: &Self| {
            let Self { policy, priority, nice, timer_slack_ns, autogroup_nice, memory_policy, call_filters } =
                scheduling;
            [
                policy.as_ref().map(|policy| format!("policy {policy}")),
                priority.map(|priority| format!("real-time priority {priority}")),
                nice.map(|nice| format!("nice {nice}")),
                timer_slack_ns.map(|ns| format!("timer slack {}", crate::written::time_ns(ns as f64))),
                autogroup_nice.map(|nice| format!("session group nice {nice}")),
                memory_policy.as_ref().map(|policy| format!("memory policy {policy}")),
                call_filters.map(|filters| format!("{filters} filters of system calls")),
            ]
        };
        let both = said(self).into_iter().zip(said(other));
        both.filter_map(|(own, other)| Some([own?, other?])).filter(|[own, other]| own != other).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_of_either_is_no_difference() {
        let niced = Scheduling { nice: Some(19), policy: Some("other".to_owned()), ..Scheduling::default() };
        assert_eq!(niced.otherwise(), ["nice 19"]);
        assert_eq!(niced.unlike(&Scheduling::default()), [[""; 2]; 0]);
        let plain = Scheduling { nice: Some(0), timer_slack_ns: Some(1), ..Scheduling::default() };
        assert_eq!(niced.unlike(&plain), [["nice 19", "nice 0"]]);
    }
}
