// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs kept free of other tasks and of the tick.

use super::Verdict;
use doorbell_results::machine::Machine;
use doorbell_results::machine::cpu_list::CpuList;

pub(super) const SOURCE: &str = "kernel Documentation/admin-guide/kernel-parameters.txt, isolcpus, \
                                 nohz_full; Documentation/timers/no_hz.rst";

pub(super) fn examine(machine: &Machine) -> Verdict {
    let topology = &machine.topology;
    let Some(isolated) = topology.isolated.clone() else { return Verdict::ok("not told by the kernel") };
    let tickless = machine.kernel.nohz_full.clone().unwrap_or_default();
    if isolated.is_empty() {
        return Verdict::note(
            tick("no isolated CPUs", &tickless),
            "kernel threads, timers and other programs may run on measured CPUs: the far tail is \
             partly theirs",
            "boot with isolcpus=… nohz_full=…, or make a cpuset partition of type isolated",
        );
    }
    let seen = tick(&format!("isolated: {}", isolated.named()), &tickless);
    if isolated.and(&topology.usable).is_empty() {
        return Verdict::note(
            format!("{seen}, none of them usable by this process"),
            "measured CPUs are the ones everything else runs on",
            format!("start with: taskset -c {isolated} doorbell …"),
        );
    }
    Verdict::ok(seen)
}

fn tick(seen: &str, tickless: &CpuList) -> String {
    if tickless.is_empty() { seen.to_owned() } else { format!("{seen}, no tick on {tickless}") }
}
