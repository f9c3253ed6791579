// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which QEMU runs the guest.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::accelerator::Accelerator;
use crate::architecture::Architecture;
use crate::checkout::{NoScript, Script};
use crate::process::{Failure, Group, Process, answer};

/// The script that builds QEMU with user interrupts.
const BUILD: Script = Script { name: "uintr/qemu/build", variable: "DOORBELL_QEMU_BUILD" };

/// The time for a question that takes milliseconds.
const ANSWER: Duration = Duration::from_secs(60);

/// Between two looks whether the script has ended.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// No QEMU that can do what is asked.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The one with user interrupts is not built.
    #[error("QEMU with user interrupts is not built: {0}; run `doorbell vm build --accel uintr` once")]
    NotBuilt(String),
    /// None at all for another architecture.
    #[error("there is no {} here: install Debian's {} (any distribution's will do), or name one \
        with --qemu", .0.emulator, .0.package)]
    Missing(&'static Architecture),
    /// None at all.
    #[error(
        "there is no QEMU here: install Debian's qemu-system-x86 (any distribution's \
         qemu-system-x86_64 will do), name one with --qemu, or run `doorbell vm build --accel \
         uintr` once"
    )]
    None,
    /// A file that does not run, or does not say what it is.
    #[error("{} {failure}; name another QEMU with --qemu", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What became of it.
        failure: Failure,
    },
    /// A program that is no QEMU.
    #[error("{} is no QEMU: asked for its version it said '{said}'; name another with --qemu", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its first line.
        said: String,
    },
    /// A QEMU without the patches.
    #[error("{} ({version}) has no user interrupts; leave --qemu out, or build one with `doorbell \
        vm build --accel uintr`", .path.display())]
    WithoutUserInterrupts {
        /// The file.
        path: PathBuf,
        /// What it calls itself.
        version: String,
    },
    /// The script that builds it is not here, or is not ours.
    #[error(transparent)]
    NoScript(#[from] NoScript),
    /// The script does not run.
    #[error("cannot run the script that builds QEMU, {}: {cause}", .path.display())]
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

/// A QEMU that runs.
#[derive(Debug, Clone)]
pub struct Emulator {
    /// Its file.
    pub path: PathBuf,
    /// What it calls itself, and whether it has our patches: `QEMU 10.0.13 with user interrupts`.
    pub version: String,
    /// Whether its CPU models know user interrupts.
    pub user_interrupts: bool,
    /// Whether a port reads from one file and writes to another: the
    /// 7.2 of Debian 12 knows no such ports.
    pub input_paths: bool,
    /// Whether its RISC-V processors know Zawrs.
    pub reservation_waits: bool,
    /// Whether it can give up the system calls that it needs no more.
    pub sandbox: bool,
    /// Where it looks for its firmware.
    pub firmware: Vec<PathBuf>,
}

impl Emulator {
    /// The one for an architecture and an accelerator: the file `given`; else, for user interrupts,
    /// the one that the source tree builds; else an installed one, and only where none is
    /// installed the one that the source tree built.
    pub fn find(
        architecture: &'static Architecture,
        accelerator: Accelerator,
        given: Option<&Path>,
    ) -> Result<Self, EmulatorError> {
        let emulator = match given {
            Some(path) => Self::ask(path)?,
            None if accelerator == Accelerator::Uintr => {
                Self::ask(&built().map_err(EmulatorError::NotBuilt)?)?
            }
            None => match Self::ask(Path::new(architecture.emulator)) {
                Err(EmulatorError::Unusable { failure, .. }) if failure.is_absence() => {
                    if !architecture.is_x86() {
                        return Err(EmulatorError::Missing(architecture));
                    }
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
            let failed = |failure| EmulatorError::Unusable { path: path.to_owned(), failure };
            answer(Command::new(path).args(arguments), ANSWER).map_err(failed)
        };
        let version = said(&["--version"])?;
        let Some(number) = number(&version) else {
            let said = version.lines().next().unwrap_or_default().to_owned();
            return Err(EmulatorError::Foreign { path: path.to_owned(), said });
        };
        // One built without seccomp refuses the option before it looks at the next.
        let confined = said(&["-sandbox", "on", "-machine", "none", "-cpu", "help"]);
        let sandbox = confined.is_ok();
        let models = confined.or_else(|_| said(&["-machine", "none", "-cpu", "help"]))?;
        let input_paths =
            said(&["-chardev", "file,id=port,path=/dev/null,input-path=/dev/null", "--version"]).is_ok();
        // Of another architecture's there is no such device, which is an error.
        let reservation_waits =
            said(&["-device", "rv64-riscv-cpu,help"]).is_ok_and(|flags| flags.contains("zawrs="));
        let user_interrupts = models.split_ascii_whitespace().any(|flag| flag == "uintr");
        let firmware =
            said(&["-L", "help"])?.lines().map(PathBuf::from).filter(|folder| folder.is_dir()).collect();
        let patched = if user_interrupts { " with user interrupts" } else { "" };
        Ok(Self {
            path: path.to_owned(),
            version: format!("QEMU {number}{patched}"),
            user_interrupts,
            input_paths,
            reservation_waits,
            sandbox,
            firmware,
        })
    }
}

/// `10.0.13` of `QEMU emulator version 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)`.
fn number(said: &str) -> Option<&str> {
    said.strip_prefix("QEMU emulator version ")?.split_ascii_whitespace().next()
}

/// Where the built one is, or why there is none.
pub fn built() -> Result<PathBuf, String> {
    let script = BUILD.find().map_err(|none| none.to_string())?;
    match answer(Command::new(&script).arg("--path"), ANSWER) {
        Ok(path) => Ok(PathBuf::from(path.trim())),
        Err(Failure::Failed { said, .. }) => Err(said.trim_start_matches("uintr/qemu/build: ").to_owned()),
        Err(Failure::System(cause)) => Err(EmulatorError::Script { path: script, cause }.to_string()),
        Err(failure) => Err(format!("{} {failure}", script.display())),
    }
}

/// Says on standard output what a build fetches and how long it takes.
pub fn plan() -> Result<(), EmulatorError> {
    run_script(&["--plan"], Stdio::inherit())
}

/// Builds it if need be; what it does is said on standard error.
pub fn build() -> Result<(), EmulatorError> {
    run_script(&[], Stdio::null())
}

fn run_script(arguments: &[&str], stdout: Stdio) -> Result<(), EmulatorError> {
    let path = BUILD.find()?;
    let mut command = Command::new(&path);
    match to_its_end(command.args(arguments).stdout(stdout)) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(EmulatorError::Build { path, status }),
        Err(cause) => Err(EmulatorError::Script { path, cause }),
    }
}

/// Runs a script to its end. It takes minutes and says what it does,
/// so it has no limit; it dies with us.
pub(crate) fn to_its_end(script: &mut Command) -> io::Result<ExitStatus> {
    let process = Process::start(script.stdin(Stdio::null()), &[], Group::Ours, None)?;
    while !process.ends_by(Instant::now() + LOOK_EVERY)? {}
    process.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_its_number_and_what_says_else_has_none() {
        assert_eq!(number("QEMU emulator version 10.0.13 (Debian 1:10.0.13+ds)\n"), Some("10.0.13"));
        assert_eq!(number("something else"), None);
    }

    #[test]
    fn a_program_that_is_no_qemu_is_not_taken_for_one() {
        let error =
            Emulator::find(Architecture::own(), Accelerator::Tcg, Some(Path::new("/bin/true"))).unwrap_err();
        assert!(error.to_string().contains("/bin/true is no QEMU"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_the_cure() {
        let error = Emulator::find(Architecture::own(), Accelerator::Tcg, Some(Path::new("/nowhere/qemu")))
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/nowhere/qemu") && text.contains("--qemu"), "{text}");
    }
}
