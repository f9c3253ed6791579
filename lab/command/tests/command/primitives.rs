// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's primitive costs are its own, whatever else runs.

use std::process::{Child, Command};

use super::stage::Stage;

/// A program that computes on `cpu` until it is dropped.
struct Hog(Child);

impl Hog {
    fn on(cpu: usize) -> Self {
        // A program inherits the mask of the thread that starts it.
        let start = move || {
            let mut mask = rustix::thread::CpuSet::new();
            mask.set(cpu);
            rustix::thread::sched_setaffinity(None, &mask).unwrap();
            Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap()
        };
        Self(std::thread::spawn(start).join().unwrap())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What it is then made of is tested where it is decided; here, that
/// a computing program does not keep it from being had.
#[test]
fn there_is_a_primitive_of_a_switch_beside_a_program_that_computes_all_the_time() {
    let mask = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| mask.is_set(*cpu)).unwrap();
    let _hog = Hog::on(cpu);
    let stage = Stage::new();
    let monotonic = serde_json::json!({ "source": "monotonic", "ps_per_tick_q32": 1000_u64 << 32 });
    let order = serde_json::json!({ "clock": monotonic, "cpus": [cpu, cpu], "parent": std::process::id() })
        .to_string();
    let output = stage.doorbell(&[doorbell_harness::primitives::PRIMITIVES_VERB, &order]).output().unwrap();
    let primitives: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let primitives = primitives.as_array().unwrap();
    let switch = primitives.iter().find(|primitive| primitive["name"] == "same-core-switch").unwrap();
    assert!(switch["count"].as_u64().unwrap() > 0, "{switch}");
}
