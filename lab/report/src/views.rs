// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshot tests: what a terminal shows of one made result of each section.

use std::io::Read;

use crate::program::tests::{edge, futex, made};
use crate::result_text::{Detail, shown};
use crate::sample::{configuration, figure, record, result, with};
use crate::style::{Style, width};
use crate::summary::summary;
use doorbell_results::anatomy::program::Waker;
use doorbell_results::anatomy::sample::whole;
use doorbell_results::configuration::{
    Configuration, Direction, Load, Pattern, Placement, Timing, Trace, WaitPolicy,
};
use doorbell_results::figure::{fanout, operation, request, task, transfer};
use doorbell_results::machine::power::IdleState;
use doorbell_results::record::fanout::{FanOut, ReceiversMemory, Rounds};
use doorbell_results::record::load::LoadProof;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Histogram, Record, ResultFile, Series};

const MS: u64 = 1_000_000;

/// Eight trials of each configuration, which take so many microseconds and a little more in each
/// further block; `made` adds what is special about them.
fn run(experiment: &str, of: &[(Configuration, u64)], made: impl Fn(&mut Record)) -> ResultFile {
    let trials =
        (0..8).flat_map(|block| of.iter().map(move |(configuration, us)| (configuration, us, block)));
    let records = trials.map(|(configuration, us, block)| {
        let mut record = record(configuration, block, &[(us * 1000 + u64::from(block)) * 1000; 40]);
        made(&mut record);
        record
    });
    result(experiment, records.collect())
}

/// Its times are of another quantity.
fn of(quantity: Quantity, record: &mut Record) {
    record.series =
        std::mem::take(&mut record.series).into_values().map(|series| (quantity, series)).collect();
}

/// Disks, and beside them the network and a GPU.
fn transfers(beside: bool) -> ResultFile {
    let read = |subject| Configuration {
        size: 4096,
        ..with(subject, Pattern::Io { direction: Direction::Read, direct: true })
    };
    let message = |wait| Configuration { wait, ..with("tcp", Pattern::OneWay { gap_ns: 5 * MS }) };
    let kernel = Pattern::Gpu { kernel_ns: 100_000, up_to_ns: None, gap_ns: 0, streams: 1 };
    let all = [
        (read("io-null"), 1),
        (read("sync"), 90),
        (read("uring-iopoll"), 84),
        (message(WaitPolicy::Block), 85),
        (message(WaitPolicy::Spin), 28),
        (with("gpu-stream-block", kernel), 44),
        (with("gpu-event-block", kernel), 37),
        (with("gpu-stream-spin", kernel), 3),
    ];
    run("io", if beside { &all } else { &all[..3] }, |record| {
        if record.configuration.pattern.transfers().is_none() {
            return of(Quantity::Wake, record);
        }
        let interrupted = record.configuration.subject == "sync";
        record.sides[1].system_ns *= if interrupted { 1 } else { 20 };
        record.figures.push(figure(transfer::INTERRUPTS, f64::from(u8::from(interrupted))));
        record.figures.extend(interrupted.then(|| figure(transfer::BREAK_EVEN, 167_000.0)));
    })
}

fn messages(waits: &[(WaitPolicy, u64)]) -> ResultFile {
    let way = |subject, wait| Configuration { wait, ..with(subject, Pattern::OneWay { gap_ns: 5 * MS }) };
    let mut all: Vec<_> = waits.iter().map(|(wait, us)| (way("tcp", *wait), *us)).collect();
    all.push((way("http-long-poll", WaitPolicy::Block), 50));
    run("net", &all, |record| {
        if record.configuration.subject != "tcp" {
            record.figures = vec![figure(request::REQUESTS, 1.05), figure(request::HELPER, 9_000.0)];
        }
    })
}

