// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a machine: the live one's under `/`, or a recorded one's under any folder.

#![expect(clippy::disallowed_methods, reason = "the files of the kernel, or of a machine that was recorded")]

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Longest file that is read. The longest in question, `/proc/interrupts`, has 11 bytes per CPU and
/// line: some 3 MB with 500 lines on 512 CPUs.
const LONGEST: u64 = 16 << 20;

/// A folder that holds `proc`, `sys` and `dev` of a machine.
///
/// Whatever is missing, unreadable or not a number reads as `None`:
/// containers hide any of these files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    path: PathBuf,
}

impl Root {
    /// The machine this process runs on. Other systems tell nothing by files.
    pub fn live() -> Self {
        Self::at("/")
    }

    /// The machine whose files lie under `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where `relative` lies; it must not begin with a slash.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }

    /// The text of a file without surrounding white space; bytes that are not UTF-8 are replaced.
    pub fn text(&self, relative: impl AsRef<Path>) -> Option<String> {
        let mut bytes = Vec::new();
        File::open(self.path(relative)).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// As [`Root::text`], with an empty file read as missing.
    pub fn word(&self, relative: impl AsRef<Path>) -> Option<String> {
        self.text(relative).filter(|text| !text.is_empty())
    }

    /// A file that holds one number, a name, or a list of CPUs.
    pub fn value<T: FromStr>(&self, relative: impl AsRef<Path>) -> Option<T> {
        self.text(relative)?.parse().ok()
    }

    /// The names in a folder, sorted; none if there is no such folder.
    pub fn names(&self, relative: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(relative)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether there is such a file or folder.
    pub fn has(&self, relative: impl AsRef<Path>) -> bool {
        self.path(relative).exists()
    }

    /// The numbers `N` of the names `prefixN` in a folder, sorted.
    pub fn numbered(&self, relative: impl AsRef<Path>, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            self.names(relative).iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// The value of `key` in lines of the form `key: value` or `key = value` or `key value`.
pub fn field<'text>(text: &'text str, key: &str) -> Option<&'text str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        let value = rest.trim_start();
        let separated = value.strip_prefix([':', '=']);
        (separated.is_some() || value.len() < rest.len()).then(|| separated.unwrap_or(value).trim())
    })
}
