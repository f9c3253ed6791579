// SPDX-License-Identifier: MIT OR Apache-2.0
//! A child of this process, in which a part of a test runs.

#![allow(dead_code, reason = "each program of tests uses a part of it")]

/// Makes a child, in which it returns 0.
pub(crate) type Make = fn() -> libc::pid_t;

pub(crate) fn by_fork() -> libc::pid_t {
    // SAFETY: the child takes no locks but the library's, which a fork waits for, and exits.
    unsafe { libc::fork() }
}

/// Runs `run` in a child that `make` makes, and says whether it came
/// to true. A hang ends after a minute.
pub(crate) fn in_a_child(make: Make, run: impl FnOnce() -> bool) -> bool {
    came_to_true(child(make, run))
}

/// A child, which runs `run`.
pub(crate) fn child(make: Make, run: impl FnOnce() -> bool) -> libc::pid_t {
    let child = make();
    if child == 0 {
        // SAFETY: no precondition.
        unsafe { libc::alarm(60) };
        let status = i32::from(!run());
        // SAFETY: no precondition.
        unsafe { libc::_exit(status) };
    }
    child
}

/// Waits for `child`, and says whether what it ran came to true.
pub(crate) fn came_to_true(child: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: a child of ours, and a valid place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}
