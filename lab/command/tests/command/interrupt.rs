// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever ends a run, nothing stays behind, and what was measured is kept where that is possible.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::stage::{Stage, hears_signals, wait_until};
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

fn wait_for_trials(stage: &Stage) {
    // The host, and at least the side that does not leave at once when there is nothing to wait for.
    wait_until("a trial", || stage.trial_processes().len() >= 2);
}

/// Waits until a side has used CPU time for so many clock ticks.
fn wait_for_work(stage: &Stage, command: &Child, ticks: u64) {
    wait_until("a side at work", || stage.side_ticks(pid(command)) >= ticks);
}

#[test]
fn ctrl_c_sigterm_and_a_lost_terminal_keep_what_was_measured_and_say_that_it_is_partial() {
    for end in [Signal::INT, Signal::TERM, Signal::HUP] {
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
fn a_run_that_was_started_to_survive_its_terminal_goes_on() {
    let stage = Stage::new();
    let args = ["ping", "futex", "--gap", "0", "--time", "600s", "--blocks", "1", "--json", "--output", "-"];
    let doorbell = stage.doorbell(&args);
    let mut command = hears_signals(Command::new("nohup"));
    command.arg(doorbell.get_program()).args(doorbell.get_args());
    command.envs(doorbell.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for_work(&stage, &child, 5);
    signal(pid(&child), Signal::HUP);
    let before = stage.side_ticks(pid(&child));
    wait_until("work after the terminal went", || stage.side_ticks(pid(&child)) > before + 5);
    signal(pid(&child), Signal::INT);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    stage.wait_until_empty();
}

/// They were called `exe`, as the link is by which the program starts itself.
#[test]
fn the_processes_of_a_trial_are_called_doorbell_where_processes_are_listed() {
    let stage = Stage::new();
    let args = ["ping", "futex", "--gap", "0", "--time", "600s", "--blocks", "1", "--json", "--output", "-"];
    let child = stage.doorbell(&args).spawn().unwrap();
    // One side may work while the other has not yet begun its program, or not yet taken its name.
    wait_until("a host and two sides, each called doorbell", || {
        let trial = stage.trial_processes();
        let named = |process: &&i32| {
            let read = |what: &str| std::fs::read(format!("/proc/{process}/{what}")).unwrap_or_default();
            read("comm") == b"doorbell\n" && read("cmdline").starts_with(b"doorbell\0")
        };
        trial.len() == 3 && trial.iter().filter(named).count() == 3
    });
    signal(pid(&child), Signal::INT);
    child.wait_with_output().unwrap();
    stage.wait_until_empty();
}

/// Interrupts a long trial in which a side has used CPU time for so many clock ticks; how many
/// samples it kept, which are as many as rounds had ended.
fn samples_kept_after(ticks: u64) -> u64 {
    let stage = Stage::new();
    let args = ["ping", "futex", "--gap", "0", "--time", "600s", "--blocks", "1", "--json", "--output", "-"];
    let child = stage.doorbell(&args).spawn().unwrap();
    wait_for_work(&stage, &child, ticks);
    signal(pid(&child), Signal::INT);
    let output = child.wait_with_output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let futex = |record: &&serde_json::Value| record["configuration"]["subject"] == "futex";
    let Some(record) = result["records"].as_array().unwrap().iter().find(futex) else { return 0 };
    // What a busy machine does to a figure is not this test's affair.
    assert!(
        ["partial", "implausible"].map(serde_json::Value::from).contains(&record["outcome"]["kind"]),
        "{record}"
    );
    stage.wait_until_empty();
    let samples = record["series"]["round-trip"]["count"].as_u64().unwrap_or(0);
    // Counters cover one round more in each slice than are timed.
    let slices = record["slices"]["rounds"].as_array().map_or(0, Vec::len) as u64;
    assert_eq!(record["tally"]["sent"].as_u64(), Some(samples + slices), "{record}");
    samples
}

/// With a computing program on its CPU the primitive cost of a switch once came out as
/// milliseconds, and true round trips as impossible.
#[test]
fn one_long_trial_ends_early_on_ctrl_c_and_its_samples_are_kept() {
    // How much CPU time passes before the first sample is the
    // machine's affair: an emulated one took the first of these.
    assert!([20, 80, 320].into_iter().any(|ticks| samples_kept_after(ticks) > 0));
}

#[test]
fn a_verb_that_judges_keeps_what_there_is_when_it_is_interrupted_before_there_is_anything_to_judge() {
    // `spin` and `gate` once ended with a usage error instead, and the result was lost.
    for verb in [&["spin"][..], &["gate", "--max", "1ms"], &["pick"]] {
        if verb == ["spin"] && std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
            doorbell_skipped::skip("spin takes two CPUs");
            continue;
        }
        let stage = Stage::new();
        let long = ["--anyway", "--blocks", "10000", "--json", "--output", "-"];
        // A busy machine may be beyond the primitive costs, which come first, before they are seen.
        let nothing_measured = || {
            let child = stage.doorbell(&[verb, &long].concat()).spawn().unwrap();
            wait_until("a process of its own", || stage.processes().len() >= 2);
            signal(pid(&child), Signal::INT);
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(130), "{verb:?}: {said}");
            let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(result["partial"], true, "{verb:?}: {said}");
            stage.wait_until_empty();
            result["records"].as_array().unwrap().is_empty()
        };
        assert!((0..20).any(|_| nothing_measured()), "{verb:?}: never interrupted in the primitive costs");
    }
}

#[test]
fn a_side_that_is_killed_becomes_a_record_that_says_so() {
    let stage = Stage::new();
    let args = ["ping", "futex", "--gap", "0", "--time", "30s", "--blocks", "1", "--json", "--output", "-"];
    let child = stage.doorbell(&args).spawn().unwrap();
    wait_for_work(&stage, &child, 20);
    let side = stage.sides(pid(&child))[0];
    signal(side, Signal::KILL);
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

/// The exit status was 0 as long as any other trial had come to its end.
#[test]
fn a_run_of_which_a_side_died_ends_with_one_though_the_rest_was_measured() {
    let stage = Stage::new();
    let time = ["--time", "10s", "--blocks", "1", "--placement", "unpinned"];
    let args = [&["ping", "futex", "--gap", "0", "-q", "--output", "-"][..], &time].concat();
    let child = stage.doorbell(&args).spawn().unwrap();
    wait_until("a side", || !stage.sides(pid(&child)).is_empty());
    stage.sides(pid(&child)).into_iter().for_each(|side| signal(side, Signal::KILL));
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1 failed or died"), "{said}");
    stage.wait_until_empty();
}

/// These kept their own count of what was not measured, or none.
#[test]
fn pairs_fan_outs_and_tasks_of_which_somebody_died_or_stood_still_end_with_one_and_say_so() {
    for verb in [
        "pairs futex --budget 10s",
        "fanout futex -n 3 --rounds 300 --interval 10ms",
        "tasks process-futex -n 10 --time 2s",
    ] {
        for (end, says) in [(Signal::KILL, "1 failed or died"), (Signal::STOP, "1 hung")] {
            let stage = Stage::new();
            let words = format!("{verb} --blocks 1 -q --output -");
            let child = stage.doorbell(&words.split(' ').collect::<Vec<_>>()).spawn().unwrap();
            wait_until("a side", || {
                let sides = stage.sides(pid(&child));
                sides.iter().for_each(|side| signal(*side, end));
                !sides.is_empty()
            });
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{verb} {end:?}: {said}");
            assert!(said.contains(says), "{verb} {end:?}: {said}");
            stage.wait_until_empty();
        }
    }
}

/// An interrupt was heard by the sides alone: one that stood still kept its run for as long as
/// without.
#[test]
fn an_interrupt_ends_a_trial_of_which_a_side_stands_still() {
    for verb in [
        "ping futex --gap 0 --time 600s",
        "pairs futex --budget 600s",
        "fanout futex -n 3 --rounds 30000 --interval 10ms",
        "tasks process-futex -n 10 --time 600s",
    ] {
        let ended_by_it = || {
            let stage = Stage::new();
            let words = format!("{verb} --blocks 1 -q --output -");
            let child = stage.doorbell(&words.split(' ').collect::<Vec<_>>()).spawn().unwrap();
            wait_until("a side", || {
                let sides = stage.sides(pid(&child));
                sides.iter().for_each(|side| signal(*side, Signal::STOP));
                !sides.is_empty()
            });
            signal(pid(&child), Signal::INT);
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(130), "{verb}: {said}");
            let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            stage.wait_until_empty();
            result["records"].to_string().contains("interrupted, and nobody moved")
        };
        // A side that is stopped as it begins is told of the interrupt by nobody: then it hangs.
        assert!((0..20).any(|_| ended_by_it()), "{verb}");
    }
}

#[test]
fn a_side_that_is_stopped_becomes_a_record_that_says_hung() {
    let stage = Stage::new();
    // Three, so that nothing takes turns beside them that is in no row.
    let args =
        "ping futex pipe eventfd --placement same-core --gap 0 --time 600s --blocks 1 --json --output -";
    let child = stage.doorbell(&args.split(' ').collect::<Vec<_>>()).spawn().unwrap();
    wait_for_work(&stage, &child, 20);
    let side = stage.sides(pid(&child))[0];
    signal(side, Signal::STOP);
    wait_until("the end of its trial", || !stage.trial_processes().contains(&side));
    signal(pid(&child), Signal::INT);
    let output = child.wait_with_output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let records = result["records"].as_array().unwrap();
    let hung = records.iter().find(|record| record["outcome"]["kind"] == "hung");
    let hung = hung.unwrap_or_else(|| panic!("none is hung: {records:?}"));
    assert_eq!(hung["outcome"]["last_seen"].as_array().map(Vec::len), Some(2), "{hung}");
    stage.wait_until_empty();
}

/// A node that stands still for 400 ms of every second passed a limit of 50 ms, when a wake-up was
/// counted from its own notification: those that were due meanwhile were not missed by anybody.
#[test]
fn a_gate_fails_on_a_node_that_is_frozen_now_and_then() {
    let stage = Stage::new();
    let words = "gate --gap 1ms --time 6s --blocks 6 --max 50ms --placement unpinned --anyway --quiet";
    let mut command = stage.doorbell(&words.split(' ').collect::<Vec<_>>());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        // The host goes on, as does a watchdog on a node whose other CPUs stand still.
        let sides = stage.sides(pid(&child));
        sides.iter().for_each(|side| signal(*side, Signal::STOP));
        std::thread::sleep(Duration::from_millis(400));
        sides.iter().for_each(|side| signal(*side, Signal::CONT));
        std::thread::sleep(Duration::from_millis(600));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("50 ms"), "{said}");
    stage.wait_until_empty();
}

