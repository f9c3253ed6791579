// SPDX-License-Identifier: MIT OR Apache-2.0
//! A representative pair of CPUs for each relation this machine has,
//! and the reason where it has none.

use super::cpu_list::CpuList;
use super::topology::{Cpu, Relation, Topology};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A pair for one relation, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pair {
    /// The relation.
    pub relation: Relation,
    /// The CPUs: the initiator's or notifier's first. Missing where
    /// this process can have no such pair.
    pub cpus: Option<[u32; 2]>,
    /// Which pair it is, or what is lacking.
    pub why: String,
}

impl Topology {
    /// One pair for every relation, nearest first, those that do not exist among them.
    ///
    /// All pairs start from one CPU, so that figures of two relations differ by
    /// the partner alone. It is the CPU with the most relations; among equals
    /// an isolated one, then not CPU 0, where most kernels keep time and take
    /// device interrupts. Partners are chosen alike, of the same kind of core
    /// where the machine has several; of other nodes the farthest is taken.
    pub fn pairs(&self) -> Vec<Pair> {
        let anchor = self.anchor();
        let usable = self.first_pairs(&self.usable);
        let online = self.first_pairs(&self.online);
        let mut pairs = Vec::new();
        for relation in Relation::ALL {
            let cpus = anchor
                .and_then(|a| self.partnered(a, relation))
                .or_else(|| self.partnered(usable.get(&relation)?[0], relation));
            let why = match cpus {
                Some(cpus) => self.describe(cpus),
                // Not a lack: the kernel tells for all CPUs what they share.
                None if relation == Relation::OtherCpu => continue,
                None => self.lack(relation, online.get(&relation)),
            };
            pairs.push(Pair { relation, cpus, why });
        }
        pairs
    }

    pub fn pair_for(&self, relation: Relation) -> Option<[u32; 2]> {
        self.pairs().into_iter().find(|pair| pair.relation == relation)?.cpus
    }

    /// The nearest two usable CPUs that are two cores, for whatever
    /// needs any two: siblings only if there is nothing else.
    pub fn two_cores(&self) -> Option<[u32; 2]> {
        let pairs = self.pairs();
        let other_core = pairs.iter().filter(|pair| pair.relation > Relation::SmtSibling);
        let sibling = pairs.iter().filter(|pair| pair.relation == Relation::SmtSibling);
        other_core.chain(sibling).find_map(|pair| pair.cpus)
    }

    fn anchor(&self) -> Option<u32> {
        let relations = |a: u32| {
            let mut seen: Vec<Relation> = self.usable.iter().map(|b| self.relation(a, b)).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len()
        };
        self.one_of_each_sort(&self.usable).into_iter().max_by_key(|cpu| {
            (relations(*cpu), self.is_isolated(*cpu), self.is_strong(*cpu), *cpu != 0, Reverse(*cpu))
        })
    }

    /// A pair among `cpus` of each relation they have.
    fn first_pairs(&self, cpus: &CpuList) -> BTreeMap<Relation, [u32; 2]> {
        let mut first = BTreeMap::new();
        for a in self.one_of_each_sort(cpus) {
            for b in cpus.iter() {
                first.entry(self.relation(a, b)).or_insert([a, b]);
            }
        }
        first
    }

    /// One CPU for each sort there is among `cpus`: CPUs of one sort have the same relations to the
    /// others of them, so that a machine of a thousand CPUs need not be looked at in a million
    /// pairs. CPU 0 stands for its sort only where it is the only one.
    fn one_of_each_sort(&self, cpus: &CpuList) -> Vec<u32> {
        let mut sorts = BTreeMap::new();
        for cpu in self.cpus.iter().filter(|cpu| cpus.contains(cpu.id)) {
            let sharers = |list: &Option<CpuList>| list.as_ref().map(|list| list.and(cpus).len());
            let caches = (sharers(&cpu.smt), sharers(&cpu.l2), sharers(&cpu.cluster), sharers(&cpu.l3));
            let sort = (caches, cpu.package, cpu.node, cpu.kind.as_deref(), self.is_isolated(cpu.id));
            let known = sorts.entry(sort).or_insert(cpu.id);
            if *known == 0 {
                *known = cpu.id;
            }
        }
        sorts.into_values().collect()
    }

    /// The pair of `a` with the best of its partners in `relation`.
    fn partnered(&self, a: u32, relation: Relation) -> Option<[u32; 2]> {
        let partners = self.usable.iter().filter(|b| self.relation(a, *b) == relation);
        let best = partners.max_by_key(|b| {
            let distance = if relation == Relation::OtherNode { self.distance(a, *b) } else { None };
            (self.kind(a) == self.kind(*b), distance, self.is_isolated(*b), *b != 0, Reverse(*b))
        })?;
        Some([a, best])
    }

