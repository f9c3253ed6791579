// SPDX-License-Identifier: MIT OR Apache-2.0
//! The channels against other channels, in interleaved blocks of one run.

pub mod alone;
mod comparison;
mod idle;
mod letter;
mod link;
mod many;
mod record;
pub mod streams;
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
use variant::{Rival, rivals};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: crate::arguments::Common,
    #[command(flatten)]
    cpus: Cpus,
    /// Where the sides are.
    #[arg(long, value_delimiter = ',', default_values = ["threads", "processes"])]
    place: Vec<Place>,
    /// What they do: there and back, one way, one way to a receiver that is always behind, several
    /// senders to one receiver.
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

type Write<'a> = &'a mut dyn FnMut(&Record) -> anyhow::Result<()>;

fn run_size<const S: usize>(
    plan: &Plan,
    place: Place,
    only: &[String],
    shuffle: &mut Shuffle,
    write: Write<'_>,
) -> anyhow::Result<Results> {
    comparison::run::<S>(plan, wanted(rivals::<S>(place), only), ours_alike, shuffle, write)
}

type Run = fn(&Plan, Place, &[String], &mut Shuffle, Write<'_>) -> anyhow::Result<Results>;

fn run_of(size: usize) -> anyhow::Result<Run> {
    let run: Run = match size {
        8 => run_size::<8>,
        64 => run_size::<64>,
        1024 => run_size::<1024>,
        8192 => run_size::<8192>,
        65_536 => run_size::<65_536>,
        1_048_576 => run_size::<1_048_576>,
        _ => anyhow::bail!("--size {size}: only 8, 64, 1024, 8192, 65536, 1048576"),
    };
    Ok(run)
}

/// The first of ours that waits alike.
fn ours_alike(rivals: &[Rival], rival: usize) -> Vec<usize> {
    let alike = |other: &Rival| {
        other.ours && (other.waiting, other.shape) == (rivals[rival].waiting, rivals[rival].shape)
    };
    rivals.iter().position(alike).into_iter().collect()
}

/// Those asked for, and for each the one it is set against.
fn wanted(all: Vec<Rival>, only: &[String]) -> Vec<Rival> {
    let named = |rival: &Rival| only.is_empty() || only.iter().any(|part| rival.name.contains(part.as_str()));
    let alike = |rival: &Rival| (rival.waiting, rival.shape);
    let asked: Vec<_> = all.iter().filter(|rival| named(rival)).map(alike).collect();
    let mut bases = Vec::new();
    all.into_iter()
        .filter(|rival| {
            let is_base = rival.ours && asked.contains(&alike(rival)) && !bases.contains(&alike(rival));
            if is_base {
                bases.push(alike(rival));
            }
            is_base || named(rival)
        })
        .collect()
}

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
                kinds: arguments.kind.clone(),
                placements: placements.clone(),
                cpus,
                rounds,
                block: Duration::from_millis(arguments.block),
            };
            let write = &mut |record: &Record| raw.line(record);
            let results = run_of(size)?(&plan, place, &arguments.common.only, &mut shuffle, write)?;
            print!("{}", table::markdown(&results, place, size, rounds));
        }
    }
    Ok(true)
}
