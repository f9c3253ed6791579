// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs there are, which of them this process may use, and what any two of them share.

use super::cpu_list::CpuList;
use serde::{Deserialize, Serialize};

/// The CPUs of a machine.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Topology {
    /// CPUs that are plugged in.
    pub present: Option<CpuList>,
    /// CPUs that run.
    pub online: CpuList,
    /// The affinity mask this process was started with.
    pub affinity: Option<CpuList>,
    /// CPUs the process's cgroup allows.
    pub cpuset: Option<CpuList>,
    /// CPUs that run and are allowed by both.
    pub usable: CpuList,
    /// CPUs kept out of the scheduler's load balancing (`isolcpus=`, isolated cpuset partitions).
    pub isolated: Option<CpuList>,
    /// Whether SMT is on: the kernel's word, `on`, `off`, `forceoff`,
    /// `notsupported`, `notimplemented`.
    pub smt_control: Option<String>,
    /// Each CPU that runs, by ascending number.
    pub cpus: Vec<Cpu>,
    /// NUMA nodes; empty where the kernel shows none.
    pub nodes: Vec<Node>,
}

/// One CPU and what it shares with others. What the kernel does not tell is missing.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cpu {
    /// Its number.
    pub id: u32,
    /// Its package (socket).
    pub package: Option<i32>,
    /// Its die, counted within the package.
    pub die: Option<i32>,
    /// Its core, counted within the package or the die.
    pub core: Option<i32>,
    /// Its NUMA node.
    pub node: Option<u32>,
    /// CPUs of the same core, itself among them.
    pub smt: Option<CpuList>,
    /// CPUs behind the same second-level cache.
    pub l2: Option<CpuList>,
    /// CPUs of the same cluster: a group of cores that share an L2 cache or an L3 tag (kernel
    /// Documentation/admin-guide/cputopology.rst).
    pub cluster: Option<CpuList>,
    /// CPUs behind the same third-level cache.
    pub l3: Option<CpuList>,
    /// Its kind where the machine has several: `core` and `atom` on Intel hybrids, else its
    /// capacity relative to the strongest CPU, of 1024.
    pub kind: Option<String>,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// Its CPUs.
    pub cpus: CpuList,
    /// Distance to each node in the order of [`Topology::nodes`]; 10 is its own memory.
    pub distances: Vec<u32>,
}

/// What two CPUs have in common, nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// They are one CPU: both sides take turns.
    SameCore,
    /// Two hardware threads of one core.
    SmtSibling,
    /// Two cores behind one second-level cache.
    SameL2,
    /// Two cores of one cluster that do not share a second-level cache.
    SameCluster,
    /// Two cores behind one third-level cache.
    SameL3,
    /// Two cores of one NUMA node and package that share none of these caches.
    SameNode,
    /// Two packages of one NUMA node.
    OtherPackage,
    /// Two NUMA nodes.
    OtherNode,
    /// Two CPUs, and the kernel does not tell what they share.
    OtherCpu,
}

impl Relation {
    /// Every relation, nearest first.
    pub const ALL: [Self; 9] = [
        Self::SameCore,
        Self::SmtSibling,
        Self::SameL2,
        Self::SameCluster,
        Self::SameL3,
        Self::SameNode,
        Self::OtherPackage,
        Self::OtherNode,
        Self::OtherCpu,
    ];

    /// The name used on the command line and in result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::SameCore => "same-core",
            Self::SmtSibling => "smt-sibling",
            Self::SameL2 => "same-l2",
            Self::SameCluster => "same-cluster",
            Self::SameL3 => "same-l3",
            Self::SameNode => "same-node",
            Self::OtherPackage => "other-package",
            Self::OtherNode => "other-node",
            Self::OtherCpu => "other-cpu",
        }
    }
}

