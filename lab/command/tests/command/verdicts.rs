// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs that answer a question: one verdict in words, the table behind it, the command that
//! repeats it, an exit code.

use std::fs;
use std::path::Path;
use std::process::Output;

use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::write::to_json;
use doorbell_results::record::{Histogram, Outcome, Record, Series, read};

use crate::stage::Stage;

fn run(stage: &Stage, args: &[&str]) -> Output {
    stage.doorbell(args).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

/// What was said, without that others interfered with the run: whether they do is the affair of the
/// machine that tests run on.
fn verdict(said: &str) -> &str {
    match said.strip_prefix("Provisional: ") {
        Some(rest) => rest.split_once("otherwise.\n").map_or("", |(_, rest)| rest.trim_start()),
        None => said,
    }
}

/// Whether there are two CPUs to put two sides on; says so where not.
fn two_cpus() -> bool {
    let two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    if !two {
        doorbell_skipped::skip("it takes two CPUs");
    }
    two
}

#[test]
fn spin_measures_every_way_to_wait_at_each_gap_and_gives_one_verdict() {
    if !two_cpus() {
        return;
    }
    let stage = Stage::new();
    let file = stage.path().join("spin.json");
    let file = file.to_str().unwrap();
    let output = run(
        &stage,
        &[
            "spin",
            "--gap",
            "10us,1ms",
            "--spin",
            "12us",
            "--time",
            "5ms",
            "--blocks",
            "5",
            "--anyway",
            "--details",
            "-o",
            file,
        ],
    );
    let said = text(&output);
    // On a busy machine nothing may be told; never is it a failure to run.
    assert!([Some(0), Some(4)].contains(&output.status.code()), "{said}{}", complaint(&output));
    let first = verdict(&said).lines().next().unwrap();
    assert!(first.starts_with("For gaps of 10 "), "{said}");
    assert!(
        said.contains("sleep at once") && said.contains("spin 12") && said.contains("Again: doorbell spin"),
        "{said}"
    );
    assert!(
        complaint(&output).contains("This machine "),
        "the doctor is heard first: {}",
        complaint(&output)
    );
    // The same figures at a price at which no latency is worth any
    // CPU time, and at one at which all is.
    let cheap = run(&stage, &["spin", "--from", file, "--worth", "0", "--details"]);
    assert!([Some(0), Some(4)].contains(&cheap.status.code()));
    assert!(text(&cheap).contains("wake x 0 + CPU"), "{}", text(&cheap));
    let stored: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(stored["plan"]["experiment"], "spin");
    assert_eq!(stored["plan"]["configurations"].as_array().unwrap().len(), 2 * 3 + 1);
}

/// The same question to three verbs is one configuration, and the kernel counts the same for it;
/// how long it took is another matter.
#[test]
fn one_mechanism_gap_and_placement_is_the_same_trial_whichever_verb_runs_it() {
    if !two_cpus() {
        return;
    }
    let trials = |words: &str| -> Vec<Record> {
        let stage = Stage::new();
        let words = format!("{words} --gap 1ms --blocks 5 -q --output -");
        let output = run(&stage, &words.split(' ').collect::<Vec<_>>());
        let result = read::read_bytes(output.stdout.clone(), "the output");
        let result = result.unwrap_or_else(|error| panic!("{words}: {error}: {}", complaint(&output)));
        let asleep = |record: &Record| {
            record.configuration.subject == "eventfd-epoll" && record.configuration.wait == WaitPolicy::Block
        };
        result.records.into_iter().filter(asleep).collect()
    };
    let spun = trials("spin eventfd-epoll --spin 20us --anyway");
    let asked = &spun[0].configuration;
    for trials in [&spun, &trials("ping eventfd-epoll"), &trials("pick --need epoll --anyway")] {
        // How long each has is the verb's own affair.
        let same = |one: &Configuration| Configuration { until: asked.until, ..one.clone() } == *asked;
        let own: Vec<&Record> = trials.iter().filter(|record| same(&record.configuration)).collect();
        assert_eq!(own.len(), 5, "{asked:?} among {trials:?}");
        for record in own {
            // A busy machine may make a trial's figures doubtful, but not its counts.
            assert!(matches!(record.outcome, Outcome::Done | Outcome::Implausible { .. }), "{record:?}");
            assert_eq!((record.tally.seen, record.tally.lost), (record.tally.sent, 0));
            let waiter = record.sides.iter().find(|side| side.side == "waiter").unwrap();
            // It sleeps at most once for each; the kernel may have reasons of its own now and then.
            assert!(waiter.voluntary_switches <= record.tally.seen * 11 / 10 + 2, "{record:?}");
            // Of calls that others held up for milliseconds no more than they used themselves.
            let call_ns = record.sides.iter().find(|side| side.side == "notifier").unwrap().call_ns.unwrap();
            let calls = &record.series[&Quantity::Notify];
            assert!(0.0 <= call_ns && call_ns <= calls.max_ns, "{record:?}");
            let spent = (waiter.user_ns + waiter.system_ns) as f64 / record.tally.seen as f64;
            let (cpu_ns, wakes) = record.cpu_per_wake().unwrap();
            assert_eq!(wakes, record.tally.seen);
            assert!(
                (cpu_ns / (spent + call_ns) - 1.0).abs() < 1e-9,
                "the waiter's time and the call: {record:?}"
            );
        }
    }
}

#[test]
fn pick_ranks_what_serves_the_needs_and_says_what_the_others_lack() {
    let stage = Stage::new();
    let survey = data("survey");
    let output = run(&stage, &["pick", "--need", "epoll,process", "--from", &survey, "--details"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(4), "a survey of one block: {said}{}", complaint(&output));
    assert!(
        verdict(&said)
            .starts_with("Inconclusive: 1 trials of some configuration are fewer than the 6 it takes"),
        "{said}"
    );
    let out = said.split("not a candidate").nth(1).unwrap();
    assert!(out.lines().any(|line| line.starts_with("futex ") && line.contains("no descriptor")), "{said}");
    let measured = run(
        &stage,
        &[
            "pick",
            "--need",
            "epoll,count",
            "--gap",
            "100us",
            "--blocks",
            "2",
            "--json",
            "--anyway",
            "--placement",
            "unpinned",
        ],
    );
    assert!([Some(0), Some(4)].contains(&measured.status.code()), "{}", complaint(&measured));
    let result: serde_json::Value = serde_json::from_slice(&measured.stdout).unwrap();
    let configurations = result["plan"]["configurations"].as_array().unwrap();
    let subjects: Vec<&str> =
        configurations.iter().map(|configuration| configuration["subject"].as_str().unwrap()).collect();
    assert!(
        subjects.contains(&"pipe") && subjects.contains(&"null") && !subjects.contains(&"eventfd"),
        "{subjects:?}"
    );
}

#[test]
fn a_gate_passes_what_keeps_to_the_limit_and_fails_what_does_not() {
    let stage = Stage::new();
    let file = stage.path().join("gate.json");
    let file = file.to_str().unwrap();
    let gate =
        ["gate", "--gap", "200us", "--time", "400ms", "--blocks", "4", "--placement", "unpinned", "--anyway"];
    let output =
        run(&stage, &[&gate[..], &["--max", "1ns", "--percentile", "p90", "--details", "-o", file]].concat());
    let said = text(&output);
    assert_eq!(output.status.code(), Some(3), "no wake takes a nanosecond: {said}{}", complaint(&output));
    assert!(verdict(&said).starts_with("FAIL p90 "), "{said}");
    assert!(said.contains("The longest wake-up") && said.contains("Again: doorbell gate"), "{said}");
    let stored: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let attempts =
        stored["records"].as_array().unwrap().iter().map(|record| record["attempts"].as_u64().unwrap());
    assert_eq!(attempts.max(), Some(1), "nothing is done over");
    // How many wakes a busy machine has, and how much alike, is its
    // affair: from here on they are 4000, one like another.
    let mut result = read::read(Path::new(file)).unwrap();
    result.records.iter_mut().for_each(|record| {
        let mut wakes = Histogram::new();
        (0..1000).for_each(|wake| wakes.record(4_000_000 + wake * 1000));
        wakes.record(20_000_000);
        // In open loop the response is judged.
        for quantity in [Quantity::Wake, Quantity::Response] {
            record.series.insert(quantity, Series::from(&wakes));
        }
        (record.outcome, record.attempts, record.tally.lost, record.tally.late) = (Outcome::Done, 1, 0, 0);
        record.warnings.clear();
    });
    fs::write(file, to_json(&result)).unwrap();
    for (max, percentile, status, begins) in [
        ("10h", "p90", 0, "PASS p90 "),
        ("10h", "max", 0, "PASS max "),
        ("1us", "p90", 3, "FAIL p90 "),
        ("1us", "max", 3, "FAIL max "),
        ("10us", "max", 3, "FAIL max 20 µs > 10 "),
        ("20us", "max", 4, "INCONCLUSIVE "),
        ("10us", "p99.9", 4, "INCONCLUSIVE "),
        ("10h", "p99.999", 4, "INCONCLUSIVE "),
    ] {
        let output = run(&stage, &["gate", "--max", max, "--percentile", percentile, "--from", file]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(status), "{max} {percentile}: {said}{}", complaint(&output));
        assert!(said.starts_with(begins), "{max} {percentile}: {said}");
        assert_eq!(
            said.starts_with("FAIL") && said.contains("; 4 of "),
            (max, status) == ("10us", 3),
            "{said}"
        );
    }
    result.partial = true;
    fs::write(file, to_json(&result)).unwrap();
    let cut = run(&stage, &["gate", "--max", "10h", "--percentile", "p90", "--from", file]);
    assert_eq!(cut.status.code(), Some(4), "{}", text(&cut));
}

#[test]
fn a_check_repeats_the_baselines_own_plan_and_ends_by_its_conditions() {
    let stage = Stage::new();
    let path = |name: &str| stage.path().join(name).to_str().unwrap().to_owned();
    let (baseline, again) = (path("baseline.json"), path("again.json"));
    let ping =
        ["ping", "eventfd", "--gap", "0", "--contexts", "threads", "--count", "100", "--blocks", "6", "-q"];
    let made =
        run(&stage, &[&ping[..], &["--placement", "unpinned", "--name", "main", "-o", &baseline]].concat());
    assert!(made.status.success(), "{}", complaint(&made));
    let check = |conditions: &[&str], more: &[&str]| {
        let mut args = vec!["check", "--baseline", baseline.as_str()];
        conditions.iter().for_each(|condition| args.extend(["--fail-if", condition]));
        run(&stage, &[&args[..], more].concat())
    };
    let output = check(&["eventfd:p50>1ns"], &["--anyway", "-o", &again]);
    assert_eq!(output.status.code(), Some(3), "{}{}", text(&output), complaint(&output));
    assert!(verdict(&text(&output)).starts_with("Worse than main ("), "{}", text(&output));
    let plan = |file: &str| -> serde_json::Value {
        let mut plan: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        plan["plan"]["seed"] = 0.into();
        plan["plan"].take()
    };
    let mut repeated = plan(&again);
    let asked = repeated.as_object_mut().unwrap().remove("question").expect("a check says what it asked");
    assert_eq!(asked["baseline"]["name"], "main");
    assert_eq!(plan(&baseline), repeated);
    let mut calm = read::read(Path::new(&again)).unwrap();
    for record in &mut calm.records {
        record.warnings.clear();
        record.outcome = Outcome::Done;
    }
    fs::write(&again, to_json(&calm)).unwrap();
    let kept = check(&["max>10h", "lost>0"], &["--from", &again]);
    assert_eq!(kept.status.code(), Some(0), "{}", text(&kept));
    assert!(text(&kept).starts_with("Not worse than main ("), "{}", text(&kept));
    // A copy that takes three times as long, with nothing else to blame.
    let slower = path("slower.json");
    for (level, file) in [(10_000, &baseline), (30_000, &slower)] {
        let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&baseline).unwrap()).unwrap();
        document["primitives"] = serde_json::json!([]);
        for record in document["records"].as_array_mut().unwrap() {
            record["warnings"] = serde_json::json!([]);
            record["outcome"] = serde_json::json!({"kind": "done"});
            let time = level + record["block"].as_u64().unwrap();
            if let Some(series) = record["series"].get_mut("round-trip") {
                let mut histogram = Histogram::new();
                histogram.record_many(time * 1000, series["count"].as_u64().unwrap());
                *series = serde_json::to_value(Series::from(&histogram)).unwrap();
            }
        }
        fs::write(file, document.to_string()).unwrap();
    }
    let worse = check(&["p99>+5%"], &["--from", &slower]);
    assert_eq!(worse.status.code(), Some(3), "{}", text(&worse));
    let allowed = check(&["p99>+250%"], &["--from", &slower]);
    assert_eq!(allowed.status.code(), Some(0), "{}", text(&allowed));
}

