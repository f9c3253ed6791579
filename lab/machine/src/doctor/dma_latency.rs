// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether idle states can be held off for a measurement.

use super::Verdict;
use doorbell_results::machine::Machine;

pub(super) const SOURCE: &str = "kernel Documentation/power/pm_qos_interface.rst";

pub(super) fn examine(machine: &Machine) -> Verdict {
    match machine.permissions.dma_latency {
        Some(true) => Verdict::ok("/dev/cpu_dma_latency may be written; it is left alone"),
        Some(false) => Verdict::note(
            "/dev/cpu_dma_latency may not be written by this user",
            "idle states cannot be held off: the machine is measured as it is",
            "as root, or with write permission on the device",
        ),
        None => Verdict::note(
            "no /dev/cpu_dma_latency here",
            "idle states cannot be held off from here: the machine is measured as it is",
            "in a container: docker run --device /dev/cpu_dma_latency",
        ),
    }
}
