// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the system schedules this process, and what it inherited from whoever started it.

use super::root::{Root, field};
use doorbell_results::machine::scheduling::*;

/// Policies by number (kernel include/uapi/linux/sched.h); 4 was never given.
const POLICIES: [&str; 8] = ["other", "fifo", "rr", "batch", "", "idle", "deadline", "ext"];

/// What the policy with this number is called.
pub fn policy(number: i64) -> Option<&'static str> {
    let name = POLICIES.get(usize::try_from(number).ok()?)?;
    Some(*name).filter(|name| !name.is_empty())
}

pub fn read(root: &Root) -> Scheduling {
    let stat = root.text("proc/self/stat").unwrap_or_default();
    // The name of the program, in brackets, may hold anything; what follows is numbered from 3
    // (proc_pid_stat(5)).
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace().collect()).unwrap_or_default();
    let number = |place: usize| fields.get(place - 3).and_then(|word| word.parse::<i64>().ok());
    let status = root.text("proc/self/status").unwrap_or_default();
    let numa = root.text("proc/self/numa_maps").unwrap_or_default();
    let autogroup = root.text("proc/self/autogroup").unwrap_or_default();
    let grouped = root.value::<u32>("proc/sys/kernel/sched_autogroup_enabled") == Some(1);
    Scheduling {
        policy: number(41).map(|number| policy(number).map_or_else(|| number.to_string(), str::to_owned)),
        priority: number(40).and_then(|priority| u32::try_from(priority).ok()),
        nice: number(19).and_then(|nice| i32::try_from(nice).ok()),
        timer_slack_ns: root.value("proc/self/timerslack_ns"),
        autogroup_nice: autogroup
            .rsplit_once("nice ")
            .filter(|_| grouped)
            .and_then(|(_, nice)| nice.trim().parse().ok()),
        memory_policy: numa
            .lines()
            .next()
            .and_then(|line| line.split_ascii_whitespace().nth(1))
            .map(str::to_owned),
        call_filters: field(&status, "Seccomp_filters").and_then(|filters| filters.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    #[test]
    fn what_a_program_was_started_under_is_read_whatever_it_is_called() {
        let stat = "7 (a) R 1) R 1 7 7 0 -1 4194304 1 0 0 0 1 2 0 0 39 19 1 0 99 9 9 9 1 1 0 0 0 0 \
            0 0 0 0 0 0 17 1 10 5 0 0 0";
        let machine = Recorded::of(&[
            ("proc/self/stat", stat),
            ("proc/self/timerslack_ns", "50000\n"),
            ("proc/self/autogroup", "/autogroup-12 nice 5\n"),
            ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
            ("proc/self/numa_maps", "00400000 bind:1 file=/bin/x mapped=3 N1=3\n"),
            ("proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"),
        ]);
        assert_eq!(
            read(&machine.root()),
            Scheduling {
                policy: Some("idle".to_owned()),
                priority: Some(10),
                nice: Some(19),
                timer_slack_ns: Some(50_000),
                autogroup_nice: Some(5),
                memory_policy: Some("bind:1".to_owned()),
                call_filters: Some(1),
            }
        );
        assert_eq!(read(&Recorded::of(&[]).root()), Scheduling::default(), "where /proc is hidden");
    }
}
