// SPDX-License-Identifier: MIT OR Apache-2.0
//! One cell for some seconds, in a process of its own: whatever it does, the run goes on, and its memory of earlier cells is
//! empty.

use crate::partner::Place;
use crate::wakes::arm::{Arm, Kind};
use crate::wakes::cell;
use crate::wakes::vigil::Outcome;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A mistake shows in every burst once it shows: what more than so many times tell is known.
const MOST: usize = 20;
/// So long a cell may take beyond its time: all its waits that were not woken, looked into.
const PATIENCE: Duration = Duration::from_secs(90);

/// What is to be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cell<'a> {
    pub round: usize,
    pub arm: &'a str,
    pub place: Place,
    pub notifiers: usize,
    pub lasting_ms: u64,
    pub seed: u32,
}

/// One line of the raw output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chunk {
    pub round: usize,
    pub arm: String,
    pub kind: Kind,
    pub place: Place,
    pub notifiers: usize,
    pub lasting_ms: u64,
    pub seed: u32,
    /// What came of it, or why nothing did.
    pub result: Result<Outcome, String>,
}

impl Chunk {
    pub fn is(&self, cell: &Cell) -> bool {
        self.round == cell.round
            && self.arm == cell.arm
            && self.place == cell.place
            && self.notifiers == cell.notifiers
            && self.lasting_ms == cell.lasting_ms
            && self.seed == cell.seed
    }
}

/// Runs it in this process and ends it.
pub fn serve(arm: &Arm, cell: &Cell) -> ! {
    let lasting = Duration::from_millis(cell.lasting_ms);
    let result = cell::run(arm, cell.place, cell.notifiers, lasting, MOST, cell.seed);
    println!("{}", serde_json::to_string(&result).expect("plain data"));
    // At once: threads that hang in a call do not keep it.
    std::process::exit(0)
}

/// Runs it in a process of its own.
pub fn run(arm: &Arm, cell: &Cell) -> Chunk {
    Chunk {
        round: cell.round,
        arm: arm.name.to_owned(),
        kind: arm.kind,
        place: cell.place,
        notifiers: cell.notifiers,
        lasting_ms: cell.lasting_ms,
        seed: cell.seed,
        result: run_alone(cell),
    }
}

fn run_alone(cell: &Cell) -> Result<Outcome, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", cell.arm);
    let program = std::env::current_exe().map_err(|error| told(&error))?;
    let json = serde_json::to_string(cell).map_err(|error| told(&error))?;
    let mut child = Command::new(program)
        .args(["wakes", "--cell", &json])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| told(&error))?;
    let until = Instant::now() + Duration::from_millis(cell.lasting_ms) + PATIENCE;
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
