// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder that keeps what was fetched.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::fetch_error::FetchError;

/// `$XDG_CACHE_HOME/doorbell`, or `~/.cache/doorbell` (XDG Base Directory Specification); `None` without a home.
pub fn folder() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(given.or_else(|| Some(home()?.join(".cache")))?.join("doorbell"))
}

/// Makes a folder of the cache.
pub(crate) fn folder_made(path: &Path) -> Result<(), FetchError> {
    fs::create_dir_all(path).map_err(|cause| FetchError::File { path: path.to_owned(), cause })
}

/// Puts a text in the place of a file: who reads it meanwhile, or after a crash, sees the old one or the new one.
pub(crate) fn put(path: &Path, text: &str) -> Result<(), FetchError> {
    let beside = path.with_extension("part");
    let written = || -> io::Result<()> {
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    written().map_err(|cause| FetchError::File { path: path.to_owned(), cause })
}
