// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison: all channels of one place with messages of one size, in interleaved blocks.

use crate::channels::letter::Tally;
use crate::channels::link::{Block, Kind, Link, Order, Place};
use crate::channels::many::SENDERS;
use crate::channels::record::{Placement, Record};
use crate::channels::variant::{Rival, depth};
use crate::channels::watchdog::watch;
use crate::pilot::fitting;
use crate::rounds::rounds;
use crate::shuffle::Shuffle;
use crate::statistics::{Ratio, quantile};
use hdrhistogram::Histogram;
use std::time::Duration;

/// What is run.
pub struct Plan {
    pub kinds: Vec<Kind>,
    pub placements: Vec<Placement>,
    pub cpus: (usize, usize),
    pub rounds: usize,
    pub block: Duration,
}

/// Which of these the one with this number is set against, in the order of [`Standing::ratios`].
pub type Against = fn(&[Rival], usize) -> Vec<usize>;

/// A channel that could not be had, or went away.
pub struct Absence {
    pub rival: Rival,
    pub reason: String,
}

/// One channel in one kind and placement.
pub struct Standing {
    pub rival: Rival,
    pub kind: Kind,
    pub placement: Placement,
    /// Median over rounds, in nanoseconds.
    pub middle: f64,
    /// Over all round trips of all rounds. `None` of what goes one way.
    pub tail: Option<u64>,
    pub cpu: f64,
    /// Its time over that of each that it is set against. `None`
    /// where that is the channel itself, or was not run.
    pub ratios: Vec<Option<Ratio>>,
    pub sent: u64,
    pub tally: Tally,
    pub late: u64,
}

impl Standing {
    /// Ours stand out.
    pub fn name(&self) -> String {
        if self.rival.ours { format!("*{}*", self.rival.name) } else { self.rival.name.to_owned() }
    }

    /// As cells of a table: how many came of how many, and what was wrong.
    pub fn received(&self) -> [String; 2] {
        let Tally { received, missing, repeated, corrupt } = self.tally;
        let counts =
            [("missing", missing), ("repeated", repeated), ("corrupt", corrupt), ("late", self.late)];
        let faults = counts.iter().filter(|(_, count)| *count > 0);
        let faults: Vec<_> = faults.map(|(what, count)| format!("{count} {what}")).collect();
        let faults = if faults.is_empty() { "none".to_owned() } else { faults.join(", ") };
        [format!("{received} of {}", self.sent), faults]
    }
}

pub struct Results {
    pub standings: Vec<Standing>,
    pub absences: Vec<Absence>,
}

/// One channel, one kind, one placement.
struct Configuration {
    rival: usize,
    kind: Kind,
    placement: Placement,
    count: u64,
    blocks: Vec<Block>,
    round_trips: Histogram<u64>,
}

/// So long a block may take before the channel counts as hanging; a block is some milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// Beyond what a round trip may take, which `PATIENCE` ends.
const LONGEST_NS: u64 = 60_000_000_000;
const MOST_BLOCK: u64 = 2_000_000;
const LEAST_BLOCK: u64 = 8;
const WARM: u64 = 4;
/// So many times what a channel has room for goes through it before the length of a block is
/// judged: each of several senders comes round its ring, which may be twice as large.
const LAPS: u64 = 3 * SENDERS as u64;