/// Of one run nobody knows what differs from run to run; five show it.
#[test]
fn five_runs_of_a_baseline_show_what_a_check_may_call_worse() {
    let stage = Stage::new();
    let path = |name: &str| stage.path().join(name).to_str().unwrap().to_owned();
    let measured = path("measured.json");
    let ping = "ping futex eventfd pipe --gap 0 --placement same-core --time 30ms --blocks 10 -q -o";
    let ping: Vec<&str> = ping.split(' ').chain([measured.as_str()]).collect();
    let made = run(&stage, &ping);
    assert!(made.status.success(), "{}", complaint(&made));
    let result = read::read(Path::new(&measured)).unwrap();
    // A run of its own time, in which eventfd takes so many times as long, and nothing else differs.
    let plant = |number: u64, eventfd: f64| {
        let mut run = result.clone();
        run.started_at_unix_ns -= (20 - number) * 1_000_000_000;
        run.primitives.clear();
        for record in &mut run.records {
            (record.outcome, record.attempts) = (Outcome::Done, 1);
            record.warnings.clear();
            let factor = if record.configuration.subject == "eventfd" { eventfd } else { 1.0 };
            for slice in &mut record.slices {
                slice.middle_ns = 4000.0 * factor * (1.0 + 0.001 * f64::from(slice.turn % 5));
            }
        }
        let file = path(&format!("{number}.json"));
        fs::write(&file, to_json(&run)).unwrap();
        file
    };
    let differs: Vec<String> =
        (0..5).map(|number| plant(number, 1.0 + 0.04 * (number as f64 - 2.0))).collect();
    let alike: Vec<String> = (5..10).map(|number| plant(number, 1.0)).collect();
    let slower = plant(10, 1.1);
    let check = |baselines: &[String]| {
        let named = baselines.iter().flat_map(|file| ["--baseline", file]);
        run(&stage, &["check"].into_iter().chain(named).chain(["--from", &slower]).collect::<Vec<_>>())
    };
    let worse = check(&alike);
    assert_eq!(worse.status.code(), Some(3), "{}{}", text(&worse), complaint(&worse));
    let said = format!("Worse than {} and 4 more runs: ", alike[0]);
    assert!(verdict(&text(&worse)).starts_with(&said), "{}", text(&worse));
    assert_eq!(check(&alike[..1]).status.code(), Some(3), "against one of them");
    let open = check(&differs);
    assert_eq!(open.status.code(), Some(4), "{}{}", text(&open), complaint(&open));
    let twice = check(&[&alike[..1], &alike[..1]].concat());
    assert_eq!(twice.status.code(), Some(2), "{}", complaint(&twice));
    assert!(complaint(&twice).contains("was named before"), "{}", complaint(&twice));
}

