// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mechanisms as a fan-out uses them: one notifier, many receivers, an object for each.
//!
//! Most are an ordinary mechanism with one link per receiver (`each`); what differs from that has a file of its own.
//! Adding a way is adding a line in [`all`], and a file where it is not a link per receiver.

use doorbell_results::nearest::nearest;

pub use doorbell_harness::fanout::fan::{Fan, FanEntry, Hall, Needs, OpenFan};

pub use self::family::FanOuts;
mod each;
mod family;
mod for_all;
pub mod limits;
mod null;
mod sem_sysv_many;
/// Every way, in the order of the tables. The one list to extend.
pub fn all() -> &'static [&'static dyn FanEntry] {
    &[
        &null::Null,
        &each::SEM_POSIX_NAMED,
        &each::SEM_POSIX,
        &each::SEM_SYSV,
        &sem_sysv_many::SemSysvMany,
        &each::FUTEX,
        &each::EVENTFD,
        &each::UNIX_DGRAM,
        &each::CONDVAR,
        &each::SIGNAL,
        &for_all::SemPosixForAll,
    ]
}
/// The way called `name`, or the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static dyn FanEntry, UnknownFan> {
    all().iter().copied().find(|entry| entry.name() == name).ok_or_else(|| UnknownFan {
        name: name.to_owned(),
        nearest: nearest(name, all().iter().map(|entry| entry.name())).unwrap_or("null"),
        known: all().iter().map(|entry| entry.name()).collect::<Vec<_>>().join(", "),
    })
}
/// No way has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing that fans out is called '{name}'; did you mean '{nearest}'? There are {known}")]
pub struct UnknownFan {
    pub name: String,
    /// The most similar name there is.
    pub nearest: &'static str,
    pub known: String,
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_a_misspelt_one_meets_the_nearest() {
        for entry in all() {
            assert_eq!(find(entry.name()).unwrap().name(), entry.name());
        }
        assert_eq!(find("sem-posix-nmaed").err().unwrap().nearest, "sem-posix-named");
    }

    #[test]
    fn what_is_also_a_mechanism_has_its_name() {
        let own = ["sem-sysv-many", "sem-posix-for-all"];
        for entry in all().iter().filter(|entry| !own.contains(&entry.name())) {
            assert!(crate::mechanism::find(entry.name()).is_ok(), "{}", entry.name());
        }
    }
}
