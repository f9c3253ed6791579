// SPDX-License-Identifier: MIT OR Apache-2.0
//! The channels against other channels, in interleaved blocks of one run.

pub mod alone;
mod comparison;
mod idle;
mod letter;
mod link;
mod many;
mod record;
mod table;
mod variant;
mod watchdog;

use crate::arguments::Cpus;
use crate::clock::reading;
use crate::partner::Place;
use crate::raw::Raw;
use crate::shuffle::Shuffle;
use comparison::{Plan, Results};
use link::Kind;
use record::{Placement, Record};
use std::time::Duration;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: crate::arguments::Common,
    #[command(flatten)]
    cpus: Cpus,
    /// Where the sides are.
    #[arg(long, value_delimiter = ',', default_values = ["threads", "processes"])]
    place: Vec<Place>,
    /// What they do: there and back, one way, one way to a receiver that is always behind, several senders to one receiver.
    #[arg(long, value_delimiter = ',', default_values = ["round-trip", "stream"])]
    kind: Vec<Kind>,
    /// On which cores.
    #[arg(long, value_delimiter = ',', default_values = ["two-cores", "one-core"])]
    placement: Vec<Placement>,
    /// Sizes of a message in bytes, of 8, 64, 1024, 8192, 65536, 1048576.
    #[arg(long, value_delimiter = ',', default_values_t = [8, 64, 1024, 8192, 65536, 1_048_576])]
    size: Vec<usize>,
    /// Length of a block in milliseconds.
    #[arg(long, default_value_t = 5)]
    block: u64,
}

type Run = fn(&Plan, &mut Shuffle, &mut dyn FnMut(&Record) -> anyhow::Result<()>) -> anyhow::Result<Results>;

fn run_of(size: usize) -> anyhow::Result<Run> {
    let run: Run = match size {
        8 => |plan, shuffle, write| comparison::run::<8>(plan, shuffle, write),
        64 => |plan, shuffle, write| comparison::run::<64>(plan, shuffle, write),
        1024 => |plan, shuffle, write| comparison::run::<1024>(plan, shuffle, write),
        8192 => |plan, shuffle, write| comparison::run::<8192>(plan, shuffle, write),
        65_536 => |plan, shuffle, write| comparison::run::<65_536>(plan, shuffle, write),
        1_048_576 => |plan, shuffle, write| comparison::run::<1_048_576>(plan, shuffle, write),
        _ => anyhow::bail!("--size {size}: only 8, 64, 1024, 8192, 65536, 1048576"),
    };
    Ok(run)
}

/// # Errors
/// What hangs, or could not be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let cpus = arguments.cpus.pair();
    let mut placements = arguments.placement.clone();
    if cpus.0 == cpus.1 && placements.contains(&Placement::TwoCores) {
        eprintln!("This process may use CPU {} alone: nothing is run on two cores.", cpus.0);
        placements.retain(|placement| *placement != Placement::TwoCores);
    }
    let mut raw = Raw::new(arguments.common.raw.as_deref())?;
    let mut shuffle = Shuffle::new(arguments.common.seed.into());
    let rounds = arguments.common.rounds_or(40);
    println!(
        "CPUs {} and {}; blocks of {} ms; seed {}; each round trip holds one reading of the clock, {:.0} ns.\n",
        cpus.0,
        cpus.1,
        arguments.block,
        arguments.common.seed,
        reading()
    );
    // Processes first: they are forked, which is better done before there are threads.
    for place in
        [Place::Processes, Place::Threads].into_iter().filter(|place| arguments.place.contains(place))
    {
        for &size in &arguments.size {
            let plan = Plan {
                place,
                kinds: arguments.kind.clone(),
                placements: placements.clone(),
                cpus,
                rounds,
                block: Duration::from_millis(arguments.block),
                only: arguments.common.only.clone(),
            };
            let results = run_of(size)?(&plan, &mut shuffle, &mut |record| raw.line(record))?;
            print!("{}", table::markdown(&results, place, size, rounds));
        }
    }
    Ok(true)
}
