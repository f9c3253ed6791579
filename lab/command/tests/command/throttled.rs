// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wakes in a control group that uses up its quota: the cause is planted, and must be named.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use doorbell_harness::trace::Tracefs;
use doorbell_results::record::Record;
use doorbell_verdict::why::why;

use crate::stage::{Said, Stage, after};

/// A control group of its own, removed with the value.
struct Group(PathBuf);

impl Group {
    /// Makes one whose processes get a quarter of a CPU, or says what
    /// is lacking. No setting of any other group is touched.
    fn of_a_quarter() -> Result<Self, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let own = format!("doorbell-throttled-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
        let [unified, cpu] = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"].map(Path::new);
        let delegated = fs::read_to_string(unified.join("cgroup.subtree_control")).unwrap_or_default();
        let (parent, limits): (&Path, &[(&str, &str)]) =
            if delegated.split_whitespace().any(|name| name == "cpu") {
                (unified, &[("cpu.max", "5000 20000")])
            } else if cpu.join("cpu.cfs_quota_us").exists() {
                (cpu, &[("cpu.cfs_period_us", "20000"), ("cpu.cfs_quota_us", "5000")])
            } else {
                return Err(
                    "no control group with a limit of CPU time can be made under /sys/fs/cgroup".to_owned()
                );
            };
        let path = parent.join(own);
        let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
        // One that a killed test of this number left.
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path).map_err(|error| failed(&path, error))?;
        let group = Self(path);
        for (file, limit) in limits {
            let file = group.0.join(file);
            fs::write(&file, limit).map_err(|error| failed(&file, error))?;
        }
        Ok(group)
    }

    /// A group within, without a limit of its own.
    fn within(&self) -> Self {
        let path = self.0.join("within");
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// `command`, begun in the group.
    fn of(&self, command: &Command) -> Command {
        after(&format!("echo $$ >{}", self.0.join("cgroup.procs").display()), command)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended; if one has not, the kernel keeps
        // the group and the test has failed for that already.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn wakes_of_a_control_group_that_has_used_up_its_quota_are_found_to_be_throttled() {
    let _alone = crate::anatomy::ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // On a thread whose mounts end with it.
    std::thread::spawn(|| {
        if let Err(error) = Tracefs::reach() {
            doorbell_skipped::skip(error);
            return;
        }
        match Group::of_a_quarter() {
            Ok(group) => look(&group),
            Err(lack) => doorbell_skipped::skip(lack),
        }
    })
    .join()
    .unwrap();
}

/// What a gate says in a group that stands still for most of each period of 20 ms, in which
/// wake-ups were due: a quarter of a CPU is far less than what notifies 5,000 times a second takes.
fn gate_in(group: &Group) -> Said {
    let stage = Stage::new();
    let words = "gate --gap 200us --time 3s --blocks 6 --max 5ms --percentile p90 --placement \
        unpinned --anyway --quiet";
    let said = Said::by(&mut group.of(&stage.words(words)));
    stage.wait_until_empty();
    said
}

/// All trials stood still for 328 to 654 ms of each second, and the screen blamed TLB interrupts or
/// nothing: the quota was that of a group above, whose count nobody read, and no trial was unlike
/// the others.
#[test]
fn a_gate_never_passes_under_a_quota_that_is_used_up_and_one_of_a_group_above_is_blamed_too() {
    let group = match Group::of_a_quarter() {
        Ok(group) => group,
        Err(lack) => {
            doorbell_skipped::skip(lack);
            return;
        }
    };
    let inner = group.within();
    let said = gate_in(&inner);
    drop(inner);
    // Where others use the CPUs too, how much of it was the quota's cannot be told, and nothing
    // passes.
    let open = said.out.starts_with("Provisional");
    let failed = said.status == Some(3) && said.out.contains("FAIL ");
    let inconclusive = said.status == Some(4) && said.out.contains("INCONCLUSIVE ");
    assert!(failed || open && inconclusive, "{}", said.all());
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in ["Measured under: ", "quota (0.25 CPUs", "trials stood still for want of CPU quota"] {
        assert!(text.contains(told), "{told}: {}", said.all());
    }
    let blamed = text.split("to have made it so long: ").nth(1).unwrap_or_default();
    // Where others leave the group less than its quota it is not held back by that.
    if open && !blamed.contains("held back by a CPU quota") {
        return doorbell_skipped::skip("other programs left the group less than its quota");
    }
    // Where others kept the CPUs busy too they may come before it.
    assert!(blamed.contains("held back by a CPU quota"), "{text}");
}

fn look(group: &Group) {
    let mut said = String::new();
    for _ in 0..3 {
        let stage = Stage::new();
        let words = "why futex --gap 1ms --time 2s --above 5ms --worst 10 --quiet --output -";
        let ended = Said::by(&mut group.of(&stage.words(words))).ended(0);
        stage.wait_until_empty();
        let result = ended.result();
        assert_eq!(result.machine.cgroup.cpu_quota, Some(0.25));
        let configurations = why(&result);
        let verdicts: Vec<_> = configurations[0].kept.iter().filter_map(|one| one.verdict.as_ref()).collect();
        if verdicts.iter().any(|found| found.name == "throttling" && found.evidence.contains("nr_throttled"))
        {
            return;
        }
        // A CPU that runs somebody else's task is what the wake waits for, with any quota.
        if result.records.iter().any(Record::had_interference) {
            eprintln!("not seen: other programs kept the CPUs of both sides busy");
            return;
        }
        said = format!("{:?}", configurations[0].kept.iter().map(|one| &one.found).collect::<Vec<_>>());
    }
    panic!("{said}");
}
