// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the environment of this process says, unless others than its user may have said it.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The variable `name`, unless this program has more rights than who
/// started it (set-user-ID, capabilities of its file): then whoever
/// that is must not choose where it listens or what it reads.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|_| !has_raised_rights())
}

/// The user's home, under the same condition.
pub(crate) fn home() -> Option<PathBuf> {
    env::home_dir().filter(|home| home.is_absolute() && !has_raised_rights())
}

fn has_raised_rights() -> bool {
    // SAFETY: any number may be asked for; of one that the kernel did not give, it says 0.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
