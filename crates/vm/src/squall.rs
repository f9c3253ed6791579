// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots Squall (`squall/`), a kernel of this repository, on an emulated RISC-V machine whose clock is the instructions it retires.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{Failure, answer};

/// The emulator.
const EMULATOR: &str = "qemu-system-riscv64";

/// Where the repository has the script that builds the kernel.
const BUILD: &str = "squall/build";

/// Where it has those that build Linux for the same machine, with the lab in it, and run it.
const BUILD_LINUX: &str = "squall/linux/build";
const RUN_LINUX: &str = "squall/linux/run";

/// The time a build may take.
const BUILDING: Duration = Duration::from_secs(60 * 60);

/// What kept Squall from saying what it measured.
#[derive(Debug, thiserror::Error)]
pub enum SquallError {
    /// No kernel was named and none can be built.
    #[error(
        "there is no {BUILD} in this folder; start it from the repository's root, or name a built kernel with --squall"
    )]
    NoBuild,
    /// The emulator.
    #[error("{EMULATOR} is needed and not here; in the repository run ci/install/squall.sh")]
    NoEmulator,
    /// A program that failed.
    #[error("{program} {failure}{}", if matches!(.failure, Failure::Late(_)) { more(.program) } else { "" })]
    Program {
        /// The program.
        program: &'static str,
        /// What became of it.
        failure: Failure,
    },
}

/// The kernel that the repository in this folder builds; builds it.
pub fn build() -> Result<PathBuf, SquallError> {
    if !Path::new(BUILD).exists() {
        return Err(SquallError::NoBuild);
    }
    said_by(Command::new(Path::new(".").join(BUILD)), BUILD, BUILDING).map(|path| PathBuf::from(path.trim()))
}

/// Fetches Linux and builds the lab for it.
pub fn build_linux() -> Result<(), SquallError> {
    if !Path::new(BUILD_LINUX).exists() {
        return Err(SquallError::NoBuild);
    }
    said_by(Command::new(Path::new(".").join(BUILD_LINUX)), BUILD_LINUX, BUILDING).map(|_| ())
}

/// Boots Linux on the machine that Squall runs on and has the lab carry out `words`; its result file, byte by byte.
pub fn run_linux(words: &str, limit: Duration) -> Result<Vec<u8>, SquallError> {
    let mut command = Command::new(Path::new(".").join(RUN_LINUX));
    command.arg("/dev/stdout").args(words.split_whitespace());
    said_by(command, RUN_LINUX, limit).map(String::into_bytes)
}

/// The emulator's name and version.
pub fn emulator() -> Result<String, SquallError> {
    let mut command = Command::new(EMULATOR);
    command.arg("--version");
    let text = said_by(command, EMULATOR, Duration::from_secs(60))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Boots `kernel` with `words` for its first program and `memory` MiB; all that its console said.
pub fn run(kernel: &Path, words: &str, memory: u32, limit: Duration) -> Result<String, SquallError> {
    let mut command = Command::new(EMULATOR);
    command.args(["-machine", "virt", "-cpu", "rv64", "-smp", "1", "-m", &memory.to_string()]);
    command.args([
        "-icount",
        "shift=0,sleep=off",
        "-nographic",
        "-no-reboot",
        "-serial",
        "stdio",
        "-monitor",
        "none",
    ]);
    command.arg("-kernel").arg(kernel).args(["-append", words]);
    said_by(command, EMULATOR, limit)
}

/// What to do about a program that does not end.
fn more(program: &str) -> &'static str {
    match program {
        BUILD_LINUX => "; try again, for what it has built is kept",
        _ => "; --timeout gives it more",
    }
}

fn said_by(mut command: Command, program: &'static str, limit: Duration) -> Result<String, SquallError> {
    answer(&mut command, limit).map_err(|failure| match failure.is_absence() && program == EMULATOR {
        true => SquallError::NoEmulator,
        false => SquallError::Program { program, failure },
    })
}
