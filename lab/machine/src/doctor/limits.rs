// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that some mechanism or experiment will meet.

use super::{Severity, Verdict};
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "getrlimit(2); proc_sys_kernel(5); mq_overview(7); shm_overview(7)";

/// What a fan-out to 2000 waiters needs: for each an object, and for some mechanisms two
/// descriptors; some to spare.
const WAITERS: u64 = 2000;
const DESCRIPTORS: u64 = 2 * WAITERS + 200;
const TASKS: u64 = WAITERS + 200;
/// Below this even a pair of sides with an event loop each cannot be
/// opened beside the shell's own descriptors.
const FEWEST_DESCRIPTORS: u64 = 64;
/// What a trial maps, its sides' histograms among it, with room for a large message.
const SHM: u64 = 64 << 20;

pub(super) fn examine(machine: &Machine) -> Verdict {
    if machine.permissions.own_program == Some(false) {
        return Verdict::unfit(
            "/proc/self/exe cannot be executed",
            "not one trial can be started: each is a process of its own, of this very program",
            "mount /proc (docker run without --security-opt systempaths, mount -t proc proc /proc)",
        );
    }
    let limits = &machine.limits;
    let mut tight = Vec::new();
    let mut below = |value: Option<u64>, need: u64, what: &str, cure: &str| {
        if let Some(value) = value.filter(|value| *value < need) {
            tight.push((format!("{what} {value}"), cure.to_owned()));
        }
    };
    let descriptors = limits.open_files.map(|limit| limit.soft);
    below(descriptors, DESCRIPTORS, "descriptors", "ulimit -n 8192");
    below(limits.tasks.map(|limit| limit.soft), TASKS, "tasks of the user", "ulimit -u 4096");
    below(machine.cgroup.pids, TASKS, "tasks of the control group", "docker run --pids-limit 4096");
    below(
        limits.semaphore_sets,
        WAITERS,
        "System V semaphore sets",
        "sysctl kernel.sem='32000 1024000000 500 32000'",
    );
    below(limits.system_v_queues, WAITERS, "System V queues", "sysctl kernel.msgmni=32000");
    below(limits.posix_queues, WAITERS, "POSIX queues", "sysctl fs.mqueue.queues_max=4096");
    below(limits.shm_bytes, SHM, "bytes of /dev/shm", "docker run --shm-size 1g");
    let may_rise = machine.permissions.nice == Some(true)
        || limits.realtime_priority.is_some_and(|limit| limit.soft >= 50);
    if !may_rise {
        tight.push(("real-time priority not allowed".to_owned(), "run as root, or ulimit -r 50".to_owned()));
    }
    if tight.is_empty() {
        return Verdict::ok("enough for 2000 waiters of any kind");
    }
    let (seen, cures): (Vec<String>, Vec<String>) = tight.into_iter().unzip();
    let hopeless = descriptors.is_some_and(|descriptors| descriptors < FEWEST_DESCRIPTORS);
    Verdict::bad(
        if hopeless { Severity::Unfit } else { Severity::Note },
        seen.join(", "),
        if hopeless {
            "most mechanisms cannot be opened at all"
        } else {
            "experiments with many waiters, or with SCHED_FIFO, meet these limits and say so; pairs are not \
             affected"
        },
        cures.join("; "),
    )
}
