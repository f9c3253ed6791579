// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever ends a run, nothing stays behind, and what was measured is kept where that is possible.

use std::process::Child;
use std::time::{Duration, Instant};

use crate::stage::Stage;
use rustix::process::{Pid, Signal, kill_process};

/// Trials of mechanisms whose objects outlive processes, over and over.
const LONG_RUN: &[&str] = &[
    "ping",
    "sem-posix-named",
    "sem-sysv",
    "mq-posix",
    "mq-sysv",
    "fifo",
    "--gap",
    "0",
    "--time",
    "40ms",
    "--blocks",
    "2000",
    "--json",
    "--output",
    "-",
];

fn signal(pid: i32, signal: Signal) {
    // An error means that it is gone already.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

fn pid(child: &Child) -> i32 {
    i32::try_from(child.id()).unwrap()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(120), "never seen: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn wait_for_trials(stage: &Stage) {
    // The host, and at least the side that does not leave at once when there is nothing to wait for.
    wait_until("a trial", || stage.trial_processes().len() >= 2);
}

/// Waits until a side has used CPU time for long enough to have recorded something.
fn wait_for_samples(stage: &Stage) {
    wait_until("a side at work", || stage.trial_ticks() >= 20);
}

#[test]
fn ctrl_c_and_sigterm_keep_what_was_measured_and_say_that_it_is_partial() {
    for end in [Signal::INT, Signal::TERM] {
        let stage = Stage::new();
        let child = stage.doorbell(LONG_RUN).spawn().unwrap();
        wait_for_trials(&stage);
        let first = stage.trial_processes();
        // Another trial has begun, so that one at least has ended.
        wait_until("a second trial", || {
            let now = stage.trial_processes();
            !now.is_empty() && now.iter().all(|process| !first.contains(process))
        });
        signal(pid(&child), end);
        let output = child.wait_with_output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{complaint}");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["partial"], true);
        assert!(!result["records"].as_array().unwrap().is_empty());
        stage.wait_until_empty();
        assert!(stage.run_folders().is_empty(), "{:?}", stage.run_folders());
    }
}

#[test]
fn one_long_trial_ends_early_on_ctrl_c_and_its_samples_are_kept() {
    let stage = Stage::new();
    let args = ["ping", "futex", "--gap", "0", "--time", "600s", "--blocks", "1", "--json", "--output", "-"];
    let child = stage.doorbell(&args).spawn().unwrap();
    wait_for_samples(&stage);
    signal(pid(&child), Signal::INT);
    let output = child.wait_with_output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let record = &result["records"][0];
    assert_eq!(record["outcome"]["kind"], "partial", "{record}");
    assert!(record["series"]["round-trip"]["count"].as_u64().unwrap() > 0);
    stage.wait_until_empty();
}

#[test]
fn killing_any_one_process_at_any_moment_leaves_no_process_and_nothing_the_next_run_does_not_clear() {
    let stage = Stage::new();
    let mut random = fastrand::Rng::with_seed(0x2026);
    for round in 0..24 {
        let child = stage.doorbell(LONG_RUN).spawn().unwrap();
        wait_for_trials(&stage);
        std::thread::sleep(Duration::from_micros(random.u64(0..80_000)));
        let processes = stage.processes();
        // Every fourth time the command itself; else whoever happens to be there: it, a host, or a side.
        let victim = if round % 4 == 0 || processes.is_empty() {
            pid(&child)
        } else {
            *random.choice(&processes).unwrap()
        };
        signal(victim, Signal::KILL);
        if victim != pid(&child) {
            // The run goes on without that trial; end it in the ordinary way.
            std::thread::sleep(Duration::from_millis(50));
            signal(pid(&child), Signal::INT);
        }
        child.wait_with_output().map(drop).unwrap();
        stage.wait_until_empty();
    }
    let args = ["ping", "null", "--gap", "0", "--time", "1ms", "--blocks", "1", "--json", "--output", "-"];
    assert!(stage.doorbell(&args).output().unwrap().status.success());
    assert!(stage.run_folders().is_empty(), "{:?}", stage.run_folders());
}

#[test]
fn a_side_that_is_killed_becomes_a_record_that_says_so() {
    let stage = Stage::new();
    let args = ["ping", "futex", "--gap", "0", "--time", "30s", "--blocks", "1", "--json", "--output", "-"];
    let child = stage.doorbell(&args).spawn().unwrap();
    wait_for_samples(&stage);
    // The host came first, the sides after it.
    let youngest = stage.trial_processes().into_iter().max().unwrap();
    signal(youngest, Signal::KILL);
    std::thread::sleep(Duration::from_millis(100));
    signal(pid(&child), Signal::INT);
    let output = child.wait_with_output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed =
        result["records"].as_array().unwrap().iter().find(|record| record["outcome"]["kind"] == "failed");
    let cause = failed.expect("a failed record")["outcome"]["cause"].as_str().unwrap();
    assert!(cause.contains("killed by signal 9"), "{cause}");
    stage.wait_until_empty();
}
