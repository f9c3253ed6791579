// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for a GPU as a user measures it, on a driver made for
//! tests, which says that it is none; and without any.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::stage::{Said, Stage, at_once, wait_until};
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

/// `doorbell WORDS` on the driver made for tests that does what `script` says.
fn on_the_driver(stage: &Stage, script: &str, words: &str) -> Command {
    let mut command = stage.words(words);
    command.env("DOORBELL_CUDA_LIBRARY", library()).env("DOORBELL_TEST_DRIVER", script);
    command
}

/// What it says. On a machine so busy that the threads which stand for a GPU do not come to run for
/// seconds, it is asked again.
fn said(stage: &Stage, script: &str, words: &str) -> Said {
    let mut tries = 0;
    loop {
        let said = Said::by(&mut on_the_driver(stage, script, words));
        tries += 1;
        if tries > 20 || !said.err.contains("did not answer within") {
            return said;
        }
    }
}

/// `doorbell gpu WORDS`, its result on standard output.
fn gpu(script: &str, words: &str) -> Said {
    said(&Stage::new(), script, &format!("gpu --quiet --output - --time 20ms {words}"))
}

#[test]
fn every_way_has_figures_within_a_stated_bound_of_two_clocks_and_the_device_is_told() {
    let script = "offset_ns=987654321 drift_ppm=80 step_ns=32";
    let records = gpu(script, "all --blocks 1 --kernel 0,200us").ended(0).records();
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
fn the_first_lines_say_on_what_it_was_measured_and_show_report_compare_and_check_take_the_result() {
    let stage = Stage::new();
    let [first, second] = ["first.json", "second.json"].map(|name| stage.file(name));
    for file in [&first, &second] {
        let words =
            format!("gpu gpu-stream-spin gpu-stream-block --kernel 200us --time 60ms --quiet -o {file}");
        let text = said(&stage, "", &words).ended(0).out;
        assert!(text.contains("no GPU: the driver made for tests"), "{text}");
        // Which way is the fastest, unless the machine is so busy that
        // the two clocks are not known well enough.
        assert!(text.contains("Kernels of 200 µs: "), "{text}");
    }
    let result: Value = serde_json::from_slice(&std::fs::read(&first).unwrap()).unwrap();
    let records = result["records"].as_array().unwrap();
    assert_eq!(records.len(), 2 * 6);
    assert!(records.iter().all(|record| record["outcome"]["kind"] == "done"), "{records:?}");
    for words in ["show FILE", "show --details FILE", "report FILE -o /dev/null"] {
        stage.run(&words.replace("FILE", &first)).ended(0);
    }
    // "1 block of 6 at least", of any two runs: nothing could be decided.
    for words in [
        format!("compare {first} {second}"),
        format!("check --baseline {first} --from {second} --fail-if p50>+99%"),
    ] {
        let said = stage.run(&words).ended_with_one_of(&[0, 3, 4]).out;
        assert!(said.contains("gpu-stream-block") && !said.contains("at least (--blocks)"), "{said}");
    }
}

#[test]
fn a_gate_takes_ways_to_wait_for_a_gpu() {
    let stage = Stage::new();
    for way in ["gpu-stream-block", "gpu-launch"] {
        let limit = "--max 1h --percentile max --time 200ms --blocks 2 --quiet --anyway --output -";
        let passed = said(&stage, "", &format!("gate {way} {limit}"));
        let result = passed.json();
        // Unless others used the CPUs most of the time.
        let told = result["verdict"].to_string();
        let open = passed.status == Some(4) && told.contains("other programs used the CPUs");
        assert!(passed.status == Some(0) || open, "{way}: {told}");
        let records = passed.records();
        assert!(records.iter().all(|record| record["outcome"]["kind"] == "done"), "{records:?}");
        assert_eq!(records.len(), 2);
        let kernel = if way == "gpu-launch" { 0 } else { 100_000 };
        assert_eq!(records[0]["configuration"]["pattern"]["kernel_ns"], kernel);
    }
    let mut none = stage.words("gate gpu-stream-block --max 1ms --quiet --anyway");
    let told = Said::by(none.env("DOORBELL_CUDA_LIBRARY", "/nowhere/libcuda.so.1")).ended(1).err;
    assert!(told.contains("install NVIDIA's driver"), "{told}");
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
        let told = Said::by(&mut on_the_driver(&stage, "", words)).ended(2).err;
        assert!(told.contains(why), "{words}: {told}");
    }
}

#[test]
fn threads_that_wait_at_once_are_counted_together() {
    let words =
        "gpu-event-block gpu-adaptive gpu-events gpu-resident --kernel 100us --streams 1,4 --blocks 1";
    let records = gpu("", words).ended(0).records();
    assert_eq!(records.len(), 8);
    for record in &records {
        assert_eq!(record["outcome"]["kind"], "done", "{record}");
        assert_eq!(record["series"]["wake"]["count"], record["tally"]["seen"]);
    }
}

