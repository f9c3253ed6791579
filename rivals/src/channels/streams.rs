// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams: every way of using one of ours, between threads and between processes, against rtrb at
//! its best between threads, all in one run.

use super::comparison::{self, Plan, Standing};
use super::link::Kind;
use super::record::{Placement, Record};
use super::table::bytes;
use super::variant::{Rival, streams};
use crate::arguments::{Common, Cpus};
use crate::raw::Raw;
use crate::shuffle::Shuffle;
use crate::table::Table;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    cpus: Cpus,
    /// Length of a block in milliseconds.
    #[arg(long, default_value_t = 20)]
    block: u64,
}

/// rtrb in place, rtrb in chunks, and ours that pushes and polls at the same place.
fn bases(rivals: &[Rival], rival: usize) -> Vec<usize> {
    let pushes = |other: &Rival| other.ours && other.place == rivals[rival].place && rivals[rival].ours;
    [0, 1].into_iter().chain(rivals.iter().position(pushes)).collect()
}

pub fn run(Arguments { common, cpus, block }: &Arguments) -> anyhow::Result<bool> {
    let cpus = cpus.pair();
    anyhow::ensure!(
        cpus.0 != cpus.1,
        "this process may use CPU {} alone: there are no streams between two",
        cpus.0
    );
    let mut raw = Raw::new(common.raw.as_deref())?;
    let mut shuffle = Shuffle::new(common.seed.into());
    let plan = Plan {
        kinds: vec![Kind::Stream],
        placements: vec![Placement::TwoCores],
        cpus,
        rounds: common.rounds_or(15),
        block: Duration::from_millis(*block),
    };
    let Plan { rounds, .. } = plan;
    println!(
        "CPUs {} and {}; blocks of {block} ms; {rounds} rounds; seed {}.\n",
        cpus.0, cpus.1, common.seed
    );
    let mut write = |record: &Record| raw.line(record);
    let wanted = |rivals: Vec<Rival>| -> Vec<Rival> {
        rivals
            .into_iter()
            .enumerate()
            .filter(|(place, rival)| *place < 2 || common.wants(rival.name))
            .map(|(_, rival)| rival)
            .collect()
    };
    for (size, results) in [
        (8, comparison::run::<8>(&plan, wanted(streams::<8>()), bases, &mut shuffle, &mut write)?),
        (64, comparison::run::<64>(&plan, wanted(streams::<64>()), bases, &mut shuffle, &mut write)?),
        (1024, comparison::run::<1024>(&plan, wanted(streams::<1024>()), bases, &mut shuffle, &mut write)?),
    ] {
        println!("### Streams of {}\n\n{}", bytes(size), table(&results.standings));
        for absence in results.absences {
            println!("Not run: {}: {}.\n", absence.rival.name, absence.reason);
        }
    }
    Ok(true)
}

fn table(standings: &[Standing]) -> Table {
    let heads = [
        "between",
        "channel",
        ">ns a message",
        ">CPU ns",
        "times rtrb in place [95 %]",
        "times rtrb in chunks",
        "times push",
        ">received of sent",
        "faults",
    ];
    let mut table = Table::new(heads);
    for standing in standings {
        let mut ratios =
            standing.ratios.iter().map(|ratio| ratio.map_or_else(|| "-".into(), |ratio| ratio.to_string()));
        let mut ratio = || ratios.next().unwrap_or_else(|| "-".into());
        let [received, faults] = standing.received();
        table.row([
            standing.rival.place.to_string(),
            standing.name(),
            format!("{:.1}", standing.middle),
            format!("{:.1}", standing.cpu),
            ratio(),
            ratio(),
            ratio(),
            received,
            faults,
        ]);
    }
    table
}
