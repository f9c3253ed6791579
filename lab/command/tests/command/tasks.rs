// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks as a user runs them: every kind has exactly its hand-offs, whoever dies leaves no process
//! behind, and what does not fit the machine is said before anything starts.

use std::collections::BTreeMap;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::{Said, Stage, after, figure, measured, number, parent, ran, wait_until};

fn tasks(words: &str) -> Vec<Value> {
    measured(&format!("tasks {words} --blocks 1")).records()
}

#[test]
fn every_kind_has_exactly_its_hand_offs_and_the_kernel_counted_those_it_had_a_part_in() {
    let records = tasks("all -n 2,30 -y 1,4 --count 3");
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for record in &records {
        let subject = record["configuration"]["subject"].as_str().unwrap();
        *seen.entry(subject.to_owned()).or_default() += 1;
        assert!(ran(record), "{subject}: {}", record["outcome"]);
        let (number_of, yields) =
            (number(record, "/configuration/pattern/tasks"), number(record, "/configuration/pattern/yields"));
        let handoffs = 3 * number_of * yields.max(1);
        assert_eq!(number(record, "/tally/sent"), handoffs, "{subject}");
        assert_eq!(number(record, "/tally/seen"), handoffs, "{subject}");
        for phase in ["create", "reap"] {
            assert_eq!(number(record, &format!("/series/{phase}/count")), 3, "{subject} {phase}");
        }
        let headline = if yields == 0 { "life" } else { "hand-off" };
        assert!(number(record, &format!("/series/{headline}/count")) >= 3, "{subject}");
        if let Some(switches) = figure(record, "switches counted")
            && !subject.ends_with("-yield")
            && !subject.starts_with("process-pair")
        {
            // Every turn ends with a sleep; being preempted comes on top.
            assert!(switches >= handoffs as f64, "{subject}: {switches} of {handoffs}");
        }
    }
    let known: Vec<&str> = doorbell_subjects::task::all().iter().map(|kind| kind.name).collect();
    assert_eq!(seen.len(), known.len(), "{seen:?}");
}

#[test]
fn working_sets_a_load_and_a_second_core_change_no_count() {
    let records = tasks(
        "stackless process-futex thread-futex -n 5 -y 20 --count 2 --working-set 0,5000 --load idle,sqrt:1",
    );
    assert_eq!(records.len(), 4 * 2 * 2);
    // On a machine of one CPU the second placement is left out.
    let two = tasks("process-futex thread-futex -n 5 -y 20 --count 2 --placement same-core,two-cores");
    for record in records.iter().chain(&two) {
        assert!(ran(record), "{}", record["outcome"]);
        assert_eq!(number(record, "/tally/seen"), 2 * 5 * 20, "{record}");
    }
}