/// What goes wrong went wrong from the first kernel on: no way had measured anything by then.
#[test]
fn a_kernel_that_goes_wrong_in_the_middle_ends_its_way_by_name_and_the_one_beside_it_is_measured() {
    let cases = [
        ("never=1", "hung", "operates"),
        ("fail=719", "failed", "CUDA_ERROR_LAUNCH_FAILED"),
        ("kill=1", "failed", "was killed by signal 9"),
    ];
    at_once(&cases, |(what, kind, says)| {
        // Behind the exchange of words and the warm-up, of the two ways that one process measures.
        let script = format!("{what} after=11 above_us=100");
        let said = gpu(&script, "gpu-stream-auto gpu-launch --kernel 200us --blocks 2").ended(1);
        let of_it = |record: &Value| record["configuration"]["subject"] == "gpu-stream-auto";
        let (broken, whole): (Vec<Value>, Vec<Value>) = said.records().into_iter().partition(of_it);
        assert_eq!(broken.len(), 1, "{what}: it is not tried again: {broken:?}");
        let outcome = &broken[0]["outcome"];
        assert_eq!(outcome["kind"], *kind, "{what}: {outcome}");
        assert!(outcome.to_string().contains(says), "{what}: {outcome}");
        assert_eq!(whole.len(), 2, "{what}: {whole:?}");
        for record in &whole {
            assert_eq!(record["outcome"]["kind"], "done", "{what}: {record}");
            assert!(record["tally"]["seen"].as_u64().unwrap() > 0, "{what}: {record}");
        }
    });
}

/// A kernel that fails or never ends from the first on, or with others to follow. The side that had
/// nothing to do in it counted as one that makes its report, for which there are a hundred seconds
/// more; and nobody is called after a kernel that failed, so that ways which wait for a host
/// function were called hung.
#[test]
fn every_kernel_that_fails_or_never_ends_fails_or_hangs_its_trial_and_no_other() {
    let (failed, hung) = ("CUDA_ERROR_LAUNCH_FAILED", "operates");
    let host_functions = "gpu-host-eventfd gpu-host-futex gpu-host-bell --kernel 200us --blocks 1";
    let cases = [
        ("fail=719", "gpu-stream-spin --blocks 2 --kernel 0", 2, "failed", failed),
        ("fail=719 after=11", host_functions, 3, "failed", failed),
        ("never=1", "gpu-stream-block --blocks 1 --kernel 0", 1, "", ""),
        (
            "never=1 after=11 above_us=100",
            "gpu-stream-block --kernel 200us,300us --blocks 1",
            2,
            "hung",
            hung,
        ),
    ];
    at_once(&cases, |(script, words, number, kind, says)| {
        let words = format!("gpu --quiet --output - --time 20ms {words}");
        let stage = Stage::new();
        let said = match *number {
            // None answers here, be the machine busy or not.
            1 => Said::by(&mut on_the_driver(&stage, script, &words)),
            _ => said(&stage, script, &words),
        };
        let records = said.ended(1).records();
        assert!(records.len() <= *number && !records.is_empty(), "{script}: {records:?}");
        for record in &records {
            let outcome = &record["outcome"];
            assert!(outcome["kind"] != "done" && outcome.to_string().contains(kind), "{script}: {record}");
        }
        if *kind == "hung" {
            assert_eq!(records.len(), 2);
            // In the one that follows, from when on it waits for that to begin.
            assert_eq!(records[0]["outcome"]["last_seen"][1]["step"], "starting", "{records:?}");
        } else {
            assert!(records[0]["outcome"].to_string().contains(says), "{script}: {records:?}");
        }
    });
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
        let child = on_the_driver(&stage, "never=1 after=11 above_us=100", words).spawn().unwrap();
        wait_until("a kernel that never ends", || stage.trial_processes().into_iter().any(never_ends));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let records = Said::from(child.wait_with_output().unwrap()).ended(130).records();
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
    let help = Stage::new().run("gpu --help").out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("how to wait here"), "{help}");
    assert!(!["half a minute", "three minutes"].iter().any(|time| help.contains(time)), "{help}");
}

#[test]
fn without_a_driver_every_way_is_skipped_with_the_reason_and_what_to_do() {
    let stage = Stage::new();
    let mut command = stage.words("gpu --quiet --output -");
    // Nothing that was asked for was measured.
    let said = Said::by(command.env("DOORBELL_CUDA_LIBRARY", "/nowhere/libcuda.so.1")).ended(1);
    for record in said.records() {
        let reason = record["outcome"]["reason"].as_str().unwrap();
        for told in ["/nowhere/libcuda.so.1", "install NVIDIA's driver"] {
            assert!(reason.contains(told), "{reason}");
        }
    }
    assert_eq!(said.err.matches("/nowhere/libcuda.so.1").count(), 1, "the reason, once: {}", said.err);
    let file = stage.file("none.json");
    std::fs::write(&file, &said.out).unwrap();
    let shown = stage.run(&format!("show {file}")).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(shown.matches("install NVIDIA's driver").count(), 1, "and the stored result too: {shown}");
    let no_device = gpu("no_device=1", "gpu-launch").ended(1).records();
    assert!(no_device[0]["outcome"]["reason"].as_str().unwrap().contains("CUDA_ERROR_NO_DEVICE"));
}
