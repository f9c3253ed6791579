// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations as a user runs them: each comes to its end, and its
//! counts say what it claims to have done.

use serde_json::Value;

use crate::stage::{figure, measured, ran};

fn records(words: &str) -> Vec<Value> {
    measured(&format!("switch --blocks 1 {words}")).records()
}

#[test]
fn every_usual_operation_comes_to_its_end_between_processes_and_between_threads() {
    let records = records("all --count 300 --placement same-core --working-set 0,4096");
    assert!(records.len() > 15, "{}", records.len());
    for record in &records {
        assert!(ran(record), "{}: {}", record["configuration"]["subject"], record["outcome"]);
        assert!(record["tally"]["sent"].as_u64() >= Some(300), "{}", record["configuration"]["subject"]);
    }
}

#[test]
fn a_round_on_one_core_is_two_switches_at_least_and_three_counts_agree() {
    let words = "switch-futex switch-pipe context1 timectxsw --count 500 --placement same-core";
    for record in &records(words) {
        let subject = &record["configuration"]["subject"];
        assert!(ran(record), "{subject}: {}", record["outcome"]);
        // The two sides can only alternate; a round is missing one at
        // most, where the window opened or closed.
        let per_round = figure(record, "switches per round").unwrap();
        assert!(per_round > 1.95, "{subject}: {per_round} switches a round on one core");
        let usage = figure(record, "check-getrusage").unwrap();
        for other in ["check-proc-status", "check-perf-event"] {
            if let Some(other) = figure(record, other) {
                assert!((usage - other).abs() <= 16.0, "{subject}: {usage} and {other}");
            }
        }
    }
}

#[test]
fn the_protocols_of_other_tools_come_to_their_end() {
    let words = "handover-mutex handover-semop handover-mq handover-signal stream-pipe stream-mq \
        turns-semop echo-tcp --batch 1 --count 200 --placement same-core";
    let records = records(words);
    assert_eq!(records.len(), 15, "all eight, and all but the mutex between processes too");
    for record in &records {
        assert!(ran(record), "{}: {}", record["configuration"]["subject"], record["outcome"]);
        // On a busy machine handover-semop once took its own permission to go on for hand-overs.
        assert_eq!(record["series"]["operation"]["count"], 200, "{}", record["configuration"]["subject"]);
    }
}

#[test]
fn a_thread_that_computes_is_preempted_as_often_as_it_asked_by_whoever_watches_the_time() {
    let words = "preempt-signal-timer preempt-timerfd preempt-watcher --count 200 --contexts threads \
                 --placement same-core,two-cores";
    let records = records(words);
    let subjects: Vec<&str> =
        records.iter().filter_map(|one| one["configuration"]["subject"].as_str()).collect();
    for subject in ["preempt-signal-timer", "preempt-timerfd"] {
        assert!(subjects.contains(&subject), "{subjects:?}");
    }
    for record in &records {
        assert!(ran(record), "{}: {}", record["configuration"]["subject"], record["outcome"]);
        for series in ["response", "operation"] {
            assert_eq!(record["series"][series]["count"], 200, "{}", record["configuration"]["subject"]);
        }
    }
    // Who sleeps on the timer comes to the thread's core and leaves it again.
    let shared = records.iter().find(|one| {
        one["configuration"]["subject"] == "preempt-timerfd"
            && one["configuration"]["placement"]["relation"] == "same-core"
    });
    assert!(figure(shared.unwrap(), "switches per round").unwrap() > 1.5);
}

/// The stream through a pipe once hung: the leader's last byte found
/// the pipe full and its reader gone.
#[test]
fn a_stream_through_a_pipe_always_finds_its_end() {
    for _ in 0..20 {
        assert!(ran(&records("stream-pipe --contexts threads --batch 1 --count 20 --placement unpinned")[0]));
    }
}

#[test]
fn tools_of_many_tasks_come_to_their_end() {
    let words = "futex-wake-all hackbench --batch 5 --count 5 --placement unpinned";
    for record in &records(words) {
        assert!(ran(record), "{}: {}", record["configuration"]["subject"], record["outcome"]);
    }
}

#[test]
fn a_real_time_policy_is_had_or_refused_with_what_to_do() {
    for record in &records("switch-futex --scheduler fifo --count 50 --placement same-core") {
        if !ran(record) {
            assert_eq!(record["outcome"]["kind"], "skipped");
            assert!(record["outcome"]["reason"].as_str().unwrap().contains("CAP_SYS_NICE"));
        }
    }
}
