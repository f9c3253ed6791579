// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs near to the GPU and far from it.

use doorbell_results::machine::topology::Topology;

/// How a CPU stands to the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distance {
    /// Of the same NUMA node.
    Near,
    /// Of the node that is farthest from it.
    Far,
}

/// Why there is no such CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoCpu {
    #[error(
        "this machine has one NUMA node, or tells of none: no CPU is nearer to the GPU than \
         another; give --cpu a number"
    )]
    OneNode,
    #[error(
        "the kernel does not tell at which NUMA node the GPU is (numa_node of its PCI device); \
         give --cpu a number"
    )]
    Untold,
    #[error("the GPU is at NUMA node {0}, which no node of this machine's CPUs is; give --cpu a number")]
    NoNode(u32),
    #[error("this process may use no CPU of NUMA node {0}; give it one, or give --cpu a number")]
    NoneUsable(u32),
}

/// The first usable CPU of `topology` that stands so to a GPU at `node`.
pub(super) fn cpu_at(distance: Distance, node: Option<u32>, topology: &Topology) -> Result<u32, NoCpu> {
    let nodes = &topology.nodes;
    if nodes.len() < 2 {
        return Err(NoCpu::OneNode);
    }
    let at = node.ok_or(NoCpu::Untold)?;
    let own = nodes.iter().find(|one| one.id == at).ok_or(NoCpu::NoNode(at))?;
    let others = nodes.iter().zip(&own.distances).filter(|(one, _)| one.id != at && !one.cpus.is_empty());
    let chosen = match distance {
        Distance::Near => own,
        Distance::Far => others.max_by_key(|(_, far)| **far).ok_or(NoCpu::OneNode)?.0,
    };
    let usable = chosen.cpus.and(&topology.usable);
    usable.iter().next().ok_or(NoCpu::NoneUsable(chosen.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_machine::pci;
    use doorbell_machine::root::Root;

    /// The files of a machine of three nodes, the last of which has no CPU, with a GPU at `node`.
    fn machine(node: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("sys/devices/system/cpu/online", "0-7\n");
        for (node, cpus, distances) in [(0, "0-3", "10 21 30"), (1, "4-7", "21 10 30"), (2, "", "30 30 10")] {
            write(&format!("sys/devices/system/node/node{node}/cpulist"), &format!("{cpus}\n"));
            write(&format!("sys/devices/system/node/node{node}/distance"), &format!("{distances}\n"));
        }
        write("sys/bus/pci/devices/0000:ca:00.0/numa_node", &format!("{node}\n"));
        let root = Root::at(folder.path());
        (folder, root)
    }

    #[test]
    fn near_is_of_the_gpus_node_and_far_of_the_farthest_one_that_has_cpus() {
        let (_folder, root) = machine("1");
        let mut topology = doorbell_machine::topology::read(&root, None);
        // As the driver writes it.
        let node = pci::node(&root, "0000:CA:00.0");
        assert_eq!(node, Some(1));
        assert_eq!(cpu_at(Distance::Near, node, &topology), Ok(4));
        assert_eq!(cpu_at(Distance::Far, node, &topology), Ok(0));
        topology.usable = [1, 2, 3].into_iter().collect();
        assert_eq!(cpu_at(Distance::Far, node, &topology), Ok(1));
        assert_eq!(cpu_at(Distance::Near, node, &topology), Err(NoCpu::NoneUsable(1)));
    }

    #[test]
    fn where_the_kernel_tells_no_node_or_there_is_but_one_it_says_so() {
        let (_folder, root) = machine("-1");
        let mut topology = doorbell_machine::topology::read(&root, None);
        assert_eq!(pci::node(&root, "0000:ca:00.0"), None);
        assert_eq!(pci::node(&root, "../../../etc"), None);
        assert_eq!(cpu_at(Distance::Near, None, &topology), Err(NoCpu::Untold));
        assert_eq!(cpu_at(Distance::Near, Some(7), &topology), Err(NoCpu::NoNode(7)));
        topology.nodes.truncate(1);
        assert_eq!(cpu_at(Distance::Far, Some(0), &topology), Err(NoCpu::OneNode));
    }
}
