// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels that guests run: Debian's own, each a line in [`ALL`].

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use crate::architecture::{Architecture, Port};

/// A kernel of Debian's.
#[derive(Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name on the command line.
    pub name: &'static str,
    /// How the versions of its series begin.
    pub(crate) series: &'static str,
    /// The package that depends on the newest kernel of a series, as it is called for amd64; older
    /// series may share its name with newer ones.
    newest: &'static str,
    /// Where Debian offers it.
    suites: &'static [&'static str],
    /// Where Debian offers it for RISC-V, to which it came with
    /// release 13: a flavour for all machines.
    riscv: Option<&'static [&'static str]>,
    /// The compiler that its headers ask for, where Debian 12 has none that new.
    pub(crate) compiler: Option<Compiler>,
    /// Whether the NVMe driver is a part of the image and not a
    /// module, where Debian has a flavour for virtual machines.
    has_nvme: bool,
    /// Whether virtio's PCI devices and ports are a part of the image and not modules: other
    /// machines' results come home by one.
    has_virtio: bool,
}

/// A compiler that goes with the headers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// Where it lies once the packages are unpacked.
    pub(crate) program: &'static str,
    /// It, and the libraries that it and the programs of kbuild were linked with.
    pub(crate) packages: &'static [&'static str],
}

/// Debian 12's, of which the shell is too.
const BOOKWORM: &[&str] = &["bookworm", "bookworm-security"];
const TRIXIE: &[&str] = &["trixie", "trixie-backports"];
const ONLY_TRIXIE: &[&str] = &["trixie"];

/// The kernel's makefiles take the flags that the compiler had which made the kernel.
const GCC_14: Compiler = Compiler {
    program: "usr/bin/x86_64-linux-gnu-gcc-14",
    packages: &[
        "gcc-14-x86-64-linux-gnu",
        "cpp-14-x86-64-linux-gnu",
        "libc6",
        "libelf1t64",
        "libgmp10",
        "libisl23",
        "libmpc3",
        "libmpfr6",
        "libzstd1",
        "zlib1g",
    ],
};

/// All of them, oldest first: guests run the first that their architecture has unless another is asked for. Those made for virtual machines have what guests need
/// in the image; of the preemptible one Debian makes only a flavour for all machines.
#[rustfmt::skip]
pub static ALL: [Kernel; 4] = [
    Kernel { name: "6.1", series: "6.1.", newest: "linux-image-cloud-amd64", suites: BOOKWORM, riscv: None, compiler: None, has_nvme: true, has_virtio: false },
    Kernel { name: "6.12", series: "6.12.", newest: "linux-image-6.12-cloud-amd64", suites: BOOKWORM, riscv: Some(ONLY_TRIXIE), compiler: None, has_nvme: true, has_virtio: true },
    Kernel { name: "7.3", series: "7.3.", newest: "linux-image-cloud-amd64", suites: TRIXIE, riscv: Some(TRIXIE), compiler: Some(GCC_14), has_nvme: true, has_virtio: true },
    Kernel { name: "7.3-rt", series: "7.3.", newest: "linux-image-rt-amd64", suites: TRIXIE, riscv: None, compiler: Some(GCC_14), has_nvme: false, has_virtio: true },
];

/// A kernel that guests of an architecture cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}; guests of {architecture} run {}", why_not(.kernel, .architecture), there(.architecture))]
pub struct NoKernelFor {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// What it is wanted for.
    pub architecture: &'static Architecture,
}

/// Why guests of an architecture cannot have a kernel.
fn why_not(kernel: &Kernel, architecture: &Architecture) -> String {
    if kernel.suites_for(architecture).is_none() {
        return format!("Debian has no kernel {kernel} for {architecture}");
    }
    format!(
        "Debian's kernel {kernel} for {architecture} has virtio's ports as a module, and guests load none"
    )
}

/// The names of all that guests of one can have.
fn there(architecture: &'static Architecture) -> String {
    let names = ALL.iter().filter(|kernel| kernel.package(architecture).is_ok()).map(|kernel| kernel.name);
    names.collect::<Vec<_>>().join(", ")
}

