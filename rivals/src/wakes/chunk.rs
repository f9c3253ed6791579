// SPDX-License-Identifier: MIT OR Apache-2.0
//! One configuration for some seconds, in a process of its own: whatever it does, the run goes on,
//! and its memory of earlier configurations is empty.

use crate::wakes::configuration::{self, Configuration};
use crate::wakes::probe::Outcome;
use crate::wakes::variant::{Kind, Variant};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A mistake shows in every burst once it shows: what more than so many times tell is known.
const MOST: usize = 20;
/// So long a configuration may take beyond its time: all its waits
/// that were not woken, looked into.
const PATIENCE: Duration = Duration::from_secs(90);

/// One line of the raw output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chunk {
    #[serde(flatten)]
    pub configuration: Configuration,
    pub kind: Kind,
    /// What came of it, or why nothing did.
    pub result: Result<Outcome, String>,
}

/// Runs it in this process and ends it.
pub fn serve(variant: &Variant, configuration: &Configuration) -> ! {
    let result = configuration::run(variant, configuration, MOST);
    println!("{}", serde_json::to_string(&result).expect("plain data"));
    // At once: threads that hang in a call do not keep it.
    std::process::exit(0)
}

/// Runs it in a process of its own.
pub fn run(variant: &Variant, configuration: Configuration) -> Chunk {
    let result = run_alone(&configuration);
    Chunk { configuration, kind: variant.kind, result }
}

fn run_alone(configuration: &Configuration) -> Result<Outcome, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", configuration.variant);
    let program = std::env::current_exe().map_err(|error| told(&error))?;
    let json = serde_json::to_string(configuration).map_err(|error| told(&error))?;
    let mut child = Command::new(program)
        .args(["wakes", "--configuration", &json])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| told(&error))?;
    let until = Instant::now() + Duration::from_millis(configuration.lasting_ms) + PATIENCE;
    let status = loop {
        match child.try_wait().map_err(|error| told(&error))? {
            Some(status) => break status,
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            None => {
                child.kill().and_then(|()| child.wait()).map_err(|error| told(&error))?;
                return Err(format!("it did not end within {PATIENCE:?} after its time"));
            }
        }
    };
    let mut text = String::new();
    let mut output = child.stdout.take().ok_or("it has no output")?;
    output.read_to_string(&mut text).map_err(|error| told(&error))?;
    serde_json::from_str(&text).unwrap_or_else(|_| Err(format!("it ended with {status} and said {text:?}")))
}