    fn describe(&self, [a, b]: [u32; 2]) -> String {
        if a == b {
            return format!("CPU {a} for both");
        }
        let mut text = format!("CPUs {a} and {b}");
        if let (Some(a), Some(b)) = (self.cpu(a), self.cpu(b)) {
            let mut differ = |name: &str, a: Option<String>, b: Option<String>| {
                if let (Some(a), Some(b)) = (a, b)
                    && a != b
                {
                    text += &format!(", {name} {a} and {b}");
                }
            };
            let number = |number: Option<i32>| number.map(|number| number.to_string());
            differ("kinds", a.kind.clone(), b.kind.clone());
            differ("packages", number(a.package), number(b.package));
            differ("nodes", a.node.map(|node| node.to_string()), b.node.map(|node| node.to_string()));
        }
        if let Some(distance) = self.distance(a, b).filter(|distance| *distance > 10) {
            text += &format!(", distance {distance}");
        }
        text
    }

    /// Why this process can have no pair in `relation`; `online` is such a pair it may not use.
    fn lack(&self, relation: Relation, online: Option<&[u32; 2]>) -> String {
        if let Some([a, b]) = online {
            return format!(
                "such CPUs are online ({a} and {b}), but this process may use only {}",
                self.usable
            );
        }
        if self.usable.is_empty() {
            return "this process may use no CPU that is online".to_owned();
        }
        if self.online.len() == 1 {
            return "this machine has one CPU online".to_owned();
        }
        let hidden = |known: fn(&Cpu) -> bool| !self.cpus.iter().any(known);
        let what = match relation {
            Relation::SameCore => "this process may use no CPU",
            Relation::SmtSibling if hidden(|cpu| cpu.smt.is_some()) => {
                "the kernel does not show which CPUs share a core (no topology in sysfs or /proc/cpuinfo)"
            }
            Relation::SmtSibling => match self.smt_control.as_deref() {
                Some("off" | "forceoff") => "SMT is switched off (/sys/devices/system/cpu/smt/control)",
                _ => "this machine has no SMT siblings online",
            },
            Relation::SameL2 if hidden(|cpu| cpu.l2.is_some()) => {
                "the kernel does not show which CPUs share a second-level cache"
            }
            Relation::SameL2 => "no two cores share a second-level cache",
            Relation::SameCluster if hidden(|cpu| cpu.cluster.is_some()) => {
                "the kernel shows no clusters of cores"
            }
            Relation::SameCluster => "no two cores form a cluster without sharing a second-level cache",
            Relation::SameL3 if hidden(|cpu| cpu.l3.is_some()) => {
                "the kernel does not show which CPUs share a third-level cache"
            }
            Relation::SameL3 => "no two cores share a third-level cache and nothing nearer",
            Relation::SameNode if hidden(|cpu| cpu.smt.is_some()) => {
                "the kernel does not show what two CPUs share here"
            }
            Relation::SameNode => "all cores of a node share a cache",
            Relation::OtherPackage => "there are no two packages in one NUMA node",
            Relation::OtherNode if self.nodes.is_empty() => "the kernel shows no NUMA nodes",
            Relation::OtherNode => "this machine has one NUMA node",
            Relation::OtherCpu => "the kernel tells for all CPUs what they share",
        };
        what.to_owned()
    }

    fn is_isolated(&self, cpu: u32) -> bool {
        self.isolated.as_ref().is_some_and(|isolated| isolated.contains(cpu))
    }

    /// Whether it is of the strongest kind of core there is.
    fn is_strong(&self, cpu: u32) -> bool {
        let strength = |kind: &str| match kind {
            "core" => u32::MAX,
            capacity => capacity.parse().unwrap_or(0),
        };
        let strongest = self.cpus.iter().filter_map(|cpu| cpu.kind.as_deref().map(strength)).max();
        self.kind(cpu).map(strength) == strongest
    }

    fn kind(&self, cpu: u32) -> Option<&str> {
        self.cpu(cpu)?.kind.as_deref()
    }

    fn distance(&self, a: u32, b: u32) -> Option<u32> {
        let position = |cpu: u32| self.nodes.iter().position(|node| node.cpus.contains(cpu));
        self.nodes.get(position(a)?)?.distances.get(position(b)?).copied()
    }
}