impl Kernel {
    /// The package that depends on the newest of the series for an
    /// architecture, and where Debian offers it.
    pub(crate) fn package(
        &'static self,
        architecture: &'static Architecture,
    ) -> Result<(String, &'static [&'static str]), NoKernelFor> {
        let none = NoKernelFor { kernel: self, architecture };
        let suites = self.suites_for(architecture).ok_or_else(|| none.clone())?;
        if architecture.channel == Port::Virtio && !self.has_virtio {
            return Err(none);
        }
        if architecture.debian == "riscv64" {
            return Ok(("linux-image-riscv64".to_owned(), suites));
        }
        Ok((self.newest.replace("amd64", architecture.debian), suites))
    }

    /// Where Debian offers it for an architecture.
    fn suites_for(&self, architecture: &Architecture) -> Option<&'static [&'static str]> {
        if architecture.debian == "riscv64" { self.riscv } else { Some(self.suites) }
    }

    /// The one that guests of an architecture run unless another is asked for.
    pub fn usual(architecture: &'static Architecture) -> &'static Self {
        ALL.iter().find(|kernel| kernel.check(architecture).is_ok()).unwrap_or(&ALL[0])
    }

    /// Whether the NVMe driver is a part of the image and not a module.
    pub fn has_nvme(&self, architecture: &Architecture) -> bool {
        self.has_nvme && architecture.debian != "riscv64"
    }

    /// Whether guests of an architecture can have it; why not, else.
    pub fn check(&'static self, architecture: &'static Architecture) -> Result<(), NoKernelFor> {
        self.package(architecture).map(drop)
    }
}

/// Where a static shell is offered for an architecture.
pub(crate) fn shell_suites(architecture: &Architecture) -> &'static [&'static str] {
    if architecture.debian == "riscv64" { ONLY_TRIXIE } else { BOOKWORM }
}

/// A name of no kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no kernel '{0}'; there are {names}", names = ALL.each_ref().map(|kernel| kernel.name).join(", "))]
pub struct NoSuchKernel(String);

impl FromStr for &'static Kernel {
    type Err = NoSuchKernel;

    fn from_str(name: &str) -> Result<Self, NoSuchKernel> {
        ALL.iter().find(|kernel| kernel.name == name).ok_or_else(|| NoSuchKernel(name.to_owned()))
    }
}

impl Display for Kernel {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architecture_has_its_own_package_or_none() {
        let package = |kernel: &str, architecture: &str| {
            let kernel: &'static Kernel = kernel.parse().unwrap();
            kernel
                .package(architecture.parse().unwrap())
                .map(|(name, _)| name)
                .map_err(|error| error.to_string())
        };
        assert_eq!(package("6.12", "aarch64").as_deref(), Ok("linux-image-6.12-cloud-arm64"));
        assert_eq!(package("7.3-rt", "aarch64").as_deref(), Ok("linux-image-rt-arm64"));
        assert_eq!(package("7.3", "riscv64").as_deref(), Ok("linux-image-riscv64"));
        let error = package("6.1", "riscv64").unwrap_err();
        assert_eq!(error, "Debian has no kernel 6.1 for riscv64; guests of riscv64 run 6.12, 7.3");
        let error = package("6.1", "aarch64").unwrap_err();
        assert!(
            error.contains("as a module") && error.ends_with("guests of aarch64 run 6.12, 7.3, 7.3-rt"),
            "{error}"
        );
    }

    #[test]
    fn unless_another_is_asked_for_guests_run_the_oldest_that_their_architecture_has() {
        for (architecture, kernel) in [("x86_64", "6.1"), ("aarch64", "6.12"), ("riscv64", "6.12")] {
            assert_eq!(Kernel::usual(architecture.parse().unwrap()).name, kernel, "{architecture}");
        }
    }

    #[test]
    fn a_kernel_is_found_by_its_name_and_an_unknown_name_lists_those_there_are() {
        for kernel in &ALL {
            assert_eq!(kernel.name.parse(), Ok(kernel));
        }
        let error = "5.10".parse::<&'static Kernel>().unwrap_err().to_string();
        assert!(error.contains("'5.10'") && error.contains("6.1, 6.12, 7.3, 7.3-rt"), "{error}");
    }
}