fn sleeps(held_us: u64) -> ResultFile {
    let slept = |gap_ns| with("futex", Pattern::OneWay { gap_ns });
    let held = Configuration { latency_limit_us: Some(0), ..slept(100 * MS) };
    let null = with("null", Pattern::OneWay { gap_ns: 10_000 });
    let mut result =
        run("idle", &[(null, 1), (slept(10_000), 8), (slept(100 * MS), 60), (held, held_us)], |record| {
            let deep =
                record.configuration.latency_limit_us.is_none() && record.configuration.pattern.gap_ns() > MS;
            record.environment.idle_entries = [("C6".to_owned(), if deep { 40 } else { 0 })].into();
        });
    result.machine.power.idle_driver = Some("intel_idle".into());
    result.machine.power.idle_states = vec![IdleState {
        name: "C6".into(),
        exit_latency_us: Some(133),
        target_residency_us: Some(600),
        enabled: "0-1".parse().unwrap(),
    }];
    result
}

fn fan_outs() -> ResultFile {
    let fan = |subject, receivers| with(subject, Pattern::FanOut { receivers, interval_ns: 1_000 * MS });
    let named = |receivers| fan("sem-posix-named", receivers);
    run("fanout", &[(named(20), 6), (named(200), 8), (fan("sem-posix-for-all", 200), 9)], |record| {
        let mut rounds = FanOut::default();
        if record.configuration.subject == "sem-posix-for-all" {
            record.series.clear();
            rounds.rounds = Rounds { duplicates: vec![3, 0], misses: vec![3, 0], ..Rounds::default() };
        } else {
            for (quantity, us) in [
                (Quantity::FirstWake, 9),
                (Quantity::MedianWake, 50),
                (Quantity::LastWake, 123),
                (Quantity::Notify, 2),
                (Quantity::NotifyRound, 111),
            ] {
                let mut histogram = Histogram::new();
                histogram.record_many(us * MS, 20);
                record.series.insert(quantity, Series::from(&histogram));
            }
            let of = |kib: u64| 201 * kib * 1024;
            let memory = ReceiversMemory {
                pss_bytes: of(100),
                rss_bytes: of(3000),
                kernel_bytes: of(60),
                processes: 201,
            };
            rounds.memory = Some(memory);
            record.figures = vec![figure(fanout::ORDER_BY_POST, 0.9), figure(fanout::BY_CHANCE, 0.1)];
        }
        record.fanout = Some(rounds);
    })
}

fn tasks() -> ResultFile {
    let tasks = |subject, tasks| with(subject, Pattern::Tasks { tasks, yields: 100 });
    let all = [
        (tasks("call", 1000), 1),
        (tasks("process-futex", 10), 2),
        (tasks("process-futex", 1000), 3),
        (tasks("life-fork", 1000), 90),
    ];
    run("tasks", &all, |record| {
        if record.configuration.subject == "process-futex" {
            record.figures = vec![
                figure(task::SWITCHES_PER_HANDOFF, 1.0),
                figure(task::TASK_BYTES, 180_000.0),
                figure(task::CEILING, 23_456.0),
            ];
        }
    })
}

/// What a tool prints stands beside what was counted; what hardly switched has no time per switch;
/// a working set is told with and without its writing.
fn operations() -> ResultFile {
    let on_one_core = |subject, size| Configuration {
        placement: Placement { relation: "same-core".into(), cpus: Some([1, 1]) },
        size,
        ..with(subject, Pattern::Operation { batch: 1 })
    };
    let all = [
        (on_one_core("timectxsw", 0), 40),
        (on_one_core("timetctxsw2", 0), 2),
        (on_one_core("switch-futex-between-two", 0), 4),
        (on_one_core("switch-futex-between-two", 65_536), 9),
        (on_one_core("touch", 65_536), 2),
        (on_one_core("getppid", 0), 1),
    ];
    run("switch", &all, |record| match record.configuration.subject.as_str() {
        "timectxsw" => {
            record.environment.interrupts.insert("RES".to_owned(), 10);
            record.figures = vec![
                figure(operation::REAL_SWITCHES, 10_000.0),
                figure(operation::SWITCHES_PER_ROUND, 10.0),
                figure(operation::PER_SWITCH, 4000.0),
                figure(&format!("timectxsw{}", operation::AS_PRINTED), 10_000.0),
            ];
        }
        "timetctxsw2" => record.figures = vec![figure(operation::SWITCHES_PER_ROUND, 0.002)],
        _ => {}
    })
}

