// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots Squall (`squall/`), a kernel of this repository, on an emulated RISC-V machine whose clock
//! is the instructions it retires.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::accelerator::Accelerator;
use crate::architecture::RISCV64;
use crate::checkout::{NoScript, Script};
use crate::emulator::{Emulator, EmulatorError};
use crate::hardware::SANDBOX;
use crate::nobody::{Nobody, by_number, copy_in_memory, program_for_all};
use crate::process::{Failure, answer, answer_of};

/// The script that builds the kernel.
const BUILD: Script = Script { name: "squall/build", variable: "DOORBELL_SQUALL_BUILD" };

/// Those that build Linux for the same machine, with the lab in it, and run it.
const BUILD_LINUX: Script = Script { name: "squall/linux/build", variable: "DOORBELL_SQUALL_LINUX_BUILD" };
const RUN_LINUX: Script = Script { name: "squall/linux/run", variable: "DOORBELL_SQUALL_LINUX_RUN" };

/// The time a build may take.
const BUILDING: Duration = Duration::from_secs(60 * 60);

/// What kept Squall from saying what it measured.
#[derive(Debug, thiserror::Error)]
pub enum SquallError {
    /// No kernel was named and none can be built.
    #[error("{0}; or name a built kernel with --squall")]
    NoBuild(NoScript),
    /// Linux beside it cannot be built or run.
    #[error(transparent)]
    NoLinux(NoScript),
    /// The emulator.
    #[error("{0}; in the repository, ci/install/squall.sh installs one")]
    Emulator(#[from] EmulatorError),
    /// The kernel cannot be read, or a process not be prepared.
    #[error("cannot prepare Squall's machine with the kernel {}: {cause}", .kernel.display())]
    Prepare {
        /// The kernel's file.
        kernel: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A program that failed.
    #[error("{program} {failure}{}", if matches!(.failure, Failure::Late(_)) { more(.program) } else { "" })]
    Program {
        /// The program.
        program: String,
        /// What became of it.
        failure: Failure,
    },
}

/// The kernel that the source tree builds; builds it.
pub fn build() -> Result<PathBuf, SquallError> {
    let script = BUILD.find().map_err(SquallError::NoBuild)?;
    said_by(&mut Command::new(script), BUILD.name, BUILDING).map(|path| PathBuf::from(path.trim()))
}

/// Fetches Linux and builds the lab for it.
pub fn build_linux() -> Result<(), SquallError> {
    let script = BUILD_LINUX.find().map_err(SquallError::NoLinux)?;
    said_by(&mut Command::new(script), BUILD_LINUX.name, BUILDING).map(|_| ())
}

/// Boots Linux on the machine that Squall runs on and has the lab
/// carry out `words`; its result file, byte by byte.
pub fn run_linux(words: &str, limit: Duration) -> Result<Vec<u8>, SquallError> {
    let script = RUN_LINUX.find().map_err(SquallError::NoLinux)?;
    let mut command = Command::new(script);
    command.arg("/dev/stdout").args(words.split_whitespace());
    said_by(&mut command, RUN_LINUX.name, limit).map(String::into_bytes)
}

/// The emulator.
pub fn emulator() -> Result<Emulator, SquallError> {
    Ok(Emulator::find(RISCV64, Accelerator::Tcg, None)?)
}

/// Boots `kernel` with `words` for its first program and `memory` MiB; all that its console said.
/// The emulator is confined as the guests' of Linux are.
pub fn run(
    emulator: &Emulator,
    kernel: &Path,
    words: &str,
    memory: u32,
    limit: Duration,
) -> Result<String, SquallError> {
    let prepare = |cause| SquallError::Prepare { kernel: kernel.to_owned(), cause };
    let user = Nobody::instead_of_root(None).map_err(prepare)?;
    let (program, held) = program_for_all(&emulator.path).map_err(prepare)?;
    let image = copy_in_memory(kernel).map_err(prepare)?;
    let mut command = Command::new(program);
    command.args(["-name", "squall,process=squall-guest"]);
    command.args(["-machine", "virt", "-cpu", "rv64", "-smp", "1", "-m", &memory.to_string()]);
    command.args(["-icount", "shift=0,sleep=off", "-display", "none", "-no-reboot", "-nodefaults"]);
    command.args([
        "-no-user-config",
        "-chardev",
        "stdio,id=console,signal=off",
        "-serial",
        "chardev:console",
    ]);
    command.args(emulator.sandbox.then_some(["-sandbox", SANDBOX]).into_iter().flatten());
    command.args(["-kernel", &by_number(&image), "-append", words]);
    let inherited: Vec<_> = held.iter().chain([&image]).map(AsRawFd::as_raw_fd).collect();
    let program = emulator.path.display().to_string();
    answer_of(&mut command, limit, &inherited, user)
        .map_err(|failure| SquallError::Program { program, failure })
}

/// What to do about a program that does not end.
fn more(program: &str) -> &'static str {
    match program == BUILD_LINUX.name {
        true => "; try again, for what it has built is kept",
        false => "; --timeout gives it more",
    }
}

fn said_by(command: &mut Command, program: &str, limit: Duration) -> Result<String, SquallError> {
    answer(command, limit).map_err(|failure| SquallError::Program { program: program.to_owned(), failure })
}
