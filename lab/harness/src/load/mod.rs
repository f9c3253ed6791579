// SPDX-License-Identifier: MIT OR Apache-2.0
//! Load as a part of the instrument: workers that keep the machine
//! busy while a trial runs, and the proof that they did.
//!
//! A kind of load is one file and one line in [`all`].

use doorbell_results::configuration::Load;
use doorbell_results::nearest::{self, Unknown};

mod cache;
mod churn;
mod cpu;
mod memory;
pub mod session;
mod sqrt;

#[derive(Debug)]
pub struct LoadKind {
    pub name: &'static str,
    pub about: &'static str,
    /// Makes ready, in the worker's own process.
    begin: fn() -> std::io::Result<Work>,
}

/// Works for some tenths of a millisecond: short enough to be told to stop, long enough that
/// counting is no part of the load.
type Work = Box<dyn FnMut() -> std::io::Result<()>>;

/// Every kind. The one list to extend.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [LoadKind] {
    &[sqrt::SQRT, cpu::CPU, cache::CACHE, memory::COPY_MEMORY, churn::CHURN]
}

pub fn find(name: &str) -> Result<&'static LoadKind, Unknown> {
    nearest::find("load", all().iter(), |kind| kind.name, name)
}

/// Workers of a full load on so many CPUs: five for every three, which on the twelve CPUs of the
/// semaphore study are its twenty.
pub fn full(cpus: usize) -> u32 {
    u32::try_from((cpus * 5).div_ceil(3)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_load_of_twelve_cpus_is_twenty_workers() {
        assert_eq!([1, 2, 12].map(full), [2, 4, 20]);
    }

    #[test]
    fn every_kind_is_found_and_else_the_nearest_is_named() {
        assert!(all().iter().all(|kind| find(kind.name).unwrap().about == kind.about));
        assert_eq!(find("sqr").err().unwrap().nearest, Some("sqrt"));
    }
}
