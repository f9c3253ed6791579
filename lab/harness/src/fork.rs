// SPDX-License-Identifier: MIT OR Apache-2.0
//! A child that dies with its parent.

use std::io;

use super::no_task;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

/// From now on this process ends with `parent`, which started it; whether that is still there.
pub fn die_with_parent(parent: Pid) -> bool {
    // It may have died before the first of these.
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok() && getppid() == Some(parent)
}

/// Forks; the child does `act` and leaves without running anything of the parent's.
pub fn fork(act: impl FnOnce()) -> io::Result<Pid> {
    let parent = getpid();
    // SAFETY: the host has a single thread, so the child may do whatever the parent could.
    match unsafe { libc::fork() } {
        -1 => {
            let error = no_task::explained(&io::Error::last_os_error());
            Err(io::Error::new(error.kind(), format!("a process cannot be started: {error}")))
        }
        0 => {
            if die_with_parent(parent) {
                act();
            }
            // SAFETY: ends this process at once; destructors and buffers belong to the parent.
            unsafe { libc::_exit(0) }
        }
        child => Pid::from_raw(child).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData)),
    }
}