#[test]
fn a_study_is_run_whole_and_its_claims_are_judged_from_the_result() {
    let said = Stage::new().run("tasks --document --count 1 --blocks 1 --details --quiet").ended(0).out;
    let text = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Published claims checked against this run",
        "The share of the queue",
        "Counting timer ticks",
        "Lives: made, run once, reaped",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_kind_of_one_turn_a_task_runs_with_one_where_none_are_asked_for_and_all_says_what_it_leaves_out() {
    let records = tasks("timer-ticks stackless-rotating process-pair stackless -n 10 --count 2");
    let of = |record: &Value| {
        assert!(ran(record), "{}", record["outcome"]);
        let subject = record["configuration"]["subject"].as_str().unwrap().to_owned();
        (subject, number(record, "/configuration/pattern/yields"))
    };
    let configurations: Vec<(String, u64)> = records.iter().map(of).collect();
    let due = [("timer-ticks", 1), ("stackless-rotating", 1), ("process-pair", 1), ("stackless", 100)];
    // The control goes with either number of turns.
    for (subject, turns) in due.into_iter().chain([("call", 1), ("call", 100)]) {
        assert!(configurations.contains(&(subject.to_owned(), turns)), "{subject} {configurations:?}");
    }
    assert_eq!(configurations.len(), 6, "{configurations:?}");

    let all = "tasks all -n 2 -y 4 --time 1ms --blocks 1 --output -";
    let complaint = Stage::new().run(all).ended(0).err;
    let left_out = "(-y 1): stackless-rotating, process-pair, process-pair-rotating, timer-ticks";
    assert!(complaint.contains(left_out), "{complaint}");
}

#[test]
fn tasks_are_waited_for_where_the_shell_ignores_that_children_end() {
    let stage = Stage::new();
    let words = "tasks life-clone life-fork process-futex -n 5 -y 2 --count 2 --blocks 1 --quiet --output -";
    for record in Said::by(&mut after("trap '' CHLD", &stage.words(words))).records() {
        assert!(ran(&record), "{}", record["outcome"]);
    }
    stage.wait_until_empty();
}

#[test]
fn wrong_usage_exits_with_two_and_says_what_would_have_been_right() {
    let stage = Stage::new();
    for (words, expected) in [
        ("tasks stackles", "did you mean 'stackless'?"),
        ("tasks -n 1", "'1' is no number from 2 to 100000"),
        ("tasks -y 0", "0 is not in 1..=100000"),
        ("tasks timer-ticks stackless -y 4", "timer-ticks takes one turn a task; write -y 1"),
        ("tasks all process-pair -y 4,7", "process-pair takes one turn a task; write -y 1"),
        ("tasks --working-set 4X", "is no size"),
        ("tasks --document -n 10", "cannot be used with"),
        ("tasks --series all", "switching, making, board"),
        ("tasks --cpus 4095", "there is no CPU 4095"),
        ("vm run --chapter -- tasks", "add --guest squall"),
        ("vm run --guest squall -- ping", "Squall runs the verb tasks, and not ping"),
        ("vm run --guest squall -- tasks tokio", "Squall has no kind of task tokio"),
        ("vm run --guest squall -- tasks stackful-across -n 3", "3 cannot be divided so"),
        ("vm run --guest squall -- tasks --working-set 4K", "no --working-set"),
        ("vm run --guest squall --chapter -- tasks --blocks 2", "no --blocks"),
        ("vm run --guest squall --chapter -- tasks call", "takes no kinds"),
        ("vm run --guest squall --chapter -- tasks -n 10", "takes no tasks"),
        ("vm run --guest squall --chapter -- tasks --document", "takes no document"),
    ] {
        let complaint = stage.run(words).ended(2).err;
        assert!(complaint.contains(expected), "{words}: {complaint}");
    }
}

#[test]
fn a_limit_that_is_too_low_is_told_before_the_start_and_the_rest_is_run() {
    let stage = Stage::new();
    let words = "tasks stackless process-pipe -n 100 -y 2 --count 1 --blocks 1 --output -";
    // A hundred pipes, two descriptors each, do not fit into 200.
    let said = Said::by(&mut after("ulimit -n 200", &stage.words(words)));
    for told in ["process-pipe: room for 68 tasks here (RLIMIT_NOFILE", "ulimit -Hn 264 as root"] {
        assert!(said.err.contains(told), "{told}: {}", said.err);
    }
    for record in said.records() {
        let skipped = record["outcome"]["kind"] == "skipped";
        assert_eq!(skipped, record["configuration"]["subject"] == "process-pipe", "{record}");
    }
}

/// The process among `all` that has most children, and those.
fn driver(all: &[i32]) -> (i32, Vec<i32>) {
    let mut families: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for &pid in all {
        if let Some(parent) = parent(pid) {
            families.entry(parent).or_default().push(pid);
        }
    }
    families.into_iter().max_by_key(|(_, children)| children.len()).unwrap_or_default()
}

/// A run of so many processes that hand over for long, once all are
/// there: the driver and its children.
fn crowd(stage: &Stage, number: usize) -> (Child, i32, Vec<i32>) {
    let turns = 2_000_000 / number;
    let words = format!("tasks process-futex -n {number} -y {turns} --count 1 --blocks 1 --quiet --output -");
    let child = stage.words(&words).spawn().unwrap();
    let (driver, children) = family(stage, number);
    (child, driver, children)
}

/// Why the one failed that `child` measured; nothing of it is left.
fn failed(stage: &Stage, child: Child) -> String {
    let said = Said::from(child.wait_with_output().unwrap());
    stage.wait_until_empty();
    let failed = said.records().into_iter().find(|record| record["outcome"]["kind"] == "failed").unwrap();
    failed["outcome"]["cause"].as_str().unwrap().to_owned()
}

/// Waits for a process with so many children.
fn family(stage: &Stage, number: usize) -> (i32, Vec<i32>) {
    let start = Instant::now();
    loop {
        let (driver, children) = driver(&stage.trial_processes());
        if children.len() >= number {
            return (driver, children);
        }
        assert!(start.elapsed() < Duration::from_secs(180), "never seen: {number} processes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn killing_the_driver_of_a_thousand_processes_leaves_none() {
    let stage = Stage::new();
    let (child, driver, _) = crowd(&stage, 1000);
    kill_process(Pid::from_raw(driver).unwrap(), Signal::KILL).unwrap();
    let cause = failed(&stage, child);
    assert!(cause.contains("signal 9"), "{cause}");
}

#[test]
fn killing_the_command_itself_or_one_of_its_tasks_leaves_none_and_the_dead_task_is_named() {
    let stage = Stage::new();
    let (mut child, ..) = crowd(&stage, 50);
    child.kill().unwrap();
    child.wait().unwrap();
    stage.wait_until_empty();

    let (child, _, children) = crowd(&stage, 50);
    kill_process(Pid::from_raw(children[17]).unwrap(), Signal::KILL).unwrap();
    let cause = failed(&stage, child);
    assert!(cause.contains("was killed by signal 9") && cause.contains("task "), "{cause}");
}

/// It was once said to have never slept, after five seconds in which the driver waited for it to.
#[test]
fn a_task_killed_while_its_switches_are_being_counted_is_named_as_killed() {
    let stage = Stage::new();
    let words = "tasks process-futex -n 1000 -y 2000 --count 1 --blocks 1 --quiet --output -";
    let child = stage.words(words).spawn().unwrap();
    // Whoever sleeps this early stands ready, and waits for control. Stopped, it is not asleep: the
    // driver, which counts when all stand ready, waits for it.
    let (driver, children) = family(&stage, 50);
    let stopped = children[17];
    wait_until("a task that sleeps", || state(stopped) == Some('S'));
    kill_process(Pid::from_raw(stopped).unwrap(), Signal::STOP).unwrap();
    // At once when the last is made: the driver waits 30 seconds for it.
    let start = Instant::now();
    while children_of(driver) < 1000 {
        assert!(start.elapsed() < Duration::from_secs(180), "never seen: 1000 processes");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_raw(stopped).unwrap(), Signal::KILL).unwrap();
    let cause = failed(&stage, child);
    assert!(cause.contains("was killed by signal 9") && cause.contains("task "), "{cause}");
}

/// How many children a process has.
fn children_of(pid: i32) -> usize {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let files = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    files.map(|children| children.split_whitespace().count()).sum()
}

/// What a process does (proc(5), field 3 of stat).
fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

#[test]
fn ctrl_c_ends_a_generation_early_and_says_that_the_result_is_partial() {
    let stage = Stage::new();
    let (child, ..) = crowd(&stage, 20);
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let said = Said::from(child.wait_with_output().unwrap()).ended(130);
    assert_eq!(said.json()["partial"], true);
    stage.wait_until_empty();
}
