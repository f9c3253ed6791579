// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time the hypervisor gave to somebody else.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str =
    "proc_stat(5), steal; kernel Documentation/virt/kvm/x86/msr.rst, MSR_KVM_STEAL_TIME";

/// A hundredth of the time of a CPU, for it touches the 99th percentile.
const SHARE: f64 = 0.01;

pub(super) fn examine(machine: &Machine) -> Verdict {
    let now = machine.load.as_ref().and_then(|load| {
        let surely = load.steal_share? - load.share_resolution.unwrap_or(0.0);
        // As much as of each CPU that was looked at, all together being a share of one.
        Some((load.steal_share?, surely > SHARE * load.cpus.len().max(1) as f64))
    });
    let Some(since_boot) = machine.steal_share_since_boot else {
        return Verdict::note(
            "unknown (/proc/stat is hidden)",
            "time that the hypervisor takes cannot be told from a slow wake-up",
            "show /proc/stat to the container",
        );
    };
    let recently =
        now.map(|(share, _)| format!(", {:.1} % of one CPU just now", share * 100.0)).unwrap_or_default();
    let seen = format!("{:.2} % of all CPU time since boot{recently}", since_boot * 100.0);
    if now.is_some_and(|(_, surely)| surely) || since_boot > SHARE {
        return Verdict::warn(
            seen,
            "a wake-up that falls into steal time is longer by up to the host's time slice: the tail is the \
             host's",
            "measure when the host is less busy, or on a machine type with dedicated CPUs",
        );
    }
    if machine.virtualisation.guest && since_boot == 0.0 {
        return Verdict::note(
            format!("{seen} (in a virtual machine)"),
            "none was reported: either none was taken, or the hypervisor does not tell",
            "where the host can be asked, compare with its own accounting",
        );
    }
    Verdict::ok(seen)
}
