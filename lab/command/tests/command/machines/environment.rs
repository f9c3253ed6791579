// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read of a machine beyond its CPUs, and what is made of
//! files that are not what they should be.

use std::fs;

use doorbell_machine::root::Root;
use doorbell_machine::{Asked, doctor};
use doorbell_results::machine::Machine;
use doorbell_results::machine::clock::Clock;
use proptest::prelude::*;

use super::recorded::{NAMES, machine};

#[test]
fn a_recorded_machine_reads_as_it_was() {
    let mut machine = machine("two-socket-smt");
    // 47 CPUs fill pages: two stand for all.
    machine.topology.cpus.retain(|cpu| cpu.id == 11 || cpu.id == 23);
    insta::assert_json_snapshot!("two-socket-smt", machine);
}

#[test]
fn a_machine_survives_the_way_to_json_and_back_and_one_of_which_only_the_clock_is_known_can_be_read() {
    for name in NAMES {
        let machine = machine(name);
        let text = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine, "{name}");
    }
    let text = serde_json::json!({ "clock": Clock::MONOTONIC }).to_string();
    let machine: Machine = serde_json::from_str(&text).unwrap();
    assert!(machine.topology.online.is_empty());
}

#[test]
fn the_tightest_limit_on_the_way_up_holds() {
    assert_eq!(machine("two-socket-smt").cgroup.cpu_quota, Some(1.5));
    assert_eq!(machine("two-socket-smt").cgroup.throttled_ns, Some(42_000_000));
    let v1 = machine("amd-ccx");
    assert_eq!((v1.cgroup.version, v1.cgroup.cpu_quota), (Some(1), Some(8.0)));
    assert_eq!(v1.topology.cpuset.unwrap().to_string(), "0-11");
    assert_eq!(v1.topology.usable.to_string(), "0-7");
}

#[test]
fn without_any_file_everything_is_missing_and_nothing_is_made_up() {
    let empty = tempfile::tempdir().unwrap();
    let machine = doorbell_machine::read(&Root::at(empty.path()), Clock::MONOTONIC, Asked::default());
    assert!(
        machine.topology.online.is_empty() && machine.topology.pairs().iter().all(|pair| pair.cpus.is_none())
    );
    assert_eq!(machine.kernel.release, None);
    assert_eq!(machine.memory.total_bytes, None);
    assert_eq!(machine.limits.open_files, None);
    assert_eq!(machine.interrupts.count, None);
    assert_eq!(machine.steal_share_since_boot, None);
}

#[test]
fn the_mask_the_kernel_tells_stands_in_for_hidden_files() {
    let empty = tempfile::tempdir().unwrap();
    let asked = Asked { affinity: Some("2-3".parse().unwrap()), ..Asked::default() };
    let topology = doorbell_machine::read(&Root::at(empty.path()), Clock::MONOTONIC, asked).topology;
    assert_eq!(
        (topology.online.to_string(), topology.usable.to_string()),
        ("2,3".to_owned(), "2,3".to_owned())
    );
    assert_eq!(topology.two_cores(), Some([2, 3]));
}

#[test]
fn the_live_machine_has_a_release_a_usable_cpu_and_every_finding() {
    let machine = doorbell_machine::here(Clock::MONOTONIC);
    assert!(machine.kernel.release.is_some());
    assert!(!machine.topology.usable.is_empty());
    assert!(machine.findings.len() > 10);
    assert_eq!(machine.binary_sha256.unwrap().len(), 64);
}

/// Every file that is read, for garbage to be put in.
const FILES: &str = "proc/cpuinfo proc/self/status proc/self/cgroup proc/self/limits proc/meminfo proc/stat
    proc/interrupts proc/cmdline proc/irq/default_smp_affinity proc/irq/7/effective_affinity_list
    proc/sys/kernel/version proc/sys/kernel/sem sys/devices/system/cpu/present
    sys/devices/system/cpu/online sys/devices/system/cpu/isolated
    sys/devices/system/cpu/cpu0/topology/core_cpus_list
    sys/devices/system/cpu/cpu0/topology/physical_package_id
    sys/devices/system/cpu/cpu0/cache/index3/level
    sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
    sys/devices/system/cpu/cpu0/cpuidle/state0/name
    sys/devices/system/cpu/cpu0/cpuidle/state0/latency
    sys/devices/system/node/node0/cpulist sys/devices/system/node/node0/distance
    sys/kernel/debug/sched/preempt sys/fs/cgroup/cpu.max sys/fs/cgroup/cpu.stat";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn no_file_content_whatever_makes_the_reader_or_the_doctor_panic(
        garbage in proptest::collection::vec(
            "([a-zA-Z_ ]{0,20}[:=][-0-9,a-z. \t]{0,20}\n|[-,]?([0-9]{1,2}[-, ]){0,6}\n?|0::/[a-z./]{0,10}\n|\\PC{0,20})",
            FILES.split_whitespace().count(),
        ),
    ) {
        let tree = tempfile::tempdir().unwrap();
        for (file, content) in FILES.split_whitespace().zip(&garbage) {
            let path = tree.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let machine = doorbell_machine::read(&Root::at(tree.path()), Clock::MONOTONIC, Asked::default());
        let findings = doctor::examine(&machine);
        prop_assert!(findings.iter().all(|finding| !finding.seen.is_empty()));
        serde_json::to_string(&machine).unwrap();
    }
}
