// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for a GPU as a user measures it, on a driver made for
//! tests, which says that it is none; and without any.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::stage::{Stage, records, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The driver made for tests, compiled once.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcuda-made-for-tests-of-the-command.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../library/doorbell/tests/gpu/driver.c");
        let mut compiler = Command::new("cc");
        // Whole at once: another run of these tests may open it.
        let made = file.with_extension(std::process::id().to_string());
        compiler.args(["-shared", "-fPIC", "-O1", "-pthread", "-o"]).arg(&made).arg(source);
        assert!(compiler.status().expect("cc").success());
        std::fs::rename(&made, &file).unwrap();
        file
    })
}

/// `doorbell gpu WORDS` on the driver made for tests that does what `script` says.
fn gpu(stage: &Stage, script: &str, words: &str) -> Output {
    let mut args = vec!["gpu", "--quiet", "--output", "-"];
    args.extend(words.split(' '));
    let mut command = stage.doorbell(&args);
    command.env("DOORBELL_CUDA_LIBRARY", library()).env("DOORBELL_TEST_DRIVER", script);
    unless_starved(|| command.output().unwrap())
}

/// What `run` comes to. On a machine so busy that the threads which stand for a GPU do not come to
/// run for seconds, once more.
fn unless_starved(mut run: impl FnMut() -> Output) -> Output {
    let starved = |output: &Output| String::from_utf8_lossy(&output.stderr).contains("did not answer within");
    let mut output = run();
    for _ in 0..20 {
        if !starved(&output) {
            break;
        }
        output = run();
    }
    output
}