/// What is kept under one name are runs of one plan, and another plan begins anew.
#[test]
fn a_baseline_that_is_saved_again_has_one_run_more_and_a_check_is_held_against_all() {
    let stage = Stage::new();
    let file = stage.path().join("run.json").to_str().unwrap().to_owned();
    let ping = |subjects: &str, more: &[&str]| {
        let ping = format!("ping {subjects} --gap 0 --count 20 --blocks 2 -o {file}");
        let made = run(&stage, &ping.split(' ').chain(more.iter().copied()).collect::<Vec<_>>());
        assert!(made.status.success(), "{}", complaint(&made));
        complaint(&made)
    };
    let save = |subjects: &str| ping(subjects, &["--save-baseline", "main"]);
    assert!(save("futex pipe").contains("kept as baseline main\n"));
    assert!(save("futex pipe").contains("kept as baseline main, which has 2 runs\n"));
    let earlier = stage.path().join("doorbell/baselines/earlier/main");
    let first = fs::read_dir(&earlier).unwrap().next().unwrap().unwrap().path();
    let mut older = read::read(&first).unwrap();
    for _ in 0..12 {
        older.started_at_unix_ns -= 1_000_000_000;
        fs::write(earlier.join(format!("{:020}.json", older.started_at_unix_ns)), to_json(&older)).unwrap();
    }
    assert!(save("futex pipe").contains("kept as baseline main, which has 12 runs\n"));
    assert!(first.exists(), "the oldest go");
    ping("futex pipe", &[]);
    let checked = run(&stage, &["check", "--baseline", "main", "--from", &file, "--fail-if", "lost>0"]);
    assert!(text(&checked).contains("main and 11 more runs"), "{}{}", text(&checked), complaint(&checked));
    assert!(save("futex eventfd").contains("kept as baseline main\n"));
    assert_eq!(fs::read_dir(&earlier).unwrap().count(), 0);
    assert!(save("futex eventfd").contains("main, which has 2 runs\n"));
    fs::remove_file(stage.path().join("doorbell/baselines/main.json")).unwrap();
    assert!(save("futex pipe").contains("kept as baseline main\n"));
    assert_eq!(fs::read_dir(&earlier).unwrap().count(), 0);
}

