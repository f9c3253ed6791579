// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mechanisms as a fan-out uses them: one notifier, many receivers, an object for each.
//!
//! Most are an ordinary mechanism with one link per receiver (`each`);
//! what differs from that has a file of its own. Adding a way is adding
//! a line in [`all`], and a file where it is not a link per receiver.

use doorbell_results::nearest::{self, Unknown};

use doorbell_harness::fanout::fan::{Fan, FanEntry, Needs};

pub use self::family::FanOuts;
mod each;
mod family;
mod for_all;
pub mod limits;
mod links;
mod null;
mod sem_sysv_many;
/// What is fanned out where nothing is named.
pub const USUAL: &str = "sem-posix-named";

/// Every way, in the order of the tables. The one list to extend.
// A crate that inlined it would compile every loop behind it once more.
#[inline(never)]
pub fn all() -> &'static [&'static FanEntry] {
    &[
        &null::NULL,
        &links::SEM_POSIX_NAMED,
        &links::SEM_POSIX,
        &links::SEM_SYSV,
        &sem_sysv_many::MANY,
        &links::FUTEX,
        &links::EVENTFD,
        &links::UNIX_DGRAM,
        &links::CONDVAR,
        &links::SIGNAL,
        &for_all::FOR_ALL,
    ]
}

/// The way called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static FanEntry, Unknown> {
    nearest::find("fan-out", all().iter().copied(), |fan| fan.name, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_a_misspelt_one_meets_the_nearest() {
        for entry in all() {
            assert_eq!(find(entry.name).unwrap().name, entry.name);
        }
        assert_eq!(find("sem-posix-nmaed").err().unwrap().nearest, Some("sem-posix-named"));
    }

    #[test]
    fn what_is_also_a_mechanism_has_its_name() {
        let own = ["sem-sysv-many", "sem-posix-for-all"];
        for entry in all().iter().filter(|entry| !own.contains(&entry.name)) {
            assert!(crate::mechanism::find(entry.name).is_ok(), "{}", entry.name);
        }
    }
}