#[test]
fn every_way_has_figures_within_a_stated_bound_of_two_clocks_and_the_device_is_told() {
    let stage = Stage::new();
    let output = gpu(
        &stage,
        "offset_ns=987654321 drift_ppm=80 step_ns=32",
        "all --blocks 1 --kernel 0,200us --time 20ms",
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let records = records(&output);
    // Eighteen ways of two lengths, and four that wake the GPU.
    assert_eq!(records.len(), 40);
    for record in &records {
        let way = record["configuration"]["subject"].as_str().unwrap();
        assert_eq!(record["outcome"]["kind"], "done", "{way}: {record}");
        assert_eq!(record["io"]["device"]["model"], "no GPU: the driver made for tests", "{way}");
        assert!(record["tally"]["seen"].as_u64().unwrap() > 0, "{way}");
        assert_eq!(record["series"]["wake"]["count"], record["tally"]["seen"], "{way}");
        assert_eq!(record["figures"][0]["name"], "clock bound", "{way}");
        assert!(record["figures"][0]["value"].as_f64().unwrap() > 0.0, "{way}");
    }
}

#[test]
fn the_first_lines_say_on_what_it_was_measured_and_show_report_and_compare_take_the_result() {
    let stage = Stage::new();
    let file = stage.path().join("gpu.json");
    let file = file.to_str().unwrap();
    let words = [
        "gpu",
        "gpu-stream-spin",
        "gpu-adaptive",
        "--kernel",
        "200us",
        "--time",
        "20ms",
        "--blocks",
        "1",
        "--quiet",
        "-o",
        file,
    ];
    let mut command = stage.doorbell(&words);
    command.env("DOORBELL_CUDA_LIBRARY", library());
    let output = unless_starved(|| command.output().unwrap());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("no GPU: the driver made for tests"), "{said}");
    // Which way is the fastest, unless the machine is so busy that
    // the two clocks are not known well enough.
    assert!(said.contains("Kernels of 200 µs: "), "{said}");
    for words in
        [vec!["show", file], vec!["show", "--details", file], vec!["report", file, "-o", "/dev/null"]]
    {
        let output = stage.doorbell(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// "1 block of 6 at least", of any two runs: nothing could be decided.
#[test]
fn two_runs_have_blocks_enough_to_be_compared_and_checked() {
    let stage = Stage::new();
    let run = |name: &str| {
        let file = stage.path().join(name).to_str().unwrap().to_owned();
        let words = "gpu gpu-stream-block --kernel 100us --time 60ms --quiet -o";
        let mut words: Vec<&str> = words.split(' ').collect();
        words.push(&file);
        let output = unless_starved(|| {
            stage.doorbell(&words).env("DOORBELL_CUDA_LIBRARY", library()).output().unwrap()
        });
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        file
    };
    let [first, second] = [run("first.json"), run("second.json")];
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&first).unwrap()).unwrap();
    let records = result["records"].as_array().unwrap();
    assert_eq!(records.len(), 6);
    assert!(records.iter().all(|record| record["outcome"]["kind"] == "done"), "{records:?}");
    for words in [
        vec!["compare", &first, &second],
        vec!["check", "--baseline", &first, "--from", &second, "--fail-if", "p50>+99%"],
    ] {
        let judged = stage.doorbell(&words).output().unwrap();
        let said = String::from_utf8_lossy(&judged.stdout);
        assert!(matches!(judged.status.code(), Some(0 | 3 | 4)), "{words:?}: {judged:?}");
        assert!(said.contains("gpu-stream-block"), "{said}");
        assert!(!said.contains("at least (--blocks)"), "{said}");
    }
}

#[test]
fn a_gate_takes_ways_to_wait_for_a_gpu() {
    let stage = Stage::new();
    let gate = |library: &Path, words: &str| {
        let words = ["gate"].into_iter().chain(words.split(' ')).chain(["--quiet", "--anyway"]);
        let mut command = stage.doorbell(&words.collect::<Vec<_>>());
        command.env("DOORBELL_CUDA_LIBRARY", library);
        unless_starved(|| command.output().unwrap())
    };
    for way in ["gpu-stream-block", "gpu-launch"] {
        let passed =
            gate(library(), &format!("{way} --max 1h --percentile max --time 200ms --blocks 2 --output -"));
        let result: serde_json::Value = serde_json::from_slice(&passed.stdout).unwrap();
        let said = result["verdict"]["summary"].to_string() + &result["verdict"].to_string();
        // Unless others used the CPUs most of the time.
        let open = passed.status.code() == Some(4) && said.contains("other programs used the CPUs");
        assert!(passed.status.code() == Some(0) || open, "{way}: {said}");
        let records = result["records"].as_array().unwrap();
        assert!(records.iter().all(|record| record["outcome"]["kind"] == "done"), "{records:?}");
        assert_eq!(records.len(), 2);
        let kernel = if way == "gpu-launch" { 0 } else { 100_000 };
        assert_eq!(records[0]["configuration"]["pattern"]["kernel_ns"], kernel);
    }
    let none = gate(Path::new("/nowhere/libcuda.so.1"), "gpu-stream-block --max 1ms");
    let said = String::from_utf8_lossy(&none.stderr);
    assert_eq!(none.status.code(), Some(1), "{said}");
    assert!(said.contains("install NVIDIA's driver"), "{said}");
}

#[test]
fn what_would_be_asked_for_in_vain_is_refused() {
    let stage = Stage::new();
    for (words, why) in [
        ("gpu gpu-flag --spin 20us", "--spin says how long gpu-hybrid asks"),
        ("gpu gpu-hybrid --spin 10s", "longer than any kernel"),
        ("gpu gpu-launch gpu-graph --kernel 1ms", "is no matter"),
        ("gpu gpu-resident --time 1m", "at most"),
        ("gpu gpu-flag --cpu far", "NUMA node"),
        ("gpu gpu-flag --cpu nearest", "is no CPU"),
        ("gate gpu-launch --max 1s --kernel 1ms", "is no matter"),
        ("gate futex --max 1s --kernel 1ms", "waits for no GPU"),
        ("gate gpu-stream-block --max 1s --contexts threads", "two sides"),
        ("gate gpu-resident --max 1s --time 2m", "at most"),
        ("gate gpu-stream-blok --max 1s", "'gpu-stream-block'"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let refused = stage.doorbell(&words).env("DOORBELL_CUDA_LIBRARY", library()).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(why), "{words:?}: {said}");
    }
}

#[test]
fn threads_that_wait_at_once_are_counted_together() {
    let stage = Stage::new();
    let output = gpu(
        &stage,
        "",
        "gpu-event-block gpu-adaptive gpu-events gpu-resident --kernel 100us --streams 1,4 \
         --blocks 1 --time 50ms",
    );
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let records = records(&output);
    assert_eq!(records.len(), 8);
    for record in &records {
        assert_eq!(record["outcome"]["kind"], "done", "{record}");
        assert_eq!(record["series"]["wake"]["count"], record["tally"]["seen"]);
    }
}

#[test]
fn a_kernel_that_fails_or_never_ends_fails_or_hangs_its_trial_and_no_other() {
    let stage = Stage::new();
    let failed = gpu(&stage, "fail=719", "gpu-stream-spin --blocks 2 --kernel 0 --time 20ms");
    assert_eq!(failed.status.code(), Some(1));
    let record = &records(&failed)[0];
    assert_eq!(record["outcome"]["kind"], "failed", "{record}");
    assert!(record["outcome"]["cause"].as_str().unwrap().contains("CUDA_ERROR_LAUNCH_FAILED"), "{record}");

    let words = "gpu gpu-stream-block --blocks 1 --kernel 0 --time 20ms --quiet --output -";
    let mut command = stage.doorbell(&words.split(' ').collect::<Vec<_>>());
    command.env("DOORBELL_CUDA_LIBRARY", library()).env("DOORBELL_TEST_DRIVER", "never=1");
    let never = command.output().unwrap();
    assert_eq!(never.status.code(), Some(1));
    assert_ne!(records(&never)[0]["outcome"]["kind"], "done");
}

/// What goes wrong went wrong from the first kernel on: no way had measured anything by then.
#[test]
fn a_kernel_that_goes_wrong_in_the_middle_ends_its_way_by_name_and_the_one_beside_it_is_measured() {
    for (what, kind, says) in [
        ("never=1", "hung", "operates"),
        ("fail=719", "failed", "CUDA_ERROR_LAUNCH_FAILED"),
        ("kill=1", "failed", "was killed by signal 9"),
    ] {
        let stage = Stage::new();
        // Behind the exchange of words and the warm-up, of the two ways that one process measures.
        let script = format!("{what} after=11 above_us=100");
        let output = gpu(&stage, &script, "gpu-stream-auto gpu-launch --kernel 200us --blocks 2 --time 20ms");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{what}: {said}");
        let (broken, whole): (Vec<Value>, Vec<Value>) = records(&output)
            .into_iter()
            .partition(|record| record["configuration"]["subject"] == "gpu-stream-auto");
        assert_eq!(broken.len(), 1, "{what}: it is not tried again: {broken:?}");
        let outcome = &broken[0]["outcome"];
        assert_eq!(outcome["kind"], kind, "{what}: {outcome}");
        assert!(outcome.to_string().contains(says), "{what}: {outcome}");
        assert_eq!(whole.len(), 2, "{what}: {whole:?}");
        for record in &whole {
            assert_eq!(record["outcome"]["kind"], "done", "{what}: {record}");
            assert!(record["tally"]["seen"].as_u64().unwrap() > 0, "{what}: {record}");
        }
    }
}

/// The side that had nothing to do in it counted as one that makes its report, for which there are
/// a hundred seconds more.
#[test]
fn a_way_that_hangs_with_others_to_follow_hangs_no_later_than_the_last() {
    let stage = Stage::new();
    let output = gpu(
        &stage,
        "never=1 after=11 above_us=100",
        "gpu-stream-block --kernel 200us,300us --blocks 1 --time 20ms",
    );
    let records = records(&output);
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record["outcome"]["kind"] == "hung"), "{records:?}");
    // In the one that follows, from when on it waits for that to begin.
    assert_eq!(records[0]["outcome"]["last_seen"][1]["step"], "starting", "{records:?}");
}

