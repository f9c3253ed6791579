// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs other tools and `doorbell` alternately, each pair with the same protocol, pinning and
//! divisor, and prints the table of their figures with the ratio and its interval.
//!
//! Two runs of one thing on one machine differ by as much as the machine drifts between them. So
//! the two sides of a comparison take turns, in shuffled order for each round, and the ratio's
//! interval is taken over rounds.

mod command;
mod comparison;
mod ours;
mod peer;
mod table;

use crate::arguments::Cpus;
use crate::raw::{self, Raw};
use crate::shuffle::Shuffle;
use comparison::{Comparison, Measured};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: crate::arguments::Common,
    #[command(flatten)]
    cpus: Cpus,
    /// The command `doorbell`
    #[arg(long)]
    doorbell: PathBuf,
    /// The folder of the peers that Debian does not have
    #[arg(long)]
    programs: PathBuf,
    /// Runs nothing and prints the table of the figures in such a file; a later line of a
    /// comparison replaces an earlier one
    #[arg(long, conflicts_with = "raw")]
    from: Option<PathBuf>,
    /// Only name the comparisons
    #[arg(long)]
    list: bool,
}

/// What every comparison may use.
#[derive(Clone, Debug)]
pub struct Setup {
    doorbell: PathBuf,
    /// Where the peers are that Debian does not have.
    programs: PathBuf,
    /// The CPU for what runs on one, and the other.
    cpus: [usize; 2],
}

/// # Errors
/// What could not be read or written. A peer that cannot be run is a row of the table.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let (first, second) = arguments.cpus.pair();
    anyhow::ensure!(
        first != second,
        "it takes two CPUs, such as --cpus 0,1, and this process may use {first} alone"
    );
    let setup = Setup {
        doorbell: arguments.doorbell.clone(),
        programs: arguments.programs.clone(),
        cpus: [first, second],
    };
    let mut wanted = peer::all(&setup);
    wanted.retain(|comparison| arguments.common.wants(comparison.name));
    if arguments.list {
        wanted.iter().for_each(|comparison| println!("{}", comparison.name));
        return Ok(true);
    }
    let measured: Vec<(&Comparison, anyhow::Result<Measured>)> = match &arguments.from {
        Some(path) => {
            let mut kept: Vec<Measured> = raw::read(path)?;
            let mut last = |comparison: &Comparison| {
                let at = kept.iter().rposition(|measured| measured.name == comparison.name)?;
                Some(kept.swap_remove(at))
            };
            wanted.iter().filter_map(|comparison| Some((comparison, Ok(last(comparison)?)))).collect()
        }
        None => {
            let mut raw = Raw::new(arguments.common.raw.as_deref())?;
            let mut shuffle = Shuffle::new(arguments.common.seed.into());
            let mut measure = |comparison: &Comparison| {
                let result = comparison.measure(arguments.common.rounds_or(60), &mut shuffle);
                match &result {
                    Ok(figures) => {
                        eprintln!("{}", table::line(comparison, figures));
                        raw.line(figures)?;
                    }
                    Err(error) => eprintln!("{}: {error:#}", comparison.name),
                }
                anyhow::Ok(result)
            };
            wanted
                .iter()
                .map(|comparison| anyhow::Ok((comparison, measure(comparison)?)))
                .collect::<anyhow::Result<_>>()?
        }
    };
    print!("{}", table::markdown(&measured));
    Ok(true)
}
