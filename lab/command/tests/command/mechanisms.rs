// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every mechanism this machine has, in trials between real processes
//! and threads, and what it leaves behind.

use std::collections::BTreeSet;
use std::fs;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use doorbell_harness::run_dir::Note;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Outcome, Record, ResultFile};
use doorbell_subjects::mechanism::{self, Contexts, Entry, Waits};
use rustix::process::{Pid, Signal, kill_process};

use super::stage::{Stage, measured, wait_until};

const BOTH: &str = "processes,threads";

/// Measured by name alone, and tried with all others; what is above sockets or has a network device
/// of its own is tried elsewhere.
const BY_NAME: &[&str] = &[
    "futex-membarrier",
    "futex-waitv",
    "uintr-by-signals",
    "uintr-by-signals-wait",
    "uintr-by-signals-epoll",
];

fn tried() -> impl Iterator<Item = &'static dyn Entry> {
    let by_name = BY_NAME.iter().map(|name| mechanism::find(name).unwrap());
    mechanism::usual().chain(by_name)
}

/// Runs `doorbell ping` with `words` for all of them and hands over
/// the records of the mechanisms this machine has.
fn ping_all(words: &str) -> Vec<Record> {
    let words = format!("ping all {} --blocks 1 --contexts {BOTH} {words}", BY_NAME.join(" "));
    let records = measured(&words).result().records;
    records.into_iter().filter(|record| !matches!(record.outcome, Outcome::Skipped { .. })).collect()
}

/// The configuration in words, for a message.
fn name(record: &Record) -> String {
    format!(
        "{} between {:?}: {:?} {:?}",
        record.configuration.subject, record.configuration.contexts, record.outcome, record.tally
    )
}

fn waits(record: &Record) -> Waits {
    record.subject.notification().unwrap().waits
}

/// Every mechanism that is here must be among `records` for each kind
/// of side it joins, unless `left_out` says so.
fn all_are_there(records: &[Record], left_out: impl Fn(Waits) -> bool) {
    for entry in tried() {
        for contexts in [Contexts::Processes, Contexts::Threads] {
            let expected = entry.available().is_ok()
                && entry.notification().joins(contexts)
                && !left_out(entry.notification().waits);
            let there = records.iter().any(|record| {
                record.configuration.subject == entry.name() && record.configuration.contexts == contexts
            });
            assert_eq!(there, expected, "{} between {contexts:?}", entry.name());
        }
    }
}

/// It ran to its end, and every notification was seen once.
fn nothing_was_lost(record: &Record, count: u64) {
    // What a busy machine does to a figure is not this test's affair; that it hung or failed is.
    assert!(matches!(record.outcome, Outcome::Done | Outcome::Implausible { .. }), "{}", name(record));
    if waits(record) != Waits::Nothing {
        // Counters of slices cover one round more than are timed, and of those that spin two.
        let more = if record.slices.is_empty() { 0 } else { 2 * record.slices.len() as u64 };
        assert!((count..=count + more).contains(&record.tally.sent), "{}", name(record));
        assert_eq!(record.tally.seen, record.tally.sent, "{}", name(record));
        assert_eq!((record.tally.lost, record.tally.duplicate), (0, 0), "{}", name(record));
    }
}

/// Runs ping-pongs on one core.
fn on_one_core(words: &str) -> ResultFile {
    measured(&format!("ping --gap 0 --placement same-core {words}")).result()
}

/// The same of a pipe, and hands over its record.
fn of_a_pipe(words: &str) -> Record {
    let mut records = on_one_core(&format!("pipe --blocks 1 {words}")).records.into_iter();
    records.find(|record| record.configuration.subject == "pipe").unwrap()
}

/// Switches of both sides.
fn switches(record: &Record) -> u64 {
    record.sides.iter().map(|side| side.voluntary_switches + side.involuntary_switches).sum()
}

#[test]
fn all_rounds_of_a_trial_of_its_own_are_recorded_and_counters_cover_them() {
    for contexts in ["processes", "threads"] {
        let record = of_a_pipe(&format!("--alone --count 20000 --contexts {contexts}"));
        assert_eq!(record.tally.sent, 20_000);
        assert_eq!(record.series[&Quantity::RoundTrip].count, 20_000);
        // Each round is two wakes of one sleeper each.
        assert!(switches(&record) < 48_000, "{} switches", switches(&record));
    }
}

