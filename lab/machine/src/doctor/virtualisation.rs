// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual machine, emulator, container.

use super::{Family, Verdict};
use doorbell_results::about::About;
use doorbell_results::machine::Machine;

pub(super) const VIRTUALISATION: Family = Family {
    about: About {
        name: "virtualisation",
        what: "Whether this is a virtual machine, an emulator or a container.",
        taken: "CPUID, the firmware's names, /proc and well-known files.",
        misleads: "A hypervisor may hide itself.",
    },
    source: "Intel SDM vol. 3C, VM exits on HLT and interrupts; kernel Documentation/virt/guest-halt-polling.rst",
    examine: virtualisation,
};

fn virtualisation(machine: &Machine) -> Verdict {
    let virtualisation = &machine.virtualisation;
    let hypervisor = virtualisation.hypervisor.as_deref();
    let mut parts = Vec::new();
    if virtualisation.guest {
        parts.push(format!("virtual machine under {}", hypervisor.unwrap_or("an unnamed hypervisor")));
    }
    if let Some(container) = &virtualisation.container {
        parts.push(format!("container ({container})"));
    }
    if let Some(product) = &virtualisation.product {
        parts.push(product.clone());
    }
    if let Some(vm) = &virtualisation.vm {
        let nested = if vm.nested { ", on a host that is a virtual machine itself" } else { "" };
        parts.push(format!("booted by `doorbell vm` with {} ({}){nested}", vm.accelerator, vm.emulator));
    }
    let seen = if parts.is_empty() { "none seen".to_owned() } else { parts.join(", ") };
    if virtualisation.emulated {
        return Verdict::warn(
            seen,
            "an emulator translates every instruction: times are its own and no machine's",
            "use counts, and ratios within this guest; for times measure on hardware or with hardware \
             virtualisation",
        );
    }
    if virtualisation.guest {
        return Verdict::note(
            seen,
            "waking a halted CPU leaves the guest twice (the halt and the interrupt), and where CPUs lie is \
             the host's affair: primitive costs may move between runs",
            "compare only runs whose primitive costs agree; on the host, pin the virtual CPUs and \
             look at halt polling",
        );
    }
    Verdict::ok(seen)
}
