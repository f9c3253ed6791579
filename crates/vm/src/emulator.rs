// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which QEMU runs the guest.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::accelerator::Accelerator;

/// The script that builds QEMU with user interrupts, in the source tree this crate was built from.
const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../qemu/build");

/// QEMU for this CPU, as distributions call it.
const INSTALLED: &str = "qemu-system-x86_64";

/// No QEMU that can do what is asked.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The one with user interrupts is not built.
    #[error("QEMU with user interrupts is not built: {0}; run `doorbell vm build --accel uintr` once")]
    NotBuilt(String),
    /// None at all.
    #[error(
        "there is no QEMU here: install Debian's qemu-system-x86 (any distribution's qemu-system-x86_64 will do), name one \
         with --qemu, or run `doorbell vm build --accel uintr` once"
    )]
    None,
    /// A file that does not run.
    #[error("cannot run {}: {cause}; name a qemu-system-x86_64 with --qemu", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A QEMU without the patches.
    #[error("{} ({version}) has no user interrupts; leave --qemu out, or build one with `doorbell vm build --accel uintr`", .path.display())]
    WithoutUserInterrupts {
        /// The file.
        path: PathBuf,
        /// What it calls itself.
        version: String,
    },
    /// The source tree is not there.
    #[error("the script that builds QEMU is not at {BUILD}: run this from a build of the source tree")]
    NoSource,
    /// The build failed.
    #[error("{BUILD} ended with {0}; its last lines above say why")]
    Build(ExitStatus),
}

/// A QEMU that runs.
#[derive(Debug, Clone)]
pub struct Emulator {
    /// Its file.
    pub path: PathBuf,
    /// What it calls itself: `QEMU 10.0.13`.
    pub version: String,
    /// Whether its CPU models know user interrupts.
    pub user_interrupts: bool,
}

impl Emulator {
    /// The one for an accelerator: the file `given`; else, for user interrupts, the one this source tree builds; else an
    /// installed one, and only where none is installed the one this source tree built.
    pub fn find(accelerator: Accelerator, given: Option<&Path>) -> Result<Self, EmulatorError> {
        let emulator = match given {
            Some(path) => Self::ask(path)?,
            None if accelerator == Accelerator::Uintr => {
                Self::ask(&built().map_err(EmulatorError::NotBuilt)?)?
            }
            None => match Self::ask(Path::new(INSTALLED)) {
                Err(EmulatorError::Unusable { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                    Self::ask(&built().map_err(|_| EmulatorError::None)?)?
                }
                answer => answer?,
            },
        };
        if accelerator == Accelerator::Uintr && !emulator.user_interrupts {
            let Self { path, version, .. } = emulator;
            return Err(EmulatorError::WithoutUserInterrupts { path, version });
        }
        Ok(emulator)
    }

    fn ask(path: &Path) -> Result<Self, EmulatorError> {
        let said = |arguments: &[&str]| {
            let output = Command::new(path)
                .args(arguments)
                .stdin(Stdio::null())
                .output()
                .map_err(|cause| EmulatorError::Unusable { path: path.to_owned(), cause })?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let version = said(&["--version"])?;
        let flags = said(&["-cpu", "help"])?;
        Ok(Self {
            path: path.to_owned(),
            version: short(&version),
            user_interrupts: flags.split_ascii_whitespace().any(|flag| flag == "uintr"),
        })
    }
}

/// `QEMU emulator version 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)` in few words.
fn short(version: &str) -> String {
    let first = version.lines().next().unwrap_or_default();
    match first.strip_prefix("QEMU emulator version ").and_then(|rest| rest.split(' ').next()) {
        Some(number) => format!("QEMU {number}"),
        None => first.to_owned(),
    }
}

/// Where the built one is, or why there is none.
pub fn built() -> Result<PathBuf, String> {
    let output = Command::new(BUILD).arg("--path").stdin(Stdio::null()).output();
    let output = output.map_err(|cause| format!("{BUILD}: {cause}"))?;
    if output.status.success() {
        Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
    } else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(complaint.trim().trim_start_matches("qemu/build: ").to_owned())
    }
}

/// Says on standard output what a build fetches and how long it takes.
pub fn plan() -> Result<(), EmulatorError> {
    script(&["--plan"], Stdio::inherit())
}

/// Builds it if need be; what it does is said on standard error.
pub fn build() -> Result<(), EmulatorError> {
    script(&[], Stdio::null())
}

fn script(arguments: &[&str], stdout: Stdio) -> Result<(), EmulatorError> {
    let status = Command::new(BUILD).args(arguments).stdin(Stdio::null()).stdout(stdout).status();
    match status.map_err(|_| EmulatorError::NoSource)? {
        status if status.success() => Ok(()),
        status => Err(EmulatorError::Build(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_its_number() {
        assert_eq!(short("QEMU emulator version 10.0.13 (Debian 1:10.0.13+ds)\nCopyright\n"), "QEMU 10.0.13");
        assert_eq!(short("something else"), "something else");
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_the_cure() {
        let error = Emulator::find(Accelerator::Tcg, Some(Path::new("/nowhere/qemu"))).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/nowhere/qemu") && text.contains("--qemu"), "{text}");
    }
}