/// What was measured was saved, and the next look at it did not say
/// that it was less than had been asked for.
#[test]
fn an_interrupted_gate_says_where_what_it_measured_is_saved_and_shows_it_again_as_partial() {
    let stage = Stage::new();
    let words = "gate --max 1s --time 10m --placement unpinned --anyway";
    let child = stage.doorbell(&words.split(' ').collect::<Vec<_>>()).spawn().unwrap();
    wait_for_work(&stage, &child, 5);
    signal(pid(&child), Signal::INT);
    let output = child.wait_with_output().unwrap();
    let [told, beside] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(130), "{told}{beside}");
    assert!(told.contains("Partial: the run was interrupted"), "{told}{beside}");
    let saved = beside.lines().find_map(|line| line.strip_prefix("Saved as ")).expect(&beside);
    let shown = stage.doorbell(&["show", saved]).output().unwrap();
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), told);
    stage.wait_until_empty();
}

/// The good result of an earlier run was replaced by one that had been cut short.
#[test]
fn an_interrupted_run_leaves_the_file_that_was_there() {
    let stage = Stage::new();
    let target = stage.path().join("good.json");
    let data = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ping.json")).unwrap();
    std::fs::write(&target, &data).unwrap();
    let file = target.to_str().unwrap();
    let interrupted = |file: &str| {
        let args = ["ping", "futex", "--gap", "0", "--time", "600s", "--blocks", "1", "-o", file];
        let child = stage.doorbell(&args).spawn().unwrap();
        wait_for_work(&stage, &child, 5);
        signal(pid(&child), Signal::INT);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        stage.wait_until_empty();
        String::from_utf8(output.stderr).unwrap()
    };
    let told = interrupted(file);
    assert!(told.contains(&format!("{file} stays as it was")), "{told}");
    assert_eq!(std::fs::read(&target).unwrap(), data);
    let saved = told.lines().find_map(|line| line.strip_prefix("Saved as ")).expect(&told);
    let partial: serde_json::Value = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
    assert_eq!(partial["partial"], true);
    // An empty one was made to be filled.
    let empty = stage.path().join("empty.json");
    std::fs::write(&empty, "").unwrap();
    let told = interrupted(empty.to_str().unwrap());
    assert!(told.contains(&format!("Saved as {}", empty.display())), "{told}");
}

