// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wishes about the memory of a mapping, and which of them the machine refused.

use crate::errno::checked;
use crate::mapping::Mapping;
use rustix::io::Errno;
use rustix::mm::mlock;
use std::ffi::{c_int, c_ulong};
use std::fmt;

/// Wishes about memory. All default to no.
///
/// A wish the machine refuses does not stop the rendezvous: it is
/// listed in [`Segment::refused`](crate::rendezvous::Segment::refused),
/// for the caller to ignore or to give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOptions {
    /// 2 MiB pages from the machine's pool (`vm.nr_hugepages`). Such a segment can be shared with
    /// trusted peers only: [`MapError::HugePages`](crate::mapping::MapError::HugePages).
    pub huge_pages: bool,
    /// Never swapped out (`mlock`, bounded by `RLIMIT_MEMLOCK`).
    pub locked: bool,
    /// On this NUMA node only (`mbind`).
    pub numa_node: Option<u32>,
    /// Every page there before the first use (`MADV_POPULATE_WRITE`, Linux 5.14). Where the memory
    /// cgroup is too small for them the kernel kills the process all the same: here, and not at
    /// some touch in the middle of its work.
    pub populated: bool,
}

/// A wish the machine refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The field of [`MemoryOptions`].
    pub option: &'static str,
    /// What the kernel said.
    pub errno: Errno,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cure = match self.option {
            "huge_pages" => "raise vm.nr_hugepages",
            "locked" => "raise RLIMIT_MEMLOCK",
            "numa_node" => "choose a node of this machine that this process may use",
            _ => "free memory, or use Linux 5.14 or later",
        };
        write!(f, "{} could not be had: {}; {cure}", self.option, self.errno)
    }
}

/// Does to an existing mapping what `wishes` says. (Huge pages are chosen when it is made.)
pub(crate) fn apply(mapping: &Mapping, wishes: &MemoryOptions) -> Vec<Refusal> {
    let (base, length) = mapping.whole();
    let mut refused = Vec::new();
    let mut note = |option, result: Result<(), Errno>| {
        if let Err(errno) = result {
            refused.push(Refusal { option, errno });
        }
    };
    // The node first: it decides where the pages come from that the others make.
    if let Some(node) = wishes.numa_node {
        note("numa_node", bind(base, length, node));
    }
    if wishes.populated {
        // SAFETY: the range is the mapping; populating changes no content.
        let result = unsafe { libc::madvise(base, length, libc::MADV_POPULATE_WRITE) };
        note("populated", checked(result).map(drop));
    }
    if wishes.locked {
        // SAFETY: the range is the mapping; locking changes no content.
        note("locked", unsafe { mlock(base, length) });
    }
    refused
}

fn bind(base: *mut std::ffi::c_void, length: usize, node: u32) -> Result<(), Errno> {
    const BITS: u32 = c_ulong::BITS;
    const WORDS: usize = 16;
    let mut nodes = [0 as c_ulong; WORDS];
    let word = nodes.get_mut((node / BITS) as usize).ok_or(Errno::INVAL)?;
    *word = 1 << (node % BITS);
    const MPOL_BIND: c_int = 2;
    // The kernel wants the number of bits plus one (mbind(2), "BUGS" of set_mempolicy).
    let most = WORDS * BITS as usize + 1;
    // SAFETY: the range is the mapping, and `nodes` has the bits that `most` says.
    let result = unsafe { libc::syscall(libc::SYS_mbind, base, length, MPOL_BIND, nodes.as_ptr(), most, 0) };
    checked(result).map(drop)
}
