// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder that keeps what was fetched.

use std::path::PathBuf;

/// `$XDG_CACHE_HOME/doorbell`, or `~/.cache/doorbell` (XDG Base Directory Specification); `None` without a home.
pub fn folder() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    Some(given.or_else(home)?.join("doorbell"))
}