/// Processes and threads have a pair each: where both counted their turns from the first, what
/// shared none was held to have shared all.
#[test]
fn turns_of_two_pairs_of_a_block_have_no_number_in_common() {
    let result = on_one_core("pipe --contexts processes,threads --blocks 2");
    for block in 0..2 {
        let of = |contexts| {
            let records = result
                .records
                .iter()
                .filter(move |record| record.block == block && record.configuration.contexts == contexts);
            records.flat_map(|record| &record.slices).map(|slice| slice.turn).collect::<BTreeSet<u32>>()
        };
        let [processes, threads] = [Contexts::Processes, Contexts::Threads].map(of);
        assert!(!processes.is_empty() && !threads.is_empty());
        assert!(processes.is_disjoint(&threads), "{processes:?} and {threads:?}");
    }
}

#[test]
fn round_trips_in_slices_are_as_many_as_were_asked_for_and_counters_cover_them() {
    for contexts in ["processes", "threads"] {
        let record = of_a_pipe(&format!("--count 20000 --contexts {contexts}"));
        let timed: u64 = record.slices.iter().map(|slice| u64::from(slice.rounds)).sum();
        assert_eq!((timed, record.series[&Quantity::RoundTrip].count), (20_000, 20_000));
        assert_eq!(record.tally.sent, 20_000 + record.slices.len() as u64);
        assert!(record.slices.iter().all(|slice| slice.slept.is_some() && slice.middle_ns > 0.0));
        // Each round is two wakes of one sleeper each; what is not recorded would add an eighth.
        assert!(switches(&record) < 44_000, "{} switches", switches(&record));
    }
}

#[test]
fn a_run_of_a_few_rounds_is_one_slice() {
    let record = of_a_pipe("--count 2");
    assert_eq!((record.slices.len(), record.series[&Quantity::RoundTrip].count), (1, 2));
}

#[test]
fn what_takes_turns_is_told_with_its_place_in_them() {
    let result = on_one_core("futex pipe sched-yield --blocks 2 --time 30ms");
    let bench = result.plan.bench.unwrap();
    assert_eq!(bench.turns.len(), 2, "what sleeps and what spins: {bench:?}");
    for turn in &bench.turns {
        for block in 0..2 {
            let mut places: Vec<(u32, u32)> = Vec::new();
            for place in &turn.configurations {
                let configuration = &result.plan.configurations[*place as usize];
                let own = |record: &&Record| record.block == block && record.configuration == *configuration;
                let record = result.records.iter().find(own).unwrap();
                places.extend(record.slices.iter().map(|slice| (slice.turn, slice.place)));
            }
            let count = places.len();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), count, "no two slices have one place");
        }
    }
}

/// One slice of a long gap is one wake-up, and each is seen by its waiter.
#[test]
fn wakes_after_gaps_take_turns_too_and_each_slice_of_a_long_gap_is_one_of_them() {
    let words = "ping futex pipe --gap 100us,20ms --placement same-core --blocks 1 --time 60ms";
    let result = measured(words).result();
    let waiting = result.records.iter().filter(|record| waits(record) == Waits::Blocks);
    for record in waiting {
        let wakes: u64 = record.slices.iter().map(|slice| u64::from(slice.rounds)).sum();
        let ran = matches!(record.outcome, Outcome::Done | Outcome::Implausible { .. });
        assert!(wakes > 0 && ran, "{}", name(record));
        assert_eq!(record.series[&Quantity::Wake].count, wakes, "{}", name(record));
        assert_eq!((record.tally.sent, record.tally.seen), (wakes, wakes), "{}", name(record));
        if record.configuration.pattern.gap_ns() > 1_000_000 {
            assert!(record.slices.iter().all(|slice| slice.rounds == 1), "{}", name(record));
        }
    }
}

/// By itself nothing could say whether the machine or the mechanism has changed between two runs.
#[test]
fn what_has_nobody_to_take_turns_with_is_accompanied_and_the_rows_are_those_that_were_asked_for() {
    let result = on_one_core("pipe --blocks 2 --time 10ms");
    let subjects: Vec<&str> =
        result.plan.configurations.iter().map(|configuration| configuration.subject.as_str()).collect();
    assert_eq!(subjects, ["pipe", "null"]);
    assert!(result.records.iter().all(|record| subjects.contains(&&*record.configuration.subject)));
    let mut beside: Vec<(u32, &str)> =
        result.beside.iter().map(|one| (one.block, one.configuration.subject.as_str())).collect();
    beside.sort_unstable();
    assert_eq!(beside, [(0, "eventfd"), (0, "futex"), (1, "eventfd"), (1, "futex")]);
}