/// Until it has handlers for all that end it. On a busy machine its
/// first instruction may be seconds away.
fn wait_until_it_listens(child: &Child) {
    let ends = [Signal::INT, Signal::TERM, Signal::HUP];
    let all: u64 = ends.iter().map(|end| 1 << (end.as_raw() - 1)).sum();
    wait_until("handlers of signals", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & all == all
    });
}

/// A signal in the first second of a survey or of a whole table of fan-outs threw away what there
/// was; a gate of ten minutes was lost with its terminal.
#[test]
fn a_signal_in_the_first_second_ends_a_run_with_what_there_is() {
    let gate = ["gate", "--max", "1s", "--time", "10m", "--placement", "unpinned", "--anyway"];
    for verb in [&["survey"][..], &["fanout", "--grid", "--interval", "100ms"], &gate] {
        for (end, milliseconds) in [(Signal::INT, 50), (Signal::TERM, 400), (Signal::HUP, 900)] {
            let stage = Stage::new();
            let words = [verb, &["--quiet", "--output", "-"]].concat();
            let child = stage.doorbell(&words).spawn().unwrap();
            if milliseconds >= 400 {
                wait_until_it_listens(&child);
            }
            std::thread::sleep(Duration::from_millis(milliseconds));
            signal(pid(&child), end);
            let output = child.wait_with_output().unwrap();
            let said = format!("{verb:?} {end:?} {}", String::from_utf8_lossy(&output.stderr));
            if output.status.signal().is_some() {
                // Before it listens.
                assert!(output.stdout.is_empty() && milliseconds < 400, "{said}");
            } else {
                assert_eq!(output.status.code(), Some(130), "{said}");
                let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
                assert_eq!(result["partial"], true, "{said}");
            }
            stage.wait_until_empty();
            assert!(stage.run_folders().is_empty(), "{:?}", stage.run_folders());
        }
    }
}
