// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that does not outlive the one that started it.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, set_parent_process_death_signal, waitid,
};

/// A child that is killed, with all it started in its group, when this value goes or its parent's thread dies.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    own_group: bool,
}

/// Whether the child may read the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// It has a group of its own: Ctrl-C goes to us, and we end it.
    Own,
    /// It belongs to the terminal's foreground group, as one that reads from it must.
    Terminal,
}

impl Process {
    /// Starts `command`, which inherits the descriptors `inherited` by their numbers.
    pub(crate) fn start(command: &mut Command, inherited: &[RawFd], group: Group) -> io::Result<Self> {
        let inherited = inherited.to_vec();
        let parent = rustix::process::getpid();
        if group == Group::Own {
            command.process_group(0);
        }
        let in_child = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            for fd in &inherited {
                // SAFETY: the caller keeps these descriptors open until `start` returns, which is after this closure ran.
                let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
                rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made; nothing allocates and no lock is taken.
        // JUSTIFICATION: the standard library has no call that makes single descriptors inheritable or sets the death
        // signal.
        unsafe { command.pre_exec(in_child) };
        Ok(Self { child: command.spawn()?, own_group: group == Group::Own })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Whether it ended, waiting for that at most until `deadline`.
    ///
    /// It is not reaped, so that its number, and its group's, stay its own until the group was killed.
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
