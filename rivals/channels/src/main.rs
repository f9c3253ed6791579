// SPDX-License-Identifier: MIT OR Apache-2.0
//! The channels against other channels, in interleaved blocks of one run.

mod arm;
mod contest;
mod idle;
mod letter;
mod link;
mod many;
mod record;
mod table;
mod watchdog;

use clap::Parser;
use contest::{Plan, Results};
use link::{Kind, Place};
use record::{Placement, Record};
use rivals_rounds::clock::{first_cpus, reading};
use rivals_rounds::lot::Lot;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Compares the channels with others, between threads and between processes, and prints tables in Markdown.
#[derive(Parser)]
struct Arguments {
    /// Rounds: in each, every channel has one block for each kind and placement, in an order drawn by lot.
    #[arg(long, default_value_t = 40)]
    rounds: usize,
    /// Only channels whose name holds one of these, and what they are set against.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where the sides are.
    #[arg(long, value_delimiter = ',', default_values = ["threads", "processes"], value_parser = ["threads", "processes"])]
    place: Vec<String>,
    /// What they do: there and back, one way, one way to a receiver that is always behind, several senders to one receiver.
    #[arg(long, value_delimiter = ',', default_values = ["round-trip", "stream"])]
    kind: Vec<Kind>,
    /// On which cores.
    #[arg(long, value_delimiter = ',', default_values = ["two-cores", "one-core"])]
    placement: Vec<Placement>,
    /// Sizes of a message in bytes, of 8, 64, 1024, 8192, 65536, 1048576.
    #[arg(long, value_delimiter = ',', default_values_t = [8, 64, 1024, 8192, 65536, 1_048_576])]
    size: Vec<usize>,
    /// The two CPUs. The first two that this process may use if it is not given.
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<usize>,
    /// Length of a block in milliseconds.
    #[arg(long, default_value_t = 5)]
    block: u64,
    /// Where every block is written to, one JSON object a line.
    #[arg(long)]
    raw: Option<PathBuf>,
    /// Of the lots.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

type Run = fn(&Plan, &mut Lot, &mut dyn FnMut(&Record) -> io::Result<()>) -> io::Result<Results>;

fn run_of(size: usize) -> io::Result<Run> {
    let run: Run = match size {
        8 => |plan, lot, write| contest::run::<8>(plan, lot, write),
        64 => |plan, lot, write| contest::run::<64>(plan, lot, write),
        1024 => |plan, lot, write| contest::run::<1024>(plan, lot, write),
        8192 => |plan, lot, write| contest::run::<8192>(plan, lot, write),
        65_536 => |plan, lot, write| contest::run::<65_536>(plan, lot, write),
        1_048_576 => |plan, lot, write| contest::run::<1_048_576>(plan, lot, write),
        _ => return Err(io::Error::other(format!("--size {size}: only 8, 64, 1024, 8192, 65536, 1048576"))),
    };
    Ok(run)
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let first = first_cpus();
    let cpus = (
        arguments.cpus.first().copied().unwrap_or(first.0),
        arguments.cpus.get(1).copied().unwrap_or(first.1),
    );
    let mut placements = arguments.placement;
    if cpus.0 == cpus.1 && placements.contains(&Placement::TwoCores) {
        eprintln!("This process may use CPU {} alone: nothing is run on two cores.", cpus.0);
        placements.retain(|placement| *placement != Placement::TwoCores);
    }
    let mut raw = arguments.raw.map(File::create).transpose()?.map(BufWriter::new);
    let mut lot = Lot::new(arguments.seed);
    println!(
        "CPUs {} and {}; blocks of {} ms; seed {}; each round trip holds one reading of the clock, {:.0} ns.\n",
        cpus.0,
        cpus.1,
        arguments.block,
        arguments.seed,
        reading()
    );
    // Processes first: they are forked, which is better done before there are threads.
    for place in [Place::Processes, Place::Threads] {
        for &size in arguments
            .size
            .iter()
            .filter(|_| arguments.place.iter().any(|name| name == contest::name_of(place)))
        {
            let plan = Plan {
                place,
                kinds: arguments.kind.clone(),
                placements: placements.clone(),
                cpus,
                rounds: arguments.rounds,
                block: Duration::from_millis(arguments.block),
                only: arguments.only.clone(),
            };
            let results = run_of(size)?(&plan, &mut lot, &mut |record| {
                let Some(raw) = &mut raw else { return Ok(()) };
                serde_json::to_writer(&mut *raw, record)?;
                raw.write_all(b"\n")
            })?;
            print!("{}", table::markdown(&results, place, size, arguments.rounds));
        }
    }
    raw.map_or(Ok(()), |mut raw| raw.flush())
}
