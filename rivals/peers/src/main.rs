// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs other tools and `doorbell` alternately, each pair with the same protocol, pinning and divisor, and prints the
//! table of their figures with the ratio and its interval.
//!
//! Two runs of one thing on one machine differ by as much as the machine drifts between them. So the two sides of a
//! comparison take turns, in an order drawn by lot for each round, and the ratio's interval is taken over rounds.

use std::path::PathBuf;

use clap::Parser;

mod command;
mod comparison;
mod interval;
mod ours;
mod peer;
mod raw;
mod table;

use comparison::Comparison;

/// What to compare.
#[derive(Debug, Parser)]
struct Args {
    /// The command `doorbell`
    #[arg(long)]
    doorbell: PathBuf,
    /// The folder of the peers that Debian does not have
    #[arg(long)]
    programs: PathBuf,
    /// Rounds: each side once per round
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// Only comparisons whose name contains one of these
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The two CPUs to use; the first for what runs on one [default: the first two that this process may use]
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<u32>,
    /// A file to which every single figure is added, as JSON lines, after each comparison
    #[arg(long)]
    raw: Option<PathBuf>,
    /// Runs nothing and prints the table of the figures in such a file; a later line of a comparison replaces an earlier one
    #[arg(long, conflicts_with = "raw")]
    from: Option<PathBuf>,
    /// Only name the comparisons
    #[arg(long)]
    list: bool,
}

/// What every comparison may use.
#[derive(Debug)]
pub struct Setup {
    doorbell: PathBuf,
    /// Where the peers are that Debian does not have.
    programs: PathBuf,
    /// The CPU for what runs on one, and the other.
    cpus: [u32; 2],
}

/// The first two CPUs that this process may use (proc_pid_status(5)); in a container they may be others than 0 and 1.
fn allowed() -> anyhow::Result<Vec<u32>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u32>()?..=last.parse()?);
    }
    cpus.truncate(2);
    Ok(cpus)
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let cpus = if args.cpus.is_empty() { allowed()? } else { args.cpus.clone() };
    let [first, second] = cpus[..] else { anyhow::bail!("it takes two CPUs, such as --cpus 0,1, and not {cpus:?}") };
    let setup = Setup { doorbell: args.doorbell, programs: args.programs, cpus: [first, second] };
    let wanted: Vec<Comparison> = peer::all(&setup)
        .into_iter()
        .filter(|comparison| {
            args.only.is_empty() || args.only.iter().any(|part| comparison.name.contains(part.as_str()))
        })
        .collect();
    if args.list {
        for comparison in &wanted {
            println!("{}", comparison.name);
        }
        return Ok(());
    }
    let kept = args.from.as_deref().map(raw::read).transpose()?;
    let mut measured = Vec::new();
    for comparison in &wanted {
        if let Some(kept) = &kept {
            if let Some(figures) = kept.get(comparison.name) {
                measured.push((comparison, Ok(figures.clone())));
            }
            continue;
        }
        let result = comparison.measure(args.rounds);
        match &result {
            Ok(figures) => {
                eprintln!("{}", table::line(comparison, figures));
                if let Some(path) = &args.raw {
                    raw::add(path, comparison, figures)?;
                }
            }
            Err(error) => eprintln!("{}: {error:#}", comparison.name),
        }
        measured.push((comparison, result));
    }
    print!("{}", table::markdown(&measured));
    Ok(())
}
