// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays the driver's trace events through the machine: `replay FILE`, where FILE is the text of
//! the kernel's tracefs with the events of `uintr`.

use std::process::ExitCode;

use doorbell_uintr::model::{polled, uintr};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: replay FILE");
        return ExitCode::from(2);
    };
    let trace = match std::fs::read_to_string(&path) {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("replay: {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    };
    let told =
        uintr::replay(&trace).map(|replayed| println!("{replayed}")).map_err(|error| error.to_string());
    let polled =
        polled::replay(&trace).map(|replayed| println!("{replayed}")).map_err(|error| error.to_string());
    match told.and(polled) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replay: {error}");
            ExitCode::FAILURE
        }
    }
}
