// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell trace` on programs whose wake graph is known: this test
//! binary plays them, and counts what it does.
//!
//! Where the kernel's events cannot be had, each test says so and checks that the command does too.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::PoisonError;

use doorbell_harness::trace::Tracefs;
use doorbell_harness::trace::bpf::Bpf;
use doorbell_results::anatomy::program::{
    By, Edge, File, Herd, Mechanism, Object, Program, Sequence, Wait, Waker,
};
use doorbell_results::anatomy::{Mark, Wake};
use doorbell_results::record::read;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use crate::stage::{Said, Stage, copy_of_doorbell, data, wait_until};

mod own;
mod planted;

/// What of the environment names the planted program, and the file for its counts.
const PLANTED: &str = "DOORBELL_PLANTED";
const COUNTS: &str = "DOORBELL_PLANTED_COUNTS";

/// Whether trace events name tasks by the numbers that are used here: `PROC_PID_INIT_INO` (kernel
/// include/linux/proc_ns.h).
fn in_first_namespace() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

/// Runs `test` with the kernel's trace files in sight, on a thread
/// whose mounts end with it; else says why not.
fn with_events(test: impl FnOnce(&Tracefs) + Send + 'static) {
    let _alone = crate::anatomy::ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::spawn(move || {
        let (lack, named) = match Tracefs::reach() {
            Ok(tracefs) if in_first_namespace() => return test(&tracefs),
            Ok(_) => {
                ("trace events name tasks by the numbers of another PID namespace".into(), "PID namespace")
            }
            Err(error) => (error.to_string(), "tracefs"),
        };
        doorbell_skipped::skip(lack);
        let said = Stage::new().run("trace -- true").ended(4).err;
        assert!(said.contains(named), "{said}");
    })
    .join()
    .unwrap();
}

