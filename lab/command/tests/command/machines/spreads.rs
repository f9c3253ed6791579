// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is put where on machines with several nodes, several threads a core, and CPUs that may not
//! be used: the plans of runs, not the pairs alone.

use std::collections::BTreeSet;

use doorbell_lab::cli::gate::ring;
use doorbell_lab::cli::pairs;
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::machine::topology::Relation;

use super::recorded::{NAMES, machine};
use super::screens::typed;

#[test]
fn receivers_are_spread_over_usable_cpus_alone_whatever_their_number() {
    for name in NAMES {
        let topology = machine(name).topology;
        for pinning in Pinning::ALL.into_iter().filter(|pinning| *pinning != Pinning::Unpinned) {
            for number in [1, 2, 7, 2000] {
                let spread = match pinning.spread(number, &topology) {
                    Ok(spread) => spread.unwrap(),
                    Err(lack) => {
                        assert_eq!(pinning, Pinning::OneEach, "{name}: {lack}");
                        assert!(number as usize >= topology.usable.iter().count(), "{name}: {lack}");
                        continue;
                    }
                };
                assert_eq!(spread.receivers.len(), number as usize, "{name} {pinning:?}");
                for cpu in spread.receivers.iter().chain([&spread.notifier]) {
                    assert_eq!(topology.check(&[*cpu]), Ok(()), "{name} {pinning:?}");
                }
            }
        }
    }
}

#[test]
fn on_two_sockets_compact_begins_beside_the_notifier_and_scatter_on_the_other_node() {
    let topology = machine("two-socket-smt").topology;
    let spread = |pinning: Pinning, number| pinning.spread(number, &topology).unwrap().unwrap();
    let of = |pinning, number, place: usize| {
        let spread = spread(pinning, number);
        topology.relation(spread.notifier, spread.receivers[place])
    };
    // The notifier's other thread is nearer than any other core.
    assert_eq!(of(Pinning::OneEach, 5, 0), Relation::SmtSibling);
    assert_eq!(of(Pinning::OneEach, 5, 1), Relation::SameL3);
    assert_eq!(of(Pinning::Scatter, 5, 0), Relation::OtherNode);
    // Those of two thousand that share the notifier's core come before all of its node, and those
    // before all of the other.
    let compact = spread(Pinning::Compact, 2000);
    let distances: Vec<Relation> =
        compact.receivers.iter().map(|cpu| topology.relation(compact.notifier, *cpu)).collect();
    assert!(distances.is_sorted(), "{distances:?}");
    assert_eq!(distances.last(), Some(&Relation::OtherNode));
}

#[test]
fn a_gate_waits_on_every_usable_cpu_once_and_names_what_each_pair_shares() {
    for name in NAMES {
        let topology = machine(name).topology;
        let ring = ring(&topology);
        let waited: BTreeSet<u32> = ring.iter().map(|placement| placement.cpus.unwrap()[1]).collect();
        assert_eq!(waited, topology.usable.iter().collect(), "{name}");
        assert_eq!(ring.len(), waited.len(), "{name}");
        for placement in &ring {
            let [from, to] = placement.cpus.unwrap();
            assert_eq!(placement.relation, topology.relation(from, to).name(), "{name}");
        }
    }
    let topology = machine("two-socket-smt").topology;
    assert!(ring(&topology).iter().any(|placement| placement.relation == Relation::OtherNode.name()));
}

#[test]
fn a_short_run_over_pairs_keeps_one_of_every_relation_that_the_machine_has() {
    for name in NAMES {
        let topology = machine(name).topology;
        let pairs: pairs::Args = typed("futex --budget 1s --blocks 1 --seed 7");
        let sample = pairs.sample(&topology).unwrap();
        let all: Vec<u32> = topology.usable.iter().collect();
        let pairs = || all.iter().flat_map(|a| all.iter().filter(move |b| a < b).map(move |b| (*a, *b)));
        let there: BTreeSet<&str> = pairs().map(|(a, b)| topology.relation(a, b).name()).collect();
        let planned: BTreeSet<&str> = sample
            .plan
            .configurations
            .iter()
            .map(|configuration| configuration.placement.relation.as_str())
            .collect();
        assert!(there.is_subset(&planned), "{name}: {there:?} of {planned:?}");
        if name == "two-socket-smt" {
            assert!(sample.measured < sample.all, "a second is not enough for all of {}", sample.all);
        }
    }
}
