// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs that answer a question: one verdict in words, the table behind it, the command that
//! repeats it, an exit code.

use std::fs;
use std::path::Path;

use doorbell_results::configuration::{Configuration, WaitPolicy};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::write::to_json;
use doorbell_results::record::{Histogram, Outcome, Record, ResultFile, Series, read};
use serde_json::Value;

use crate::stage::{Stage, data};

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

fn json_of(file: &str) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn spin_measures_every_way_to_wait_at_each_gap_and_gives_one_verdict() {
    if !two_cpus() {
        return;
    }
    let stage = Stage::new();
    let file = stage.file("spin.json");
    let words = "spin --gap 10us,1ms --spin 12us --time 5ms --blocks 5 --anyway --details -o";
    // On a busy machine nothing may be told; never is it a failure to run.
    let said = stage.run(&format!("{words} {file}")).ended_with_one_of(&[0, 4]);
    let text = &said.out;
    assert!(verdict(text).starts_with("For gaps of 10 "), "{text}");
    for told in ["sleep at once", "spin 12", "Again: doorbell spin"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(said.err.contains("This machine "), "the doctor is heard first: {}", said.err);
    // The same figures at a price at which no latency is worth any CPU time.
    let cheap = stage.run(&format!("spin --from {file} --worth 0 --details")).ended_with_one_of(&[0, 4]);
    assert!(cheap.out.contains("wake x 0 + CPU"), "{}", cheap.out);
    let stored = json_of(&file);
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
        let said = Stage::new().run(&format!("{words} --gap 1ms --blocks 5 -q --output -"));
        let asleep = |record: &Record| {
            record.configuration.subject == "eventfd-epoll" && record.configuration.wait == WaitPolicy::Block
        };
        said.result().records.into_iter().filter(asleep).collect()
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
            let right = (cpu_ns / (spent + call_ns) - 1.0).abs() < 1e-9;
            assert!(right, "the waiter's time and the call: {record:?}");
        }
    }
}

#[test]
fn pick_ranks_what_serves_the_needs_and_says_what_the_others_lack() {
    let stage = Stage::new();
    let from = format!("pick --need epoll,process --details --from {}", data("survey"));
    let said = stage.run(&from).ended(4).out;
    let few = "Inconclusive: 1 trials of some configuration are fewer than the 6 it takes";
    assert!(verdict(&said).starts_with(few), "{said}");
    let out = said.split("not a candidate").nth(1).unwrap();
    assert!(out.lines().any(|line| line.starts_with("futex ") && line.contains("no descriptor")), "{said}");
    let words = "pick --need epoll,count --gap 100us --blocks 2 --json --anyway --placement unpinned";
    let result = stage.run(words).ended_with_one_of(&[0, 4]).json();
    let configurations = result["plan"]["configurations"].as_array().unwrap();
    let has = |subject| configurations.iter().any(|configuration| configuration["subject"] == subject);
    assert_eq!(["pipe", "null", "eventfd"].map(has), [true, true, false], "{configurations:?}");
}

#[test]
fn a_gate_passes_what_keeps_to_the_limit_and_fails_what_does_not() {
    let stage = Stage::new();
    let file = stage.file("gate.json");
    let gate = "gate --gap 200us --time 400ms --blocks 4 --placement unpinned --anyway --details";
    // No wake takes a nanosecond.
    let said = stage.run(&format!("{gate} --max 1ns --percentile p90 -o {file}")).ended(3).out;
    assert!(verdict(&said).starts_with("FAIL p90 "), "{said}");
    assert!(said.contains("The longest wake-up") && said.contains("Again: doorbell gate"), "{said}");
    let mut result = read::read(Path::new(&file)).unwrap();
    assert!(result.records.iter().all(|record| record.attempts == 1), "nothing is tried twice");
    // How many wakes a busy machine has, and how much alike, is its
    // affair: from here on they are 4000, one like another.
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
    let judged = |result: &ResultFile, max: &str, percentile: &str| {
        fs::write(&file, to_json(result)).unwrap();
        stage.run(&format!("gate --max {max} --percentile {percentile} --from {file}"))
    };
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
        let said = judged(&result, max, percentile).ended(status).out;
        assert!(said.starts_with(begins), "{max} {percentile}: {said}");
        let counted = said.starts_with("FAIL") && said.contains("; 4 of ");
        assert_eq!(counted, (max, status) == ("10us", 3), "{said}");
    }
    result.partial = true;
    judged(&result, "10h", "p90").ended(4);
}