/// Runs one comparison. Every block is handed to `write` as it is done.
pub fn run<const S: usize>(
    plan: &Plan,
    rivals: Vec<Rival>,
    against: Against,
    shuffle: &mut Shuffle,
    mut write: impl FnMut(&Record) -> anyhow::Result<()>,
) -> anyhow::Result<Results> {
    let mut absences = Vec::new();
    let mut open: Vec<(Rival, Option<Box<dyn Link>>)> =
        rivals.into_iter().map(|rival| (rival, None)).collect();
    // Children are forked before there are threads.
    for place in [Place::Processes, Place::Threads] {
        let serves =
            |rival: &Rival| rival.place == place && plan.kinds.iter().any(|kind| rival.serves(*kind));
        for (rival, link) in open.iter_mut().filter(|(rival, _)| serves(rival)) {
            match watch(rival.name, PATIENCE, rival.open) {
                Ok(opened) => *link = Some(opened),
                Err(reason) => absences.push(Absence { rival: *rival, reason }),
            }
        }
    }
    let order = |configuration: &Configuration, warm, count| {
        let cpus = match configuration.placement {
            Placement::OneCore => (plan.cpus.0, plan.cpus.0),
            Placement::TwoCores => plan.cpus,
        };
        Order { kind: configuration.kind, cpus, warm, count }
    };
    let mut groups = Vec::new();
    for &kind in &plan.kinds {
        for &placement in &plan.placements {
            let mut group = Vec::new();
            for (index, (rival, link)) in open.iter_mut().enumerate() {
                let (true, Some(link)) = (rival.serves(kind), link) else { continue };
                let round_trips = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("valid bounds");
                let mut configuration = Configuration {
                    rival: index,
                    kind,
                    placement,
                    count: 0,
                    blocks: Vec::new(),
                    round_trips,
                };
                let who = format!("{} ({S} bytes, {kind:?}, {placement:?})", rival.name);
                match watch(&who, PATIENCE, || {
                    // A block in which memory is touched for the first time takes longer than all others.
                    link.block(order(&configuration, WARM, LAPS * depth(S) as u64))?;
                    fitting(plan.block, LEAST_BLOCK, MOST_BLOCK, |count| {
                        link.block(order(&configuration, WARM, count)).map(|block| block.elapsed)
                    })
                }) {
                    Ok(count) => {
                        configuration.count = count;
                        group.push(configuration);
                    }
                    Err(reason) => absences.push(Absence { rival: *rival, reason }),
                }
            }
            groups.push(group);
        }
    }
    let variants: Vec<usize> = groups.iter().map(Vec::len).collect();
    rounds(shuffle, plan.rounds, &variants, |turn| {
        let configuration = &mut groups[turn.group][turn.variant];
        let (rival, Some(link)) = &mut open[configuration.rival] else {
            unreachable!("only what was opened is configured")
        };
        let warm = WARM.max(configuration.count / 32);
        let who = format!(
            "{} ({S} bytes, {:?}, {:?}, round {})",
            rival.name, configuration.kind, configuration.placement, turn.round
        );
        let ordered = order(&*configuration, warm, configuration.count);
        let block = match watch(&who, PATIENCE, || link.block(ordered)) {
            Ok(block) => block,
            Err(reason) => anyhow::bail!("{who}: {reason}"),
        };
        write(&Record {
            channel: rival.name,
            waiting: rival.waiting,
            ours: rival.ours,
            place: rival.place,
            placement: configuration.placement,
            kind: configuration.kind,
            size: S,
            round: turn.round,
            turn: turn.place,
            count: configuration.count,
            ns: block.nanoseconds,
            elapsed_ns: block.elapsed,
            cpu_ns: block.cpu,
            sent: block.sent,
            tally: block.tally,
            late: block.late,
        })?;
        for round_trip in &block.round_trips {
            configuration.round_trips.saturating_record(*round_trip);
        }
        configuration.blocks.push(Block { round_trips: Vec::new(), ..block });
        Ok(())
    })?;
    let rivals: Vec<Rival> = open.into_iter().map(|(rival, _)| rival).collect();
    let standings = groups.iter().flat_map(|group| standings(group, &rivals, against)).collect();
    Ok(Results { standings, absences })
}

fn standings(group: &[Configuration], rivals: &[Rival], against: Against) -> Vec<Standing> {
    let times = |configuration: &Configuration| {
        configuration.blocks.iter().map(|block| block.nanoseconds).collect::<Vec<f64>>()
    };
    group
        .iter()
        .map(|configuration| {
            let ratio = |base: usize| {
                let base = group.iter().find(|other| other.rival == base && base != configuration.rival);
                base.map(|base| Ratio::paired(&times(configuration), &times(base)))
            };
            let count = |of: fn(&Block) -> u64| configuration.blocks.iter().map(of).sum();
            Standing {
                rival: rivals[configuration.rival],
                kind: configuration.kind,
                placement: configuration.placement,
                middle: quantile(&mut times(configuration), 0.5),
                tail: (configuration.kind == Kind::RoundTrip)
                    .then(|| configuration.round_trips.value_at_quantile(0.999)),
                cpu: quantile(
                    &mut configuration.blocks.iter().map(|block| block.cpu).collect::<Vec<_>>(),
                    0.5,
                ),
                ratios: against(rivals, configuration.rival).into_iter().map(ratio).collect(),
                sent: count(|block| block.sent),
                tally: configuration.blocks.iter().fold(Tally::default(), |sum, block| sum + block.tally),
                late: count(|block| block.late),
            }
        })
        .collect()
}
