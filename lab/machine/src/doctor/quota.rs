// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU quota of this process's control group.

use super::Verdict;
use doorbell_results::machine::Machine;
use doorbell_results::written::time_ns;

pub(super) const SOURCE: &str =
    "kernel Documentation/admin-guide/cgroup-v2.rst, cpu.max; Documentation/scheduler/sched-bwc.rst";

/// Two sides that both spin, and the command.
const ENOUGH: f64 = 2.5;

pub(super) fn examine(machine: &Machine) -> Verdict {
    let cgroup = &machine.cgroup;
    let throttled = match (cgroup.throttled_periods, cgroup.throttled_ns) {
        (Some(periods), Some(ns)) if periods > 0 => {
            format!(", was throttled in {periods} periods for {}", time_ns(ns as f64))
        }
        _ => String::new(),
    };
    let Some(quota) = cgroup.cpu_quota else {
        return match cgroup.version {
            Some(version) => Verdict::ok(format!("none (cgroup v{version}){throttled}")),
            None => Verdict::ok("no CPU controller is visible"),
        };
    };
    let seen = format!("{quota:.2} CPUs{throttled}");
    if quota < ENOUGH {
        return Verdict::warn(
            seen,
            "sides that use up the quota stand still until its next period, 100 ms by default: a false tail",
            "lift the limit for the measurement (cpu.max, docker run --cpus, Kubernetes: no CPU limit or \
             static CPU manager)",
        );
    }
    Verdict::note(
        seen,
        "enough for two sides; load generators beside them may use it up",
        "lift the limit before measuring under load",
    )
}