/// Writes the result in `from` to `to`, as a calm machine would have measured round trips of so
/// many nanoseconds.
fn of_round_trips(from: &str, to: &str, level_ns: u64) {
    let mut result = read::read(Path::new(from)).unwrap();
    result.primitives.clear();
    for record in &mut result.records {
        record.warnings.clear();
        record.outcome = Outcome::Done;
        if let Some(series) = record.series.get_mut(&Quantity::RoundTrip) {
            let mut histogram = Histogram::new();
            histogram.record_many((level_ns + u64::from(record.block)) * 1000, series.count);
            *series = Series::from(&histogram);
        }
    }
    fs::write(to, to_json(&result)).unwrap();
}

#[test]
fn a_check_repeats_the_baselines_own_plan_and_ends_by_its_conditions() {
    let stage = Stage::new();
    let [baseline, again, slower] = ["baseline", "again", "slower"].map(|name| stage.file(name));
    let ping =
        "ping eventfd --alone --gap 0 --contexts threads --count 200 --blocks 6 -q --placement unpinned";
    stage.run(&format!("{ping} --name main -o {baseline}")).ended(0);
    let check = |words: &str| stage.run(&format!("check --baseline {baseline} {words}"));
    let said = check(&format!("--fail-if eventfd:p50>1ns --anyway -o {again}")).ended(3).out;
    assert!(verdict(&said).starts_with("Worse than main ("), "{said}");
    let plan = |file: &str| {
        let mut plan = json_of(file)["plan"].take();
        plan["seed"] = 0.into();
        plan
    };
    let mut repeated = plan(&again);
    let asked = repeated.as_object_mut().unwrap().remove("question").expect("a check says what it asked");
    assert_eq!(asked["baseline"]["name"], "main");
    assert_eq!(plan(&baseline), repeated);
    of_round_trips(&again, &again, 10_000);
    let kept = check(&format!("--fail-if max>10h --fail-if lost>0 --from {again}")).ended(0).out;
    assert!(kept.starts_with("Not worse than main ("), "{kept}");
    // A copy that takes three times as long, with nothing else to blame.
    of_round_trips(&baseline, &slower, 30_000);
    of_round_trips(&baseline, &baseline, 10_000);
    check(&format!("--fail-if p99>+5% --from {slower}")).ended(3);
    check(&format!("--fail-if p99>+250% --from {slower}")).ended(0);
    // A comparison finds the same, once for each placement.
    for (candidate, status, ratio) in [(&baseline, 0, 1.0), (&slower, 3, 3.0)] {
        let told = stage.run(&format!("compare {baseline} {candidate} --json")).ended(status).json();
        let found = told["verdict"]["findings"].as_array().unwrap();
        assert!(!found.is_empty(), "{told}");
        for placement in found {
            let [low, high] = [0, 1].map(|end| placement["interval"][end].as_f64().unwrap() / ratio);
            assert!(low > 0.97 && high < 1.03, "{told}");
        }
    }
}

/// Of one run nobody knows what differs from run to run; five show it.
#[test]
fn five_runs_of_a_baseline_show_what_a_check_may_call_worse() {
    let stage = Stage::new();
    let ping = "ping futex eventfd pipe --gap 0 --placement same-core --time 30ms --blocks 10 -q -o -";
    let result = stage.run(ping).ended(0).result();
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
        let file = stage.file(&format!("{number}.json"));
        fs::write(&file, to_json(&run)).unwrap();
        file
    };
    let differs: Vec<String> =
        (0..5).map(|number| plant(number, 1.0 + 0.04 * (number as f64 - 2.0))).collect();
    let alike: Vec<String> = (5..10).map(|number| plant(number, 1.0)).collect();
    let slower = plant(10, 1.1);
    let check = |baselines: &[String]| {
        stage.run(&format!("check --baseline {} --from {slower}", baselines.join(" --baseline ")))
    };
    let worse = check(&alike).ended(3).out;
    let said = format!("Worse than {} and 4 more runs: ", alike[0]);
    assert!(verdict(&worse).starts_with(&said), "{worse}");
    check(&alike[..1]).ended(3);
    check(&differs).ended(4);
    let twice = check(&[&alike[..1], &alike[..1]].concat()).ended(2).err;
    assert!(twice.contains("was named before"), "{twice}");
}

