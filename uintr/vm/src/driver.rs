// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver that gives a guest's threads user interrupts: `uintr/driver` of the source tree,
//! built for the guest's kernel.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::checkout::{NoScript, Script};
use crate::emulator::to_its_end;
use crate::kernel::Kernel;
use crate::packages::Part;
use crate::process::{Failure, answer};

/// The script that builds it.
const BUILD: Script = Script { name: "uintr/driver/build", variable: "DOORBELL_DRIVER_BUILD" };

/// The time for a question that hashes the driver's sources.
const ANSWER: Duration = Duration::from_secs(60);

/// No driver for a kernel.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// It is not built.
    #[error(
        "the driver for user interrupts is not built for kernel {0}: run `doorbell vm build \
         --accel uintr --kernel {0} --driver` once"
    )]
    NotBuilt(&'static Kernel),
    /// The script that builds it is not here, or is not ours.
    #[error(transparent)]
    NoScript(#[from] NoScript),
    /// The script does not run.
    #[error("cannot run the script that builds the driver, {}: {cause}", .path.display())]
    Script {
        /// Where it is.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The build failed.
    #[error("{} ended with {status}; its last lines above say why", .path.display())]
    Build {
        /// The script.
        path: PathBuf,
        /// How it ended.
        status: ExitStatus,
    },
}

/// The script, and the call of it for a kernel's headers.
fn script(headers: &Path) -> Result<(PathBuf, Command), DriverError> {
    let path = BUILD.find()?;
    let mut command = Command::new(&path);
    command.arg("--tree").arg(headers);
    Ok((path, command))
}

/// The module for `kernel`, if it is built of the sources as they are now.
pub fn built(kernel: &'static Kernel) -> Result<PathBuf, DriverError> {
    let headers = Part::Headers(kernel).find().ok_or(DriverError::NotBuilt(kernel))?;
    let (path, mut script) = script(&headers)?;
    match answer(script.arg("--path"), ANSWER) {
        Ok(folder) => Ok(Path::new(folder.trim()).join("uintr.ko")),
        Err(Failure::System(cause)) => Err(DriverError::Script { path, cause }),
        Err(_) => Err(DriverError::NotBuilt(kernel)),
    }
}

/// Builds it if need be, with the headers that are in the cache; what
/// it does is said on standard error.
pub fn build(kernel: &'static Kernel) -> Result<PathBuf, DriverError> {
    let headers = Part::Headers(kernel).find().ok_or(DriverError::NotBuilt(kernel))?;
    let (path, mut script) = script(&headers)?;
    match to_its_end(script.stdout(Stdio::null())) {
        Ok(status) if status.success() => built(kernel),
        Ok(status) => Err(DriverError::Build { path, status }),
        Err(cause) => Err(DriverError::Script { path, cause }),
    }
}
