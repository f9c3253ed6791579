// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder that keeps what was fetched.

use std::path::{Path, PathBuf};

use crate::fetch_error::FetchError;

/// `$XDG_CACHE_HOME/doorbell`, or `~/.cache/doorbell` (XDG Base
/// Directory Specification); `None` without a home.
pub fn folder() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(given.or_else(|| Some(home()?.join(".cache")))?.join("doorbell"))
}

/// The longest file that is read whole, bytes: more than a program of
/// the guests' or a part of a package has.
pub(crate) const LONGEST: u64 = 1 << 30;

/// Makes a folder of the cache.
pub(crate) fn folder_made(path: &Path) -> Result<(), FetchError> {
    doorbell_files::folder(path).map(drop).map_err(|cause| FetchError::File { path: path.to_owned(), cause })
}

/// Puts a text in the place of a file: who reads it meanwhile, or
/// after a crash, sees the old one or the new one.
pub(crate) fn put(path: &Path, text: &str) -> Result<(), FetchError> {
    doorbell_files::put(path, text.as_bytes())
        .map_err(|cause| FetchError::File { path: path.to_owned(), cause })
}
