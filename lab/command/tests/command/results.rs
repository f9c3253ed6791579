// SPDX-License-Identifier: MIT OR Apache-2.0
//! What becomes of results: the schema describes them, the verbs that
//! read them say what they found.

use std::time::Duration;

use assert_cmd::Command;
use doorbell_results::record::{Histogram, Series};

use crate::stage::Stage;

/// The command in folders of the test's own: what it leaves in the user's is the user's.
fn doorbell(stage: &Stage, arguments: &[&str]) -> Command {
    stage.doorbell(arguments).into()
}

fn json(stage: &Stage, arguments: &[&str]) -> serde_json::Value {
    let output = doorbell(stage, arguments).assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

#[test]
fn a_result_that_was_measured_satisfies_the_schema_that_is_printed() {
    let stage = Stage::new();
    let validator = jsonschema::validator_for(&json(&stage, &["schema"])).unwrap();
    let result =
        json(&stage, &["ping", "eventfd", "--gap", "0,10us", "--count", "50", "--blocks", "1", "--json"]);
    let errors: Vec<String> = validator.iter_errors(&result).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    assert!(!result["records"].as_array().unwrap().is_empty());
}

#[test]
fn every_format_is_written_from_a_file_or_from_standard_input() {
    let stage = Stage::new();
    let file = stage.path().join("result.json");
    let path = file.to_str().unwrap();
    doorbell(&stage, &["ping", "eventfd", "--gap", "0", "--count", "50", "--blocks", "2", "-q", "-o", path])
        .assert()
        .success();
    for (format, holds) in [
        ("csv", "round-trip,p50"),
        ("csv-bins", "low_ns,high_ns,count"),
        ("markdown", "| eventfd"),
        // In a guest, "us emulated" and ".round-trip.emulated".
        ("hgrm", " round-trip, us"),
        ("hlog", ".round-trip"),
        ("classic", "Message rate"),
        ("prometheus", "doorbell_latency_seconds_count{"),
    ] {
        let printed = doorbell(&stage, &["export", format, path]).assert().success();
        let text = String::from_utf8(printed.get_output().stdout.clone()).unwrap();
        assert!(text.contains(holds), "{format}:\n{text}");
        let target = stage.path().join(format);
        doorbell(&stage, &["export", format, "-", "-o", target.to_str().unwrap()])
            .write_stdin(std::fs::read(&file).unwrap())
            .assert()
            .success();
        assert_eq!(std::fs::read_to_string(target).unwrap(), text);
    }
}

#[test]
fn a_file_that_is_no_result_is_refused_with_what_it_is_and_what_to_do() {
    let stage = Stage::new();
    doorbell(&stage, &["export", "csv", "-"])
        .write_stdin(r#"{"fio version": "fio-3.33"}"#)
        .assert()
        .code(1)
        .stdout("")
        .stderr("doorbell: standard input is not a result of doorbell but one of fio; `doorbell io --import FILE` reads it and writes a result that stands in the same tables\n");
}

/// The two programs of a change are measured in turn, slice by slice, so that what the machine does
/// meanwhile falls on both.
#[test]
fn two_programs_are_compared_while_they_take_turns() {
    let stage = Stage::new();
    let program = env!("CARGO_BIN_EXE_doorbell");
    let slow = stage.path().join("slow");
    std::fs::write(&slow, format!("exec {program} \"$@\" --inject-slowdown 900%\n")).unwrap();
    let slow = format!("sh {}", slow.display());
    let measured = ["--", "ping", "eventfd", "--gap", "0", "--placement", "same-core", "--count", "1000"];
    let others = format!("true; {program}");
    for (first, told, counted) in [
        (program, "took turns in slices of 1 ms, between", " of 80 pairs"),
        (others.as_str(), "`true` may change what both share", "10 of 40 blocks"),
    ] {
        let live = ["compare", "--live", "--within", "1ms", first, &slow];
        let live: Vec<&str> = live.into_iter().chain(measured).collect();
        let output = doorbell(&stage, &live).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        // A machine that others use in most trials leaves it open, and says so.
        let open = text.starts_with("Provisional");
        assert!(output.status.code() == Some(3) || open && output.status.code() == Some(4), "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("eventfd") && flat.contains(told), "{told}: {text}");
        // The harness is the same in both, and takes no turn in which what was asked for could be measured.
        assert!(!flat.contains("null") || first != program, "{text}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(counted), "{counted}: {said}");
    }
    let broken = doorbell(&stage, &["compare", "--live", "false", "false", "--", "ping", "futex"]);
    let complaint = { broken }.assert().code(1);
    assert!(String::from_utf8_lossy(&complaint.get_output().stderr).contains("ended with"));
}

/// A script that starts the program with what it was given, and `more`.
fn script(stage: &Stage, name: &str, text: &str) -> String {
    let path = stage.path().join(name);
    std::fs::write(&path, text).unwrap();
    format!("sh {}", path.display())
}

#[test]
fn two_that_measure_different_things_or_know_of_no_turns_are_not_compared_in_another_way_unasked() {
    let stage = Stage::new();
    let program = env!("CARGO_BIN_EXE_doorbell");
    let result = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ping.json");
    let deaf = script(&stage, "deaf", &format!("cat {result}\n"));
    let threads = script(&stage, "threads", &format!("exec {program} \"$@\" --contexts threads\n"));
    let lasting = ["ping", "eventfd", "--gap", "0", "--placement", "same-core"];
    for (second, why, names) in [
        (&deaf, "does not take turns", deaf.as_str()),
        (&threads, "about to measure different things", "--output FILE"),
    ] {
        let live = ["compare", "--live", "--within", "1ms", program, second, "--"];
        let live: Vec<&str> = live.into_iter().chain(lasting).collect();
        let ended = doorbell(&stage, &live).assert().code(1).stdout("");
        let complaint = String::from_utf8_lossy(&ended.get_output().stderr).into_owned();
        let said = complaint.lines().find(|line| line.contains(why));
        assert!(said.is_some_and(|said| said.contains(names)), "{why}: {complaint}");
    }
}

/// Killed, `compare` left its two programs measuring for nobody.
#[test]
fn two_programs_whose_comparison_is_killed_end_as_interrupted() {
    let stage = Stage::new();
    let program = env!("CARGO_BIN_EXE_doorbell");
    let status = |side: &str| stage.path().join(format!("status-{side}"));
    let [first, second] = ["first", "second"].map(|side| {
        let path = status(side);
        let path = path.display();
        // The shell stays between both, as it does where a command is more than the program's name.
        script(
            &stage,
            side,
            &format!("touch {path}.begun\n{program} \"$@\"\necho $? >{path}.part\nmv {path}.part {path}\n"),
        )
    });
    let measured = ["--", "ping", "eventfd", "--gap", "0", "--placement", "unpinned", "--time", "1s"];
    let live = ["compare", "--live", "--within", "10m", &first, &second];
    let live: Vec<&str> = live.into_iter().chain(measured).collect();
    let mut compare = stage.doorbell(&live).spawn().unwrap();
    let both_begun = || ["first", "second"].iter().all(|side| status(side).with_extension("begun").exists());
    while !both_begun() {
        std::thread::sleep(Duration::from_millis(10));
    }
    compare.kill().unwrap();
    compare.wait().unwrap();
    for side in ["first", "second"] {
        while !status(side).exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(std::fs::read_to_string(status(side)).unwrap().trim(), "130", "{side}");
    }
}

#[test]
fn a_run_compared_with_itself_is_the_same_and_with_a_slower_copy_a_regression() {
    let stage = Stage::new();
    let path = |name: &str| stage.path().join(name).to_str().unwrap().to_owned();
    let (run, slower) = (path("run.json"), path("slower.json"));
    let ping = "ping eventfd --alone --gap 0 --contexts threads --count 200 --blocks 6";
    let ping: Vec<&str> = ping.split(' ').collect();
    doorbell(&stage, &[ping.as_slice(), &["-q", "-o", &run]].concat()).assert().success();
    // On a busy machine the run's own figures spread too much: these
    // spread little, and the copy's are three times as long.
    for (level, file) in [(10_000, &run), (30_000, &slower)] {
        let mut document: serde_json::Value = serde_json::from_slice(&std::fs::read(&run).unwrap()).unwrap();
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
        std::fs::write(file, document.to_string()).unwrap();
    }
    for (candidate, code, ratio) in [(&run, 0, 1.0), (&slower, 3, 3.0)] {
        let compared = doorbell(&stage, &["compare", &run, candidate, "--json"]).assert().code(code);
        let told: serde_json::Value = serde_json::from_slice(&compared.get_output().stdout).unwrap();
        let found = told["verdict"]["findings"].as_array().unwrap();
        // One for each placement that this machine has.
        assert!(!found.is_empty(), "{told}");
        for placement in found {
            let [low, high] = [0, 1].map(|end| placement["interval"][end].as_f64().unwrap() / ratio);
            assert!(low > 0.97 && high < 1.03, "{told}");
        }
    }
}

#[test]
fn a_comparison_with_a_run_of_something_else_compares_nothing_and_says_so() {
    let stage = Stage::new();
    let path = |name: &str| stage.path().join(name).to_str().unwrap().to_owned();
    let runs = [("0", path("a.json")), ("1us", path("b.json"))];
    for (gap, file) in &runs {
        doorbell(&stage, &["ping", "null", "--gap", gap, "--count", "20", "--blocks", "1", "-q", "-o", file])
            .assert()
            .success();
    }
    let compared = doorbell(&stage, &["compare", &runs[0].1, &runs[1].1, "--json"]).assert().code(4);
    let told: serde_json::Value = serde_json::from_slice(&compared.get_output().stdout).unwrap();
    let found = told["verdict"]["findings"].as_array().unwrap();
    assert!(found.len() >= 2 && found.iter().all(|found| found["value"].is_null()), "{told}");
}
