// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for a GPU as a user measures it, on a driver made for tests, which says that it is none; and without any.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::stage::{Stage, records};

/// The driver made for tests, compiled once.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcuda-made-for-tests-of-the-command.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../doorbell/tests/gpu/driver.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-pthread", "-o"]).arg(&file).arg(source);
        assert!(compiler.status().expect("cc").success());
        file
    })
}

/// `doorbell gpu WORDS` on the driver made for tests that does what `script` says.
fn gpu(stage: &Stage, script: &str, words: &str) -> Output {
    let mut args = vec!["gpu", "--quiet", "--output", "-"];
    args.extend(words.split(' '));
    let mut command = stage.doorbell(&args);
    command.env("DOORBELL_CUDA_LIBRARY", library()).env("DOORBELL_TEST_DRIVER", script);
    command.output().unwrap()
}

#[test]
fn every_way_has_figures_within_a_stated_bound_of_two_clocks_and_the_device_is_told() {
    let stage = Stage::new();
    let output =
        gpu(&stage, "offset_ns=987654321 drift_ppm=80 step_ns=32", "all --kernel 0,200us --time 20ms");
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
        "--quiet",
        "-o",
        file,
    ];
    let mut command = stage.doorbell(&words);
    let output = command.env("DOORBELL_CUDA_LIBRARY", library()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("no GPU: the driver made for tests"), "{said}");
    // Which way is the fastest, unless the machine is so busy that the two clocks are not known well enough.
    assert!(said.contains("Kernels of 200 µs: "), "{said}");
    for words in
        [vec!["show", file], vec!["show", "--details", file], vec!["report", file, "-o", "/dev/null"]]
    {
        let output = stage.doorbell(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let compared = stage.doorbell(&["compare", file, file]).output().unwrap();
    assert!(String::from_utf8_lossy(&compared.stdout).contains("gpu-adaptive"), "{compared:?}");
}

#[test]
fn threads_that_wait_at_once_are_counted_together() {
    let stage = Stage::new();
    let output = gpu(
        &stage,
        "",
        "gpu-event-block gpu-adaptive gpu-events gpu-resident --kernel 100us --streams 1,4 --time 50ms",
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
    let failed = gpu(&stage, "fail=719", "gpu-stream-spin --kernel 0 --time 20ms");
    assert_eq!(failed.status.code(), Some(1));
    let record = &records(&failed)[0];
    assert_eq!(record["outcome"]["kind"], "failed", "{record}");
    assert!(record["outcome"]["cause"].as_str().unwrap().contains("CUDA_ERROR_LAUNCH_FAILED"), "{record}");

    let never = gpu(&stage, "never=1", "gpu-stream-block --kernel 0 --time 20ms");
    assert_eq!(never.status.code(), Some(1));
    assert_ne!(records(&never)[0]["outcome"]["kind"], "done");
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
    let no_device = gpu(&stage, "no_device=1", "gpu-launch");
    assert_eq!(no_device.status.code(), Some(1));
    assert!(records(&no_device)[0]["outcome"]["reason"].as_str().unwrap().contains("CUDA_ERROR_NO_DEVICE"));
}
