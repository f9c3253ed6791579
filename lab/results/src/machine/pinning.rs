// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the notifier and the receivers of a fan-out are spread over the CPUs.

use std::collections::BTreeSet;

use crate::machine::cpu_list::CpuList;
use crate::machine::topology::Topology;

/// A way of spreading receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pinning {
    /// Nobody is pinned: the scheduler decides.
    Unpinned,
    /// Each receiver has a CPU of its own, and so has the notifier.
    OneEach,
    /// All receivers on one CPU, the notifier on another where there is one.
    AllOnOne,
    /// Neighbours together: the first share of the receivers on the
    /// CPU nearest to the notifier's, and so on outwards.
    Compact,
    /// Dealt out in turn over all CPUs, farthest from the notifier's first.
    Scatter,
}

/// Who runs where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    pub notifier: u32,
    /// Each receiver's CPU, by number.
    pub receivers: Vec<u32>,
}

impl Spread {
    /// The CPUs that have receivers.
    pub fn receiver_cpus(&self) -> CpuList {
        self.receivers.iter().copied().collect::<BTreeSet<u32>>().into_iter().collect()
    }
}

impl Pinning {
    pub const ALL: [Self; 5] = [Self::Unpinned, Self::OneEach, Self::AllOnOne, Self::Compact, Self::Scatter];

    /// Its name in result files
    /// ([`Placement::relation`](crate::configuration::Placement::relation)).
    pub fn name(self) -> &'static str {
        match self {
            Self::Unpinned => "unpinned",
            Self::OneEach => "one-each",
            Self::AllOnOne => "all-on-one",
            Self::Compact => "compact",
            Self::Scatter => "scatter",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pinning| pinning.name() == name)
    }

    /// Who runs where; none where the scheduler decides. An error says what the machine lacks.
    pub fn spread(self, receivers: u32, topology: &Topology) -> Result<Option<Spread>, String> {
        let Some(notifier) = topology.usable.iter().next() else {
            return if self == Self::Unpinned {
                Ok(None)
            } else {
                Err("no CPU is known to be usable".to_owned())
            };
        };
        let mut near: Vec<u32> = topology.usable.iter().collect();
        near.sort_by_key(|cpu| (topology.relation(notifier, *cpu), *cpu));
        let number = near.len() as u64;
        let receivers = match self {
            Self::Unpinned => return Ok(None),
            Self::OneEach => {
                if number <= u64::from(receivers) {
                    return Err(format!(
                        "a CPU for each of {receivers} receivers and one for the notifier are {} \
                         CPUs, and this process may use {number}; use fewer receivers, or `--pin \
                         scatter`",
                        u64::from(receivers) + 1
                    ));
                }
                near[1..=receivers as usize].to_vec()
            }
            Self::AllOnOne => vec![near.get(1).copied().unwrap_or(notifier); receivers as usize],
            Self::Compact => (0..u64::from(receivers))
                .map(|index| near[(index * number / u64::from(receivers)).min(index) as usize])
                .collect(),
            Self::Scatter => near.iter().rev().cycle().take(receivers as usize).copied().collect(),
        };
        Ok(Some(Spread { notifier, receivers }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::topology::Cpu;

    /// Four cores of two packages: 0 and 1 share a cache, 2 and 3 another.
    fn two_packages() -> Topology {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        Topology {
            online: list("0-3"),
            usable: list("0-3"),
            cpus: (0..4)
                .map(|id| Cpu {
                    id,
                    package: Some((id / 2) as i32),
                    core: Some(id as i32),
                    node: Some(id / 2),
                    l3: Some(list(if id < 2 { "0-1" } else { "2-3" })),
                    ..Cpu::default()
                })
                .collect(),
            ..Topology::default()
        }
    }

    fn receivers(pinning: Pinning, number: u32) -> Vec<u32> {
        pinning.spread(number, &two_packages()).unwrap().unwrap().receivers
    }

    #[test]
    fn compact_fills_from_the_notifier_outwards_and_scatter_deals_out_from_the_far_end() {
        assert_eq!(receivers(Pinning::Compact, 8), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(receivers(Pinning::Compact, 2), [0, 1], "few receivers stay near");
        assert_eq!(receivers(Pinning::Scatter, 6), [3, 2, 1, 0, 3, 2]);
        assert_eq!(receivers(Pinning::AllOnOne, 3), [1, 1, 1]);
    }

    #[test]
    fn one_each_leaves_the_notifier_alone_or_says_how_many_cpus_it_lacks() {
        assert_eq!(receivers(Pinning::OneEach, 3), [1, 2, 3]);
        let lack = Pinning::OneEach.spread(4, &two_packages()).unwrap_err();
        assert!(lack.contains("5 CPUs") && lack.contains("may use 4"), "{lack}");
    }

    #[test]
    fn every_receiver_has_a_cpu_that_is_usable_whatever_their_number() {
        for pinning in Pinning::ALL {
            assert_eq!(Pinning::named(pinning.name()), Some(pinning));
            for number in [1, 2, 3, 20, 2000] {
                if let Ok(Some(spread)) = pinning.spread(number, &two_packages()) {
                    assert_eq!(spread.receivers.len(), number as usize, "{pinning:?}");
                    assert!(spread.receivers.iter().all(|cpu| *cpu < 4));
                }
            }
        }
    }

    #[test]
    fn a_machine_of_one_cpu_shares_it() {
        let one = Topology { usable: "5".parse().unwrap(), ..Topology::default() };
        let spread = Pinning::AllOnOne.spread(3, &one).unwrap().unwrap();
        assert_eq!((spread.notifier, spread.receivers), (5, vec![5, 5, 5]));
    }
}