#[test]
fn a_ping_pong_of_every_mechanism_ends_with_all_it_sent_seen() {
    let records = ping_all("--gap 0 --count 50");
    all_are_there(&records, |_| false);
    for record in &records {
        nothing_was_lost(record, 50);
    }
}

#[test]
fn a_waiter_that_only_looks_sees_every_notification() {
    // Where both sides share a core, each round takes two time slices.
    let records = ping_all("--gap 0 --count 8 --wait spin");
    for record in &records {
        nothing_was_lost(record, 8);
    }
}

#[test]
fn timed_waits_that_run_out_lose_nothing() {
    let records = ping_all("--gap 2ms --pattern one-way --count 6 --wait timeout=200us");
    all_are_there(&records, |_| false);
    for record in &records {
        nothing_was_lost(record, 6);
    }
    // A waiter that a busy machine holds up finds its notification there when its time has run out: one
    // trial may be without a time-out, all of them are not.
    assert!(records.iter().any(|record| waits(record) == Waits::Blocks && record.tally.timeouts > 0));
}

#[test]
fn notifications_that_outrun_the_waiter_are_kept_as_the_mechanism_says() {
    let cpu = first_cpu();
    // Few enough for the smallest queue that drops in place of blocking, a UDP socket's.
    let records = ping_all(&format!("--gap 1us --pattern open-loop --count 100 --cpus {cpu},{cpu}"));
    for record in &records {
        nothing_was_lost(record, 100);
        if !record.subject.notification().unwrap().coalesces {
            assert_eq!(record.tally.merged, 0, "{}", name(record));
        }
    }
}

/// Such a trial once waited for what would never come, and was called hung.
#[test]
fn what_a_full_socket_buffer_drops_is_counted_as_lost() {
    if let Err(lack) = mechanism::find("udp").unwrap().available() {
        return doorbell_skipped::skip(lack);
    }
    let cpu = first_cpu();
    let words = "ping udp --gap 1us --pattern open-loop --count 6000 --blocks 1";
    let result = measured(&format!("{words} --cpus {cpu},{cpu}")).result();
    let record = result.records.iter().find(|record| record.configuration.subject == "udp").unwrap();
    assert!(matches!(record.outcome, Outcome::Done | Outcome::Implausible { .. }), "{}", name(record));
    // How many fit is the system's choice (net.core.rmem_default); that none goes unnoticed is ours.
    assert_eq!(record.tally.seen + record.tally.lost, record.tally.sent, "{}", name(record));
}

#[test]
fn a_waiter_that_is_said_to_block_really_sleeps() {
    let count = 60;
    let records = ping_all("--gap 10us --timing blocked --count 60");
    all_are_there(&records, |waits| waits != Waits::Blocks);
    for record in &records {
        nothing_was_lost(record, count);
        let asleep = record.tally.proven_asleep;
        let switches = record.sides[1].voluntary_switches;
        // A busy machine may keep the waiter from its sleep for longer than
        // the proof is waited for, and a wake that falls between the mark
        // of sleep and the switch itself costs no switch; both are rare.
        assert!(asleep > 0, "{}", name(record));
        assert!(switches + 1 + asleep / 10 >= asleep, "{switches} switches; {}", name(record));
    }
}

fn first_cpu() -> usize {
    let mask = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| mask.is_set(*cpu)).unwrap()
}

/// Trials of the mechanisms whose objects outlive their processes.
fn persistent(time: &str, blocks: u32) -> String {
    let mechanisms = "sem-posix-named sem-sysv mq-posix mq-sysv fifo";
    format!("ping {mechanisms} --gap 0 --time {time} --blocks {blocks} --contexts {BOTH} --json --output -")
}

