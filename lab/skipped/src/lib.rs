// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one way in which a test says that this machine lacks what it
//! needs: what `ci/skipped` is to scripts.
#![allow(clippy::disallowed_methods, reason = "the file that the suite names")]

use std::io::Write;

/// Notes that the calling test was not run, and why. The test then returns.
///
/// The line goes to standard error and to the end of the file that
/// `DOORBELL_SKIPPED` names, where `ci/suites` counts it.
///
/// ```
/// if std::fs::exists("/dev/kvm").unwrap_or(false) {
///     // what there is to test
/// } else {
///     return doorbell_skipped::skip("this machine has no /dev/kvm");
/// }
/// ```
///
/// # Panics
/// If the file cannot be written: a check that was left out must not be forgotten.
#[track_caller]
pub fn skip(reason: impl std::fmt::Display) {
    let line = format!("{}: {reason}", std::panic::Location::caller()).replace('\n', " ");
    eprintln!("SKIPPED: {line}");
    if let Some(path) = std::env::var_os("DOORBELL_SKIPPED") {
        let file = std::fs::OpenOptions::new().append(true).open(&path);
        // Whole, in one call: other tests write too.
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("DOORBELL_SKIPPED={}: {error}", path.display()));
    }
}
