// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers as a user runs them: a plain run writes to nothing but a
//! file of its own and leaves none, whoever dies; what is called polled
//! is proven or has no figures; what is somebody's is not written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::{Said, Stage, wait_until};

/// A folder on whatever the tests are built on, which is a disk more
/// often than a folder for temporary files is.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap()
}

fn left(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect()
}

/// `doorbell io WORDS` in `folder`, its result on standard output; none where no file there can be
/// transferred to directly.
fn io(stage: &Stage, folder: &Path, words: &str) -> Option<Said> {
    let said = stage.run(&format!("io --dir {} --quiet --blocks 1 --output - {words}", folder.display()));
    if said.err.contains("takes no direct transfers") {
        doorbell_skipped::skip(said.err.trim());
        said.ended(1);
        return None;
    }
    Some(said)
}

/// The same, begun; none where a short one cannot be.
fn begun(stage: &Stage, folder: &Path, words: &str) -> Option<Child> {
    io(stage, folder, "io-null --file-size 1M --count 1")?;
    let words = format!("io --dir {} --quiet --blocks 1 --output - {words}", folder.display());
    Some(stage.words(&words).spawn().unwrap())
}

fn rules(record: &Value) -> Vec<&str> {
    let violations = record["outcome"]["violations"].as_array();
    violations.into_iter().flatten().map(|violation| violation["rule"].as_str().unwrap()).collect()
}

#[test]
fn every_way_ends_in_figures_or_in_a_reason_and_the_file_is_gone_afterwards() {
    let (stage, folder) = (Stage::new(), folder());
    let Some(said) = io(&stage, folder.path(), "--file-size 4M --count 50") else { return };
    let records = said.records();
    assert_eq!(records.len(), 2 * doorbell_subjects::transfer::all().len());
    for record in &records {
        let (way, outcome) = (record["configuration"]["subject"].as_str().unwrap(), &record["outcome"]);
        let polled = way == "sync-hipri" || way.contains("iopoll") || way.contains("hybrid");
        match outcome["kind"].as_str().unwrap() {
            "done" => {
                assert_eq!(record["tally"]["seen"], 50, "{way}");
                assert_eq!(record["series"]["transfer"]["count"], 50, "{way}");
                assert_eq!(record["io"]["prepared"]["checked_sectors"], 8192, "{way}");
            }
            "implausible" => {
                let known = ["poll-not-proven", "not-from-the-device"];
                assert!(rules(record).iter().all(|rule| known.contains(rule)), "{way}: {outcome}");
            }
            "failed" => {
                let cause = outcome["cause"].as_str().unwrap();
                assert!(cause.contains("no queue to poll"), "{way}: {cause}");
            }
            "skipped" => {
                let lacks = outcome["reason"].as_str().unwrap().contains("no queue to poll");
                assert!(way.starts_with("uring") || (polled && lacks), "{way}: {outcome}");
            }
            other => panic!("{way}: {other}: {outcome}"),
        }
        if polled && outcome["kind"] == "done" {
            assert_eq!(record["io"]["device"]["polls"], true, "{way} has figures without a queue to poll");
        }
    }
    let control = records.iter().find(|record| record["configuration"]["subject"] == "io-null").unwrap();
    assert_eq!(control["outcome"]["kind"], "done", "{control}");
    assert_eq!(left(folder.path()), [""; 0].map(PathBuf::from));
    stage.wait_until_empty();
    assert!(stage.run_folders().is_empty(), "{:?}", stage.run_folders());
}

/// Reads from the page cache have no business in a table of a device's.
#[test]
fn buffered_reads_that_the_device_never_saw_have_no_figures() {
    let (stage, folder) = (Stage::new(), folder());
    let words = "sync --file-size 1M --buffered --rw read --count 20000";
    let Some(said) = io(&stage, folder.path(), words) else { return };
    let records = said.records();
    let read = records.iter().find(|record| record["configuration"]["subject"] == "sync").unwrap();
    assert_eq!(rules(read), ["not-from-the-device"], "{}", read["outcome"]);
}

#[test]
fn a_run_that_is_killed_leaves_a_file_that_the_next_run_removes() {
    let (stage, folder) = (Stage::new(), folder());
    let words = "io-null --file-size 1M --time 100s";
    let Some(mut child) = begun(&stage, folder.path(), words) else { return };
    wait_until("a trial", || stage.trial_processes().len() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    stage.wait_until_empty();
    let [file] = &left(folder.path())[..] else { panic!("{:?}", left(folder.path())) };
    assert!(file.file_name().unwrap().to_str().unwrap().starts_with("doorbell-io-"));
    // A file of somebody else beside it is none of the next run's business.
    fs::write(folder.path().join("precious"), "mine").unwrap();
    io(&stage, folder.path(), "io-null --file-size 1M --count 1").unwrap();
    assert_eq!(left(folder.path()), [folder.path().join("precious")]);
}

/// The file was filled to the end first, which for a large one takes minutes.
#[test]
fn ctrl_c_while_the_file_is_filled_ends_the_run_and_removes_the_file() {
    let (stage, folder) = (Stage::new(), folder());
    let words = "sync --file-size 256M --precondition 100";
    let Some(child) = begun(&stage, folder.path(), words) else { return };
    wait_until("a file", || !left(folder.path()).is_empty());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let result = Said::from(child.wait_with_output().unwrap()).ended(130).json();
    assert_eq!(result["partial"], true);
    for list in ["records", "primitives"] {
        assert_eq!(result[list].as_array().unwrap().len(), 0, "{list}");
    }
    assert_eq!(left(folder.path()), [""; 0].map(PathBuf::from));
    stage.wait_until_empty();
    assert!(stage.run_folders().is_empty(), "{:?}", stage.run_folders());
}

#[test]
fn a_side_that_is_killed_is_named_and_the_file_is_removed_all_the_same() {
    let (stage, folder) = (Stage::new(), folder());
    let words = "io-null --file-size 1M --rw read --time 100s";
    let Some(child) = begun(&stage, folder.path(), words) else { return };
    let command = i32::try_from(child.id()).unwrap();
    wait_until("a side", || !stage.sides(command).is_empty());
    let side = stage.sides(command)[0];
    kill_process(Pid::from_raw(side).unwrap(), Signal::KILL).unwrap();
    // The other side has nothing to do and leaves; if it was that one, the command is ended.
    std::thread::sleep(Duration::from_millis(300));
    let _ = kill_process(Pid::from_raw(command).unwrap(), Signal::INT);
    let outcome = Said::from(child.wait_with_output().unwrap()).records()[0]["outcome"].clone();
    assert!(["failed", "partial"].contains(&outcome["kind"].as_str().unwrap()), "{outcome}");
    stage.wait_until_empty();
    assert!(left(folder.path()).is_empty(), "{:?}", left(folder.path()));
}

/// The device that the root file system is mounted from, where there is one.
fn root_device() -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let line = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/"))?;
    let source = line.split(" - ").nth(1)?.split(' ').nth(1)?;
    Path::new(source).exists().then(|| source.to_owned()).filter(|source| source.starts_with("/dev/"))
}