/// Nobody is called behind a kernel that failed, and these ways were called hung.
#[test]
fn a_device_that_fails_is_named_by_the_ways_that_wait_for_a_host_function_too() {
    let stage = Stage::new();
    let ways = "gpu-host-eventfd gpu-host-futex gpu-host-bell";
    let output = gpu(&stage, "fail=719 after=11", &format!("{ways} --kernel 200us --blocks 1 --time 20ms"));
    let records = records(&output);
    assert_eq!(records.len(), 3);
    for record in &records {
        assert_eq!(record["outcome"]["kind"], "failed", "{record}");
        assert!(
            record["outcome"]["cause"].as_str().unwrap().contains("CUDA_ERROR_LAUNCH_FAILED"),
            "{record}"
        );
    }
}

/// Whether some thread of `process` is the device's in a kernel that never ends.
fn never_ends(process: i32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| std::fs::read(task.path().join("comm")).ok()).any(|name| name == b"never ends\n")
}

/// A way that spins in vain kept its run for 48 s beside others that wanted the CPUs, and an
/// interrupt did not help.
#[test]
fn an_interrupt_ends_a_run_whose_kernel_never_ends_and_keeps_what_was_measured() {
    let ended_by_it = || {
        let stage = Stage::new();
        let words = "gpu gpu-stream-spin gpu-launch --kernel 200us --blocks 1 --time 20ms --quiet --output -";
        let mut command = stage.doorbell(&words.split(' ').collect::<Vec<_>>());
        command.env("DOORBELL_CUDA_LIBRARY", library());
        command.env("DOORBELL_TEST_DRIVER", "never=1 after=11 above_us=100");
        let child = command.spawn().unwrap();
        wait_until("a kernel that never ends", || stage.trial_processes().into_iter().any(never_ends));
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
        let records = records(&output);
        let spins = |record: &&Value| record["configuration"]["subject"] == "gpu-stream-spin";
        let broken = records.iter().find(spins).expect("the way that hung");
        broken["outcome"]["cause"]
            .as_str()
            .is_some_and(|cause| cause.contains("interrupted, and nobody moved"))
    };
    // Where this test is kept from its CPU meanwhile, it hangs as long as without an interrupt.
    assert!((0..20).any(|_| ended_by_it()));
}

