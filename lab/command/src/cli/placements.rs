// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--placement` and `--cpus`: where the sides run, by relation or by number.

use super::usage::Usage;
use doorbell_results::configuration::Placement;
use doorbell_results::machine::topology::{Relation, Topology};

/// The name of the placement that leaves the choice to the scheduler.
const UNPINNED: &str = "unpinned";

/// Where the sides run.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Placement")]
pub struct PlacementArgs {
    /// Relations, comma separated: same-core, smt-sibling, same-l2, same-cluster, same-l3,
    /// same-node, other-package, other-node, unpinned [default: every one this machine has]
    #[arg(long, value_delimiter = ',', value_name = "RELATION", conflicts_with = "cpus")]
    placement: Vec<String>,
    /// Two CPUs by number, the notifier's first
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "A,B")]
    cpus: Vec<u32>,
}

impl PlacementArgs {
    /// The placements asked for, or every one that `topology` has and unpinned.
    pub fn resolve(&self, topology: &Topology) -> Result<Vec<Placement>, Usage> {
        if !self.cpus.is_empty() {
            return Ok(vec![self.by_number(topology)?]);
        }
        if self.placement.is_empty() {
            let mut all = present(topology);
            all.push(unpinned());
            return Ok(all);
        }
        self.placement.iter().map(|name| by_relation(name, topology)).collect()
    }

    /// Whether any was asked for.
    pub fn is_given(&self) -> bool {
        !self.cpus.is_empty() || !self.placement.is_empty()
    }

    /// The placements asked for, or only that of the two nearest CPUs.
    pub fn resolve_one(&self, topology: &Topology) -> Result<Vec<Placement>, Usage> {
        if !self.is_given() {
            return Ok(vec![two_nearest(topology)]);
        }
        self.resolve(topology)
    }

    fn by_number(&self, topology: &Topology) -> Result<Placement, Usage> {
        let [a, b] = self.cpus[..] else {
            return Err(Usage("--cpus takes two CPUs, the notifier's first: --cpus 0,1".to_owned()));
        };
        allowed([a, b], topology)
    }
}

/// The placement on these CPUs.
pub fn on([a, b]: [u32; 2], topology: &Topology) -> Placement {
    Placement { relation: topology.relation(a, b).name().to_owned(), cpus: Some([a, b]) }
}

/// The placement on these CPUs, if this process may use them.
pub fn allowed(cpus: [u32; 2], topology: &Topology) -> Result<Placement, Usage> {
    topology.check(&cpus).map_err(Usage::of)?;
    Ok(on(cpus, topology))
}

/// Every placement on chosen CPUs that `topology` has, nearest first.
pub fn present(topology: &Topology) -> Vec<Placement> {
    let placement =
        |relation: Relation, cpus| Placement { relation: relation.name().to_owned(), cpus: Some(cpus) };
    topology.pairs().into_iter().filter_map(|pair| Some(placement(pair.relation, pair.cpus?))).collect()
}

/// The nearest placement on two CPUs; on a machine of one CPU that
/// one, and unpinned where no CPU is known.
pub fn two_nearest(topology: &Topology) -> Placement {
    let all = present(topology);
    let two = |placement: &&Placement| placement.cpus.is_some_and(|[a, b]| a != b);
    all.iter().find(two).or_else(|| all.first()).cloned().unwrap_or_else(unpinned)
}

/// The placement the scheduler chooses.
pub fn unpinned() -> Placement {
    Placement { relation: UNPINNED.to_owned(), cpus: None }
}

/// The placement called `name`, on the first two CPUs of `topology` that are so.
pub fn by_relation(name: &str, topology: &Topology) -> Result<Placement, Usage> {
    if name == UNPINNED {
        return Ok(unpinned());
    }
    let Some(relation) = Relation::ALL.into_iter().find(|relation| relation.name() == name) else {
        let names: Vec<&str> = Relation::ALL.iter().map(|relation| relation.name()).collect();
        return Err(Usage(format!(
            "no placement is called '{name}'; there are {}, {UNPINNED}",
            names.join(", ")
        )));
    };
    let pairs = topology.pairs();
    let here: Vec<&str> =
        pairs.iter().filter(|pair| pair.cpus.is_some()).map(|pair| pair.relation.name()).collect();
    match pairs.iter().find(|pair| pair.relation == relation) {
        Some(pair) if pair.cpus.is_some() => Ok(Placement { relation: name.to_owned(), cpus: pair.cpus }),
        Some(pair) => {
            Err(Usage(format!("{name}: {}; this machine has {}, {UNPINNED}", pair.why, here.join(", "))))
        }
        None => Err(Usage(format!(
            "{name}: not told apart here; this machine has {}, {UNPINNED}",
            here.join(", ")
        ))),
    }
}
