// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whom a service turned away, and why.

use crate::counters::Refused;
use crate::rendezvous::{Reason, RendezvousError};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many are remembered.
const REMEMBERED: usize = 16;

/// Those whom a service turned away; also a client's thread may have done so in its place.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    told: Mutex<Told>,
    /// Where others see them.
    shown: Refused,
}

#[derive(Debug, Default)]
struct Told {
    count: u64,
    last: VecDeque<Reason>,
}

impl Refusals {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, error: &RendezvousError) {
        // Who hung up by itself was turned away by nobody.
        if matches!(error, RendezvousError::NoAnswer(_)) {
            return;
        }
        let reason = error.reason();
        let mut told = self.told();
        told.count += 1;
        if told.last.len() == REMEMBERED {
            told.last.pop_front();
        }
        told.last.push_back(reason);
        self.shown.add(reason.word());
    }

    pub(super) fn count(&self) -> u64 {
        self.told().count
    }

    pub(super) fn last(&self) -> Vec<Reason> {
        self.told().last.iter().copied().collect()
    }
}