/// Runs `test` with each engine in turn, and says why not with one that cannot be had.
fn with_each_engine(test: impl Fn(&'static str) + Send + 'static) {
    with_events(move |_| {
        test("tracefs");
        match Bpf::load(false, None) {
            Ok(bpf) => {
                drop(bpf);
                test("bpf");
            }
            Err(error) => {
                doorbell_skipped::skip(&error);
                let said = Stage::new().run("trace --engine bpf -- true").ended(4).err;
                assert!(said.contains(&error.to_string()), "{said}");
            }
        }
    });
}

/// The words that have this binary play what the environment names.
fn player() -> String {
    let own = std::env::current_exe().unwrap();
    format!("{} --ignored --exact trace::the_planted_program --quiet --test-threads=1", own.display())
}

#[test]
#[ignore = "it is what the tests of `doorbell trace` record"]
fn the_planted_program() {
    let Ok(kind) = std::env::var(PLANTED) else {
        doorbell_skipped::skip("it is what the tests of `doorbell trace` record, and runs with them");
        return;
    };
    let counts = planted::play(&kind);
    let text: String = counts.iter().map(|(name, count)| format!("{name} {count}\n")).collect();
    std::fs::write(std::env::var(COUNTS).unwrap(), text).unwrap();
}

/// A planted program that was recorded.
struct Recording {
    stage: Stage,
    program: Program,
    /// What the program counted itself.
    counts: BTreeMap<String, u64>,
    lost: u64,
}

impl Recording {
    fn file(stage: &Stage) -> PathBuf {
        stage.path().join("trace.json")
    }

    /// Of `kind`, recorded by `engine` from its first instruction to its end.
    fn by(engine: &str, kind: &str) -> Self {
        let stage = Stage::new();
        let file = Self::file(&stage);
        let counted = stage.path().join("counts");
        let words = format!("trace --quiet --engine {engine} -o {} -- {}", file.display(), player());
        Said::by(stage.words(&words).env(PLANTED, kind).env(COUNTS, &counted)).ended(0);
        Self::read(stage, &counted)
    }

    /// Of a program that goes on.
    fn of(program: &Played, words: &str) -> Self {
        let stage = Stage::new();
        let (file, number) = (Self::file(&stage), program.0.id());
        stage.run(&format!("trace -q -p {number} -o {} {words}", file.display())).ended(0);
        assert!(Path::new(&format!("/proc/{number}")).exists(), "the program has ended");
        Self::read(stage, Path::new("/nowhere"))
    }

    fn read(stage: Stage, counted: &Path) -> Self {
        let result = read::read(&Self::file(&stage)).unwrap();
        let anatomy = result.records[0].anatomy.clone().unwrap();
        let counts = std::fs::read_to_string(counted).unwrap_or_default();
        let count = |line: &str| {
            let (name, count) = line.split_once(' ').unwrap();
            (name.to_owned(), count.parse().unwrap())
        };
        let counts = counts.lines().map(count).collect();
        Self { stage, program: anatomy.program.unwrap(), counts, lost: anatomy.counts.lost_events }
    }

    /// Wake-ups of `waiter`: all, and those on edges that are `right`.
    fn wakes(&self, waiter: &str, right: impl Fn(&Edge) -> bool) -> [u64; 2] {
        let of_it = |edge: &&Edge| edge.waiter == waiter;
        let sum = |edges: &mut dyn Iterator<Item = &Edge>| edges.map(|edge| edge.wakes).sum();
        let edges = || self.program.edges.iter().filter(of_it);
        [sum(&mut edges()), sum(&mut edges().filter(|edge| right(edge)))]
    }

    /// That at least 99 of 100 wake-ups of `waiter` are `right`, and
    /// as many within 1 % as the kernel counted sleeps of it, but for
    /// those whose waking was not told, which the recording counts.
    fn holds(&self, waiter: &str, right: impl Fn(&Edge) -> bool) {
        assert_eq!(self.lost, 0, "a test program leaves few events");
        let [all, right] = self.wakes(waiter, right);
        let (slept, untold) = (self.counts[waiter], self.program.incomplete);
        assert!(slept > 20, "{waiter} slept {slept} times");
        let told = || {
            let engine = self.program.engine;
            format!(
                "{engine:?}: {right} of {all} of {slept} of {waiter}, {untold} untold: {:#?}",
                self.short()
            )
        };
        assert!(untold * 10 <= slept, "{}", told());
        // One wake-up of another kind is no fault, however few there were.
        assert!(right + 1 >= all - all / 100, "{}", told());
        assert!(right.abs_diff(slept) <= 1 + slept / 100 + untold, "{}", told());
    }

    /// What `doorbell WORDS` says, FILE being the recording.
    fn shown(&self, words: &str) -> Said {
        Said::by(eighty_columns(
            &mut self.stage.words(&words.replace("FILE", &self.stage.file("trace.json"))),
        ))
    }

    fn short(&self) -> Vec<(&Waker, &str, &Mechanism, u64)> {
        let edges = self.program.edges.iter();
        edges.map(|edge| (&edge.waker, edge.waiter.as_str(), &edge.mechanism, edge.wakes)).collect()
    }
}

fn eighty_columns(command: &mut Command) -> &mut Command {
    command.env("COLUMNS", "80").env("LC_ALL", "C.UTF-8")
}

fn by_thread(edge: &Edge, name: &str) -> bool {
    edge.waker == Waker::Thread { name: name.to_owned() }
}

/// Whether the planted waker woke by its call, out of this wait and on such a thing.
fn called(edge: &Edge, wait: Wait, object: impl Fn(&Object) -> bool) -> bool {
    let Mechanism { wait: waited, object: on, by } = &edge.mechanism;
    by_thread(edge, "waker") && (*waited, *by) == (wait, By::Call) && object(on)
}

fn is_file(object: &Object, right: impl Fn(&File) -> bool) -> bool {
    matches!(object, Object::File { file, .. } if right(file))
}

fn is_socket(object: &Object, wanted: &str) -> bool {
    is_file(object, |file| matches!(file, File::Socket { family, .. } if family == wanted))
}

/// Whether the planted waiter is woken as it should be.
type Right = fn(&Edge) -> bool;

#[test]
fn wake_ups_of_every_kind_are_on_their_edge() {
    let futex: Right =
        |edge| called(edge, Wait::Futex, |object| matches!(object, Object::Futex { address: 1.. }));
    let kinds: [(&str, Right); 10] = [
        ("futex", futex),
        ("condition-variable", futex),
        ("eventfd", |edge| called(edge, Wait::Read, |object| is_file(object, |file| *file == File::Eventfd))),
        ("eventfd-epoll", |edge| {
            called(edge, Wait::Epoll, |object| is_file(object, |file| *file == File::Eventfd))
        }),
        ("pipe", |edge| called(edge, Wait::Read, |object| is_file(object, |file| *file == File::Pipe))),
        // By the sender, and not by the softirq.
        ("socketpair", |edge| called(edge, Wait::Read, |object| is_socket(object, "unix"))),
        ("tcp", |edge| called(edge, Wait::Read, |object| is_socket(object, "tcp"))),
        // By what was written to, and not by its completion.
        ("io-uring", |edge| {
            called(edge, Wait::IoUring, |object| is_file(object, |file| *file == File::Pipe))
        }),
        ("signal", |edge| {
            let number = i64::from(libc::SIGUSR1);
            by_thread(edge, "waker") && edge.mechanism.by == By::Signal { number }
        }),
        ("timer", |edge| {
            let Mechanism { wait, by, .. } = &edge.mechanism;
            edge.waker == Waker::Kernel && (*wait, *by) == (Wait::Sleep, By::Timer)
        }),
    ];
    with_each_engine(move |engine| {
        for (kind, right) in kinds {
            if kind == "io-uring"
                && let Err(error) = io_uring::IoUring::new(2)
            {
                doorbell_skipped::skip(format!("there is no io_uring to be had: {error}"));
                continue;
            }
            Recording::by(engine, kind).holds("waiter", right);
        }
        let chain = Recording::by(engine, "chain");
        for stage in 1..8 {
            let before = format!("stage{}", stage - 1);
            chain.holds(&format!("stage{stage}"), |edge| by_thread(edge, &before));
        }
    });
}

/// Debian's libraries have no frame pointers: the stacks go through them by their tables.
#[cfg(feature = "stacks")]
#[test]
fn the_functions_in_which_a_thread_sleeps_and_from_which_it_is_woken_are_on_its_edges_stacks() {
    with_events(|_| {
        if let Err(error) = Bpf::load(false, None) {
            doorbell_skipped::skip(error);
            return;
        }
        // It is there for as long as somebody looks at what it has mapped.
        let program = Played::start("for-ever");
        let recording = Recording::of(&program, "--stacks 1/8 --time 3s");
        let right = |edge: &Edge| edge.waiter == "waiter" && by_thread(edge, "waker");
        let place = recording.program.edges.iter().position(right).unwrap();
        let edge = &recording.program.edges[place];
        let stacks = recording.program.stacks.as_ref().unwrap();
        let told = || format!("{} of {}: {:#?} {stacks:#?}", edge.sampled, edge.wakes, edge.stacks);
        assert!(edge.sampled >= 3, "{}", told());
        let has = |stack: &[u32], name: &str| {
            stack.iter().any(|place| stacks.functions[*place as usize].contains(name))
        };
        let of_the_kernel = has(&edge.stacks[0].waiter, "_[k]");
        if !of_the_kernel {
            doorbell_skipped::skip("the kernel keeps the addresses of its functions from this user");
        }
        let right = |one: &&doorbell_results::anatomy::program::Sampled| {
            let asleep = has(&one.waiter, "planted::futex_wait") && has(&one.waiter, "planted::pair");
            let asleep = asleep && (!of_the_kernel || has(&one.waiter, "do_futex_[k]"));
            let woken = has(&one.waker, "planted::futex_wake") && has(&one.waker, "planted::pair");
            let woken = woken && (!of_the_kernel || has(&one.waker, "futex_wake_[k]"));
            // A waking that came before the thread slept has no stack.
            asleep && (woken || one.waker.is_empty())
        };
        let right: u64 = edge.stacks.iter().filter(right).map(|one| one.wakes).sum();
        let kept: u64 = edge.stacks.iter().map(|one| one.wakes).sum();
        assert!(right * 10 >= kept * 9, "{}", told());
        let text = recording.shown(&format!("trace show FILE --edge {}", Edge::letter(place))).out;
        assert!(text.contains("planted::futex_wait"), "{text}");
    });
}

#[test]
fn a_herd_is_counted_by_its_calls() {
    with_each_engine(|engine| {
        let recording = Recording::by(engine, "herd");
        // Now and then a call of another thread wakes three too: those that wait for the lock of the
        // process's memory, as they start or end.
        let planted = |herd: &&Herd| (herd.waker.as_str(), herd.waiter.as_str()) == ("waker", "waiter");
        let herd = recording.program.herds.iter().find(planted);
        let herd = herd.unwrap_or_else(|| panic!("{:?}", recording.program.herds));
        // The kernel says of each call how many it woke, which may still have been on their way to sleep.
        for (found, counted) in
            [(herd.calls, recording.counts["calls"]), (herd.woken, recording.counts["woken"])]
        {
            assert!(counted > 100 && found.abs_diff(counted) * 100 <= counted, "{found} of {counted}");
        }
    });
}

#[test]
fn a_lost_wake_up_that_a_time_out_rescues_is_found_each_time() {
    with_each_engine(|engine| {
        let recording = Recording::by(engine, "rescue");
        let edges = recording.program.edges.iter().filter(|edge| edge.waiter == "waiter");
        let rescued: u64 = edges.map(|edge| edge.rescued).sum();
        let [counted, perhaps] = ["rescued", "perhaps"].map(|name| recording.counts[name]);
        assert!(counted >= 100, "{counted} messages");
        // A sleep whose waking the kernel did not tell is counted, and nobody knows how it ended.
        let incomplete = recording.program.incomplete;
        let (least, most) =
            ((counted - counted / 100).saturating_sub(incomplete), counted + perhaps + counted / 100);
        let told = || format!("{engine}: {rescued} of {counted} and {perhaps}, {incomplete} incomplete");
        assert!((least..=most).contains(&rescued), "{}", told());
    });
}

#[test]
fn threads_that_hand_a_lock_on_are_a_convoy_and_one_that_asks_in_vain_spins() {
    with_each_engine(|engine| {
        let recording = Recording::by(engine, "convoy");
        let [convoy, ..] = &recording.program.convoys[..] else { panic!("{:#?}", recording.short()) };
        let found = (convoy.waiter.as_str(), convoy.threads);
        assert_eq!(found, ("locker", recording.counts["threads"]), "{engine}: {convoy:?}");
        let text = recording.shown("show FILE --details").out;
        assert!(text.contains("Convoy: 4 threads"), "{text}");
    });
    // Calls that sleep in nothing and wake nobody are seen by trace events alone.
    with_events(|_| {
        let recording = Recording::by("tracefs", "spin");
        let asker = recording.program.threads.iter().find(|threads| threads.name == "asker").unwrap();
        let asked = recording.counts["asked"];
        assert!(asker.asked_in_vain.abs_diff(asked) * 100 <= asked, "{asker:?} of {asked}");
    });
}

#[test]
fn the_slowest_wake_ups_of_an_edge_are_shown_with_their_stages() {
    with_each_engine(|engine| {
        let recording = Recording::by(engine, "pipe");
        let right = |edge: &Edge| edge.waiter == "waiter" && by_thread(edge, "waker");
        let place = recording.program.edges.iter().position(right).unwrap();
        let (edge, letter) = (&recording.program.edges[place], Edge::letter(place));
        assert_eq!(edge.slowest.len(), 5);
        let times: Vec<u64> = edge.slowest.iter().map(wake_ps).collect();
        // Marks are rounded to the picosecond.
        assert!(times.is_sorted_by(|one, next| one + 1 >= *next), "{times:?}");
        let max_ps = (edge.took.max_ns * 1e3) as u64;
        assert!(times[0].abs_diff(max_ps) * 50 <= max_ps, "{times:?}, and the edge's longest {max_ps}");
        for wake in &edge.slowest {
            assert!(wake.marks.is_sorted_by_key(|passed| passed.at_ps), "{wake:?}");
            assert!(wake.events.iter().all(|event| event.cpu < 4096), "{wake:?}");
        }
        let text = recording.shown(&format!("trace show FILE --edge {letter}")).ended(0).out;
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains(&format!("Edge {letter}: waker wakes waiter by pipe")), "{text}");
        let shown = text.lines().filter(|line| line.starts_with("Wake-up ") && line.contains("stages in"));
        assert_eq!(shown.count(), 5, "{text}");
        let none = recording.shown("trace show FILE --edge ZZZ").ended(4).err;
        assert!(none.contains("it has no such edge"), "{none}");
        if engine == "tracefs" {
            every_change_is_answered_or_refused_by_what_was_measured_here_once(&recording, &letter);
        }
    });
}

