// SPDX-License-Identifier: MIT OR Apache-2.0
//! What becomes of results: the schema describes them, the verbs that
//! read them say what they found.

use std::time::Duration;

use crate::stage::{Said, Stage, data};

#[test]
fn a_result_that_was_measured_satisfies_the_schema_that_is_printed() {
    let stage = Stage::new();
    let validator = jsonschema::validator_for(&stage.run("schema").json()).unwrap();
    let result = stage.run("ping eventfd --gap 0,10us --count 50 --blocks 1 --json").ended(0).json();
    let errors: Vec<String> = validator.iter_errors(&result).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    assert!(!result["records"].as_array().unwrap().is_empty());
}

#[test]
fn every_format_is_written_from_a_file_or_from_standard_input() {
    let stage = Stage::new();
    let file = stage.file("result.json");
    stage.run(&format!("ping eventfd --gap 0 --count 50 --blocks 2 -q -o {file}")).ended(0);
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
        let text = stage.run(&format!("export {format} {file}")).ended(0).out;
        assert!(text.contains(holds), "{format}:\n{text}");
        let target = stage.file(format);
        let read = std::fs::File::open(&file).unwrap();
        Said::by(stage.words(&format!("export {format} - -o {target}")).stdin(read)).ended(0);
        assert_eq!(std::fs::read_to_string(target).unwrap(), text);
    }
}

#[test]
fn a_file_that_is_no_result_is_refused_with_what_it_is_and_what_to_do() {
    let stage = Stage::new();
    let file = stage.file("fio.json");
    std::fs::write(&file, r#"{"fio version": "fio-3.33"}"#).unwrap();
    let read = std::fs::File::open(&file).unwrap();
    let said = Said::by(stage.words("export csv -").stdin(read)).ended(1);
    let told = "doorbell: standard input is not a result of doorbell but one of fio; `doorbell io --import FILE` reads it and writes a result that stands in the same tables\n";
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", told));
}

/// The two programs of a change are measured in turn, slice by slice, so that what the machine does
/// meanwhile falls on both.
#[test]
fn two_programs_are_compared_while_they_take_turns() {
    let stage = Stage::new();
    let program = env!("CARGO_BIN_EXE_doorbell");
    let slow = script(&stage, "slow", &format!("exec {program} \"$@\" --inject-slowdown 900%\n"));
    let compared = |first: &str, second: &str, measured: &str| {
        let live = ["compare", "--live", "--within", "1ms", first, second, "--"];
        let words: Vec<&str> = live.into_iter().chain(measured.split(' ')).collect();
        Said::by(&mut stage.doorbell(&words))
    };
    let others = format!("true; {program}");
    for (first, told, counted) in [
        (program, "took turns in slices of 1 ms, between", " of 80 pairs"),
        (others.as_str(), "`true` may change what both share", "10 of 40 blocks"),
    ] {
        let said = compared(first, &slow, "ping eventfd --gap 0 --placement same-core --count 1000");
        let text = &said.out;
        // A machine that others use in most trials leaves it open, and says so.
        let open = text.starts_with("Provisional");
        assert!(said.status == Some(3) || open && said.status == Some(4), "{}", said.all());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("eventfd") && flat.contains(told), "{told}: {text}");
        // The harness is the same in both, and takes no turn in which what was asked for could be measured.
        assert!(!flat.contains("null") || first != program, "{text}");
        assert!(said.err.contains(counted), "{counted}: {}", said.err);
    }
    let broken = compared("false", "false", "ping futex").ended(1).err;
    assert!(broken.contains("ended with"), "{broken}");
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
    let deaf = script(&stage, "deaf", &format!("cat {}\n", data("ping")));
    let threads = script(&stage, "threads", &format!("exec {program} \"$@\" --contexts threads\n"));
    let lasting = ["ping", "eventfd", "--gap", "0", "--placement", "same-core"];
    for (second, why, names) in [
        (&deaf, "does not take turns", deaf.as_str()),
        (&threads, "about to measure different things", "--output FILE"),
    ] {
        let live = ["compare", "--live", "--within", "1ms", program, second, "--"];
        let live: Vec<&str> = live.into_iter().chain(lasting).collect();
        let ended = Said::by(&mut stage.doorbell(&live)).ended(1);
        assert_eq!(ended.out, "");
        let complaint = ended.err;
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
fn a_comparison_with_a_run_of_something_else_compares_nothing_and_says_so() {
    let stage = Stage::new();
    let runs = ["0", "1us"].map(|gap| {
        let file = stage.file(gap);
        let words = "ping null --count 20 --blocks 1 -q";
        stage.run(&format!("{words} --gap {gap} -o {file}")).ended(0);
        file
    });
    let told = stage.run(&format!("compare {} {} --json", runs[0], runs[1])).ended(4).json();
    let found = told["verdict"]["findings"].as_array().unwrap();
    assert!(found.len() >= 2 && found.iter().all(|found| found["value"].is_null()), "{told}");
}