/// A check once repeated what the baseline said, and that may be to
/// overwrite a device by a name that is another's now.
#[test]
fn a_check_repeats_nothing_that_transfers_blocks_whatever_the_file_says() {
    let stage = Stage::new();
    let path = |name: &str| stage.path().join(name).to_str().unwrap().to_owned();
    let (victim, baseline) = (path("victim"), path("baseline.json"));
    fs::write(&victim, "precious").unwrap();
    let made = run(
        &stage,
        &[
            "ping", "null", "--gap", "0", "--count", "10", "--blocks", "1", "-q", "--name", "main", "-o",
            &baseline,
        ],
    );
    assert!(made.status.success(), "{}", complaint(&made));
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&baseline).unwrap()).unwrap();
    for configuration in document["plan"]["configurations"].as_array_mut().unwrap() {
        configuration["subject"] = "sync".into();
        configuration["target"] =
            serde_json::json!({ "kind": "device", "path": victim, "consent": "victim", "passes": 1 });
    }
    fs::write(&baseline, document.to_string()).unwrap();
    let output = run(&stage, &["check", "--baseline", &baseline, "--fail-if", "p50>+5%", "--anyway"]);
    assert_eq!(output.status.code(), Some(2), "{}{}", text(&output), complaint(&output));
    assert!(complaint(&output).contains("repeats nothing that writes"), "{}", complaint(&output));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_plan_file_makes_the_run_that_its_flags_make() {
    let stage = Stage::new();
    let file = stage.path().join("plan.toml");
    let file = file.to_str().unwrap();
    let flags = [
        "ping",
        "futex",
        "pipe",
        "--gap",
        "0,10us",
        "--wait",
        "block,spin",
        "--time",
        "3ms",
        "--blocks",
        "2",
        "--seed",
        "9",
        "--load",
        "sqrt:2:pinned",
        "--placement",
        "unpinned",
    ];
    let saved = run(&stage, &[&flags[..], &["--save-plan", file]].concat());
    assert!(saved.status.success() && saved.stdout.is_empty(), "{}", complaint(&saved));
    let typed = run(&stage, &[&flags[..], &["--dry-run"]].concat());
    let read = run(&stage, &["ping", "--plan", file, "--dry-run"]);
    assert!(read.status.success(), "{}", complaint(&read));
    assert_eq!(text(&typed), text(&read));
    let more = run(&stage, &["ping", "--plan", file, "--blocks", "7", "--dry-run"]);
    let plan: serde_json::Value = serde_json::from_slice(&more.stdout).unwrap();
    assert_eq!(plan["blocks"], 7, "what is typed counts more");
    let result = run(&stage, &["ping", "--plan", file, "--load", "idle", "--json"]);
    let stored: serde_json::Value = serde_json::from_slice(&result.stdout).unwrap();
    assert_eq!(stored["plan"]["seed"], 9, "{}", complaint(&result));
}

