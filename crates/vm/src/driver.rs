// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver that gives a guest's threads user interrupts: `kernel/uintr` of the source tree, built for the guest's kernel.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::emulator::to_its_end;
use crate::kernel::Kernel;
use crate::packages::Part;
use crate::process::{Failure, answer};

/// The script that builds it, in the source tree this crate was built from.
const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/uintr/build");

/// The time for a question that hashes the driver's sources.
const ANSWER: Duration = Duration::from_secs(60);

/// No driver for a kernel.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// It is not built.
    #[error(
        "the driver for user interrupts is not built for kernel {0}: run `doorbell vm build --accel uintr --kernel {0} --driver` once"
    )]
    NotBuilt(&'static Kernel),
    /// The source tree is not there.
    #[error("cannot run the script that builds the driver, {BUILD}: {0}")]
    NoSource(io::Error),
    /// The build failed.
    #[error("{BUILD} ended with {0}; its last lines above say why")]
    Build(ExitStatus),
}

fn script(headers: &Path) -> Command {
    let mut script = Command::new(BUILD);
    script.arg("--tree").arg(headers);
    script
}

/// The module for `kernel`, if it is built of the sources as they are now.
pub fn built(kernel: &'static Kernel) -> Result<PathBuf, DriverError> {
    let headers = Part::Headers(kernel).find().ok_or(DriverError::NotBuilt(kernel))?;
    match answer(script(&headers).arg("--path"), ANSWER) {
        Ok(folder) => Ok(Path::new(folder.trim()).join("uintr.ko")),
        Err(Failure::System(cause)) => Err(DriverError::NoSource(cause)),
        Err(_) => Err(DriverError::NotBuilt(kernel)),
    }
}

/// Builds it if need be, with the headers that are in the cache; what it does is said on standard error.
pub fn build(kernel: &'static Kernel) -> Result<PathBuf, DriverError> {
    let headers = Part::Headers(kernel).find().ok_or(DriverError::NotBuilt(kernel))?;
    let status = to_its_end(script(&headers).stdout(Stdio::null())).map_err(DriverError::NoSource)?;
    if status.success() { built(kernel) } else { Err(DriverError::Build(status)) }
}