/// The objects noted in the run folders that are there now.
fn notes(stage: &Stage) -> BTreeSet<String> {
    let folders = stage.run_folders().into_iter().map(|run| stage.path().join("doorbell").join(run));
    let texts = folders.filter_map(|folder| fs::read_to_string(folder.join("notes")).ok());
    texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Whether the noted object is there.
fn exists(note: &str) -> bool {
    let Ok(note) = serde_json::from_str::<Note>(note) else {
        // A line cut by a kill names nothing: the object is made only after its whole line was written.
        return false;
    };
    match note {
        Note::Semaphore(name) => {
            fs::exists(format!("/dev/shm/sem.{}", name.trim_start_matches('/'))).unwrap()
        }
        Note::MessageQueue(name) => {
            let name = std::ffi::CString::new(name).unwrap();
            // SAFETY: the name lives through the call; the descriptor, if any, is closed at once.
            unsafe {
                let queue = libc::mq_open(name.as_ptr(), libc::O_RDONLY);
                queue >= 0 && libc::mq_close(queue) == 0
            }
        }
        // SAFETY: takes integers only.
        Note::SystemVSemaphores(key) => unsafe { libc::semget(key, 0, 0) >= 0 },
        // SAFETY: takes integers only.
        Note::SystemVMessages(key) => unsafe { libc::msgget(key, 0) >= 0 },
        Note::File { path, .. } => path.exists(),
    }
}

#[test]
fn a_run_that_ends_removes_every_object_it_made() {
    let stage = Stage::new();
    let over = AtomicBool::new(false);
    let noted = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut noted = BTreeSet::new();
            let mut seen_alive = 0;
            while !over.load(SeqCst) {
                for note in notes(&stage) {
                    seen_alive += u32::from(noted.insert(note.clone()) && exists(&note));
                }
                thread::sleep(Duration::from_millis(1));
            }
            (noted, seen_alive)
        });
        let said = stage.run(&persistent("30ms", 3));
        over.store(true, SeqCst);
        said.ended(0);
        watcher.join().unwrap()
    });
    let (noted, seen_alive) = noted;
    // Otherwise this test would look at nothing.
    assert!(seen_alive > 0, "no noted object was ever seen to exist: {noted:?}");
    let left: Vec<&String> = noted.iter().filter(|note| exists(note)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(stage.run_folders().is_empty());
}

fn kill(pid: i32) {
    // An error means that it is gone already.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

fn pid(child: &Child) -> i32 {
    i32::try_from(child.id()).unwrap()
}

#[test]
fn what_a_killed_run_leaves_is_cleared_by_the_next() {
    let stage = Stage::new();
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let mut noted = BTreeSet::new();
    for round in 0..12 {
        let mut command = stage.words(&persistent("20ms", 2000));
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        // Until its first trial, a run looks at the machine.
        wait_until("an object that was not there before", || !notes(&stage).is_subset(&noted));
        thread::sleep(Duration::from_micros(random.u64(0..80_000)));
        // Every other time the command itself; else whoever happens to be there: it, a host, or a side.
        let processes = stage.processes();
        let victim = if round % 2 == 0 { None } else { random.choice(&processes) };
        kill(*victim.unwrap_or(&pid(&child)));
        noted.extend(notes(&stage));
        thread::sleep(Duration::from_millis(20));
        kill(pid(&child));
        child.wait().unwrap();
        stage.wait_until_empty();
        noted.extend(notes(&stage));
    }
    assert!(!noted.is_empty(), "no note was ever found in a dead run's folder");
    stage.run("ping null --gap 0 --time 1ms --blocks 1 --json --output -").ended(0);
    let left: Vec<&String> = noted.iter().filter(|note| exists(note)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(stage.run_folders().is_empty());
}

#[test]
fn list_shows_every_mechanism_and_why_one_is_not_here() {
    let stage = Stage::new();
    let (text, json) = (stage.run("list").out, stage.run("list --json").json());
    let listed = json["mechanisms"].as_array().unwrap();
    assert_eq!(listed.len(), mechanism::all().len());
    for (entry, item) in mechanism::all().iter().zip(listed) {
        assert_eq!(item["name"], entry.name());
        assert!(text.contains(entry.name()), "{text}");
        match entry.available() {
            Ok(()) => assert_eq!(item["available"], true, "{item}"),
            Err(lacking) => assert_eq!(item["reason"], lacking.reason, "{item}"),
        }
    }
}

#[test]
fn explain_tells_each_part_and_names_the_nearest_for_what_it_does_not_know() {
    let stage = Stage::new();
    for entry in mechanism::all() {
        let text = stage.run(&format!("explain {}", entry.name())).ended(0).out;
        assert!(text.contains("Limits") && text.contains("Sources"), "{text}");
    }
    assert!(stage.run("explain futx").ended(2).err.contains("did you mean 'futex'?"));
}
