// SPDX-License-Identifier: MIT OR Apache-2.0
//! One stress for lost wake-ups over many means of waking, and a table of what was seen.

mod arm;
mod burst;
mod cell;
mod chunk;
mod ready;
mod shared;
mod table;
mod vigil;

use arm::{Arm, Kind, arms};
use chunk::{Cell, Chunk};
use clap::Parser;
use rivals_rounds::lot::Lot;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Looks for waits that are not woken although something is there, and prints a table in Markdown.
#[derive(Parser)]
struct Arguments {
    /// Seconds for all of it. A run that was cut goes on where it was if it is called again with the same words.
    #[arg(long, default_value_t = 60.0)]
    time: f64,
    /// Into so many rounds the time is split; in each, every means of waking has its turn, in an order drawn by lot.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only means whose name holds one of these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the notifiers are.
    #[arg(long, value_delimiter = ',', default_values = ["threads", "processes"], value_parser = ["threads", "processes"])]
    place: Vec<String>,
    /// How many they are.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 3, 8])]
    notifiers: Vec<usize>,
    /// Where every part of it is written to, one JSON object a line, and read from.
    #[arg(long)]
    raw: Option<PathBuf>,
    /// Of the lots and the gaps.
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Runs nothing: prints the table of what `--raw` holds.
    #[arg(long, requires = "raw")]
    table: bool,
    /// One part, as this program calls itself.
    #[arg(long, hide = true)]
    cell: Option<String>,
}

/// All parts, in the order in which they run.
fn plan<'a>(arguments: &Arguments, arms: &'a [Arm]) -> Vec<(&'a Arm, Cell<'a>)> {
    let wanted = |arm: &&Arm| {
        arguments.only.is_empty() || arguments.only.iter().any(|part| arm.name.contains(part.as_str()))
    };
    let mut cells = Vec::new();
    for arm in arms.iter().filter(wanted) {
        for place in arm.places.iter().map(|place| chunk::name_of(*place)) {
            for &notifiers in
                arguments.notifiers.iter().filter(|_| arguments.place.iter().any(|p| p == place))
            {
                cells.push((arm, Cell { round: 0, arm: arm.name, place, notifiers, lasting_ms: 0, seed: 0 }));
            }
        }
    }
    let parts = (cells.len() * arguments.rounds).max(1);
    let lasting_ms = (arguments.time * 1000.0 / parts as f64) as u64;
    let mut lot = Lot::new(arguments.seed.into());
    let mut all = Vec::with_capacity(parts);
    for round in 0..arguments.rounds {
        for at in lot.order(cells.len()) {
            let (arm, cell) = cells[at];
            let seed = arguments.seed.wrapping_mul(1_000_003).wrapping_add(all.len() as u32 * 16);
            all.push((arm, Cell { round, lasting_ms, seed, ..cell }));
        }
    }
    all
}

/// What a cut run may have left at the end of the file is no line and is left out.
fn read(raw: Option<&PathBuf>) -> io::Result<Vec<Chunk>> {
    let file = match raw.map(File::open) {
        Some(Ok(file)) => file,
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => return Ok(Vec::new()),
    };
    let lines = BufReader::new(file).lines().collect::<io::Result<Vec<_>>>()?;
    Ok(lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn run(arguments: &Arguments, arms: &[Arm]) -> io::Result<Vec<Chunk>> {
    let mut chunks = read(arguments.raw.as_ref())?;
    let raw = arguments.raw.as_ref();
    let mut raw = raw.map(|raw| OpenOptions::new().create(true).append(true).open(raw)).transpose()?;
    for (arm, cell) in plan(arguments, arms) {
        if chunks.iter().any(|chunk| chunk.is(&cell)) {
            continue;
        }
        let chunk = chunk::run(arm, &cell);
        if let Some(raw) = &mut raw {
            // Whole, in one call.
            raw.write_all(format!("\n{}", serde_json::to_string(&chunk)?).as_bytes())?;
        }
        chunks.push(chunk);
    }
    Ok(chunks)
}

/// 1: what was planted was not found, or one of ours was not woken.
fn judge(chunks: &[Chunk]) -> u8 {
    let unwoken = |chunk: &Chunk| {
        chunk.result.as_ref().map_or(0, |outcome| outcome.unwoken.len() as u64 + outcome.stalled)
    };
    let mut status = 0;
    for arm in table::arms_of(chunks) {
        let of_arm = || chunks.iter().filter(|chunk| chunk.arm == arm.name && chunk.place == arm.place);
        let count: u64 = of_arm().map(unwoken).sum();
        let failed = of_arm().any(|chunk| chunk.result.is_err());
        let wrong = match arm.kind {
            Kind::Planted => (count == 0 || failed).then_some(
                "the mistake put in was not found, or a part came to nothing: nothing follows from this run",
            ),
            Kind::Ours | Kind::ByHand => {
                (count > 0 || failed).then_some("a wait was not woken, or a part came to nothing")
            }
            Kind::Rival => None,
        };
        if let Some(wrong) = wrong {
            eprintln!("{} between {}: {wrong}", arm.name, arm.place);
            status = 1;
        }
    }
    status
}

fn main() -> ExitCode {
    let (arguments, arms) = (Arguments::parse(), arms());
    if let Some(text) = &arguments.cell {
        let cell: Result<Cell, _> = serde_json::from_str(text);
        let arm = cell.as_ref().ok().and_then(|cell| arms.iter().find(|arm| arm.name == cell.arm));
        let (Ok(cell), Some(arm)) = (&cell, arm) else {
            eprintln!("--cell {text}: no such part");
            return ExitCode::from(2);
        };
        chunk::serve(arm, cell);
    }
    let chunks = if arguments.table { read(arguments.raw.as_ref()) } else { run(&arguments, &arms) };
    match chunks {
        Ok(chunks) => {
            print!("{}", table::markdown(&chunks));
            ExitCode::from(judge(&chunks))
        }
        Err(error) => {
            let raw = arguments.raw.unwrap_or_default();
            eprintln!("{}: {error}", raw.display());
            ExitCode::from(3)
        }
    }
}