#[test]
fn a_wrong_plan_file_is_told_with_its_line() {
    let stage = Stage::new();
    let file = stage.path().join("plan.toml");
    let name = file.to_str().unwrap();
    let of = |lines: &str| {
        format!(
            "experiment = 'ping'\n{lines}[[configurations]]\nsubject = 'futex'\npattern = {{ kind = 'ping-pong', gap_ns = 0 }}\n\
             until = {{ count = 5 }}\n"
        )
    };
    for (verb, content, told) in [
        ("ping", of("blcoks = 3\n"), ", line 2: a plan has nothing called 'blcoks'; did you mean 'blocks'?"),
        ("ping", of("blocks = '3'\n"), ", line 2: invalid type"),
        ("spin", of(""), ": the plan is for `doorbell ping`, not for `doorbell spin`"),
        ("survey", "blocks = \n".to_owned(), ", line 1: "),
    ] {
        fs::write(&file, &content).unwrap();
        let output = run(&stage, &[verb, "--plan", name]);
        assert_eq!(output.status.code(), Some(2), "{content}: {}", complaint(&output));
        assert!(complaint(&output).contains(told), "{content}: {}", complaint(&output));
    }
    fs::write(&file, of("")).unwrap();
    for (flag, args) in [
        ("--gap", &["ping", "--gap", "1ms"][..]),
        ("--file", &["io", "--file", name]),
        ("--baseline", &["check", "--baseline", name]),
    ] {
        let beside = run(&stage, &[args, &["--plan", name]].concat());
        assert_eq!(beside.status.code(), Some(2));
        assert!(
            complaint(&beside).contains(&format!("{flag} stands beside --plan")),
            "{}",
            complaint(&beside)
        );
    }
    let none = run(&stage, &["ping", "--plan", "/nowhere.toml"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(complaint(&none).contains("cannot read the plan file /nowhere.toml"), "{}", complaint(&none));
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let stage = Stage::new();
    let survey = data("survey");
    let ping = data("ping");
    for (args, told) in [
        (&["pick", "--need", "epol"][..], "did you mean 'epoll'?"),
        (&["pick", "--pattern", "1toN", "--gap", "1ms"], "is a fan-out"),
        (&["spin", "spin"], "nothing to spin before"),
        (&["spin", "--gap", "1ms..1us"], "runs backwards"),
        (&["spin", "--gap", "0"], "nothing to wait for"),
        (&["spin", "--gap", "0", "--placement", "same-core"], "nothing to wait for"),
        (&["spin", "--placement", "same-core"], "on one core"),
        (&["spin", "--worth", "much"], "is no ratio"),
        (&["spin", "futex-private"], "--contexts"),
        (&["gate"], "--max <TIME>"),
        (&["gate", "--max", "20us", "--percentile", "100"], "is no percentile"),
        (&["gate", "--max", "20us", "--confidence", "100%"], "is not from 50%"),
        (&["gate", "--max", "20us", "--time", "1ms"], "is too short"),
        (&["check", "--baseline", &ping, "--fail-if", "p99>5%"], "p99>+5%"),
        (
            &["check", "--baseline", &ping, "--fail-if", "futx:p99>+5%"],
            "the baseline has nothing called 'futx'",
        ),
        (&["check", "--baseline", &ping, "--load", "full"], "the load is the baseline's"),
        (&["check", "--baseline", "-", "--from", "-"], "read only once"),
    ] {
        let output = run(&stage, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", complaint(&output));
        assert!(complaint(&output).contains(told), "{args:?}: {}", complaint(&output));
    }
    let other = run(&stage, &["spin", "--from", &survey]);
    assert!([Some(0), Some(4)].contains(&other.status.code()), "a survey has gaps, with few ways to wait");
}