/// What is kept under one name are runs of one plan, and another plan begins anew.
#[test]
fn a_baseline_that_is_saved_again_has_one_run_more_and_a_check_is_held_against_all() {
    let stage = Stage::new();
    let file = stage.file("run.json");
    let ping = |words: &str| {
        stage.run(&format!("ping --gap 0 --count 20 --blocks 2 -o {file} {words}")).ended(0).err
    };
    let save = |subjects: &str| ping(&format!("{subjects} --save-baseline main"));
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
    ping("futex pipe");
    let checked = stage.run(&format!("check --baseline main --from {file} --fail-if lost>0"));
    assert!(checked.out.contains("main and 11 more runs"), "{}", checked.all());
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
    let [victim, baseline] = ["victim", "baseline.json"].map(|name| stage.file(name));
    fs::write(&victim, "precious").unwrap();
    let mut document = json_of(&data("ping"));
    for configuration in document["plan"]["configurations"].as_array_mut().unwrap() {
        configuration["subject"] = "sync".into();
        configuration["target"] =
            serde_json::json!({ "kind": "device", "path": victim, "consent": "victim", "passes": 1 });
    }
    fs::write(&baseline, document.to_string()).unwrap();
    let said = stage.run(&format!("check --baseline {baseline} --fail-if p50>+5% --anyway")).ended(2);
    assert!(said.err.contains("repeats nothing that writes"), "{}", said.err);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_plan_file_makes_the_run_that_its_flags_make() {
    let stage = Stage::new();
    let file = stage.file("plan.toml");
    let flags = "ping futex pipe --gap 0,10us --wait block,spin --time 3ms --blocks 2 --seed 9 \
        --load sqrt:2:pinned --placement unpinned";
    assert_eq!(stage.run(&format!("{flags} --save-plan {file}")).ended(0).out, "");
    let typed = stage.run(&format!("{flags} --dry-run"));
    let planned = |more: &str| stage.run(&format!("ping --plan {file} {more}")).ended(0);
    assert_eq!(typed.out, planned("--dry-run").out);
    assert_eq!(planned("--blocks 7 --dry-run").json()["blocks"], 7, "what is typed counts more");
    assert_eq!(planned("--load idle --json").json()["plan"]["seed"], 9);
}

#[test]
fn a_wrong_plan_file_is_told_with_its_line() {
    let stage = Stage::new();
    let file = stage.file("plan.toml");
    let of = |lines: &str| {
        format!(
            "experiment = 'ping'\n{lines}[[configurations]]\nsubject = 'futex'\npattern = {{ kind = 'ping-pong', gap_ns = 0 }}\n\
             until = {{ count = 5 }}\n"
        )
    };
    let refused = |words: &str, told: &str| {
        let said = stage.run(words).ended(2).err;
        assert!(said.contains(told), "{words}: {said}");
    };
    for (verb, content, told) in [
        ("ping", of("blcoks = 3\n"), ", line 2: a plan has nothing called 'blcoks'; did you mean 'blocks'?"),
        ("ping", of("blocks = '3'\n"), ", line 2: invalid type"),
        ("spin", of(""), ": the plan is for `doorbell ping`, not for `doorbell spin`"),
        ("survey", "blocks = \n".to_owned(), ", line 1: "),
    ] {
        fs::write(&file, &content).unwrap();
        refused(&format!("{verb} --plan {file}"), told);
    }
    fs::write(&file, of("")).unwrap();
    for (verb, flag, value) in
        [("ping", "--gap", "1ms"), ("io", "--file", &file), ("check", "--baseline", &file)]
    {
        refused(&format!("{verb} {flag} {value} --plan {file}"), &format!("{flag} stands beside --plan"));
    }
    refused("ping --plan /nowhere.toml", "cannot read the plan file /nowhere.toml");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let stage = Stage::new();
    for (words, told) in [
        ("pick --need epol", "did you mean 'epoll'?"),
        ("pick --pattern 1toN --gap 1ms", "is a fan-out"),
        ("spin spin", "nothing to spin before"),
        ("spin --gap 1ms..1us", "runs backwards"),
        ("spin --gap 0", "nothing to wait for"),
        ("spin --gap 0 --placement same-core", "nothing to wait for"),
        ("spin --placement same-core", "on one core"),
        ("spin --worth much", "is no ratio"),
        ("spin futex-private", "--contexts"),
        ("gate", "--max <TIME>"),
        ("gate --max 20us --percentile 100", "is no percentile"),
        ("gate --max 20us --confidence 100%", "is not from 50%"),
        ("gate --max 20us --time 1ms", "is too short"),
        ("check --baseline PING --fail-if p99>5%", "p99>+5%"),
        ("check --baseline PING --fail-if futx:p99>+5%", "the baseline has nothing called 'futx'"),
        ("check --baseline PING --load full", "the load is the baseline's"),
        ("check --baseline - --from -", "read only once"),
    ] {
        let said = stage.run(&words.replace("PING", &data("ping"))).ended(2).err;
        assert!(said.contains(told), "{words}: {said}");
    }
    // A survey has gaps, with few ways to wait.
    stage.run(&format!("spin --from {}", data("survey"))).ended_with_one_of(&[0, 4]);
}
