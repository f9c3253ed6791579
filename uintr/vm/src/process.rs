// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that does not outlive the one that started it.

use std::io::{self, Read};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, set_parent_process_death_signal, waitid,
};

use crate::nobody::Nobody;

/// A child that is killed, with all it started in its group, when
/// this value goes or its parent's thread dies.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    own_group: bool,
}

/// How a child belongs to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// It has a group of its own, which ends with it: a terminal's Ctrl-C goes to us alone.
    Own,
    /// It belongs to our group: a terminal's Ctrl-C ends all it started, too.
    Ours,
}

/// A program that did not do what it was run for, as a message says it behind the program's name.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It does not start, or prints without end.
    #[error("cannot be run: {0}")]
    System(#[from] io::Error),
    /// It did not end within this time, and was killed.
    #[error("did not end within {} s", .0.as_secs())]
    Late(Duration),
    /// It failed.
    #[error("ended with {status}: {said}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The last lines it said.
        said: String,
    },
}

impl Failure {
    /// Whether there is no such program.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::System(cause) if cause.kind() == io::ErrorKind::NotFound)
    }
}

/// Bytes that a program may print: a thousand times what those that are asked print.
const MOST: u64 = 64 << 20;

/// Lines of a program's last words.
const LAST_WORDS: usize = 5;

/// What a program that reads nothing says on standard output, if it succeeds within `limit`.
pub(crate) fn answer(command: &mut Command, limit: Duration) -> Result<String, Failure> {
    answer_of(command, limit, &[], None)
}

/// The same of a program that inherits the descriptors `inherited`
/// and is run as `user`, if one is given.
pub(crate) fn answer_of(
    command: &mut Command,
    limit: Duration,
    inherited: &[RawFd],
    user: Option<Nobody>,
) -> Result<String, Failure> {
    let Output { status, stdout, stderr } = output(command, limit, inherited, user)?;
    let [text, complaint] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if status.success() {
        return Ok(text);
    }
    let lines: Vec<&str> =
        text.lines().chain(complaint.lines()).map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = lines[lines.len().saturating_sub(LAST_WORDS)..].join("; ");
    Err(Failure::Failed { status, said })
}

/// Runs a program that reads nothing to its end, which comes within
/// `limit`, and returns what it printed.
fn output(
    command: &mut Command,
    limit: Duration,
    inherited: &[RawFd],
    user: Option<Nobody>,
) -> Result<Output, Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let deadline = Instant::now() + limit;
    let mut process = Process::start(command, inherited, Group::Own, user)?;
    let stdout = process.child.stdout.take().map(reader);
    let stderr = process.child.stderr.take().map(reader);
    let ended = process.ends_by(deadline)?;
    // With its group, so that the pipes close and the readers end.
    let status = process.end()?;
    let text = |reader: Option<JoinHandle<Vec<u8>>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    if stdout.len().max(stderr.len()) as u64 >= MOST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it prints more than 64 MiB").into());
    }
    if ended { Ok(Output { status, stdout, stderr }) } else { Err(Failure::Late(limit)) }
}

fn reader(pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still what it said.
        let _ = pipe.take(MOST).read_to_end(&mut bytes);
        bytes
    })
}

impl Process {
    /// Starts `command`, which inherits the descriptors `inherited`
    /// by their numbers, as `user` if one is given.
    pub(crate) fn start(
        command: &mut Command,
        inherited: &[RawFd],
        group: Group,
        user: Option<Nobody>,
    ) -> io::Result<Self> {
        let inherited = inherited.to_vec();
        let parent = rustix::process::getpid();
        if group == Group::Own {
            command.process_group(0);
        }
        let in_child = move || {
            // First, since a change of the user makes the kernel
            // forget the signal (prctl(2), PR_SET_PDEATHSIG).
            user.as_ref().map_or(Ok(()), Nobody::become_it)?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            for fd in &inherited {
                // SAFETY: the caller keeps these descriptors open until
                // `start` returns, which is after this closure ran.
                let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
                rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made; nothing
        // allocates and no lock is taken. JUSTIFICATION: the standard library has no
        // call that makes single descriptors inheritable or sets the death signal.
        unsafe { command.pre_exec(in_child) };
        Ok(Self { child: command.spawn()?, own_group: group == Group::Own })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether it ended, waiting for that at most until `deadline`.
    ///
    /// It is not reaped, so that its number, and its group's, stay
    /// its own until the group was killed.
    pub(crate) fn ends_by(&self, deadline: Instant) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.pid()), options)? {
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                ended => return Ok(ended.is_some()),
            }
        }
    }

    /// Kills what is left of it and tells how it ended.
    pub(crate) fn end(mut self) -> io::Result<ExitStatus> {
        self.kill();
        self.child.wait()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Every call fails only for what has ended.
    fn kill(&mut self) {
        if self.own_group {
            let _ = kill_process_group(self.pid(), Signal::KILL);
        }
        let _ = self.child.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_program_prints_comes_with_its_status() {
        let said = |script| answer(&mut shell(script), Duration::from_secs(300));
        assert_eq!(said("echo out; echo err >&2").unwrap(), "out\n");
        let failed = said("echo out; echo err >&2; exit 3").unwrap_err();
        assert_eq!(failed.to_string(), "ended with exit status: 3: out; err");
    }

    #[test]
    fn a_program_that_prints_without_end_is_cut_off() {
        let said = output(&mut shell("exec cat /dev/zero"), Duration::from_secs(300), &[], None);
        assert!(matches!(said, Err(Failure::System(error)) if error.kind() == io::ErrorKind::FileTooLarge));
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_what_it_started_and_called_late() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sleep 1000 & echo $! >{0}.part; mv {0}.part {0}; wait", pid.display());
        let mut limit = Duration::from_millis(100);
        // On a busy machine the script needs more than that to write its number.
        while !pid.exists() {
            assert!(matches!(output(&mut shell(&script), limit, &[], None), Err(Failure::Late(_))));
            limit *= 2;
        }
        let number = std::fs::read_to_string(pid).unwrap();
        // What was killed dies when a CPU takes it up; a child that
        // was not sleeps for longer than this test may take.
        let alive = || {
            std::fs::read_to_string(format!("/proc/{}/stat", number.trim()))
                .is_ok_and(|stat| !stat.contains(") Z"))
        };
        let start = Instant::now();
        while alive() {
            assert!(start.elapsed() < Duration::from_secs(300), "the script's child still runs");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
