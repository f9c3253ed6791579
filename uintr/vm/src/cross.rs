// SPDX-License-Identifier: MIT OR Apache-2.0
//! This program for guests of another architecture: built from the
//! same source, whole in one static file.

use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::architecture::Architecture;
use crate::checkout::{NoScript, Script};
use crate::emulator::to_its_end;
use crate::process::{Failure, answer};

/// The script that builds it.
const BUILD: Script = Script { name: "ci/cross-built", variable: "DOORBELL_CROSS_BUILD" };

/// The time for a question that takes milliseconds.
const ANSWER: Duration = Duration::from_secs(60);

/// No program for the guest.
#[derive(Debug, thiserror::Error)]
pub enum CrossError {
    /// Not built.
    #[error(
        "this program is not built for {architecture}: {said}; run `doorbell vm build --arch \
         {architecture}` once, or name one with --program"
    )]
    NotBuilt {
        /// What for.
        architecture: &'static Architecture,
        /// What the script said.
        said: String,
    },
    /// The script that builds it is not here, or is not ours.
    #[error(transparent)]
    NoScript(#[from] NoScript),
    /// The script does not run.
    #[error("cannot run the script that builds this program for others, {}: {cause}", .path.display())]
    Script {
        /// Where it is.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The build failed.
    #[error("{} {architecture} ended with {status}; its last lines above say why", .path.display())]
    Build {
        /// The script.
        path: PathBuf,
        /// What for.
        architecture: &'static Architecture,
        /// How it ended.
        status: ExitStatus,
    },
}

/// Where the one for `architecture` is.
pub fn built(architecture: &'static Architecture) -> Result<PathBuf, CrossError> {
    let path = BUILD.find()?;
    match answer(Command::new(&path).args(["--path", architecture.name]), ANSWER) {
        Ok(said) => Ok(PathBuf::from(said.trim())),
        Err(Failure::System(cause)) => Err(CrossError::Script { path, cause }),
        Err(Failure::Failed { said, .. }) => Err(CrossError::NotBuilt {
            architecture,
            said: said.trim().trim_start_matches("cross-built: ").to_owned(),
        }),
        Err(failure) => Err(CrossError::NotBuilt { architecture, said: failure.to_string() }),
    }
}

/// Builds it if need be; what is done is said on standard error. It
/// takes minutes, so it has no limit.
pub fn build(architecture: &'static Architecture) -> Result<(), CrossError> {
    let path = BUILD.find()?;
    match to_its_end(Command::new(&path).arg(architecture.name).stdout(Stdio::null())) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CrossError::Build { path, architecture, status }),
        Err(cause) => Err(CrossError::Script { path, cause }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::process::{Group, Process};

    /// A build that was stopped went on: its script was killed, the script's Cargo was not.
    #[test]
    fn a_build_that_is_stopped_takes_its_cargo_along() {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, script: String| {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let here = folder.path().display();
        program("rustc", format!("echo {here}"));
        program("aarch64-linux-gnu-gcc", String::new());
        program("cargo", format!("echo $$ >{here}/part; mv {here}/part {here}/number; exec sleep 1000"));
        let path = format!("{here}:{}", std::env::var("PATH").unwrap());
        let mut command = Command::new(BUILD.find().unwrap());
        command.arg("aarch64").env("PATH", path).env("CARGO_TARGET_DIR", folder.path()).stdout(Stdio::null());
        let build = Process::start(command.stdin(Stdio::null()), &[], Group::Ours, None).unwrap();
        let start = Instant::now();
        let number = loop {
            if let Ok(number) = fs::read_to_string(folder.path().join("number")) {
                break number;
            }
            assert!(start.elapsed() < ANSWER * 5, "Cargo was not started");
            thread::sleep(Duration::from_millis(5));
        };
        drop(build);
        let stat = Path::new("/proc").join(number.trim()).join("stat");
        // What nobody has reaped yet is dead too.
        while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
            assert!(start.elapsed() < ANSWER * 10, "Cargo still runs");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