#[test]
fn what_is_somebodys_is_refused_before_anything_is_opened_to_be_written() {
    let (stage, folder) = (Stage::new(), folder());
    let precious = folder.path().join("precious");
    fs::write(&precious, vec![7; 1 << 20]).unwrap();
    let refused = |words: &str, expected: &str| {
        // A plan alone, so that this test could not write even if the refusal were gone.
        let words = format!("io --dry-run {}", words.replace("FILE", precious.to_str().unwrap()));
        let complaint = stage.run(&words).ended(2).err;
        assert!(complaint.contains(expected), "{words}: {complaint}");
    };
    for (words, expected) in [
        ("--file FILE --rw write", "was there before: it is only read"),
        ("--file FILE --rw read,write", "was there before: it is only read"),
        ("--device FILE --rw write --write-device precious", "is no block device"),
        ("--device /dev/null", "is no block device"),
        ("--device /dev/none-there", "No such file"),
        ("--write-device sda", "--device"),
        ("--device /dev/null --precondition 1", "say so with --write-device"),
        ("--file FILE --dir .", "cannot be used with"),
        ("--size 1000", "multiple of 512"),
        ("--file-size 1000", "from 1M to 1024G"),
        ("--precondition 0", "at least once"),
        ("--buffered", "--rw read"),
        ("uring-iopol", "did you mean 'uring-iopoll'?"),
        ("--cpus 4095", "there is no CPU 4095"),
    ] {
        refused(words, expected);
    }
    if let Some(device) = root_device().filter(|device| fs::File::open(device).is_ok()) {
        let name = Path::new(&device).file_name().unwrap().to_str().unwrap();
        refused(&format!("--device {device} --rw write --write-device {name}"), "it is not written");
    }
    assert_eq!(fs::read(&precious).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn a_result_of_fio_stands_in_the_same_result_and_one_that_does_not_compare_is_refused() {
    let (stage, folder) = (Stage::new(), folder());
    let file = folder.path().join("fio.json");
    let job = |engine: &str, depth: &str| {
        format!(
            r#"{{"fio version":"fio-3.33","global options":{{"direct":"1","iodepth":"{depth}","rw":"randread"}},"jobs":[{{
            "jobname":"one","error":0,"job options":{{"ioengine":"{engine}","hipri":""}},"usr_cpu":1.0,"sys_cpu":9.0,"ctx":100,
            "read":{{"total_ios":100,"runtime":10,"clat_ns":{{"mean":90000.0,"bins":{{"90112":100}}}}}},
            "write":{{"total_ios":0}}}}]}}"#
        )
    };
    fs::write(&file, job("pvsync2", "1")).unwrap();
    let import = || stage.run(&format!("io --import {} --quiet --output -", file.display()));
    let records = import().records();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["configuration"]["subject"], "fio pvsync2 hipri");
    assert_eq!(records[0]["warnings"][0]["name"], "imported");
    // One that waits for each block has one under way, whatever it was told.
    fs::write(&file, job("pvsync2", "32")).unwrap();
    import().ended(0);
    fs::write(&file, job("libaio", "32")).unwrap();
    let complaint = import().ended(1).err;
    assert!(complaint.contains("iodepth is 32"), "{complaint}");
}

#[test]
fn a_waiter_that_sleeps_is_measured_by_gap_and_a_limit_that_cannot_be_held_is_told() {
    let stage = Stage::new();
    let said = stage.run("idle --gap 200us,2ms --count 5 --blocks 1 --quiet --output -");
    if said.err.contains("only if the notifier has another") {
        doorbell_skipped::skip(said.err.trim());
        said.ended(2);
        return;
    }
    let records = said.records();
    // The harness once, two gaps with idle states as they are and held off.
    assert_eq!(records.len(), 5, "{}", said.err);
    for record in &records {
        let held = record["configuration"]["latency_limit_us"] == 0;
        match record["outcome"]["kind"].as_str().unwrap() {
            "done" => assert_eq!(record["tally"]["sent"], 5, "{record}"),
            "skipped" => assert!(held, "{record}"),
            "implausible" => {}
            other => panic!("{other}: {record}"),
        }
    }
    assert!(stage.run("idle spin").ended(2).err.contains("spin does not sleep"));
}