fn every_change_is_answered_or_refused_by_what_was_measured_here_once(recording: &Recording, letter: &str) {
    let mut measured = None;
    for change in ["mechanism=futex", "pin=0,0", "spin=20us", "batch=1ms"] {
        let said = recording.shown(&format!("trace whatif FILE --edge {letter} {change}"));
        if said.status == Some(4) {
            assert!(said.out.contains("is not known: "), "{change}: {}", said.out);
            continue;
        }
        let text = said.ended(0).out;
        assert!(text.contains("p99"), "{change}: {text}");
        let costs = recording.stage.path().join("doorbell/wake-costs.json");
        let when = std::fs::metadata(costs).unwrap().modified().unwrap();
        assert_eq!(*measured.get_or_insert(when), when, "{change} measured again");
    }
}

/// From the waking to the CPU's turning to the waiter, or to the first thing that it did.
fn wake_ps(wake: &Wake) -> u64 {
    let came = wake.at(Mark::ScheduledIn).or_else(|| wake.at(Mark::UserMode)).unwrap();
    came.abs_diff(wake.at(Mark::Issued).unwrap())
}

#[test]
fn the_result_is_an_ordinary_one_that_leaves_for_other_tools_and_answers_what_if() {
    with_events(|_| {
        let recording = Recording::by("tracefs", "futex");
        let text = recording.shown("show FILE").ended(0).out;
        assert!(text.lines().count() <= 20 && text.contains("no event lost"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(recording.shown("report FILE -o -").ended(0).out.contains("waker"));
        let text = recording.shown("trace export folded FILE").ended(0).out;
        assert!(text.contains(";waiter;futex_0x…"), "{text}");
        let chrome = recording.shown("trace export chrome FILE").ended(0).json();
        assert!(chrome["traceEvents"].as_array().unwrap().len() > 100, "{chrome}");
        let ping = recording.stage.run(&format!("trace export folded {}", data("ping"))).err;
        assert!(ping.contains("no recorded program"), "{ping}");
        let letter = planted_edge(&recording);
        let costs = "--hand-over 240ns --sleep-cost 5us";
        let said = recording.shown(&format!("trace whatif FILE --edge {letter} spin=1s {costs}"));
        let text = &said.out;
        match said.status {
            // Whatever a busy machine did to the sleeps is told as the reason.
            Some(4) => assert!(text.contains("is not known: "), "{text}"),
            status => assert!(status == Some(0) && text.contains("100 %") && text.contains("p99"), "{text}"),
        }
    });
}

/// The letter of the planted waiter's edge.
fn planted_edge(recording: &Recording) -> String {
    let right = |edge: &Edge| called(edge, Wait::Futex, |_| true) && edge.waiter == "waiter";
    Edge::letter(recording.program.edges.iter().position(right).unwrap())
}

/// What `whatif` is asked of the planted waiter's edge of a recording, followed by `run`.
fn asked_of(recording: &Recording, words: &str, run: &str) -> Command {
    let (letter, file) = (planted_edge(recording), recording.stage.file("trace.json"));
    let words = format!("trace whatif {file} --edge {letter} {words} --verify --blocks 2 -- {run}");
    let mut command = recording.stage.words(&words);
    eighty_columns(&mut command).env(COUNTS, recording.stage.path().join("counts"));
    command
}

/// The same, of the planted program.
fn verify(recording: &Recording, words: &str, kind: &str) -> Said {
    Said::by(asked_of(recording, words, &player()).env(PLANTED, kind))
}

/// Whether a recording of a machine that did other things meanwhile told too little to predict.
fn refused(said: &Said) -> bool {
    let refused = said.status == Some(4) && said.out.contains("is not known: ");
    if refused {
        doorbell_skipped::skip(said.out.trim());
    }
    refused
}

/// That of two blocks each has a run with the change, whose two threads alone have become `wanted`.
fn made_to_half(recording: &Recording, wanted: &str) {
    let file = recording.stage.path().join("counts.runs");
    let runs = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    let changed: Vec<bool> = runs.lines().map(|line| line.starts_with("true")).collect();
    assert_eq!(changed.len(), 4, "{runs}");
    assert!(changed[0] != changed[1] && changed[2] != changed[3], "a block has both: {runs}");
    for line in runs.lines() {
        let has = |thread: &str| thread.split(' ').any(|part| part == wanted);
        let [kind, waiter, waker, main] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{runs}") };
        let is_changed = kind == "true";
        let right = [has(waiter), has(waker), has(main)] == [is_changed, is_changed, false];
        assert!(right, "{wanted} have those that are changed: {runs}");
    }
}

#[test]
fn what_is_asked_is_held_against_runs_in_turn_with_the_change_and_without() {
    with_each_engine(|engine| {
        let recording = Recording::by(engine, "futex");
        a_prediction_is_made_to_half_of_the_runs_and_what_came_stands_beside_it(&recording, engine);
        programs_that_never_end_are_ended_and_a_batch_is_made_as_the_user_says(&recording, engine);
        if engine == "tracefs" {
            scheduler_nice_value_and_timer_slack_are_tried_where_nothing_predicts_what_they_do(&recording);
            a_change_that_is_refused_or_made_to_nobody_ends_the_command_and_says_whom(&recording);
        }
    });
}

fn a_prediction_is_made_to_half_of_the_runs_and_what_came_stands_beside_it(
    recording: &Recording,
    engine: &str,
) {
    let result = recording.stage.file("verified.json");
    // A changed run goes on until somebody has pinned it.
    let with = format!("--with {}=cpus:1 -o {result}", planted::CHANGED);
    let said = verify(recording, &format!("pin=0,0 --time 60s --engine {engine} {with}"), "changed");
    if refused(&said) {
        return;
    }
    let text = said.ended_with_one_of(&[0, 3, 4]).out;
    assert!(text.contains("Real, 4 runs") && text.contains("A run took"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    if std::thread::available_parallelism().unwrap().get() > 1 {
        made_to_half(recording, "cpus:1");
    }
    let shown = recording.shown(&format!("show {result}")).ended(0).out;
    assert!(shown.contains("predicted"), "{shown}");
    assert!(text.ends_with(&shown), "what is shown again is what was said: {text}\n{shown}");
}

fn scheduler_nice_value_and_timer_slack_are_tried_where_nothing_predicts_what_they_do(recording: &Recording) {
    let letter = planted_edge(recording);
    let result = recording.stage.file("verified.json");
    for (change, wanted) in
        [("nice=5", "nice:5"), ("scheduler=batch", "policy:3"), ("timer_slack=1ms", "slack:1000000")]
    {
        let text = recording.shown(&format!("trace whatif FILE --edge {letter} {change}")).ended(4).out;
        assert!(text.contains("`--verify -- COMMAND`"), "{text}");
        let with = format!("--with {}={wanted} -o {result}", planted::CHANGED);
        let said = verify(recording, &format!("{change} --time 60s {with}"), "changed");
        if said.err.contains("was refused for thread") {
            doorbell_skipped::skip(said.err);
            continue;
        }
        let text = said.ended(0).out;
        assert!(text.contains("Tried, and not predicted") && text.contains("Real, 4 runs"), "{text}");
        made_to_half(recording, wanted);
        assert_eq!(recording.shown(&format!("show {result}")).ended(0).out, text);
    }
    for words in [format!("report {result} -o -"), format!("compare {result} {result}")] {
        let text = recording.shown(&words).out;
        assert!(text.contains("timer_slack=1ms"), "{words}: {text}");
    }
    let with = format!("--with {}=nice:5", planted::CHANGED);
    let json = verify(recording, &format!("nice=5 --json --time 60s {with}"), "changed").json();
    assert_eq!(json["plan"]["question"]["change"], "nice=5", "{json}");
}

fn a_change_that_is_refused_or_made_to_nobody_ends_the_command_and_says_whom(recording: &Recording) {
    let result = recording.stage.path().join("refused.json");
    for change in ["nice=-10", "scheduler=fifo:10", "timer_slack=1us"] {
        // A changed run goes on until it is ended.
        let with = format!("--with {}=never -o {}", planted::CHANGED, result.display());
        let mut command = asked_of(recording, &format!("{change} --time 60s {with}"), &player());
        command.env(PLANTED, "changed");
        let without_rights = || {
            use rustix::process::{Resource, Rlimit, setrlimit};
            // Whoever may not give it up has not got it.
            let _ = remove_capability_from_bounding_set(CapabilitySet::SYS_NICE);
            for resource in [Resource::Nice, Resource::Rtprio] {
                setrlimit(resource, Rlimit { current: Some(0), maximum: Some(0) })?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec; it makes system calls alone.
        let told = Said::by(unsafe { command.pre_exec(without_rights) }).ended(4).err;
        let named = ["'waiter'", "'waker'"].iter().any(|name| told.contains(name));
        assert!(told.contains(&format!("{change} was refused for thread")) && named, "{told}");
        assert!(told.contains("CAP_SYS_NICE") && !result.exists(), "{told}");
    }
    let told = Said::by(&mut asked_of(recording, "nice=5 --time 60s", "sleep 0.1")).ended(4).err;
    assert!(told.contains("no thread called 'wa"), "{told}");
}

fn programs_that_never_end_are_ended_and_a_batch_is_made_as_the_user_says(
    recording: &Recording,
    engine: &str,
) {
    let words = format!("batch=1ms --time 300ms --engine {engine} --hand-over 240ns --sleep-cost 5us");
    let told = verify(recording, &words, "for-ever").ended(2).err;
    assert!(told.contains("--with"), "{told}");
    let said = verify(recording, &format!("{words} --with GATHER_US=1000"), "for-ever");
    recording.stage.wait_until_empty();
    if refused(&said) {
        return;
    }
    let text = said.ended_with_one_of(&[0, 3, 4]).all();
    // On a machine that stood still for all of a run, it has no wake-up.
    let told = ["wake-ups/s", "What came cannot be told"].iter().any(|part| text.contains(part));
    assert!(told, "{text}");
}

/// A planted program that ends with its test.
struct Played(std::process::Child);

impl Played {
    fn start(kind: &str) -> Self {
        let player = player();
        let mut words = player.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words).env(PLANTED, kind).env(COUNTS, "/dev/null").stdout(Stdio::null());
        let played = Self(command.spawn().unwrap());
        let task = format!("/proc/{}/task", played.0.id());
        wait_until("the planted threads", || std::fs::read_dir(&task).unwrap().count() >= 3);
        played
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_that_runs_already_is_recorded_by_its_number_goes_on_and_for_a_share_of_its_time() {
    with_each_engine(|engine| {
        let program = Played::start("for-ever");
        let recording = Recording::of(&program, &format!("--engine {engine} --time 2s"));
        let [all, right] = recording.wakes("waiter", |edge| called(edge, Wait::Futex, |_| true));
        // One wake-up of another kind is no fault, however few there were.
        assert!(all > 20 && right + 1 >= all - all / 100, "{right} of {all}: {:#?}", recording.short());
        a_share_of_the_time_is_recorded_in_slices_by_bpf_alone(&program, engine);
    });
}

fn a_share_of_the_time_is_recorded_in_slices_by_bpf_alone(program: &Played, engine: &str) {
    let stage = Stage::new();
    let file = stage.file("trace.json");
    let record = |duty| {
        let number = program.0.id();
        stage.run(&format!("trace -q --engine {engine} -p {number} --time 2s --duty {duty} -o {file}"))
    };
    assert!(record("100%").err.contains("without --duty"));
    let said = record("25%");
    if engine == "tracefs" {
        let said = said.ended(4).err;
        assert!(said.contains("BPF alone"), "{said}");
        return;
    }
    said.ended(0);
    // A machine that stands still meanwhile lets no slice see much.
    wait_until("slices with wake-ups in them", || {
        let result = read::read(Path::new(&file)).unwrap();
        let program = result.records[0].anatomy.as_ref().unwrap().program.as_ref().unwrap();
        program.wakes > 100 || record("25%").status != Some(0)
    });
    let recording = Recording::read(stage, Path::new("/nowhere"));
    let Program { recorded_ns, lasted_ns, sequences, .. } = &recording.program;
    assert!(lasted_ns.is_some_and(|lasted_ns| lasted_ns > *recorded_ns), "{recorded_ns} {lasted_ns:?}");
    let [all, right] = recording.wakes("waiter", |edge| called(edge, Wait::Futex, |_| true));
    assert!(all > 20 && right as f64 >= 0.99 * all as f64, "{right} of {all}: {:#?}", recording.short());
    // What was between two slices is in no wait: together they are no longer than the slices.
    let lasted = |one: &Sequence| one.slept_ns.iter().chain(&one.took_ns).chain(&one.awake_ns).sum::<u64>();
    assert!(sequences.iter().all(|one| lasted(one) <= *recorded_ns), "{recorded_ns}");
    let text = recording.shown("show FILE").ended(0).out;
    assert!(text.contains("% of "), "{text}");
    let told = recording.shown("trace export chrome FILE").err;
    assert!(told.contains("in slices"), "{told}");
}

#[test]
fn a_recorder_that_is_killed_harms_nobody_and_what_it_left_is_removed() {
    with_each_engine(|engine| {
        let stage = Stage::new();
        let mut command = stage.words(&format!("trace --quiet --engine {engine} -- {}", player()));
        let counts = stage.path().join("counts");
        let mut recorder = command.env(PLANTED, "for-ever").env(COUNTS, &counts).spawn().unwrap();
        let id = i32::try_from(recorder.id()).unwrap();
        let prefix = format!("doorbell-{id}-");
        let instances = || {
            let folder = Tracefs::reach().unwrap().folder().join("instances");
            let names = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name());
            names.filter(|name| name.to_str().unwrap().starts_with(&prefix)).count()
        };
        let program = || stage.processes().into_iter().find(|pid| *pid != id);
        wait_until("the program", || program().is_some() && (engine == "bpf" || instances() == 1));
        let there = in_the_kernel();
        kill_process(Pid::from_raw(id).unwrap(), Signal::KILL).unwrap();
        recorder.wait().unwrap();
        let program = Pid::from_raw(program().unwrap()).unwrap();
        assert!(test_kill_process(program).is_ok(), "the program died with its recorder");
        if engine == "tracefs" {
            // Nobody could remove it; a recorder of another suite may have.
            assert!(instances() <= 1);
            Stage::new().run("trace --quiet -- true").ended(0);
            assert_eq!(instances(), 0, "the next recorder left the dead one's instance");
        } else if there == 0 {
            doorbell_skipped::skip("this kernel does not list BPF programs among its functions");
        } else {
            wait_until("the kernel's letting go of the programs", || in_the_kernel() == 0);
        }
        kill_process(program, Signal::KILL).unwrap();
        stage.wait_until_empty();
    });
}

/// Programs of this command's that the kernel has, as it names them among its own functions.
fn in_the_kernel() -> usize {
    let names = std::fs::read_to_string("/proc/kallsyms").unwrap();
    names.lines().filter(|line| line.contains("_doorbell\t[bpf]")).count()
}

#[test]
fn an_engine_that_is_asked_for_by_name_is_never_replaced_and_else_the_reason_is_said() {
    with_each_engine(|engine| {
        if engine == "tracefs" {
            return;
        }
        let stage = Stage::new();
        let said = as_nobody(&stage, "trace --engine bpf -- true").ended(4).err;
        assert!(said.contains("CAP_BPF") && !said.contains("tracefs ("), "{said}");
        let said = as_nobody(&stage, "trace -- true").ended(4).err;
        assert!(said.contains("tracefs") && said.contains("--engine own"), "{said}");
    });
}

/// `doorbell WORDS` by an ordinary user, which this one is unless it is root.
fn as_nobody(stage: &Stage, words: &str) -> Said {
    // Where such a user may run it from: the build folder may be private to root.
    let copy = stage.path().join("doorbell-copy");
    if !copy.exists() {
        copy_of_doorbell(&copy);
        std::fs::set_permissions(stage.path(), PermissionsExt::from_mode(0o777)).unwrap();
    }
    let mut command = Command::new(&copy);
    command.args(words.split_whitespace()).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", stage.path()).env("XDG_STATE_HOME", stage.path());
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    Said::by(eighty_columns(&mut command))
}

#[test]
fn what_cannot_be_recorded_is_said_by_name() {
    with_events(|_| {
        for (words, part) in [
            ("trace", "doorbell trace -- COMMAND"),
            ("trace -p 4194304", "no process 4194304"),
            ("trace -- /no/such/program", "cannot start '/no/such/program'"),
            ("trace whatif /dev/null --edge A spin=1us", "/dev/null"),
            ("trace whatif x --edge A swim=1us", "spin=18us"),
            ("trace whatif x --edge A pin=0", "pin=0,0"),
            ("trace whatif x --edge A busy_poll=50us", "SO_BUSY_POLL"),
            ("trace whatif x --edge A pin=0,0 --verify", "COMMAND"),
            ("trace whatif x --edge A mechanism=spin", "does not sleep"),
        ] {
            let said = Stage::new().run(words);
            assert!(said.status != Some(0) && said.err.contains(part), "{words}: {}", said.err);
        }
    });
}
