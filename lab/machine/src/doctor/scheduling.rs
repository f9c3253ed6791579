// SPDX-License-Identifier: MIT OR Apache-2.0
//! How this process is scheduled, which its sides inherit.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "sched(7); PR_SET_TIMERSLACK(2const); set_mempolicy(2)";

pub(super) fn examine(machine: &Machine) -> Verdict {
    let scheduling = &machine.scheduling;
    let otherwise = scheduling.otherwise();
    if !otherwise.is_empty() {
        return Verdict::warn(
            otherwise.join(", "),
            "the sides inherit it: their wake-ups are not those of a program that was started as \
             usual, and are compared with none of it",
            "start it without chrt, nice, numactl or prctl, or as a user who may undo them: a run \
             sets policy, nice value and timer slack back where it may",
        );
    }
    match (&scheduling.policy, scheduling.call_filters) {
        (None, _) => Verdict::note(
            "unknown (/proc/self is hidden)",
            "what the sides inherit cannot be told",
            "show /proc to the container",
        ),
        (_, Some(filters @ 1..)) => Verdict::note(
            format!("as usual, and every system call passes {filters} filters (seccomp)"),
            "each wake-up that enters the kernel pays for them",
            "measure outside of the container (docker run --security-opt seccomp=unconfined), if \
             those who wait run there",
        ),
        _ => Verdict::ok("as usual: other, nice 0, timer slack 50 µs"),
    }
}
