// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fan-outs as a user runs them: every receiver of every mechanism is woken in every round, whoever
//! dies leaves nothing behind, and what does not fit the machine is said before anything starts.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::{Said, Stage, after, measured, number, ran};

fn fanout(words: &str) -> Vec<Value> {
    measured(&format!("fanout {words}")).records()
}

#[test]
fn every_receiver_of_every_mechanism_is_woken_in_every_round_as_process_and_as_thread() {
    let records = fanout("all -n 1,7 --rounds 4 --interval 2ms --contexts processes,threads");
    let subjects: BTreeSet<&str> =
        records.iter().filter_map(|record| record["configuration"]["subject"].as_str()).collect();
    assert!(subjects.len() >= 11, "{subjects:?}");
    for record in &records {
        let subject = &record["configuration"]["subject"];
        assert!(ran(record), "{subject}: {}", record["outcome"]);
        let receivers = number(record, "/configuration/pattern/receivers");
        assert_eq!(number(record, "/tally/sent"), 4 * receivers, "{subject}");
        if subject == "sem-posix-for-all" {
            continue;
        }
        assert_eq!(number(record, "/tally/seen"), 4 * receivers, "{subject}");
        assert_eq!(number(record, "/tally/lost"), 0, "{subject}");
        assert_eq!(number(record, "/series/wake/count"), 4 * receivers, "{subject}");
        for quantity in ["first-wake", "median-wake", "last-wake", "notify-round"] {
            assert_eq!(number(record, &format!("/series/{quantity}/count")), 4, "{subject} {quantity}");
        }
        assert_eq!(record["fanout"]["receivers"]["p50_ns"].as_array().unwrap().len() as u64, receivers);
        // The last of several cannot have woken before the first.
        let rounds = &record["fanout"]["rounds"];
        for (first, last) in
            rounds["first_ns"].as_array().unwrap().iter().zip(rounds["last_ns"].as_array().unwrap())
        {
            assert!(first.as_f64() <= last.as_f64(), "{subject}");
        }
    }
}

#[test]
fn a_time_out_that_runs_out_between_rounds_loses_no_post() {
    let records = fanout(
        "sem-posix-named sem-sysv sem-sysv-many unix-dgram condvar -n 5 --rounds 3 --interval 30ms \
         --wait timeout=5ms",
    );
    for record in &records {
        let subject = &record["configuration"]["subject"];
        assert!(ran(record), "{subject}: {}", record["outcome"]);
        assert_eq!(number(record, "/tally/seen"), 15, "{subject}: {record}");
        assert_eq!(number(record, "/tally/lost"), 0, "{subject}: {record}");
    }
    // On a busy machine a receiver may get to its wait only when the
    // next post is there, but not all of them every time.
    assert!(records.iter().map(|record| number(record, "/tally/timeouts")).sum::<u64>() > 0);
}

/// A receiver whose wait ran out while the last round's end was told had left before its signal
/// came, and the run had failed.
#[test]
fn receivers_that_leave_by_themselves_at_the_end_fail_nobody() {
    for record in &fanout("signal-sigwaitinfo -n 40 --rounds 3 --interval 5ms --wait timeout=50us") {
        assert!(ran(record), "{}", record["outcome"]);
        assert_eq!(
            number(record, "/tally/seen"),
            3 * number(record, "/configuration/pattern/receivers"),
            "{record}"
        );
    }
}

#[test]
fn one_semaphore_for_all_keeps_count_of_every_post() {
    let records = fanout("sem-posix-for-all -n 12 --rounds 10 --interval 1ms");
    let record =
        records.iter().find(|record| record["configuration"]["subject"] == "sem-posix-for-all").unwrap();
    assert!(ran(record), "{}", record["outcome"]);
    // Once what it is there to show was called impossible, and its figures were kept back.
    assert!(!record["outcome"].to_string().contains("counts-disagree"), "{}", record["outcome"]);
    let seen = number(record, "/tally/seen");
    let duplicates = number(record, "/tally/duplicate");
    let misses = number(record, "/tally/lost");
    // Whoever took two took one of somebody else's: where all posts
    // of a round are taken in it, both counts agree.
    assert_eq!(seen - duplicates, 120 - misses, "{record}");
    // A receiver that is late for the last round of the warm-up takes
    // its post in the first that counts.
    assert!(seen <= 120 + 12, "{record}");
}

#[test]
fn pinned_receivers_stay_where_they_were_put() {
    let records = fanout("futex -n 6 --rounds 3 --interval 2ms --pin scatter,compact,all-on-one");
    for record in records.iter().filter(|record| record["configuration"]["subject"] == "futex") {
        assert!(ran(record), "{}", record["outcome"]);
        let placed = record["fanout"]["receiver_cpus"].as_str().unwrap();
        let seen = record["sides"][1]["cpus"].as_array().unwrap();
        let placed: BTreeSet<u64> = placed
            .split(',')
            .flat_map(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                first.parse::<u64>().unwrap()..=last.parse::<u64>().unwrap()
            })
            .collect();
        assert!(seen.iter().all(|cpu| placed.contains(&cpu.as_u64().unwrap())), "{seen:?} {placed:?}");
    }
}

#[test]
fn more_receivers_than_cpus_cannot_have_one_each_and_that_is_said_before_anything_starts() {
    let stage = Stage::new();
    let said = stage.run("fanout futex -n 20000 --pin one-each --output -").ended(1);
    let complaint = &said.err;
    let told = complaint.contains("20001 CPUs") && complaint.contains("nothing of this can be run");
    assert!(told && said.out.is_empty(), "{complaint}");
}

