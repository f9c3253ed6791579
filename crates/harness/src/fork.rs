// SPDX-License-Identifier: MIT OR Apache-2.0
//! A child that dies with its parent.

use std::io;

use super::no_task;
use rustix::process::{Pid, Signal, set_parent_process_death_signal};

/// Forks; the child does `act` and leaves without running anything of the parent's.
pub fn fork(act: impl FnOnce()) -> io::Result<Pid> {
    let parent = rustix::process::getpid();
    // SAFETY: the host has a single thread, so the child may do whatever the parent could.
    match unsafe { libc::fork() } {
        -1 => {
            let error = no_task::explained(&io::Error::last_os_error());
            Err(io::Error::new(error.kind(), format!("a process cannot be started: {error}")))
        }
        0 => {
            let orphan = set_parent_process_death_signal(Some(Signal::KILL)).is_err()
                || rustix::process::getppid() != Some(parent);
            if !orphan {
                act();
            }
            // SAFETY: ends this process at once; destructors and buffers belong to the parent.
            unsafe { libc::_exit(0) }
        }
        child => Pid::from_raw(child).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData)),
    }
}
