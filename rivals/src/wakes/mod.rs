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

use crate::lot::Lot;
use crate::partner::Place;
use crate::raw::{self, Raw};
use crate::rounds::rounds;
use anyhow::Context;
use arm::{Arm, Kind, arms};
use chunk::{Cell, Chunk};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: crate::arguments::Common,
    /// Seconds for all of it. A run that was cut goes on where it was if it is called again with the same words.
    #[arg(long, default_value_t = 60.0)]
    time: f64,
    /// Where the notifiers are.
    #[arg(long, value_delimiter = ',', default_values = ["threads", "processes"])]
    place: Vec<Place>,
    /// How many they are.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 3, 8])]
    notifiers: Vec<usize>,
    /// Runs nothing: prints the table of what `--raw` holds.
    #[arg(long, requires = "raw")]
    table: bool,
    /// One part, as this program calls itself.
    #[arg(long, hide = true)]
    cell: Option<String>,
}

/// All parts, in the order in which they run.
fn plan<'a>(arguments: &Arguments, arms: &'a [Arm]) -> Vec<(&'a Arm, Cell<'a>)> {
    let mut cells = Vec::new();
    for arm in arms.iter().filter(|arm| arguments.common.wants(arm.name)) {
        for &place in arm.places.iter().filter(|place| arguments.place.contains(place)) {
            for &notifiers in &arguments.notifiers {
                cells.push((arm, Cell { round: 0, arm: arm.name, place, notifiers, lasting_ms: 0, seed: 0 }));
            }
        }
    }
    let (often, seed) = (arguments.common.rounds_or(3), arguments.common.seed);
    let parts = (cells.len() * often).max(1);
    let lasting_ms = (arguments.time * 1000.0 / parts as f64) as u64;
    let mut all = Vec::with_capacity(parts);
    let planned = rounds(&mut Lot::new(seed.into()), often, &[cells.len()], |turn| {
        let (arm, cell) = cells[turn.arm];
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(all.len() as u32 * 16);
        all.push((arm, Cell { round: turn.round, lasting_ms, seed, ..cell }));
        Ok::<_, std::convert::Infallible>(())
    });
    match planned {
        Ok(()) => all,
    }
}

fn chunks(arguments: &Arguments, arms: &[Arm]) -> anyhow::Result<Vec<Chunk>> {
    let path = arguments.common.raw.as_deref();
    let mut chunks: Vec<Chunk> = path.map_or(Ok(Vec::new()), raw::read)?;
    if arguments.table {
        return Ok(chunks);
    }
    let mut raw = Raw::new(path)?;
    for (arm, cell) in plan(arguments, arms) {
        if chunks.iter().any(|chunk| chunk.is(&cell)) {
            continue;
        }
        let chunk = chunk::run(arm, &cell);
        raw.line(&chunk)?;
        chunks.push(chunk);
    }
    Ok(chunks)
}

/// False if what was planted was not found, or one of ours was not woken.
fn judge(chunks: &[Chunk]) -> bool {
    let unwoken = |chunk: &Chunk| {
        chunk.result.as_ref().map_or(0, |outcome| outcome.unwoken.len() as u64 + outcome.stalled)
    };
    let mut sound = true;
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
            sound = false;
        }
    }
    sound
}

/// # Errors
/// What could not be read or written.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let arms = arms();
    if let Some(text) = &arguments.cell {
        let cell: Cell = serde_json::from_str(text).with_context(|| format!("--cell {text}"))?;
        let arm = arms
            .iter()
            .find(|arm| arm.name == cell.arm)
            .with_context(|| format!("--cell {text}: no such part"))?;
        chunk::serve(arm, &cell);
    }
    let chunks = chunks(arguments, &arms)?;
    print!("{}", table::markdown(&chunks));
    Ok(judge(&chunks))
}
