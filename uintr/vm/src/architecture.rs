// SPDX-License-Identifier: MIT OR Apache-2.0
//! The architectures that guests can have, each a line in [`ALL`].

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// An architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Its name on the command line, as Rust has it.
    pub name: &'static str,
    /// As Debian has it.
    pub(crate) debian: &'static str,
    /// QEMU for it, as distributions call it.
    pub(crate) emulator: &'static str,
    /// Debian's package of that, and of the firmware it does not come with.
    pub(crate) package: &'static str,
    /// The emulated machine. Arm's has by default an interrupt controller for 8 CPUs.
    pub(crate) machine: &'static str,
    /// The most complete processor that the emulator translates. Arm's signs pointers by a cipher,
    /// unless told to use a cheap one.
    pub(crate) cpu: &'static str,
    /// The kernel's console on that machine.
    pub(crate) console: &'static str,
    /// The second port, where results come home: another serial port
    /// where the machine has two, else one of virtio's.
    pub(crate) channel: Port,
    /// Its number in ELF files (gABI, `e_machine`).
    pub(crate) elf: u16,
}

/// A port that only the first process writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    Serial,
    Virtio,
}

/// All of them.
#[rustfmt::skip]
pub static ALL: [Architecture; 3] = [
    Architecture {
        name: "x86_64", debian: "amd64", emulator: "qemu-system-x86_64", package: "qemu-system-x86", machine: "pc", cpu: "max",
        console: "ttyS0", channel: Port::Serial, elf: 62,
    },
    Architecture {
        name: "aarch64", debian: "arm64", emulator: "qemu-system-aarch64", package: "qemu-system-arm",
        machine: "virt,gic-version=max", cpu: "max,pauth-impdef=on", console: "ttyAMA0", channel: Port::Virtio, elf: 183,
    },
    Architecture {
        name: "riscv64", debian: "riscv64", emulator: "qemu-system-riscv64", package: "qemu-system-misc and opensbi", machine: "virt",
        cpu: "rv64", console: "ttyS0", channel: Port::Virtio, elf: 243,
    },
];

/// The one of Squall's machine.
pub(crate) static RISCV64: &Architecture = &ALL[2];

/// A name of no architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are no guests of '{0}'; there are {names}", names = ALL.each_ref().map(|it| it.name).join(", "))]
pub struct NoSuchArchitecture(String);

impl Architecture {
    /// The one this program was built for; the first, where guests have none of that kind.
    pub fn own() -> &'static Self {
        std::env::consts::ARCH.parse().unwrap_or(&ALL[0])
    }

    /// Whether this program's host can run its instructions.
    pub fn is_own(&self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// Whether user interrupts are a part of it.
    pub(crate) fn is_x86(&self) -> bool {
        self.name == "x86_64"
    }
}

impl FromStr for &'static Architecture {
    type Err = NoSuchArchitecture;

    fn from_str(name: &str) -> Result<Self, NoSuchArchitecture> {
        ALL.iter().find(|it| it.name == name).ok_or_else(|| NoSuchArchitecture(name.to_owned()))
    }
}

impl Display for Architecture {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_is_found_by_its_name_and_an_unknown_name_lists_those_there_are() {
        for architecture in &ALL {
            assert_eq!(architecture.name.parse(), Ok(architecture));
        }
        let error = "sparc".parse::<&'static Architecture>().unwrap_err().to_string();
        assert!(error.contains("'sparc'") && error.contains("x86_64, aarch64, riscv64"), "{error}");
    }
}
