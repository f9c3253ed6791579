// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs of `doorbell`, one file each: its arguments, and the few lines that call the rooms behind it.

use std::process::ExitCode;

/// Runs the command line.
pub fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(crate::trial::launch::HOST_VERB) {
        return match crate::trial::host::main() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    ExitCode::SUCCESS
}