/// Why a CPU cannot be used, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    #[error("there is no CPU {cpu} on this machine; usable are {usable}")]
    Nonexistent { cpu: u32, usable: CpuList },
    /// It exists and does not run.
    #[error(
        "CPU {cpu} is offline; bring it up with `echo 1 > /sys/devices/system/cpu/cpu{cpu}/online` \
         as root, or use one of {usable}"
    )]
    Offline { cpu: u32, usable: CpuList },
    /// It runs, and the cgroup of this process does not allow it.
    #[error(
        "CPU {cpu} is outside this process's cpuset ({cpuset}); have the container or cgroup given \
         the CPU, or use one of {usable}"
    )]
    OutsideCpuset { cpu: u32, cpuset: CpuList, usable: CpuList },
    /// It runs, and the affinity mask this process inherited leaves it out.
    #[error(
        "CPU {cpu} is outside this process's affinity mask ({affinity}); start it with `taskset -c \
         {wanted} doorbell …`, or use one of {usable}"
    )]
    OutsideAffinity {
        cpu: u32,
        affinity: CpuList,
        /// The mask with every CPU that was asked for.
        wanted: CpuList,
        usable: CpuList,
    },
}

impl Topology {
    /// The CPU with this number, if it runs.
    pub fn cpu(&self, id: u32) -> Option<&Cpu> {
        self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok().map(|index| &self.cpus[index])
    }

    /// What CPUs `a` and `b` have in common, as far as the kernel tells.
    pub fn relation(&self, a: u32, b: u32) -> Relation {
        if a == b {
            return Relation::SameCore;
        }
        let (Some(first), Some(second)) = (self.cpu(a), self.cpu(b)) else { return Relation::OtherCpu };
        let share = |list: &Option<CpuList>| list.as_ref().is_some_and(|list| list.contains(b));
        if share(&first.smt) {
            return Relation::SmtSibling;
        }
        if share(&first.l2) {
            return Relation::SameL2;
        }
        if share(&first.cluster) {
            return Relation::SameCluster;
        }
        if share(&first.l3) {
            return Relation::SameL3;
        }
        let same = |a: Option<i64>, b: Option<i64>| Some(a? == b?);
        let same_package = same(first.package.map(i64::from), second.package.map(i64::from));
        let same_node = same(first.node.map(i64::from), second.node.map(i64::from));
        match (same_node, same_package) {
            (Some(false), _) => Relation::OtherNode,
            // Where the core of a CPU is unknown, the other may be its sibling.
            _ if first.smt.is_none() => Relation::OtherCpu,
            (_, Some(false)) => Relation::OtherPackage,
            // A kernel built without NUMA has a single node and shows none.
            (Some(true), _) | (None, Some(true)) => Relation::SameNode,
            (None, None) if self.nodes.is_empty() => Relation::SameNode,
            (None, None) => Relation::OtherCpu,
        }
    }

    /// Whether all of `cpus` can be used, and if not what to do about
    /// the first that cannot, and about those with it.
    pub fn check(&self, cpus: &[u32]) -> Result<(), CpuError> {
        cpus.iter().try_for_each(|cpu| self.check_one(*cpu, cpus))
    }

    fn check_one(&self, cpu: u32, asked: &[u32]) -> Result<(), CpuError> {
        let usable = self.usable.clone();
        if usable.contains(cpu) {
            return Ok(());
        }
        if !self.online.contains(cpu) {
            let exists = self.present.as_ref().is_some_and(|present| present.contains(cpu));
            return Err(if exists {
                CpuError::Offline { cpu, usable }
            } else {
                CpuError::Nonexistent { cpu, usable }
            });
        }
        match (&self.cpuset, &self.affinity) {
            (Some(cpuset), _) if !cpuset.contains(cpu) => {
                Err(CpuError::OutsideCpuset { cpu, cpuset: cpuset.clone(), usable })
            }
            (_, affinity) => {
                let affinity = affinity.clone().unwrap_or_default();
                let wanted = affinity.iter().chain(asked.iter().copied()).collect();
                Err(CpuError::OutsideAffinity { cpu, affinity, wanted, usable })
            }
        }
    }
}