fn under_load() -> ResultFile {
    let load = Some(Load { kind: "sqrt".to_owned(), workers: 4, pinned: false });
    let busy = Configuration { load, ..configuration("futex") };
    let blocked = Configuration { timing: Timing::Blocked, ..configuration("futex") };
    run("ping", &[(busy, 30), (configuration("futex"), 8), (blocked, 9)], |record| {
        record.environment.idle_states = [("C1".to_owned(), 0.25), ("C6".to_owned(), 0.5)].into();
        record.load = record.configuration.load.as_ref().map(|_| LoadProof {
            started_before_ns: 12 * MS,
            outlasted_ns: 3 * MS,
            busy: [(0, 0.999), (1, 0.871)].into(),
            run_queue: vec![5, 6],
            load_average: Some(3.5),
            pressure_share: Some(0.5),
            ..LoadProof::default()
        });
    })
}

fn traced(experiment: &str, trace: Trace) -> ResultFile {
    let bare = with("futex", Pattern::OneWay { gap_ns: MS });
    let traced = Configuration { trace: Some(trace), ..bare.clone() };
    run(experiment, &[(bare, 16), (traced, 17)], |record| {
        record.anatomy = record.configuration.trace.map(|_| whole());
    })
}

fn emulated() -> ResultFile {
    let all = ["futex", "pipe", "null"].map(configuration).into_iter().zip([8, 12, 2]).collect::<Vec<_>>();
    let mut result = run("ping", &all, |_| {});
    result.machine.virtualisation.emulated = true;
    result
}

/// What a machine brought back.
fn stored(path: &str) -> ResultFile {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).expect(&path);
    let mut text = String::new();
    match path.ends_with(".gz") {
        true => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text),
        false => (&bytes[..]).read_to_string(&mut text),
    }
    .expect(&path);
    serde_json::from_str(&text).expect(&path)
}

/// A result of each section.
pub(super) fn made_of_each() -> Vec<(&'static str, ResultFile)> {
    let both = [(WaitPolicy::Block, 20), (WaitPolicy::Spin, 1)];
    let thread = |name: &str| Waker::Thread { name: name.to_owned() };
    vec![
        ("io", transfers(false)),
        ("io beside others", transfers(true)),
        ("net", messages(&both)),
        ("net of sleepers", messages(&both[..1])),
        ("idle", sleeps(9)),
        ("idle where both are the same", sleeps(60)),
        ("fanout", fan_outs()),
        ("tasks", tasks()),
        ("switch", operations()),
        ("ping under load", under_load()),
        ("ping in an emulator", emulated()),
        ("anatomy", traced("anatomy", Trace::Stages)),
        ("why", traced("why", Trace::Worst { keep: 3, above_ns: 0 })),
        ("trace", made(vec![edge(thread("main"), "a-thread-with-15", futex(0x1048))])),
    ]
}

#[test]
fn each_section_is_told_as_it_was_reviewed() {
    let gpu = |name: &str| stored(&format!("book/data/gpu-2026-11-27/{name}.json.gz"));
    let stored = [
        ("gpu", gpu("whole")),
        ("gpu irregular", gpu("irregular")),
        ("gpu streams", gpu("streams-by-timer")),
        ("survey", stored("lab/command/tests/data/survey.json")),
    ];
    for (name, mut result) in made_of_each().into_iter().chain(stored) {
        result.primitives.clear();
        let style = |width| Style { width, color: false, unicode: true };
        let first = shown(&result, &[], Detail::Brief, &style(80));
        // The last column of `switch` stood half beyond the edge of a terminal of 80.
        let fits = first.lines().all(|line| width(line) <= 80);
        assert!(fits || name != "switch", "{first}");
        let details = summary(&result, &style(160));
        insta::assert_snapshot!(name.replace(' ', "_"), format!("{first}\n{details}"));
    }
}
