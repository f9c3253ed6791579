// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mechanisms as a fan-out uses them: one notifier, many receivers, an object for each.
//!
//! Most are an ordinary mechanism with one line per receiver (`each`); what differs from that has a file of its own.
//! Adding a way is adding a line in [`all`], and a file where it is not a line per receiver.

use std::time::Duration;

use super::{Host, Notifier, OpenError, Site, Unavailable, Waiter};
use crate::machine::clock::{Clock, Ticks};
use crate::nearest::nearest;
use crate::record::subject::{Notification, Subject};
use crate::trial::fanout::notify::{self, Notified};
use crate::trial::fanout::receive;
use crate::trial::fanout::table::Table;
use crate::trial::side::SideError;

mod each;
mod for_all;
mod null;
mod sem_sysv_many;

/// What a way of fanning out is opened for.
#[derive(Debug, Clone, Copy)]
pub struct Hall {
    /// Receivers.
    pub receivers: u32,
    /// The clock of the run.
    pub clock: Clock,
}

/// What a way needs of the machine for some number of receivers, beside the receivers themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Descriptors in the process that has most of them.
    pub descriptors: u64,
    /// System V semaphore sets.
    pub semaphore_sets: u64,
    /// Semaphores in the largest of them.
    pub semaphores_per_set: u64,
    /// Bytes of files under `/dev/shm`.
    pub shm_bytes: u64,
    /// Mappings in the process that has most of them.
    pub mappings: u64,
    /// Signals that may be queued at one time.
    pub queued_signals: u64,
}

/// An open fan-out: an end for the notifier and one for each receiver.
pub trait Fan: Send + Sync + 'static {
    /// The end that notifies one receiver.
    type Notifier: Notifier;
    /// A receiver's end.
    type Waiter: Waiter;
    /// Takes the end of receiver `number`, in its own process or thread, and makes its object there where a process can
    /// make it for another to find.
    fn waiter(&self, number: u32) -> Result<Self::Waiter, OpenError>;
    /// Takes the notifying end of receiver `number`, in the notifier's process or thread, after all receivers stand
    /// ready.
    fn notifier(&self, number: u32) -> Result<Self::Notifier, OpenError>;
    /// Told once, before the first round, when that round begins and how far apart rounds are.
    fn begins(&self, first: Ticks, interval: Ticks) {
        let _ = (first, interval);
    }
    /// Told when every receiver has been posted to in so many rounds, or will be next because the run is over.
    #[inline(always)]
    fn walked(&self, rounds: u64) {
        let _ = rounds;
    }
    /// The moment receiver `number` is to wake in `round` (from 0) where nobody posts; none where a post wakes it.
    #[inline(always)]
    fn due(&self, number: u32, round: u64) -> Option<Ticks> {
        let _ = (number, round);
        None
    }
    /// The interval between rounds that it can keep, given the one `asked` for.
    fn interval(&self, asked: Duration) -> Duration {
        asked
    }
}

/// An open fan-out without its type; the loops inside are compiled once for each.
pub trait OpenFan: Send + Sync {
    /// Plays receiver `number` to the end.
    fn receive(&self, number: u32, table: &Table) -> Result<(), SideError>;
    /// Plays a receiver of one object that all share, to the end.
    fn receive_shared(&self, number: u32, table: &Table) -> Result<(), SideError>;
    /// Plays the notifier to the end.
    fn notify(&self, table: &Table) -> Result<Notified, SideError>;
}

impl<F: Fan> OpenFan for F {
    fn receive(&self, number: u32, table: &Table) -> Result<(), SideError> {
        receive::own(self.waiter(number)?, number, table)
    }
    fn receive_shared(&self, number: u32, table: &Table) -> Result<(), SideError> {
        receive::shared(self.waiter(number)?, number, table)
    }
    fn notify(&self, table: &Table) -> Result<Notified, SideError> {
        notify::notify(self, table)
    }
}

/// A way of fanning out, by name.
pub trait FanEntry: Sync {
    /// The name on the command line and in result files.
    fn name(&self) -> &'static str;
    /// One line about it.
    fn summary(&self) -> &'static str;
    /// Whether this machine has it.
    fn available(&self, host: &Host) -> Result<(), Unavailable>;
    /// What it needs for so many receivers.
    fn needs(&self, receivers: u64) -> Needs;
    /// What each receiver is notified by.
    fn notification(&self) -> Notification;
    /// Whether all receivers wait on one object: a demonstration of what goes wrong then.
    fn shared(&self) -> bool {
        false
    }
    /// Opens it in the trial's host.
    fn open(&self, site: &Site, hall: &Hall) -> Result<Box<dyn OpenFan>, OpenError>;
}

impl dyn FanEntry {
    /// What it is.
    pub fn subject(&self) -> Subject {
        Subject::FanOut { shared: self.shared(), notification: self.notification() }
    }
}

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
    /// What was asked for.
    pub name: String,
    /// The most similar name there is.
    pub nearest: &'static str,
    /// All names.
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
            assert!(super::super::find(entry.name()).is_ok(), "{}", entry.name());
        }
    }
}