/// "In half a minute": that had been measured with fewer blocks than a run has.
#[test]
fn the_help_promises_no_time_that_no_gpu_has_shown() {
    let output = Stage::new().doorbell(&["gpu", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("how to wait here"), "{help}");
    assert!(!["half a minute", "three minutes"].iter().any(|time| help.contains(time)), "{help}");
}

#[test]
fn without_a_driver_every_way_is_skipped_with_the_reason_and_what_to_do() {
    let stage = Stage::new();
    let mut command = stage.doorbell(&["gpu", "--quiet", "--output", "-"]);
    let output = command.env("DOORBELL_CUDA_LIBRARY", "/nowhere/libcuda.so.1").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "nothing that was asked for was measured");
    for record in records(&output) {
        let reason = record["outcome"]["reason"].as_str().unwrap();
        assert!(
            reason.contains("/nowhere/libcuda.so.1") && reason.contains("install NVIDIA's driver"),
            "{reason}"
        );
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("/nowhere/libcuda.so.1").count(), 1, "the reason, once: {said}");
    let file = stage.path().join("none.json");
    std::fs::write(&file, &output.stdout).unwrap();
    let shown = stage.doorbell(&["show", file.to_str().unwrap()]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(shown.matches("install NVIDIA's driver").count(), 1, "and the stored result too: {shown}");
    let no_device = gpu(&stage, "no_device=1", "gpu-launch");
    assert_eq!(no_device.status.code(), Some(1));
    assert!(records(&no_device)[0]["outcome"]["reason"].as_str().unwrap().contains("CUDA_ERROR_NO_DEVICE"));
}