#[test]
fn a_limit_that_is_too_low_is_told_with_the_command_that_raises_it_and_the_rest_is_run() {
    let stage = Stage::new();
    // Sixty eventfds, three descriptors each, do not fit into 200; sixty futexes do.
    let command = stage.words("fanout eventfd futex -n 60 --rounds 2 --interval 2ms --quiet --output -");
    let said = Said::by(&mut after("ulimit -n 200", &command));
    assert!(said.err.contains("RLIMIT_NOFILE") && said.err.contains("ulimit -Hn 244"), "{}", said.err);
    let records = said.records();
    let outcome = |subject: &str| {
        let record = records.iter().find(|record| record["configuration"]["subject"] == subject).unwrap();
        record["outcome"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(outcome("eventfd"), "skipped");
    assert_ne!(outcome("futex"), "skipped");
}

const LONG_RUN: &str = "fanout sem-posix-named -n 12 --rounds 100000 --interval 5ms --quiet --output -";

fn wait_for_receivers(stage: &Stage) {
    let start = Instant::now();
    // The host, twelve receivers, the notifier.
    while stage.trial_processes().len() < 14 {
        assert!(start.elapsed() < Duration::from_secs(120), "never seen: a fan-out");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn semaphore_files() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/dev/shm").unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("sem.doorbell-")).collect()
}

#[test]
fn killing_anybody_of_a_fan_out_ends_it_with_a_record_that_names_the_dead_and_leaves_nothing() {
    let mut random = fastrand::Rng::with_seed(0x2026);
    for round in 0..6 {
        let stage = Stage::new();
        let child = stage.words(LONG_RUN).spawn().unwrap();
        wait_for_receivers(&stage);
        std::thread::sleep(Duration::from_micros(random.u64(0..50_000)));
        let own = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let mut victims = stage.trial_processes();
        victims.sort_unstable();
        let (_, family) = victims.split_first().unwrap();
        let victim = match round {
            0 => own,
            // The host came first, the notifier last.
            1 => Pid::from_raw(victims[0]).unwrap(),
            2 => Pid::from_raw(*family.last().unwrap()).unwrap(),
            _ => Pid::from_raw(*random.choice(family).unwrap()).unwrap(),
        };
        // The null mechanism runs first or last; whichever trial is on, its victim is named.
        kill_process(victim, Signal::KILL).unwrap();
        if victim != own {
            std::thread::sleep(Duration::from_millis(100));
            let _ = kill_process(own, Signal::INT);
        }
        let said = Said::from(child.wait_with_output().unwrap());
        stage.wait_until_empty();
        if victim != own {
            let cause = said.records()[0]["outcome"]["cause"].as_str().unwrap_or_default().to_owned();
            assert!(cause.contains("signal 9") || cause.contains("SIGKILL"), "{round}: {cause}");
        }
        // Whatever a killed command left is cleared by the next run in the same place.
        stage.run("fanout null -n 1 --rounds 1 --interval 1ms --quiet --output -").ended(0);
        assert!(stage.run_folders().is_empty(), "{:?}", stage.run_folders());
    }
}

#[test]
fn ctrl_c_ends_a_fan_out_early_and_keeps_its_rounds_and_no_semaphore_stays() {
    let stage = Stage::new();
    let before = semaphore_files();
    let child = stage.words(LONG_RUN).spawn().unwrap();
    wait_for_receivers(&stage);
    std::thread::sleep(Duration::from_millis(300));
    let own = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(own, Signal::INT).unwrap();
    let records = Said::from(child.wait_with_output().unwrap()).ended(130).records();
    let ended = &records[0]["outcome"]["kind"];
    // What a busy machine does to a figure is not this test's affair.
    assert!(["partial", "implausible"].map(Value::from).contains(ended), "{ended}");
    stage.wait_until_empty();
    let left: Vec<String> = semaphore_files().difference(&before).cloned().collect();
    // Other tests run beside this one: what they hold goes with them.
    let start = Instant::now();
    while left.iter().any(|name| semaphore_files().contains(name)) {
        assert!(start.elapsed() < Duration::from_secs(60), "left behind: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn every_experiment_runs_under_a_load_and_proves_it() {
    for words in [
        "ping futex --gap 0 --count 20000 --placement unpinned --load idle,sqrt:2",
        "switch getppid --time 500ms --load idle,churn:2:pinned",
        "fanout futex -n 3 --rounds 60 --interval 5ms --load idle,memory:1",
    ] {
        let records = measured(&format!("{words} --blocks 1")).records();
        let (loaded, idle): (Vec<&Value>, Vec<&Value>) =
            records.iter().partition(|record| record["configuration"]["load"].is_object());
        assert!(!loaded.is_empty() && loaded.len() == idle.len(), "{words}");
        for record in loaded {
            assert!(ran(record), "{words}: {}", record["outcome"]);
            assert!(number(record, "/load/fewest_slices") > 0, "{words}");
            assert!(record["load"]["run_queue"].as_array().unwrap().len() >= 2, "{words}");
            assert!(!record["load"]["busy"].as_object().unwrap().is_empty(), "{words}");
        }
        assert!(idle.iter().all(|record| record["load"].is_null()), "{words}");
    }
}
