// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a fan-out is to the harness: one notifier, many receivers, an object for each.

use std::time::Duration;

use doorbell_results::machine::clock::{Clock, Ticks};
use doorbell_results::record::subject::{Notification, Subject};

use super::notify::{self, Notified};
use super::receive;
use super::table::Table;
use crate::mechanism::{Notifier, Unavailable, Waiter};
use crate::side::SideError;
use crate::site::{OpenError, Site};

#[derive(Debug, Clone, Copy)]
pub struct FanOutContext {
    pub receivers: u32,
    pub clock: Clock,
}

/// What a way needs of the machine for some number of receivers, beside the receivers themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Descriptors in the process that has most of them.
    pub descriptors: u64,
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
    type Waiter: Waiter;
    /// Takes the end of receiver `number`, in its own process or thread, and makes its object there
    /// where a process can make it for another to find.
    fn waiter(&self, number: u32) -> Result<Self::Waiter, OpenError>;
    /// Takes the notifying end of receiver `number`, in the
    /// notifier's process or thread, after all receivers stand ready.
    fn notifier(&self, number: u32) -> Result<Self::Notifier, OpenError>;
    /// Told once, before the first round, when that round begins and how far apart rounds are.
    fn begins(&self, first: Ticks, interval: Ticks) {
        let _ = (first, interval);
    }
    /// Told when every receiver has been posted to in so many rounds,
    /// or will be next because the run is over.
    #[inline(always)]
    fn walked(&self, rounds: u64) {
        let _ = rounds;
    }
    /// The moment receiver `number` is to wake in `round` (from 0)
    /// where nobody posts; none where a post wakes it.
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
    fn receive(&self, number: u32, table: &Table) -> Result<(), SideError>;
    fn notify(&self, table: &Table) -> Result<Notified, SideError>;
}

/// Opens a fan-out in the trial's host.
pub type Opens = fn(&Site, &FanOutContext) -> Result<Box<dyn OpenFan>, OpenError>;

/// A way of fanning out.
#[derive(Debug)]
pub struct FanEntry {
    /// The name on the command line and in result files.
    pub name: &'static str,
    pub summary: &'static str,
    /// Whether this machine has it.
    pub available: fn() -> Result<(), Unavailable>,
    /// What it needs for so many receivers.
    pub needs: fn(u64) -> Needs,
    /// What each receiver is notified by.
    pub notification: Notification,
    /// Whether all receivers wait on one object: a demonstration of what goes wrong then.
    pub shared: bool,
    pub open: Opens,
}

impl FanEntry {
    pub fn subject(&self) -> Subject {
        Subject::FanOut { shared: self.shared, notification: self.notification }
    }
}

impl<F: Fan> OpenFan for F {
    fn receive(&self, number: u32, table: &Table) -> Result<(), SideError> {
        let waiter = self.waiter(number)?;
        if table.part.shared {
            receive::shared(waiter, number, table)
        } else {
            receive::own(waiter, number, table)
        }
    }
    fn notify(&self, table: &Table) -> Result<Notified, SideError> {
        notify::notify(self, table)
    }
}
