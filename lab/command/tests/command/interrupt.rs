// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever ends a run, nothing stays behind, and what was measured is kept where that is possible.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::stage::{Said, Stage, at_once, data, hears_signals, wait_until, with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Trials of mechanisms whose objects outlive processes, over and over.
const LONG_RUN: &str = "ping sem-posix-named sem-sysv mq-posix mq-sysv fifo --gap 0 --time 40ms \
    --blocks 2000 --json --output -";

/// One trial that nobody waits for.
const LONG_TRIAL: &str = "ping futex --gap 0 --time 600s --blocks 1 --json --output -";

fn signal(pid: i32, signal: Signal) {
    // An error means that it is gone already.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// A command that runs, on a stage of its own.
struct Run {
    stage: Stage,
    child: Child,
}

impl Run {
    fn of(words: &str) -> Self {
        let stage = Stage::new();
        let child = stage.words(words).spawn().unwrap();
        Self { stage, child }
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    fn sides(&self) -> Vec<i32> {
        self.stage.sides(self.pid())
    }

    /// Waits until a side has used CPU time for so many clock ticks.
    fn works(&self, ticks: u64) -> &Self {
        wait_until("a side at work", || self.stage.side_ticks(self.pid()) >= ticks);
        self
    }

    /// Does `end` to all of its sides, once there are any.
    fn to_its_sides(&self, end: Signal) -> &Self {
        wait_until("a side", || {
            let sides = self.sides();
            sides.iter().for_each(|side| signal(*side, end));
            !sides.is_empty()
        });
        self
    }

    /// What it says until it ends, after which nothing of it runs.
    fn over(self) -> Said {
        let said = self.child.wait_with_output().unwrap().into();
        self.stage.wait_until_empty();
        said
    }

    /// The same, once it was told to end.
    fn ended_by(self, end: Signal) -> Said {
        signal(self.pid(), end);
        self.over()
    }
}

#[test]
fn ctrl_c_sigterm_and_a_lost_terminal_keep_what_was_measured_and_say_that_it_is_partial() {
    at_once(&[Signal::INT, Signal::TERM, Signal::HUP], |end| {
        let Run { stage, child } = Run::of(LONG_RUN);
        // The host, and at least the side that does not leave at once when nothing is waited for.
        wait_until("a trial", || stage.trial_processes().len() >= 2);
        let first = stage.trial_processes();
        // Another trial has begun, so that one at least has ended.
        wait_until("a second trial", || {
            let now = stage.trial_processes();
            !now.is_empty() && now.iter().all(|process| !first.contains(process))
        });
        signal(i32::try_from(child.id()).unwrap(), *end);
        let said = Said::from(child.wait_with_output().unwrap()).ended(130);
        assert_eq!(said.json()["partial"], true);
        assert!(!said.records().is_empty());
        stage.wait_until_empty();
        assert!(stage.run_folders().is_empty(), "{:?}", stage.run_folders());
    });
}

/// Its processes were called `exe` where processes are listed, as the link is by which the program
/// starts itself.
#[test]
fn a_run_that_was_started_to_survive_its_terminal_goes_on_and_its_processes_are_called_doorbell() {
    let stage = Stage::new();
    let mut command = with(hears_signals(Command::new("nohup")), &stage.words(LONG_TRIAL));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let run = Run { stage, child };
    // One side may work while the other has not yet begun its program, or not yet taken its name.
    wait_until("a host and two sides, each called doorbell", || {
        let trial = run.stage.trial_processes();
        let named = |process: &&i32| {
            let read = |what: &str| std::fs::read(format!("/proc/{process}/{what}")).unwrap_or_default();
            read("comm") == b"doorbell\n" && read("cmdline").starts_with(b"doorbell\0")
        };
        trial.len() == 3 && trial.iter().filter(named).count() == 3
    });
    signal(run.works(5).pid(), Signal::HUP);
    let before = run.stage.side_ticks(run.pid());
    run.works(before + 5).stage.processes();
    run.ended_by(Signal::INT).ended(130);
}

/// With a computing program on its CPU the primitive cost of a switch once came out as
/// milliseconds, and true round trips as impossible.
#[test]
fn one_long_trial_ends_early_on_ctrl_c_and_its_samples_are_kept() {
    // How many samples it kept, which are as many as rounds had ended.
    let kept_after = |ticks: &u64| {
        let run = Run::of(LONG_TRIAL);
        run.works(*ticks);
        let records = run.ended_by(Signal::INT).records();
        let futex = |record: &&Value| record["configuration"]["subject"] == "futex";
        let Some(record) = records.iter().find(futex) else { return 0 };
        // What a busy machine does to a figure is not this test's affair.
        let kinds = ["partial", "implausible"].map(Value::from);
        assert!(kinds.contains(&record["outcome"]["kind"]), "{record}");
        let samples = record["series"]["round-trip"]["count"].as_u64().unwrap_or(0);
        // Counters cover one round more in each slice than are timed.
        let slices = record["slices"]["rounds"].as_array().map_or(0, Vec::len) as u64;
        assert_eq!(record["tally"]["sent"].as_u64(), Some(samples + slices), "{record}");
        samples
    };
    // How much CPU time passes before the first sample is the
    // machine's affair: an emulated one took the first of these.
    assert!([20, 80, 320].iter().any(|ticks| kept_after(ticks) > 0));
}

#[test]
fn a_verb_that_judges_keeps_what_there_is_when_it_is_interrupted_before_there_is_anything_to_judge() {
    // `spin` and `gate` once ended with a usage error instead, and the result was lost.
    at_once(&["spin", "gate --max 1ms", "pick"], |verb| {
        if *verb == "spin" && std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
            return doorbell_skipped::skip("spin takes two CPUs");
        }
        // A busy machine may be beyond the primitive costs, which come first, before they are seen.
        let nothing_measured = || {
            let run = Run::of(&format!("{verb} --anyway --blocks 10000 --json --output -"));
            wait_until("a process of its own", || run.stage.processes().len() >= 2);
            let said = run.ended_by(Signal::INT).ended(130);
            assert_eq!(said.json()["partial"], true, "{verb}: {}", said.err);
            said.records().is_empty()
        };
        assert!((0..20).any(|_| nothing_measured()), "{verb}: never interrupted in the primitive costs");
    });
}

#[test]
fn a_side_that_is_killed_or_stopped_becomes_a_record_that_says_so() {
    // Three, so that nothing takes turns beside them that is in no row.
    let words =
        "ping futex pipe eventfd --placement same-core --gap 0 --time 600s --blocks 1 --json --output -";
    at_once(&[(Signal::KILL, "failed"), (Signal::STOP, "hung")], |(end, kind)| {
        let run = Run::of(words);
        let side = run.works(20).sides()[0];
        signal(side, *end);
        wait_until("the end of its trial", || !run.stage.trial_processes().contains(&side));
        let records = run.ended_by(Signal::INT).records();
        let found = records.iter().find(|record| record["outcome"]["kind"] == *kind);
        let outcome = &found.unwrap_or_else(|| panic!("none is {kind}: {records:?}"))["outcome"];
        if *kind == "hung" {
            assert_eq!(outcome["last_seen"].as_array().map(Vec::len), Some(2), "{outcome}");
        } else {
            assert!(outcome["cause"].as_str().unwrap().contains("killed by signal 9"), "{outcome}");
        }
    });
}

/// The exit status was 0 as long as any other trial had come to its end, and some verbs kept their
/// own count of what was not measured, or none.
#[test]
fn a_run_of_which_somebody_died_or_stood_still_ends_with_one_and_says_so() {
    let verbs = [
        "ping futex --gap 0 --time 2s --placement unpinned",
        "pairs futex --budget 10s",
        "fanout futex -n 3 --rounds 300 --interval 10ms",
        "tasks process-futex -n 10 --time 2s",
    ];
    for (end, told) in [(Signal::KILL, "1 failed or died"), (Signal::STOP, "1 hung")] {
        at_once(&verbs, |verb| {
            let run = Run::of(&format!("{verb} --blocks 1 -q --output -"));
            run.to_its_sides(end);
            let said = run.over().ended(1).err;
            assert!(said.contains(told), "{verb} {end:?}: {said}");
        });
    }
}

/// An interrupt was heard by the sides alone: one that stood still kept its run for as long as
/// without.
#[test]
fn an_interrupt_ends_a_trial_of_which_a_side_stands_still() {
    let verbs = [
        "ping futex --gap 0 --time 600s",
        "pairs futex --budget 600s",
        "fanout futex -n 3 --rounds 30000 --interval 10ms",
        "tasks process-futex -n 10 --time 600s",
    ];
    at_once(&verbs, |verb| {
        let ended_by_it = || {
            let run = Run::of(&format!("{verb} --blocks 1 -q --output -"));
            run.to_its_sides(Signal::STOP);
            let records = run.ended_by(Signal::INT).ended(130).json()["records"].to_string();
            records.contains("interrupted, and nobody moved")
        };
        // A side that is stopped as it begins is told of the interrupt by nobody: then it hangs.
        assert!((0..20).any(|_| ended_by_it()), "{verb}");
    });
}

/// A node that stands still now and then passed a limit of 50 ms, when a wake-up was counted from
/// its own notification: those that were due meanwhile were not missed by anybody.
#[test]
fn a_gate_fails_on_a_node_that_is_frozen_now_and_then() {
    let mut run =
        Run::of("gate --gap 1ms --time 3s --blocks 6 --max 50ms --placement unpinned --anyway --quiet");
    while run.child.try_wait().unwrap().is_none() {
        // The host goes on, as does a watchdog on a node whose other CPUs stand still.
        let sides = run.sides();
        sides.iter().for_each(|side| signal(*side, Signal::STOP));
        std::thread::sleep(Duration::from_millis(400));
        sides.iter().for_each(|side| signal(*side, Signal::CONT));
        std::thread::sleep(Duration::from_millis(100));
    }
    let said = run.over().ended(3).out;
    assert!(said.contains("50 ms"), "{said}");
}

/// Where a result was saved.
fn saved(told: &str) -> &str {
    told.lines().find_map(|line| line.strip_prefix("Saved as ")).expect(told)
}

/// What was measured was saved, and the next look at it did not say that it was less than had been
/// asked for; or it replaced the good result of an earlier run.
#[test]
fn an_interrupted_run_leaves_the_file_that_was_there_and_is_shown_again_as_partial() {
    let stage = Stage::new();
    let [good, empty] = ["good.json", "empty.json"].map(|name| stage.file(name));
    let before = std::fs::read(data("ping")).unwrap();
    std::fs::write(&good, &before).unwrap();
    std::fs::write(&empty, "").unwrap();
    let interrupted = |file: &str| {
        let run = Run::of(&format!("gate --max 1s --time 10m --placement unpinned --anyway -o {file}"));
        let (pid, Run { stage, child }) = (run.works(5).pid(), run);
        signal(pid, Signal::INT);
        let said = Said::from(child.wait_with_output().unwrap()).ended(130);
        stage.wait_until_empty();
        (stage, said)
    };
    let (own, said) = interrupted(&good);
    assert!(said.err.contains(&format!("{good} stays as it was")), "{}", said.err);
    assert_eq!(std::fs::read(&good).unwrap(), before);
    assert!(said.out.contains("Partial: the run was interrupted"), "{}", said.all());
    assert_eq!(own.run(&format!("show {}", saved(&said.err))).out, said.out);
    // An empty one was made to be filled.
    let (_, said) = interrupted(&empty);
    assert_eq!(saved(&said.err), empty);
    assert_eq!(stage.run(&format!("show {empty}")).out, said.out);
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
    let verbs = [
        "survey",
        "fanout --grid --interval 100ms",
        "gate --max 1s --time 10m --placement unpinned --anyway",
    ];
    for verb in verbs {
        at_once(&[(Signal::INT, 50), (Signal::TERM, 400), (Signal::HUP, 900)], |(end, milliseconds)| {
            let Run { stage, child } = Run::of(&format!("{verb} --quiet --output -"));
            if *milliseconds >= 400 {
                wait_until_it_listens(&child);
            }
            std::thread::sleep(Duration::from_millis(*milliseconds));
            signal(i32::try_from(child.id()).unwrap(), *end);
            let output = child.wait_with_output().unwrap();
            if output.status.signal().is_some() {
                // Before it listens.
                assert!(output.stdout.is_empty() && *milliseconds < 400, "{verb} {end:?}");
            } else {
                assert_eq!(Said::from(output).ended(130).json()["partial"], true, "{verb} {end:?}");
            }
            stage.wait_until_empty();
            assert!(stage.run_folders().is_empty(), "{:?}", stage.run_folders());
        });
    }
}
