// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pairs of CPUs stand for which relation, and which CPUs are refused.

use doorbell_results::machine::topology::{Relation, Topology};

use super::recorded::{NAMES, machine};

fn pair(topology: &Topology, relation: Relation) -> Option<[u32; 2]> {
    topology.pair_for(relation)
}

#[test]
fn every_relation_has_a_pair_or_a_reason() {
    let mut text = String::new();
    for name in NAMES {
        text += &format!("{name}\n");
        for pair in machine(name).topology.pairs() {
            let cpus = pair.cpus.map_or("none".to_owned(), |[a, b]| format!("{a},{b}"));
            text += &format!("  {:13}  {cpus:5}  {}\n", pair.relation.name(), pair.why);
        }
    }
    insta::assert_snapshot!("placements", text);
}

#[test]
fn every_pair_is_usable_and_really_in_its_relation() {
    for name in NAMES {
        let topology = machine(name).topology;
        for pair in topology.pairs() {
            let Some([a, b]) = pair.cpus else { continue };
            assert_eq!(topology.relation(a, b), pair.relation, "{name}");
            assert_eq!(topology.relation(b, a), pair.relation, "{name}: a relation is symmetric");
            assert_eq!(topology.check(&[a, b]), Ok(()), "{name}");
        }
    }
}

#[test]
fn isolated_cpus_are_preferred_and_cpu_0_is_avoided() {
    let topology = machine("two-socket-smt").topology;
    assert_eq!(pair(&topology, Relation::SmtSibling), Some([11, 35]));
    assert_eq!(pair(&topology, Relation::SameL3).unwrap()[0], 11);
    assert_ne!(pair(&topology, Relation::SameL3).unwrap()[1], 0);
}

#[test]
fn pairs_stay_within_one_kind_of_core_where_they_can() {
    let topology = machine("arm-clusters").topology;
    let [a, b] = pair(&topology, Relation::SameCluster).unwrap();
    let kind = |cpu| topology.cpu(cpu).unwrap().kind.clone();
    assert_eq!(kind(a).as_deref(), Some("1024"));
    assert_eq!(kind(a), kind(b));
    let [a, b] = pair(&topology, Relation::SameL3).unwrap();
    assert_eq!(kind(a), kind(b));
}

#[test]
fn two_cores_of_different_chiplets_share_a_node_and_no_cache() {
    let topology = machine("amd-ccx").topology;
    assert_eq!(topology.relation(1, 2), Relation::SameL3);
    assert_eq!(topology.relation(1, 5), Relation::SameNode);
}

#[test]
fn a_container_without_topology_still_has_two_cpus_and_says_nothing_about_them() {
    let topology = machine("container").topology;
    assert_eq!(topology.online.to_string(), "0-3");
    assert_eq!(topology.usable.to_string(), "1,3");
    assert_eq!(topology.relation(1, 3), Relation::OtherCpu);
    assert_eq!(topology.two_cores(), Some([1, 3]));
}

#[test]
fn a_refused_cpu_comes_with_the_reason_and_the_cpus_that_are_left() {
    let said = |name: &str, cpu: u32| machine(name).topology.check(&[cpu]).unwrap_err().to_string();
    let text = [
        said("two-socket-smt", 47),
        said("two-socket-smt", 99),
        said("amd-ccx", 9),
        said("amd-ccx", 13),
        said("container", 0),
    ]
    .join("\n");
    insta::assert_snapshot!("refused", text);
}
