// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who executes the guest's instructions.

/// Who executes the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The CPU, by the host kernel's KVM.
    Kvm,
    /// QEMU's translator.
    Tcg,
    /// QEMU's translator with the patches of `uintr/qemu/`: its CPU has user interrupts.
    Uintr,
}

impl Accelerator {
    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Uintr => "uintr",
        }
    }

    /// Whether every instruction is translated, so that no time in the guest is a machine's.
    pub fn emulates(self) -> bool {
        self != Self::Kvm
    }
}
