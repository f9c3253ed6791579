// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels that guests run: Debian's own, each a line in [`ALL`].

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// A kernel of Debian's.
#[derive(Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name on the command line.
    pub name: &'static str,
    /// How the versions of its series begin.
    pub(crate) series: &'static str,
    /// The package that depends on the newest kernel of a series; older series may share its name with newer ones.
    pub(crate) newest: &'static str,
    /// Where Debian offers it.
    pub(crate) suites: &'static [&'static str],
    /// The compiler that its headers ask for, where Debian 12 has none that new.
    pub(crate) compiler: Option<Compiler>,
    /// Whether the NVMe driver is a part of the image and not a module.
    pub has_nvme: bool,
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
pub(crate) const BOOKWORM: &[&str] = &["bookworm", "bookworm-security"];
const TRIXIE: &[&str] = &["trixie", "trixie-backports"];

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

/// All of them, the one guests run unless another is asked for first. Those made for virtual machines have what guests need
/// in the image; of the preemptible one Debian makes only a flavour for all machines.
#[rustfmt::skip]
pub static ALL: [Kernel; 4] = [
    Kernel { name: "6.1", series: "6.1.", newest: "linux-image-cloud-amd64", suites: BOOKWORM, compiler: None, has_nvme: true },
    Kernel { name: "6.12", series: "6.12.", newest: "linux-image-6.12-cloud-amd64", suites: BOOKWORM, compiler: None, has_nvme: true },
    Kernel { name: "7.3", series: "7.3.", newest: "linux-image-cloud-amd64", suites: TRIXIE, compiler: Some(GCC_14), has_nvme: true },
    Kernel { name: "7.3-rt", series: "7.3.", newest: "linux-image-rt-amd64", suites: TRIXIE, compiler: Some(GCC_14), has_nvme: false },
];

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
    fn a_kernel_is_found_by_its_name_and_an_unknown_name_lists_those_there_are() {
        for kernel in &ALL {
            assert_eq!(kernel.name.parse(), Ok(kernel));
        }
        let error = "5.10".parse::<&'static Kernel>().unwrap_err().to_string();
        assert!(error.contains("'5.10'") && error.contains("6.1, 6.12, 7.3, 7.3-rt"), "{error}");
    }
}
